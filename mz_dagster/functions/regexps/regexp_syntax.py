r"""The syntax of PostgreSQL's advanced regular expressions.

Owns `parse`: a text to a tree of `Node`s, or PostgreSQL's error. A single character, class or constraint is kept as
the source of a Python regular expression for it, whose letters and classes are those of the C locale.

Not supported, and refused: basic and extended regular expressions (options `b` and `e`), references to a group that is
repeated no times, of which PostgreSQL makes different things, references beside lookaround constraints, and a match of
a pattern with references that begins behind the last character: PostgreSQL misses some of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.functions.registry import SqlFailure

_WORD = "A-Za-z0-9_"
_SETS = {"d": "0-9", "s": r"\t\n\v\f\r ", "w": _WORD}
_COMPLEMENTS = {
    "D": r"\x00-/:-\U0010ffff",
    "S": r"\x00-\x08\x0e-\x1f!-\U0010ffff",
    "W": r"\x00-/:-@[-^`{-\U0010ffff",
}
_CLASSES = {
    "alnum": "A-Za-z0-9", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "xdigit": "0-9A-Fa-f", "word": _WORD,
}  # fmt: skip
_BOUNDARIES = {
    "<": rf"(?<![{_WORD}])(?=[{_WORD}])",
    ">": rf"(?<=[{_WORD}])(?![{_WORD}])",
    "y": rf"(?:(?<![{_WORD}])(?=[{_WORD}])|(?<=[{_WORD}])(?![{_WORD}]))",
    "Y": rf"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
}
_CONSTRAINTS = {
    "A": r"\A",
    "Z": r"\Z",
    "m": _BOUNDARIES["<"],
    "M": _BOUNDARIES[">"],
    "y": _BOUNDARIES["y"],
    "Y": _BOUNDARIES["Y"],
}
_CHARACTERS = {"a": "\a", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MAX_REPEAT = 255


@dataclass(frozen=True, slots=True)
class Options:
    """What flags say: letters' case, expanded and literal syntax, and where newlines are special.

    Attributes:
        ignore_case: Case of ASCII letters does not count.
        expanded: White space and comments of the pattern are ignored.
        literal: The pattern is a plain text.
        stops: `.` and complemented classes do not match newlines.
        anchors: `^` and `$` match at newlines, too.
        is_global: Every match counts, not the first only.
    """

    ignore_case: bool = False
    expanded: bool = False
    literal: bool = False
    stops: bool = False
    anchors: bool = False
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class Character:
    """Matches one character; `source` is Python's spelling of the set."""

    source: str


@dataclass(frozen=True, slots=True)
class Constraint:
    """Matches where Python's `source`, which takes no character, does."""

    source: str


@dataclass(frozen=True, slots=True)
class Lookaround:
    """A lookahead or lookbehind constraint."""

    body: Alternation
    ahead: bool
    positive: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A parenthesis; `number` is 0 if it does not capture."""

    body: Alternation
    number: int


@dataclass(frozen=True, slots=True)
class Backreference:
    """Matches what a group matched."""

    number: int


@dataclass(frozen=True, slots=True)
class Quantified:
    """An atom with a quantifier.

    Attributes:
        atom: What is repeated.
        least: How often at least.
        most: How often at most; None for any number.
        greedy: Whether more is preferred; None for `{m}`, which leaves that to the atom.
    """

    atom: Atom
    least: int
    most: int | None
    greedy: bool | None


@dataclass(frozen=True, slots=True)
class Alternation:
    """Branches, each a sequence."""

    branches: tuple[tuple[Item, ...], ...]


Atom = Character | Group | Backreference
Item = Atom | Constraint | Lookaround | Quantified
Node = Item | Alternation


def failure(reason: str) -> SqlFailure:
    """Returns PostgreSQL's error of a pattern."""
    return SqlFailure("2201B", f"invalid regular expression: {reason}")


