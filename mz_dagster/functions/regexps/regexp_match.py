"""Matching PostgreSQL's regular expressions: which match, and what its groups hold.

A regular expression of PostgreSQL matches leftmost, and then as long (or, if it prefers so, as short) as possible;
after that the match is divided among its parts from left to right. Python's `re`, which takes the first way that
succeeds, often differs. Here a part's possible ends are computed as sets, so that no text takes exponential time; `re`
only matches single characters and constraints, and finds the leftmost start where that is safe.

The division follows PostgreSQL's: neighbouring parts without groups and with one preference are one part.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from math import prod

from mz_dagster.functions.regexps.regexp_syntax import (
    Alternation,
    Atom,
    Backreference,
    Character,
    Constraint,
    Group,
    Item,
    Lookaround,
    Options,
    Quantified,
    parse,
)
from mz_dagster.functions.registry import SqlFailure

_LONGER, _SHORTER, _MIXED, _CAPTURES, _REFERS = 1, 2, 4, 8, 16
_MESSY = _MIXED | _CAPTURES | _REFERS
_PREFERENCE = _LONGER | _SHORTER
#: Python tries one way after the other in which a pattern may go through a text: it gets no more than so many.
_QUICK_WAYS = 10_000
_CACHE_SIZE = 256
_LAST = 0x10FFFF

#: Where a group begins and ends.
Span = tuple[int, int]
#: From a start to the possible ends.
Ends = Callable[[int], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a pattern that a match is divided into.

    Attributes:
        kind: `leaf`: what it holds is not divided. `join`: one part after another. `choice`: one of several. `loop`:
            one part repeated. `reference`: what a group matched, repeated.
        flags: What it prefers, and whether it holds groups or references.
        parts: Its parts.
        items: Of a leaf.
        numbers: The groups that hold what it matches.
        least: Of a loop or reference.
        most: Of a loop or reference; None for any number.
        group: Of a reference.
    """

    kind: str
    flags: int
    parts: tuple[Part, ...] = ()
    items: tuple[Item, ...] = ()
    numbers: tuple[int, ...] = ()
    least: int = 1
    most: int | None = 1
    group: int = 0


def _up(flags: int) -> int:
    """Returns what of a part's flags holds for the part around it: both preferences at once are a mixture."""
    mixed = _MIXED if flags & _PREFERENCE == _PREFERENCE else 0
    return flags & ~_PREFERENCE | mixed


def _combined(first: int, second: int) -> int:
    """Returns the flags of two parts together: they prefer what the first of them does that prefers anything."""
    preference = first & _PREFERENCE or second & _PREFERENCE
    return _up(first | second) | preference


def _divided(tree: Alternation) -> Part:
    """Returns the part that a pattern is; several branches together prefer to be long."""
    branches = [_branch(items) for items in tree.branches]
    if len(branches) == 1:
        return branches[0]
    flags = _LONGER
    for branch in branches:
        flags |= _up(flags | branch.flags)
    if not flags & _MESSY:
        return Part("leaf", flags, items=(Group(tree, 0),))
    return Part("choice", flags, tuple(branches))


def _branch(items: tuple[Item, ...]) -> Part:
    """Returns the part that a sequence is: up to its first messy item all of it is one leaf.

    An item is messy if it holds groups or references, or prefers otherwise than those before it.
    """
    flags = 0
    for position, item in enumerate(items):
        if isinstance(item, Constraint | Lookaround):
            continue
        repeat = item if isinstance(item, Quantified) else Quantified(item, 1, 1, None)
        if repeat.most == 0:
            continue
        preferred = 0 if repeat.greedy is None else _LONGER if repeat.greedy else _SHORTER
        atom = _atom(repeat.atom)
        found = flags | preferred | (0 if atom is None else atom.flags)
        divided = isinstance(repeat.atom, Backreference) or (isinstance(repeat.atom, Group) and repeat.atom.number)
        if not divided and not _up(found) & _MESSY:
            flags = found
            continue
        part = _repeated(repeat, atom or Part("leaf", 0, items=(repeat.atom,)), preferred)
        return _joined(items[:position], flags, part, items[position + 1 :], preferred, atom.flags if atom else 0)
    return Part("leaf", flags, items=items)


