r"""The language of SQL/JSON paths: from the text of a path to its steps, as PostgreSQL 15 reads it.

    strict $.a[*] ? (@.b > 1 && @.c like_regex "^x" flag "i").c.size()

A path is a mode and a chain of steps. What it computes with, the operands of an operator, subscripts and the predicate
of a filter, are chains within a step. `path` evaluates them.

The templates of `.datetime()` are a language of their own (`moments/moment_templates`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mz_dagster.functions.jsonb.jsonb import Node, Number, number_of
from mz_dagster.functions.regexps.regexp_match import Pattern, compiled
from mz_dagster.functions.regexps.regexp_syntax import Options
from mz_dagster.functions.registry import SqlFailure

_DEEPEST = 2**32 - 1
"""The level that `last` names."""
_MOST_NESTED = 100
_CACHE_SIZE = 256

_ORDERINGS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_METHODS = frozenset(("abs", "size", "type", "floor", "double", "ceiling", "keyvalue"))
_KEYWORDS = _METHODS | frozenset((
    "is", "to", "lax", "flag", "last", "null", "true", "with", "false", "exists", "starts", "strict", "datetime",
    "unknown", "like_regex",
))  # fmt: skip
#: Those that are written in small letters only.
_IN_SMALL_LETTERS = frozenset(("null", "true", "false"))

_SPECIAL = r"?%$.\[\]{}()|&!=<>@#,*:\-+/"
_BLANK = " \t\n\r\f"
_SKIPPED = re.compile(r"(?:[ \t\n\r\f]+|/\*(?:[^*]|\*+[^*/])*\*+/)*")
_NUMBER = re.compile(r"((?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_CUT_EXPONENT = re.compile(r"[eE][-+]?")
_WORD = re.compile(rf'(?:[^{_SPECIAL}{_BLANK}\\"]|\\(?s:.))+')
_OPERATOR = re.compile(r"&&|\|\||\*\*|<=|>=|==|<>|!=|[?%$.\[\]{}()|&!=<>@#,*:\-+/]")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|((?s:.)))")
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLAIN_INTEGER = re.compile("[0-9]+")


# ---- steps


@dataclass(frozen=True, slots=True)
class Root:
    """`$`."""


@dataclass(frozen=True, slots=True)
class Current:
    """`@`: what a filter looks at."""


@dataclass(frozen=True, slots=True)
class Last:
    """`last`: the last subscript of the array."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A scalar."""

    value: Node


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """`.key`."""

    key: str


@dataclass(frozen=True, slots=True)
class EveryMember:
    """`.*`."""


@dataclass(frozen=True, slots=True)
class EveryElement:
    """`[*]`."""


@dataclass(frozen=True, slots=True)
class Descendants:
    """`.**{first to last}`: what is so many levels below, and between."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Subscripts:
    """`[a, b to c]`."""

    ranges: tuple[tuple[Chain, Chain | None], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """`?(predicate)`."""

    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Method:
    """`.name()`."""

    name: str


@dataclass(frozen=True, slots=True)
class DateTime:
    """`.datetime(template)`; None is any of ISO 8601."""

    template: str | None


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An operator between two numbers."""

    operator: str
    left: Chain
    right: Chain


@dataclass(frozen=True, slots=True)
class Sign:
    """`+` or `-` before numbers."""

    operator: str
    operand: Chain


# ---- predicates, which are steps, too: what they say is a boolean, or null


@dataclass(frozen=True, slots=True)
class Comparison:
    """An operator between values."""

    operator: str
    left: Chain
    right: Chain