def options_of(flags: str) -> Options:
    """Returns what the flags of a function say."""
    options = Options()
    for flag in flags:
        found = replace(options, is_global=True) if flag == "g" else _with_flag(options, flag)
        if found is None:
            raise SqlFailure("22023", f'invalid regular expression option: "{flag}"')
        options = found
    return options


def _with_flag(options: Options, flag: str) -> Options | None:
    match flag:
        case "i":
            return replace(options, ignore_case=True)
        case "c":
            return replace(options, ignore_case=False)
        case "n" | "m":
            return replace(options, stops=True, anchors=True)
        case "p":
            return replace(options, stops=True, anchors=False)
        case "w":
            return replace(options, stops=False, anchors=True)
        case "s":
            return replace(options, stops=False, anchors=False)
        case "x":
            return replace(options, expanded=True)
        case "t":
            return replace(options, expanded=False)
        case "q":
            return replace(options, literal=True)
        case "b" | "e":
            raise SqlFailure("0A000", "basic and extended regular expressions are not supported")
        case _:
            return None


def parse(pattern: str, options: Options) -> tuple[Alternation, Options, int]:
    """Returns the tree of a pattern, the options that hold for it, and how many groups capture.

    Example:
        >>> parse("(a|b)+c", Options())[2]
        1
    """
    parser = _Parser(pattern, options)
    tree = parser.whole()
    return tree, parser.options, parser.groups