def _atom(atom: Atom) -> Part | None:
    """Returns the part that an atom is, if it is more than a character."""
    match atom:
        case Character():
            return None
        case Backreference():
            return Part("reference", _REFERS, group=atom.number)
        case Group():
            inner = _divided(atom.body)
            if not atom.number:
                return inner
            return replace(inner, flags=inner.flags | _CAPTURES, numbers=(*inner.numbers, atom.number))


def _repeated(repeat: Quantified, atom: Part, preferred: int) -> Part:
    """Returns the part that a quantified atom is; `preferred` is what its quantifier prefers."""
    least, most = repeat.least, repeat.most
    flags = _combined(preferred, atom.flags)
    if isinstance(repeat.atom, Backreference):
        return Part("reference", atom.flags | flags, least=least, most=most, group=atom.group)
    own = atom.flags & (_PREFERENCE | _MIXED)
    if least == most == 1 and (not preferred or not own or preferred == own):
        return atom
    if not atom.flags & (_CAPTURES | _REFERS):
        return Part("leaf", flags, items=(repeat,))
    if least > 0 and not atom.flags & _REFERS:
        # Groups hold what the last repetition matches, so the others need not be divided.
        before = Quantified(repeat.atom, least - 1, None if most is None else most - 1, repeat.greedy)
        return Part("join", flags, (Part("leaf", flags & _PREFERENCE, items=(before,)), atom))
    return Part("loop", flags, (atom,), least=least, most=most)


def _joined(
    before: tuple[Item, ...], flags: int, part: Part, after: tuple[Item, ...], preferred: int, of_atom: int
) -> Part:
    """Returns a part with what stands before and after it in its branch."""
    if not after:
        if not before:
            return part
        first = Part("leaf", flags, items=before)
        return Part("join", flags | _combined(flags, part.flags), (first, part))
    rest = _branch(after)
    inner = _combined(preferred, of_atom)
    inner |= _combined(inner, rest.flags)
    outer = flags | _combined(flags, inner)
    if not before:
        return Part("join", outer, (part, rest))
    first = Part("leaf", flags, items=before)
    undivided = part.kind == rest.kind == "leaf" and not (part.numbers or rest.numbers)
    if undivided and not _up(part.flags | rest.flags) & _MESSY:
        second = Part("leaf", _combined(part.flags, rest.flags), items=part.items + rest.items)
        return Part("join", outer, (first, second))
    return Part("join", outer, (first, Part("join", inner, (part, rest))))


class Pattern:
    """A compiled pattern.

    Attributes:
        groups: How many groups it has.
    """

    def __init__(self, pattern: str, options: Options) -> None:
        tree, options, self.groups = parse(pattern, options)
        self.tree = tree
        if _holds(tree, Backreference) and _holds(tree, Lookaround):
            # PostgreSQL sees some of these matches and misses others.
            raise SqlFailure("0A000", "a regular expression with references and lookaround is not supported")
        self.root = _divided(tree)
        self.case = re.ASCII | (re.IGNORECASE if options.ignore_case else 0)
        self.ignores_case = options.ignore_case
        self.sources: dict[str, re.Pattern[str]] = {}
        self.quick = self._quick(tree)
        self.quick_length = 0 if self.quick is None else _quick_length(tree)
        self.exact = self._exact(tree, pattern)

    def _exact(self, tree: Alternation, text: str) -> re.Pattern[str] | None:
        """Returns what divides a match as this does, too, because there is only one way to divide it.

        So it is for a sequence of repeated characters none of which can be taken for what may follow it.
        """
        units = _units(tree)
        if self.quick is None or units is None:
            return None
        # Sets change at these characters only.
        places = {
            *range(128),
            *(min(max(0, ord(one) + step), _LAST) for one in text for step in (-1, 0, 1)),
            128,
            _LAST,
        }
        sets = [{place for place in places if self.compiled(unit.source).match(chr(place))} for unit, _, _ in units]
        for position, (_, least, most) in enumerate(units):
            for follower, (_, needed, _) in enumerate(units[position + 1 :], position + 1):
                if least != most and not sets[position].isdisjoint(sets[follower]):
                    return None
                if needed:
                    break
        return re.compile(_python(tree, captures=True), self.case)

    def _quick(self, tree: Alternation) -> re.Pattern[str] | None:
        """Returns what matches exactly where this does, if Python has it and takes no exponential time over it."""
        if _holds(tree, Backreference) or _repeats_choices(tree):
            return None
        try:
            return re.compile(_python(tree), self.case)
        except re.error:
            return None

    def compiled(self, source: str) -> re.Pattern[str]:
        """Returns a compiled part of the pattern."""
        found = self.sources.get(source)
        if found is None:
            found = self.sources[source] = re.compile(source, self.case)
        return found

    def matches(self, text: str) -> bool:
        """Returns whether there is a match."""
        quick = self._quick_in(text)
        if quick is not None:
            return quick.search(text) is not None
        if self.root.flags & _REFERS:
            return self.search(text, 0) is not None
        return bool(_Matcher(self, text).alternation_ends(self.tree, frozenset(range(len(text) + 1))))

    def _quick_in(self, text: str) -> re.Pattern[str] | None:
        return self.exact or (self.quick if len(text) <= self.quick_length else None)

    def search(self, text: str, start: int) -> list[Span | None] | None:
        """Returns the leftmost match from `start` on: its span, and those of its groups, None for one without."""
        if self.exact is not None:
            exact = self.exact.search(text, start)
            return exact and [None if begin < 0 else (begin, end) for begin, end in exact.regs]
        quick = self._quick_in(text)
        if quick is not None:
            found = quick.search(text, start)
            if found is None:
                return None
            start = found.start()
        return _Matcher(self, text).search(start)

    def each(self, text: str, start: int) -> Iterator[list[Span | None]]:
        """Yields all matches from `start` on; after an empty one, the next begins one character further at least."""
        while start <= len(text):
            found = self.search(text, start)
            if found is None:
                return
            yield found
            assert found[0] is not None
            begin, end = found[0]
            start = end + 1 if begin == end else end