@dataclass(frozen=True, slots=True)
class Both:
    """`&&`."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Either:
    """`||`."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Not:
    """`!`."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class IsUnknown:
    """`is unknown`."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class Exists:
    """`exists(...)`."""

    operand: Chain


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`starts with`."""

    operand: Chain
    initial: Chain


@dataclass(frozen=True, slots=True)
class Like:
    """`like_regex`."""

    operand: Chain
    pattern: str
    options: Options

    @property
    def compiled(self) -> Pattern:
        """The pattern, made once in a process."""
        return compiled(self.pattern, self.options)


Predicate: TypeAlias = Comparison | Both | Either | Not | IsUnknown | Exists | StartsWith | Like
PREDICATES = (Comparison, Both, Either, Not, IsUnknown, Exists, StartsWith, Like)
Step: TypeAlias = (
    Root | Current | Last | Constant | Variable | Member | EveryMember | EveryElement | Descendants | Subscripts
    | Filter | Method | DateTime | Arithmetic | Sign | Predicate
)  # fmt: skip
Chain: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """A path.

    Attributes:
        is_strict: Whether what is not there is an error, and an array is never taken for its elements.
        chain: Its steps.
    """

    is_strict: bool
    chain: Chain


_CACHE: dict[str, Path] = {}


def path_of(text: str) -> Path:
    """Returns the path that a text spells, from a cache if it was asked for before.

    Raises:
        SqlFailure: It spells none.

    Example:
        >>> path_of("strict $.a")
        Path(is_strict=True, chain=(Root(), Member(key='a')))
    """
    found = _CACHE.get(text)
    if found is None:
        tokens = _tokens(text)
        if len(tokens) == 1:
            raise SqlFailure("22P02", f'invalid input syntax for type jsonpath: "{text}"')
        found = _Reader(tokens).path()
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        _CACHE[text] = found
    return found


# ---- words


@dataclass(frozen=True, slots=True)
class _Token:
    """A word: `kind` is `word`, `string`, `variable`, `number`, `end`, or the operator or keyword itself."""

    kind: str
    value: str = ""


_END = _Token("end")


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = _skipped(text, 0)
    while at < len(text):
        token, at = _token(text, at)
        found.append(token)
        at = _skipped(text, at)
    return [*found, _END]


def _skipped(text: str, at: int) -> int:
    skipped = _SKIPPED.match(text, at)
    assert skipped is not None
    if text.startswith("/*", skipped.end()):
        raise _syntax("unexpected end of comment")
    return skipped.end()


def _token(text: str, at: int) -> tuple[_Token, int]:
    one = text[at]
    if one == '"':
        value, at = _string(text, at)
        return _Token("string", value), at
    if one == "$" and at + 1 < len(text):
        if text[at + 1] == '"':
            value, at = _string(text, at + 1)
            return _Token("variable", value), at
        if (word := _WORD.match(text, at + 1)) is not None:
            return _Token("variable", _unescaped(word[0])), word.end()
    if (number := _NUMBER.match(text, at)) is not None:
        return _number(text, number)
    if (operator := _OPERATOR.match(text, at)) is not None:
        kind = operator[0]
        return _Token("!=" if kind == "<>" else kind, kind), operator.end()
    word = _WORD.match(text, at)
    if word is None:
        raise _syntax("unexpected end after backslash")
    value = _unescaped(word[0])
    lowered = value.lower()
    is_keyword = lowered in _KEYWORDS and (lowered not in _IN_SMALL_LETTERS or value == lowered)
    return _Token(lowered if is_keyword else "word", value), word.end()


def _number(text: str, found: re.Match[str]) -> tuple[_Token, int]:
    behind = text[found.end() : found.end() + 1]
    if not found[2] and _CUT_EXPONENT.match(text, found.end()):
        raise _syntax("invalid numeric literal")
    if _WORD.match(behind) or (behind in ("\\", '"') and behind == "\\"):
        raise _syntax("trailing junk after numeric literal")
    return _Token("number", found[0]), found.end()


def _string(text: str, at: int) -> tuple[str, int]:
    end = at + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise _syntax("unterminated quoted string")
    return _unescaped(text[at + 1 : end]), end + 1


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    pieces: list[str] = []
    high: int | None = None
    at = 0
    while at < len(text):
        escape = _ESCAPE.match(text, at)
        point = None
        if escape is None:
            if high is not None:
                raise _surrogate("Unicode low surrogate must follow a high surrogate.")
            pieces.append(text[at])
            at += 1
            continue
        braced, four, two, other = escape.groups()
        if other in ("u", "x"):
            raise _syntax(f"invalid {'Unicode' if other == 'u' else 'hexadecimal character'} escape sequence")
        digits = braced or four
        if digits is None:
            if high is not None:
                raise _surrogate("Unicode low surrogate must follow a high surrogate.")
            point = int(two, 16) if two else None
            pieces.append(_character(point) if point is not None else _CONTROLS.get(other, other))
        else:
            point = int(digits, 16)
            if 0xD800 <= point < 0xDC00:
                if high is not None:
                    raise _surrogate("Unicode high surrogate must not follow a high surrogate.")
                high = point
            elif 0xDC00 <= point < 0xE000:
                if high is None:
                    raise _surrogate("Unicode low surrogate must follow a high surrogate.")
                pieces.append(chr(0x10000 + ((high - 0xD800) << 10) + point - 0xDC00))
                high = None
            else:
                if high is not None:
                    raise _surrogate("Unicode low surrogate must follow a high surrogate.")
                pieces.append(_character(point))
        at = escape.end()
    if high is not None:
        raise _surrogate("Unicode low surrogate must follow a high surrogate.")
    return "".join(pieces)


def _character(point: int) -> str:
    if point == 0:
        raise SqlFailure("22P05", "unsupported Unicode escape sequence")
    if point > 0x10FFFF:
        raise _syntax("invalid Unicode escape sequence")
    return chr(point)


def _surrogate(detail: str) -> SqlFailure:
    return SqlFailure("22P02", f"invalid input syntax for type jsonpath: {detail}")


def _syntax(what: str) -> SqlFailure:
    return SqlFailure("42601", f"{what} of jsonpath input")


def _too_deep() -> SqlFailure:
    return SqlFailure("54001", "stack depth limit exceeded")


# ---- grammar

#: A chain, and whether it is a predicate, which is no operand unless something of it is asked for.
_Read: TypeAlias = tuple[Chain, bool]


class _Reader:
    """Reads a path's words, from the left to the right."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        #: In how many filters, and whether within a subscript, the words stand.
        self._filters = 0
        self._is_subscript = False

    @property
    def _next(self) -> str:
        return self._tokens[self._at].kind

    def _ahead(self, count: int) -> str:
        return self._tokens[min(self._at + count, len(self._tokens) - 1)].kind

    def _take(self) -> _Token:
        found = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return found

    def _accepts(self, *kinds: str) -> bool:
        if self._next in kinds:
            self._take()
            return True
        return False

    def _expects(self, *kinds: str) -> _Token:
        if self._next not in kinds:
            raise self._unexpected()
        return self._take()

    def _unexpected(self) -> SqlFailure:
        token = self._tokens[self._at]
        if token is _END:
            return SqlFailure("42601", "syntax error at end of jsonpath input")
        return SqlFailure("42601", f'syntax error at or near "{token.value}" of jsonpath input')

    def path(self) -> Path:
        is_strict = self._next == "strict"
        if is_strict or self._next == "lax":
            self._take()
        chain, _ = self._any()
        if self._next != "end":
            raise self._unexpected()
        return Path(is_strict, chain)

    def _any(self) -> _Read:
        """Reads an expression or a predicate."""
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise _too_deep()
        found = self._both()
        while self._next == "||":
            left = self._predicate(found)
            self._take()
            found = (Either(left, self._predicate(self._both())),), True
        self._depth -= 1
        return found

    def _both(self) -> _Read:
        found = self._compared()
        while self._next == "&&":
            left = self._predicate(found)
            self._take()
            found = (Both(left, self._predicate(self._compared())),), True
        return found

    def _predicate(self, found: _Read) -> Predicate:
        (step, *rest), is_predicate = found
        if not is_predicate or rest or not isinstance(step, PREDICATES):
            raise self._unexpected()
        return step

    def _operand(self, found: _Read) -> Chain:
        chain, is_predicate = found
        if is_predicate:
            raise self._unexpected()
        return chain

    def _compared(self) -> _Read:
        if self._next == "!":
            self._take()
            if self._next not in ("(", "exists"):
                raise self._unexpected()
            return (Not(self._predicate(self._delimited())),), True
        left = self._sum()
        if self._next in _ORDERINGS:
            operand = self._operand(left)
            operator = self._take().kind
            return (Comparison(operator, operand, self._operand(self._sum())),), True
        if self._next == "starts":
            operand = self._operand(left)
            self._take()
            self._expects("with")
            initial = self._expects("string", "variable")
            step = Constant(initial.value) if initial.kind == "string" else Variable(initial.value)
            return (StartsWith(operand, (step,)),), True
        if self._next == "like_regex":
            operand = self._operand(left)
            self._take()
            pattern = self._expects("string").value
            flags = self._expects("string").value if self._accepts("flag") else ""
            found = Like(operand, pattern, _options(flags))
            _ = found.compiled  # raises what is wrong with it
            return (found,), True
        return left

    def _sum(self) -> _Read:
        found = self._product()
        while self._next in ("+", "-"):
            left = self._operand(found)
            operator = self._take().kind
            found = (Arithmetic(operator, left, self._operand(self._product())),), False
        return found

    def _product(self) -> _Read:
        found = self._signed()
        while self._next in ("*", "/", "%"):
            left = self._operand(found)
            operator = self._take().kind
            found = (Arithmetic(operator, left, self._operand(self._signed())),), False
        return found

    def _signed(self) -> _Read:
        if self._next not in ("+", "-"):
            return self._accessed()
        operator = self._take().kind
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise _too_deep()
        operand = self._operand(self._signed())
        self._depth -= 1
        match operand:
            case (Constant(Number() as number),):
                return (Constant(_negated(number) if operator == "-" else number),), False
        return (Sign(operator, operand),), False

    def _delimited(self) -> _Read:
        """Reads `(predicate)` or `exists (expression)`, and nothing behind."""
        if self._accepts("exists"):
            self._expects("(")
            operand = self._operand(self._any())
            self._expects(")")
            return (Exists(operand),), True
        self._expects("(")
        found = self._any()
        self._expects(")")
        self._predicate(found)
        return found

    def _accessed(self) -> _Read:
        if self._next == "exists":
            return self._delimited()
        if self._accepts("("):
            chain, is_predicate = self._any()
            self._expects(")")
            if is_predicate and self._next == "is":
                self._take()
                self._expects("unknown")
                return (IsUnknown(self._predicate((chain, True))),), True
        else:
            chain, is_predicate = (self._primary(),), False
        while (step := self._accessor()) is not None:
            chain, is_predicate = (*chain, step), False
        return chain, is_predicate

    def _primary(self) -> Step:
        token = self._take()
        match token.kind:
            case "$":
                return Root()
            case "@":
                if not self._filters:
                    raise SqlFailure("42601", "@ is not allowed in root expressions")
                return Current()
            case "last":
                if not self._is_subscript:
                    raise SqlFailure("42601", "LAST is allowed only in array subscripts")
                return Last()
            case "string":
                return Constant(token.value)
            case "number":
                return Constant(_numeric(token.value))
            case "null" | "true" | "false":
                return Constant({"null": None, "true": True, "false": False}[token.kind])
            case "variable":
                return Variable(token.value)
        self._at -= token is not _END
        raise self._unexpected()

    def _accessor(self) -> Step | None:
        if self._accepts("["):
            return self._subscripts()
        if self._accepts("?"):
            self._expects("(")
            self._filters += 1
            predicate = self._predicate(self._any())
            self._filters -= 1
            self._expects(")")
            return Filter(predicate)
        if not self._accepts("."):
            return None
        if self._accepts("*"):
            return EveryMember()
        if self._accepts("**"):
            return self._descendants()
        token = self._take()
        if token.kind in _METHODS and self._next == "(":
            self._take()
            self._expects(")")
            return Method(token.kind)
        if token.kind == "datetime" and self._accepts("("):
            template = self._take().value if self._next == "string" else None
            self._expects(")")
            return DateTime(template)
        if token.kind in _KEYWORDS or token.kind in ("word", "string"):
            return Member(token.value)
        self._at -= token is not _END
        raise self._unexpected()

    def _descendants(self) -> Descendants:
        if not self._accepts("{"):
            return Descendants(0, _DEEPEST)
        first = self._level()
        last = self._level() if self._accepts("to") else first
        self._expects("}")
        return Descendants(first, last)

    def _level(self) -> int:
        token = self._expects("number", "last")
        if token.kind == "last":
            return _DEEPEST
        if not _PLAIN_INTEGER.fullmatch(token.value):
            self._at -= 1
            raise self._unexpected()
        if int(token.value) >= 2**31:
            raise SqlFailure("22003", f'value "{token.value}" is out of range for type integer')
        return int(token.value)

    def _subscripts(self) -> Step:
        if self._next == "*" and self._ahead(1) == "]":
            self._at += 2
            return EveryElement()
        before, self._is_subscript = self._is_subscript, True
        ranges: list[tuple[Chain, Chain | None]] = []
        while True:
            first = self._operand(self._any())
            ranges.append((first, self._operand(self._any()) if self._accepts("to") else None))
            if not self._accepts(","):
                break
        self._is_subscript = before
        self._expects("]")
        return Subscripts(tuple(ranges))


def _numeric(text: str) -> Number:
    mantissa, letter, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    return number_of(f"{whole or 0}{'.' if fraction else ''}{fraction}{letter}{exponent}")


def _negated(number: Number) -> Number:
    if not number.strip("-0."):
        return number
    return Number(number[1:] if number.startswith("-") else f"-{number}")


def _options(flags: str) -> Options:
    for flag in flags:
        if flag not in "ismxq":
            raise SqlFailure("42601", "invalid input syntax for type jsonpath")
    if "q" in flags:
        return Options(ignore_case="i" in flags, literal=True)
    if "x" in flags:
        raise SqlFailure("0A000", 'XQuery "x" flag (expanded regular expressions) is not implemented')
    return Options(ignore_case="i" in flags, stops="s" not in flags, anchors="m" in flags)