class _Parser:
    def __init__(self, pattern: str, options: Options) -> None:
        self.text = pattern
        self.place = 0
        self.options = options
        self.groups = 0
        #: Groups that are closed, so that they can be referred to.
        self.closed: set[int] = set()
        #: Groups that are repeated no times.
        self.cancelled: set[int] = set()
        self.in_look = False

    def whole(self) -> Alternation:
        if not self.options.literal:
            self._prefixes()
        if self.options.literal:
            return Alternation((tuple(Character(re.escape(one)) for one in self.text[self.place :]),))
        tree = self._alternation()
        if self.place < len(self.text):
            raise failure("parentheses () not balanced")
        return tree

    def _prefixes(self) -> None:
        """Reads a director, `***:` or `***=`, and options, `(?i)`, at the start."""
        if self.text.startswith("***="):
            self.options = replace(self.options, literal=True)
            self.place = 4
            return
        if self.text.startswith("***:"):
            self.place = 4
        elif self.text.startswith("***"):
            raise failure("quantifier operand invalid")
        found = re.compile(r"\(\?([A-Za-z]+)").match(self.text, self.place)
        if found is None:
            return
        for flag in found.group(1):
            options = _with_flag(self.options, flag)
            if options is None:
                raise failure("invalid embedded option")
            self.options = options
        if not self.text.startswith(")", found.end()):
            raise failure("invalid embedded option")
        self.place = found.end() + 1

    # Characters.

    def _skip(self) -> None:
        """Moves past what is not part of the pattern: comments, and white space of the expanded syntax."""
        while True:
            start = self.place
            if self.options.expanded:
                while self._sees(*" \t\n\v\f\r"):
                    self.place += 1
                if self._sees("#"):
                    end = self.text.find("\n", self.place)
                    self.place = len(self.text) if end < 0 else end
            if self.text.startswith("(?#", self.place):
                end = self.text.find(")", self.place)
                self.place = len(self.text) if end < 0 else end + 1
            if self.place == start:
                return

    def _sees(self, *characters: str) -> bool:
        return self.place < len(self.text) and self.text[self.place] in characters

    def _accepts(self, text: str) -> bool:
        if not self.text.startswith(text, self.place):
            return False
        self.place += len(text)
        return True

    def _next(self) -> str:
        self.place += 1
        return self.text[self.place - 1]

    # Structure.

    def _alternation(self) -> Alternation:
        branches = [self._branch()]
        while self._accepts("|"):
            branches.append(self._branch())
        return Alternation(tuple(branches))

    def _branch(self) -> tuple[Item, ...]:
        items: list[Item] = []
        while True:
            self._skip()
            if self.place >= len(self.text) or self._sees("|", ")"):
                return tuple(items)
            groups = self.groups
            found = self._atom()
            if isinstance(found, Constraint | Lookaround):
                items.append(found)
                self._skip()
                if self._sees(*"*+?") or self._counts():
                    raise failure("quantifier operand invalid")
            else:
                items.append(self._quantified(found))
                if isinstance(items[-1], Quantified) and items[-1].most == 0:
                    self.cancelled.update(range(groups + 1, self.groups + 1))

    def _counts(self) -> bool:
        return re.compile(r"\{[0-9]").match(self.text, self.place) is not None

    def _quantified(self, atom: Atom) -> Item:
        self._skip()
        least: int
        most: int | None
        if self._sees(*"*+?"):
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._next()]
            greedy: bool | None = not self._accepts("?")
        elif self._counts():
            least, most, greedy = self._bounds()
        else:
            return atom
        self._skip()
        if self._sees(*"*+?") or self._counts():
            raise failure("quantifier operand invalid")
        return Quantified(atom, least, most, greedy)

    def _bounds(self) -> tuple[int, int | None, bool | None]:
        found = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?(\}?)(\??)").match(self.text, self.place)
        assert found is not None
        self.place = found.end()
        least = int(found.group(1))
        most = least if not found.group(2) else int(found.group(3)) if found.group(3) else None
        if not found.group(4):
            raise failure("invalid repetition count(s)" if self.place < len(self.text) else "braces {} not balanced")
        if least > _MAX_REPEAT or (most is not None and not least <= most <= _MAX_REPEAT):
            raise failure("invalid repetition count(s)")
        return least, most, None if not found.group(2) else not found.group(5)

    def _atom(self) -> Atom | Constraint | Lookaround:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._bracket()
            case "*" | "+" | "?":
                raise failure("quantifier operand invalid")
            case "{" if re.compile("[0-9]").match(self.text, self.place):
                raise failure("quantifier operand invalid")
            case ".":
                return Character(r"[^\n]" if self.options.stops else r"[\x00-\U0010ffff]")
            case "^":
                return Constraint("(?m:^)" if self.options.anchors else r"\A")
            case "$":
                return Constraint("(?m:$)" if self.options.anchors else r"\Z")
            case "\\":
                return self._escape()
            case _:
                return Character(re.escape(character))

    def _group(self) -> Group | Lookaround:
        for opening, ahead, positive in (("?=", True, True), ("?!", True, False), ("?<=", False, True)):
            if self._accepts(opening):
                return self._look(ahead=ahead, positive=positive)
        if self._accepts("?<!"):
            return self._look(ahead=False, positive=False)
        captures = not self._accepts("?:")
        if captures and self._sees("?"):
            raise failure("quantifier operand invalid")
        number = 0
        if captures and not self.in_look:
            self.groups += 1
            number = self.groups
        body = self._alternation()
        if not self._accepts(")"):
            raise failure("parentheses () not balanced")
        if number:
            self.closed.add(number)
        return Group(body, number)

    def _look(self, *, ahead: bool, positive: bool) -> Lookaround:
        before, self.in_look = self.in_look, True
        body = self._alternation()
        self.in_look = before
        if not self._accepts(")"):
            raise failure("parentheses () not balanced")
        return Lookaround(body, ahead, positive)

    # Escapes.

    def _escape(self) -> Atom | Constraint:
        if self.place >= len(self.text):
            raise failure("invalid escape \\ sequence")
        letter = self.text[self.place]
        if letter in _CONSTRAINTS:
            self.place += 1
            return Constraint(_CONSTRAINTS[letter])
        if letter in _SETS:
            self.place += 1
            return Character(f"[{_SETS[letter]}]")
        if letter in _COMPLEMENTS:
            self.place += 1
            return Character(f"[{_COMPLEMENTS[letter]}]")
        digits = re.compile("[1-9][0-9]*").match(self.text, self.place)
        if digits is not None:
            number = whole_number(digits.group())
            if len(digits.group()) == 1 or number <= self.groups:
                self.place = digits.end()
                if self.in_look or number not in self.closed:
                    raise failure("invalid backreference number")
                if number in self.cancelled:
                    raise SqlFailure("0A000", "a reference to a group that is repeated no times is not supported")
                return Backreference(number)
        return Character(re.escape(self._character_escape()))

    def _character_escape(self) -> str:
        """Moves past an escape that stands for one character, whose backslash is read, and returns it."""
        letter = self._next()
        if not (letter.isascii() and letter.isalnum()):
            return letter
        if letter in _CHARACTERS:
            return _CHARACTERS[letter]
        match letter:
            case "c" if self.place < len(self.text):
                return chr(ord(self._next()) & 31)
            case "u":
                return self._coded("[0-9A-Fa-f]{4}")
            case "U":
                return self._coded("[0-9A-Fa-f]{8}")
            case "x":
                return self._coded("[0-9A-Fa-f]{1,255}")
            case "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7":
                found = re.compile("[0-3]?[0-7]{1,2}").match(self.text, self.place - 1)
                assert found is not None
                self.place = found.end()
                return chr(int(found.group(), 8))
            case _:
                raise failure("invalid escape \\ sequence")

    def _coded(self, digits: str) -> str:
        found = re.compile(digits).match(self.text, self.place)
        if found is None or int(found.group(), 16) > 0x10FFFF:
            raise failure("invalid escape \\ sequence")
        self.place = found.end()
        return chr(int(found.group(), 16))

    # Bracket expressions.

    def _bracket(self) -> Character | Constraint:
        for opening, name in (("[:<:]]", "<"), ("[:>:]]", ">")):
            if self._accepts(opening):
                return Constraint(_BOUNDARIES[name])
        complemented = self._accepts("^")
        parts: list[str] = []
        first = True
        while first or not self._sees("]"):
            if self.place >= len(self.text):
                raise failure("brackets [] not balanced")
            parts.append(self._part(first=first))
            first = False
        self.place += 1
        if complemented and self.options.stops:
            parts.append(r"\n")
        return Character(f"[{'^' if complemented else ''}{''.join(parts)}]")

    def _part(self, *, first: bool) -> str:
        """Moves past one element of a bracket expression, or a range, and returns its source."""
        if self._sees("-") and not first and not self.text.startswith("-]", self.place):
            raise failure("invalid character range")
        found = self._element()
        if len(found) > 1:
            if self._sees("-") and not self.text.startswith("-]", self.place):
                raise failure("invalid character range")
            return found[1]
        start = end = found[0]
        if self._sees("-") and not self.text.startswith("-]", self.place):
            self.place += 1
            if self.place >= len(self.text):
                raise failure("brackets [] not balanced")
            last = self._element()
            if len(last) > 1:
                raise failure("invalid character range")
            end = last[0]
        if start > end:
            raise failure("invalid character range")
        return re.escape(start) if start == end else f"{re.escape(start)}-{re.escape(end)}"

    def _element(self) -> tuple[str] | tuple[str, str]:
        """Moves past an element and returns its character, or nothing and the source of a set."""
        for opening, closing in (("[.", ".]"), ("[=", "=]"), ("[:", ":]")):
            if not self._accepts(opening):
                continue
            end = self.text.find(closing, self.place)
            if end < 0:
                raise failure("brackets [] not balanced")
            name, self.place = self.text[self.place : end], end + 2
            if opening == "[:":
                if name not in _CLASSES:
                    raise failure("invalid character class")
                letters = name in ("lower", "upper") and self.options.ignore_case
                return ("", "A-Za-z" if letters else _CLASSES[name])
            if len(name) != 1:
                raise failure("invalid collating element")
            return (name,)
        character = self._next()
        if character != "\\":
            return (character,)
        if self.place >= len(self.text):
            raise failure("brackets [] not balanced")
        letter = self.text[self.place]
        if letter in _SETS or letter in _COMPLEMENTS:
            self.place += 1
            return ("", _SETS.get(letter) or _COMPLEMENTS[letter])
        if letter in _CONSTRAINTS or letter in "89":
            raise failure("invalid escape \\ sequence")
        return (self._character_escape(),)