def _holds(node: Item | Alternation, kind: type[Backreference | Lookaround]) -> bool:
    """Returns whether a pattern holds a reference or a lookaround constraint."""
    match node:
        case Alternation():
            return any(_holds(item, kind) for branch in node.branches for item in branch)
        case Group():
            return _holds(node.body, kind)
        case Quantified():
            return _holds(node.atom, kind)
        case _:
            return isinstance(node, kind)


def _ways(node: Item | Alternation, length: int) -> int:
    """Returns in how many ways at most a pattern that repeats no choices goes through so many characters."""
    match node:
        case Alternation():
            return sum(prod(_ways(item, length) for item in branch) for branch in node.branches)
        case Group() | Lookaround():
            return _ways(node.body, length)
        case Quantified():
            counts = length if node.most is None else min(length, node.most - node.least)
            return _ways(node.atom, length) + counts
        case _:
            return 1


def _quick_length(tree: Alternation) -> int:
    """Returns the length up to which texts have few enough ways through them."""
    return bisect_right(range(1 << 30), _QUICK_WAYS, key=lambda length: _ways(tree, length)) - 1


def _repeats_choices(node: Item | Alternation) -> bool:
    """Returns whether a repetition is of what goes through a text in several ways, so that they multiply with it."""
    match node:
        case Alternation():
            return any(_repeats_choices(item) for branch in node.branches for item in branch)
        case Group() | Lookaround():
            return _repeats_choices(node.body)
        case Quantified():
            is_repeated = node.most is None or node.most > 1
            return _repeats_choices(node.atom) or (is_repeated and _ways(node.atom, 2) > 1)
        case _:
            return False


def _units(node: Item | Alternation) -> list[tuple[Character, int, int | None]] | None:
    """Returns the characters that a pattern is a sequence of, each with its repetitions; None if it is no such."""
    match node:
        case Alternation(branches=(items,)):
            parts = [_units(item) for item in items]
            return None if None in parts else [unit for part in parts for unit in part or ()]
        case Group():
            return _units(node.body)
        case Quantified(atom=Character() as atom, greedy=True | None):
            return [(atom, node.least, node.most)]
        case Character():
            return [(node, 1, 1)]
        case Constraint():
            return []
        case _:
            return None


def _python(node: Item | Alternation, *, captures: bool = False) -> str:
    match node:
        case Alternation():
            return "|".join("".join(_python(item, captures=captures) for item in one) for one in node.branches)
        case Group():
            return f"({'' if captures and node.number else '?:'}{_python(node.body, captures=captures)})"
        case Lookaround():
            return f"(?{'' if node.ahead else '<'}{'=' if node.positive else '!'}{_python(node.body)})"
        case Quantified():
            most = "" if node.most is None else node.most
            return f"(?:{_python(node.atom, captures=captures)}){{{node.least},{most}}}"
        case Character() | Constraint():
            return node.source
        case Backreference():
            raise AssertionError("a pattern with references is matched part by part")


