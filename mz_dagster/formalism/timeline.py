"""Timelines: a lattice of times under a name of its own.

Two sources may both count 0, 1, 2, ... and still mean different times. A timeline is a unique id
plus a lattice of times, and times of two timelines never compare.

A bare time, such as the int 5, does not know its timeline; whatever carries one does. A `Timeline`
therefore is itself a lattice, and a frontier is made over the timeline (`Antichain.of(timeline, 5)`):
frontiers, time-varying collections and reclockings of two timelines refuse to meet, with
`TimelinesDiffer`, even where the timelines count with the same numbers.

Says nothing about what has happened on a timeline (see `stateful_timeline`) nor about how external
times become its times (see `reclocking`). Implements item 8 of the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from mz_dagster.formalism.errors import TimelinesDiffer
from mz_dagster.formalism.lattice import Lattice, T


@dataclass(frozen=True, slots=True)
class Timeline(Lattice[T], Generic[T]):
    """Names a lattice of times; equal to another timeline only if the id and the lattice are equal.

    Every operation of the lattice is that of `lattice`.

    Attributes:
        id: The unique name.
        lattice: The lattice of its times.

    Example:
        >>> from mz_dagster.formalism import NATURAL, Antichain
        >>> orders, flights = Timeline("orders", NATURAL), Timeline("flights", NATURAL)
        >>> Antichain.of(orders, 3) <= Antichain.of(orders, 5)
        True
        >>> Antichain.of(orders, 3) <= Antichain.of(flights, 5)
        Traceback (most recent call last):
        mz_dagster.formalism.errors.TimelinesDiffer: times of timeline "orders" and of timeline "flights" do not compare
        HINT: Reclock one of the two sides into the other's timeline.
    """

    id: str
    lattice: Lattice[T]

    @property
    def minimum(self) -> T:
        """The first time of the timeline."""
        return self.lattice.minimum

    @property
    def columns(self) -> int:
        """How many integers encode one time."""
        return self.lattice.columns

    def join(self, left: T, right: T) -> T:
        """Returns the least time at or after both."""
        return self.lattice.join(left, right)

    def meet(self, left: T, right: T) -> T:
        """Returns the greatest time at or before both."""
        return self.lattice.meet(left, right)

    def less_equal(self, left: T, right: T) -> bool:
        """Returns whether `left` is at or before `right`."""
        return self.lattice.less_equal(left, right)

    def less_than(self, left: T, right: T) -> bool:
        """Returns whether `left` is before `right`."""
        return self.lattice.less_than(left, right)

    def is_time(self, value: object) -> bool:
        """Returns whether the value is a time of the lattice."""
        return self.lattice.is_time(value)

    def encode(self, time: T) -> tuple[int, ...]:
        """Returns the time as integers, without the timeline's id."""
        return self.lattice.encode(time)

    def decode(self, encoded: Sequence[int]) -> T:
        """Returns the time of which this is the encoding.

        Raises:
            NotATime: No time of the lattice is encoded so.
        """
        return self.lattice.decode(encoded)

    def times_through(self, time: T) -> Iterator[T]:
        """Yields each time at or before `time` once, never ahead of one that precedes it."""
        return self.lattice.times_through(time)

    def __str__(self) -> str:
        """Returns the timeline as messages name it."""
        return f'timeline "{self.id}"'


def check_same_timeline(left: Lattice[T], right: Lattice[T]) -> None:
    """Passes if times of the two sides compare, because they are of one timeline (or bare lattice).

    Raises:
        TimelinesDiffer: They are not.
    """
    if left != right:
        raise TimelinesDiffer(left, right)
