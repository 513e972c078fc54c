"""Antichains, the frontiers of the formalism: which times are over, and which are still to come.

A frontier is a set of times of which no two compare. It stands for all the times at or after one of
its elements, the *upper set*

    after_or_at(F) = { t | exists f in F: f <= t }

and every finite description of "from here on" in a well-founded lattice has exactly one such set.
Frontiers are ordered by what they leave behind:

    F <= G   iff   for all g in G exists f in F: f <= g   iff   after_or_at(F) contains after_or_at(G)

which makes them a lattice of their own, from `{t0}`, behind which there is nothing, to `{}`, the last
one: no time is at or after it.

    F = {5}, on the naturals:       0 1 2 3 4 | 5 6 7 8 ...
                                              F.less_equal(t) from here on

    F = {(0,2), (1,0)}, on pairs, with `+` where F.less_equal(t):

        2 | + + +
        1 | . + +
        0 | . + +
            0 1 2

This module owns the representation (canonical: equal frontiers are equal values) and `advance_by`,
the one rule by which compaction moves times. It does not say what a frontier is used for: `since` and
`upper` belong to `ptvc`. Implements items 14 to 18 and the formula of item 46.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Generic

from mz_dagster.formalism.errors import FrontierNotSingle, NotAFrontier, NotATime
from mz_dagster.formalism.lattice import Lattice, T
from mz_dagster.formalism.timeline import check_same_timeline


@dataclass(frozen=True, slots=True, repr=False)
class Antichain(Generic[T]):
    """A finite set of times of which no two compare.

    Two antichains are equal when their lattices and their sets of elements are. Those of different
    timelines are unequal, and any other comparison of them raises `TimelinesDiffer`.

    Attributes:
        lattice: The timeline, or bare lattice, whose times these are.
        elements: The times, in the order of their encoding.

    Raises:
        NotATime: An element is not a time of the lattice.
        NotAFrontier: The elements are not in canonical form; `Antichain.of` makes it.

    Example:
        >>> from mz_dagster.formalism import NATURAL, Product
        >>> Antichain.of(NATURAL, 7, 5, 9)
        Antichain.of(NATURAL, 5)
        >>> print(Antichain.of(Product(NATURAL, NATURAL), (2, 1), (1, 2), (2, 2)))
        {(1, 2), (2, 1)}
    """

    lattice: Lattice[T]
    elements: tuple[T, ...]

    def __post_init__(self) -> None:
        """Refuses elements that are not times, or not canonical."""
        for element in self.elements:
            if not self.lattice.is_time(element):
                raise NotATime(element, self.lattice)
        if self.elements != _minimal(self.lattice, self.elements):
            raise NotAFrontier(self.elements, self.lattice)

    @staticmethod
    def of(lattice: Lattice[T], *times: T) -> Antichain[T]:
        """Returns the frontier of everything at or after one of the times: their minimal elements.

        Raises:
            NotATime: One of them is not a time of the lattice.
        """
        for time in times:
            if not lattice.is_time(time):
                raise NotATime(time, lattice)
        return Antichain(lattice, _minimal(lattice, times))

    @staticmethod
    def empty(lattice: Lattice[T]) -> Antichain[T]:
        """Returns `{}`, the last frontier: no time is at or after it."""
        return Antichain(lattice, ())

    @staticmethod
    def minimum(lattice: Lattice[T]) -> Antichain[T]:
        """Returns `{t0}`, the first frontier: every time is at or after it."""
        return Antichain(lattice, (lattice.minimum,))

    @property
    def is_empty(self) -> bool:
        """Whether this is `{}`, the last frontier."""
        return not self.elements

    @property
    def only(self) -> T:
        """The one element; on a total order every frontier but `{}` has exactly one.

        Raises:
            FrontierNotSingle: There is none, or there are several.

        Example:
            >>> from mz_dagster.formalism import NATURAL
            >>> Antichain.of(NATURAL, 5).only
            5
        """
        if len(self.elements) != 1:
            raise FrontierNotSingle(self)
        return self.elements[0]

    def less_than(self, time: T) -> bool:
        """Returns whether the time is after the frontier: `exists f in self: f < time`.

        Example:
            >>> from mz_dagster.formalism import NATURAL
            >>> [time for time in range(8) if Antichain.of(NATURAL, 5).less_than(time)]
            [6, 7]
        """
        return any(self.lattice.less_than(element, time) for element in self.elements)

    def less_equal(self, time: T) -> bool:
        """Returns whether the time is beyond the frontier: `exists f in self: f <= time`.

        Example:
            >>> from mz_dagster.formalism import NATURAL
            >>> [time for time in range(8) if Antichain.of(NATURAL, 5).less_equal(time)]
            [5, 6, 7]
            >>> Antichain.empty(NATURAL).less_equal(10**18)
            False
        """
        return any(self.lattice.less_equal(element, time) for element in self.elements)

    def __le__(self, other: Antichain[T]) -> bool:
        """Returns whether every time beyond `other` is beyond this one.

        Raises:
            TimelinesDiffer: The two are not of one timeline.

        Example:
            >>> from mz_dagster.formalism import NATURAL
            >>> Antichain.of(NATURAL, 5) <= Antichain.empty(NATURAL)
            True
        """
        check_same_timeline(self.lattice, other.lattice)
        return all(self.less_equal(element) for element in other.elements)

    def __lt__(self, other: Antichain[T]) -> bool:
        """Returns whether `self <= other` and the two differ."""
        return self <= other and self != other

    def __ge__(self, other: Antichain[T]) -> bool:
        """Returns whether `other <= self`."""
        return other <= self

    def __gt__(self, other: Antichain[T]) -> bool:
        """Returns whether `other < self`."""
        return other < self

    def join(self, other: Antichain[T]) -> Antichain[T]:
        """Returns the least frontier at or beyond both: its times are beyond this one and the other.

            after_or_at(join(F, G)) = after_or_at(F) intersect after_or_at(G)

        Raises:
            TimelinesDiffer: The two are not of one timeline.

        Example:
            >>> from mz_dagster.formalism import NATURAL, Product
            >>> grid = Product(NATURAL, NATURAL)
            >>> print(Antichain.of(grid, (0, 2), (1, 0)).join(Antichain.of(grid, (0, 1))))
            {(0, 2), (1, 1)}
        """
        check_same_timeline(self.lattice, other.lattice)
        joins = [self.lattice.join(left, right) for left in self.elements for right in other.elements]
        return Antichain.of(self.lattice, *joins)

    def meet(self, other: Antichain[T]) -> Antichain[T]:
        """Returns the greatest frontier at or before both: its times are beyond one or the other.

            after_or_at(meet(F, G)) = after_or_at(F) union after_or_at(G)

        Raises:
            TimelinesDiffer: The two are not of one timeline.

        Example:
            >>> from mz_dagster.formalism import NATURAL, Product
            >>> grid = Product(NATURAL, NATURAL)
            >>> print(Antichain.of(grid, (0, 2), (1, 0)).meet(Antichain.of(grid, (0, 1))))
            {(0, 1), (1, 0)}
        """
        check_same_timeline(self.lattice, other.lattice)
        return Antichain.of(self.lattice, *self.elements, *other.elements)

    def to_json(self) -> list[int] | list[list[int]]:
        """Returns a JSON-able list of the elements: of ints if one encodes a time, of lists otherwise.

        Example:
            >>> from mz_dagster.formalism import NATURAL, Product
            >>> Antichain.of(NATURAL, 5).to_json()
            [5]
            >>> Antichain.of(Product(NATURAL, NATURAL), (2, 1), (1, 2)).to_json()
            [[1, 2], [2, 1]]
        """
        encoded = [list(self.lattice.encode(element)) for element in self.elements]
        return [time[0] for time in encoded] if self.lattice.columns == 1 else encoded

    @staticmethod
    def from_json(lattice: Lattice[T], value: object) -> Antichain[T]:
        """Returns the frontier of which this is the JSON: `from_json(l, f.to_json()) = f`.

        What is durable is canonical, so anything that `to_json` does not write is refused.

        Raises:
            NotATime: An element encodes no time of the lattice.
            NotAFrontier: The value is not a list of encoded times, or not canonical.

        Example:
            >>> from mz_dagster.formalism import EPOCH_MS
            >>> Antichain.from_json(EPOCH_MS, [1700000000000])
            Antichain.of(EPOCH_MS, 1700000000000)
        """
        if not isinstance(value, list):
            raise NotAFrontier(value, lattice)
        encoded = [[item] for item in value] if lattice.columns == 1 else value
        if not all(isinstance(item, list) for item in encoded):
            raise NotAFrontier(value, lattice)
        return Antichain(lattice, tuple(lattice.decode(item) for item in encoded))

    def __iter__(self) -> Iterator[T]:
        """Yields the elements in the order of their encoding."""
        return iter(self.elements)

    def __repr__(self) -> str:
        """Returns the expression that makes this frontier."""
        return f"Antichain.of({', '.join(repr(part) for part in (self.lattice, *self.elements))})"

    def __str__(self) -> str:
        """Returns the frontier as a set, without its timeline."""
        return f"{{{', '.join(str(element) for element in self.elements)}}}"


def advance_by(time: T, since: Antichain[T]) -> T:
    """Returns the greatest time that no time beyond `since` can tell from `time`.

        t' = meet over s in since of join(t, s)

    The result is correct: it compares to each time beyond `since` as `time` does,

        for all u with since.less_equal(u):   t <= u   iff   t' <= u

    and optimal: any other time with that property is at or before it, so two times which `since` cannot
    tell apart become one, and updates at them can be summed. A time beyond `since` stays as it is.
    If `since` is `{}` no time is left to tell anything apart, and the time stays as it is too.

    Example:
        >>> from mz_dagster.formalism import NATURAL, Product
        >>> advance_by(3, Antichain.of(NATURAL, 5)), advance_by(7, Antichain.of(NATURAL, 5))
        (5, 7)
        >>> advance_by((3, 7), Antichain.of(Product(NATURAL, NATURAL), (4, 8), (5, 3)))
        (4, 7)
    """
    if since.is_empty:
        return time
    return reduce(since.lattice.meet, (since.lattice.join(time, element) for element in since))


def _minimal(lattice: Lattice[T], times: Iterable[T]) -> tuple[T, ...]:
    """Returns the times that no other one precedes, each once, in the order of their encoding."""
    distinct = set(times)
    minimal = [time for time in distinct if not any(lattice.less_than(other, time) for other in distinct)]
    return tuple(sorted(minimal, key=lattice.encode))