class _Matcher:
    """Matches one pattern in one text.

    Ends are kept for each part and start: cost and memory are at most the size of the pattern times the square of the
    length of the text.
    """

    def __init__(self, pattern: Pattern, text: str) -> None:
        self.pattern = pattern
        self.text = text
        self.known: dict[tuple[int, int], frozenset[int]] = {}

    def search(self, start: int) -> list[Span | None] | None:
        root = self.pattern.root
        for begin in range(start, len(self.text) + 1):
            for end in sorted(self.part_ends(root, begin), reverse=not root.flags & _SHORTER):
                groups: dict[int, Span] = {}
                if self.divide(root, begin, end, groups):
                    if root.flags & _REFERS and start < begin == len(self.text):
                        # PostgreSQL sees some of these matches and misses others.
                        raise SqlFailure("0A000", "a reference in a match behind the last character is not supported")
                    return [(begin, end), *(groups.get(number) for number in range(1, self.pattern.groups + 1))]
        return None

    # Ends.

    def part_ends(self, part: Part, start: int) -> frozenset[int]:
        key = (id(part), start)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._part_ends(part, start)
        return found

    def _part_ends(self, part: Part, start: int) -> frozenset[int]:
        match part.kind:
            case "leaf":
                return self.sequence_ends(part.items, frozenset((start,)))
            case "join":
                first, second = part.parts
                ends = (self.part_ends(second, middle) for middle in sorted(self.part_ends(first, start)))
                return frozenset().union(*ends)
            case "choice":
                return frozenset().union(*(self.part_ends(one, start) for one in part.parts))
            case "loop":
                (inner,) = part.parts
                return self._repeated(lambda place: self.part_ends(inner, place), part.least, part.most, start)
            case _:
                # Whether the text is the group's is seen when the match is divided.
                return frozenset(range(start, len(self.text) + 1))

    def alternation_ends(self, node: Alternation, places: frozenset[int]) -> frozenset[int]:
        """Returns where a match of `node` that begins at any of `places` may end."""
        return frozenset().union(*(self.sequence_ends(branch, places) for branch in node.branches))

    def sequence_ends(self, items: tuple[Item, ...], places: frozenset[int]) -> frozenset[int]:
        for item in items:
            if isinstance(item, Quantified) and isinstance(item.atom, Character):
                places = self._run_ends(item, item.atom, places)
            else:
                places = frozenset().union(*(self.item_ends(item, place) for place in places))
            if not places:
                break
        return places

    def _run_ends(self, item: Quantified, atom: Character, places: frozenset[int]) -> frozenset[int]:
        most = "" if item.most is None else item.most
        run = self.pattern.compiled(f"(?:{atom.source}){{{item.least},{most}}}")
        found: set[int] = set()
        last = -1
        for place in sorted(places):
            # All that begins within a run without a limit ends where what began before it does.
            if place > last:
                match = run.match(self.text, place)
                if match is not None:
                    found.update(range(place + item.least, match.end() + 1))
                    last = match.end() if item.most is None else -1
        return frozenset(found)

    def item_ends(self, item: Item, start: int) -> frozenset[int]:
        if isinstance(item, Character | Constraint):
            found = self.pattern.compiled(item.source).match(self.text, start)
            return frozenset(() if found is None else (found.end(),))
        key = (id(item), start)
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self._item_ends(item, start)
        return known

    def _item_ends(self, item: Item, start: int) -> frozenset[int]:
        here = frozenset((start,))
        match item:
            case Group():
                return self.alternation_ends(item.body, here)
            case Quantified(atom=Character() as atom):
                return self._run_ends(item, atom, here)
            case Quantified(atom=atom):
                return self._repeated(lambda place: self.item_ends(atom, place), item.least, item.most, start)
            case Lookaround():
                if item.ahead:
                    holds = bool(self.alternation_ends(item.body, here))
                else:
                    holds = start in self.alternation_ends(item.body, frozenset(range(start + 1)))
                return here if holds == item.positive else frozenset()
            case _:
                return frozenset()

    def _repeated(self, ends: Ends, least: int, most: int | None, start: int) -> frozenset[int]:
        places = {start}
        for _ in range(least):
            places = set().union(*map(ends, places))
        found = set(places)
        count = least
        while places and (most is None or count < most):
            places = set().union(*map(ends, places)) - found
            found |= places
            count += 1
        return frozenset(found)

    # Division.

    def divide(self, part: Part, begin: int, end: int, groups: dict[int, Span]) -> bool:
        """Divides a match of `part`, and notes the groups; False if a reference does not hold."""
        match part.kind:
            case "leaf":
                divided = True
            case "join":
                divided = self._divide_join(part, begin, end, groups)
            case "choice":
                divided = any(
                    end in self.part_ends(one, begin) and self.divide(one, begin, end, groups) for one in part.parts
                )
            case "loop":
                divided = self._divide_loop(part, begin, end, groups)
            case _:
                divided = self._refers(part, begin, end, groups)
        if divided:
            groups.update(dict.fromkeys(part.numbers, (begin, end)))
        return divided

    def _divide_join(self, part: Part, begin: int, end: int, groups: dict[int, Span]) -> bool:
        first, second = part.parts
        middles = sorted(self.part_ends(first, begin), reverse=not first.flags & _SHORTER)
        before = dict(groups)
        for middle in middles:
            if middle > end or end not in self.part_ends(second, middle):
                continue
            if self.divide(first, begin, middle, groups) and self.divide(second, middle, end, groups):
                return True
            groups.clear()
            groups.update(before)
        return False

    def _divide_loop(self, part: Part, begin: int, end: int, groups: dict[int, Span]) -> bool:
        """Finds ends of the single repetitions, each in its preferred order; an empty one only to reach the least."""
        (inner,) = part.parts
        if begin == end and part.least == 0:
            # Even so its groups are noted, as PostgreSQL does, unless the part prefers to be short.
            if not inner.flags & _SHORTER and end in self.part_ends(inner, begin):
                self._verified(inner, [begin, end], groups)
            return True
        least = max(1, part.least)
        most = max(least, end - begin if part.most is None else min(part.most, end - begin))
        places = [begin]
        choices = [self._choices(inner, begin, end, 1, least)]
        while choices:
            place = next(choices[-1], None)
            if place is None:
                choices.pop()
                places.pop()
                continue
            count = len(choices)
            if place == end:
                if count >= least and self._verified(inner, [*places, end], groups):
                    return True
            elif count < most:
                places.append(place)
                choices.append(self._choices(inner, place, end, count + 1, least))
        return False

    def _choices(self, inner: Part, start: int, end: int, count: int, least: int) -> Iterator[int]:
        for place in sorted(self.part_ends(inner, start), reverse=not inner.flags & _SHORTER):
            needed = count < least and least - count >= end - place
            if place <= end and (place > start or place == end or needed):
                yield place

    def _verified(self, inner: Part, places: list[int], groups: dict[int, Span]) -> bool:
        numbers = _numbers(inner)
        before = dict(groups)
        for begin, end in pairwise(places):
            for number in numbers:
                groups.pop(number, None)
            if not self.divide(inner, begin, end, groups):
                groups.clear()
                groups.update(before)
                return False
        return True

    def _refers(self, part: Part, begin: int, end: int, groups: dict[int, Span]) -> bool:
        span = groups.get(part.group)
        if span is None:
            return False
        wanted, found = self.text[span[0] : span[1]], self.text[begin:end]
        if not wanted:
            return not found
        if not found:
            return part.least == 0
        count, rest = divmod(len(found), len(wanted))
        if rest or count < part.least or (part.most is not None and count > part.most):
            return False
        if self.pattern.ignores_case:
            wanted, found = _lower(wanted), _lower(found)
        return found == wanted * count


def _lower(text: str) -> str:
    return "".join(one.lower() if one.isascii() else one for one in text)


def _numbers(part: Part) -> tuple[int, ...]:
    return reduce(lambda found, one: found + _numbers(one), part.parts, part.numbers)


_CACHE: dict[tuple[str, Options], Pattern] = {}


def compiled(pattern: str, options: Options) -> Pattern:
    """Returns the compiled pattern, from a cache if it was asked for before."""
    key = (pattern, options)
    found = _CACHE.get(key)
    if found is None:
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        found = _CACHE[key] = Pattern(pattern, options)
    return found
