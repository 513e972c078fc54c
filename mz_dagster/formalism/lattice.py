"""Lattices of times: what a set of times must offer so that collections can vary over it.

A *time* is an element of a set `T` with a least upper bound (`join`) and a greatest lower bound
(`meet`). The two make `T` a lattice, and every order in this package derives from them:

    t1 <= t2   iff   join(t1, t2) = t2
    t1 <  t2   iff   t1 <= t2 and t1 != t2

Both operations are associative, commutative and idempotent, and each absorbs the other. `T` has a
least element, the *minimum*, and only finitely many times lie below any time: the order is
well-founded, so that induction over times is sound and a collection can be told from its updates.

This module owns the protocol and the lattices of the engine: `NATURAL`, `EPOCH_MS` and `Product`.
It does not name timelines: two timelines may share a lattice, and telling them apart is the task of
`timeline`. Implements items 8 to 13 of the seeds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mz_dagster.formalism.errors import NotATime

T = TypeVar("T", bound=Hashable)
L = TypeVar("L", bound=Hashable)
R = TypeVar("R", bound=Hashable)


class Lattice(Protocol[T]):
    """Orders the times of type `T`, with joins, meets and a minimum.

    A lattice is a value: two that compare equal order the same times in the same way, and hash alike.
    An implementation that inherits from this protocol gets the two orders from its `join`, as defined
    above, and may restate them for speed.
    """

    @property
    def minimum(self) -> T:
        """The time `t0` that is at or before every other one."""
        ...

    @property
    def columns(self) -> int:
        """How many integers encode one time: the number of time columns in a shard."""
        ...

    def join(self, left: T, right: T) -> T:
        """Returns the least time at or after both: `left <= t and right <= t  iff  join <= t`."""
        ...

    def meet(self, left: T, right: T) -> T:
        """Returns the greatest time at or before both: `t <= left and t <= right  iff  t <= meet`."""
        ...

    def less_equal(self, left: T, right: T) -> bool:
        """Returns whether `left` is at or before `right`; two times may be neither before the other."""
        return self.join(left, right) == right

    def less_than(self, left: T, right: T) -> bool:
        """Returns whether `left` is before `right`, and not equal to it."""
        return left != right and self.less_equal(left, right)

    def is_time(self, value: object) -> bool:
        """Returns whether the value is a time of this lattice."""
        ...

    def encode(self, time: T) -> tuple[int, ...]:
        """Returns the time as `columns` integers, for a JSON document or the columns of a shard.

        The lexicographic order of encodings extends the order of times,

            t1 <= t2   implies   encode(t1) <= encode(t2)

        so sorting by it lists a time never ahead of one that precedes it.
        """
        ...

    def decode(self, encoded: Sequence[int]) -> T:
        """Returns the time of which this is the encoding: `decode(encode(t)) = t`.

        Raises:
            NotATime: No time of this lattice is encoded so.
        """
        ...

    def times_through(self, time: T) -> Iterator[T]:
        """Yields each time at or before `time` once, never ahead of one that precedes it.

        The sequence is finite, because the order is well-founded, but as long as there are times: it
        serves specifications and tests, where times are small.
        """
        ...


@dataclass(frozen=True, slots=True, repr=False)
class IntegerTimes(Lattice[int]):
    """Orders the integers from 0: `join` is max, `meet` is min, and any two times compare.

    Attributes:
        name: What the lattice prints as; equal names with equal bounds denote the same lattice.
        largest: The last time, or None if there is no last one.

    Example:
        >>> NATURAL.join(3, 5), NATURAL.meet(3, 5), NATURAL.minimum
        (5, 3, 0)
        >>> NATURAL.less_equal(5, 5), NATURAL.less_than(5, 5)
        (True, False)
    """

    name: str
    largest: int | None = None

    @property
    def minimum(self) -> int:
        """The time 0."""
        return 0

    @property
    def columns(self) -> int:
        """One integer encodes a time: itself."""
        return 1

    def join(self, left: int, right: int) -> int:
        """Returns the later of the two."""
        return max(left, right)

    def meet(self, left: int, right: int) -> int:
        """Returns the earlier of the two."""
        return min(left, right)

    def less_equal(self, left: int, right: int) -> bool:
        """Returns whether `left` is at or before `right`."""
        return left <= right

    def is_time(self, value: object) -> bool:
        """Returns whether the value is an int (a bool is none) from 0 to the largest time.

        Example:
            >>> [NATURAL.is_time(value) for value in (7, -1, 7.0, True)]
            [True, False, False, False]
        """
        return type(value) is int and value >= 0 and (self.largest is None or value <= self.largest)

    def encode(self, time: int) -> tuple[int, ...]:
        """Returns the time itself, as the only integer."""
        return (time,)

    def decode(self, encoded: Sequence[int]) -> int:
        """Returns the only integer.

        Raises:
            NotATime: There is not exactly one integer, or it is not a time.
        """
        if len(encoded) != 1 or not self.is_time(encoded[0]):
            raise NotATime(encoded, self)
        return encoded[0]

    def times_through(self, time: int) -> Iterator[int]:
        """Yields 0, 1, ... up to and with `time`."""
        return iter(range(time + 1))

    def __repr__(self) -> str:
        """Returns the name."""
        return self.name


NATURAL = IntegerTimes("NATURAL")
"""The natural numbers, without end."""

EPOCH_MS = IntegerTimes("EPOCH_MS", largest=2**63 - 1)
"""Milliseconds since the Unix epoch; the last one is the largest that a `BIGINT` column can store."""


@dataclass(frozen=True, slots=True, repr=False)
class Product(Lattice[tuple[L, R]], Generic[L, R]):
    """Orders pairs of times componentwise: the simplest order in which two times need not compare.

        (l1, r1) <= (l2, r2)   iff   l1 <= l2 and r1 <= r2

    Attributes:
        left: The lattice of the first components.
        right: The lattice of the second components.

    Example:
        >>> grid = Product(NATURAL, NATURAL)
        >>> grid.join((1, 2), (2, 1)), grid.meet((1, 2), (2, 1))
        ((2, 2), (1, 1))
        >>> grid.less_equal((1, 2), (2, 1)), grid.less_equal((2, 1), (1, 2))
        (False, False)
    """

    left: Lattice[L]
    right: Lattice[R]

    @property
    def minimum(self) -> tuple[L, R]:
        """The pair of both minima."""
        return self.left.minimum, self.right.minimum

    @property
    def columns(self) -> int:
        """The columns of the left lattice and those of the right."""
        return self.left.columns + self.right.columns

    def join(self, left: tuple[L, R], right: tuple[L, R]) -> tuple[L, R]:
        """Returns the pair of the joins."""
        return self.left.join(left[0], right[0]), self.right.join(left[1], right[1])

    def meet(self, left: tuple[L, R], right: tuple[L, R]) -> tuple[L, R]:
        """Returns the pair of the meets."""
        return self.left.meet(left[0], right[0]), self.right.meet(left[1], right[1])

    def less_equal(self, left: tuple[L, R], right: tuple[L, R]) -> bool:
        """Returns whether `left` is at or before `right` in both components."""
        return self.left.less_equal(left[0], right[0]) and self.right.less_equal(left[1], right[1])

    def is_time(self, value: object) -> bool:
        """Returns whether the value is a pair of times, one of each lattice."""
        return (
            isinstance(value, tuple)
            and len(value) == 2
            and self.left.is_time(value[0])
            and self.right.is_time(value[1])
        )

    def encode(self, time: tuple[L, R]) -> tuple[int, ...]:
        """Returns the encoding of the first component, then that of the second.

        Example:
            >>> Product(NATURAL, Product(NATURAL, NATURAL)).encode((1, (2, 3)))
            (1, 2, 3)
        """
        return self.left.encode(time[0]) + self.right.encode(time[1])

    def decode(self, encoded: Sequence[int]) -> tuple[L, R]:
        """Returns the pair of which this is the encoding.

        Raises:
            NotATime: No pair is encoded so.
        """
        if len(encoded) != self.columns:
            raise NotATime(encoded, self)
        split = self.left.columns
        return self.left.decode(encoded[:split]), self.right.decode(encoded[split:])

    def times_through(self, time: tuple[L, R]) -> Iterator[tuple[L, R]]:
        """Yields the pairs at or before `time`: rows of second components, by first component."""
        for left in self.left.times_through(time[0]):
            for right in self.right.times_through(time[1]):
                yield left, right

    def __repr__(self) -> str:
        """Returns the expression that makes this lattice."""
        return f"Product({self.left!r}, {self.right!r})"
