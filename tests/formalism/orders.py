"""The orders over which each law is checked, and how to draw times, frontiers and histories of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from mz_dagster.formalism import EPOCH_MS, NATURAL, Antichain, Lattice, NotATime, Product, Timeline, Update

T = TypeVar("T", bound=Hashable)
Time = Hashable
Updates = list[Update[str, Time]]


@dataclass(frozen=True)
class Pentagon(Lattice[str]):
    """Orders five times as the least lattice that is not modular: `0 < a < c < 1` and `0 < b < 1`."""

    @property
    def minimum(self) -> str:
        """The bottom."""
        return "0"

    @property
    def columns(self) -> int:
        """One: the position in `0abc1`."""
        return 1

    def _at_or_after(self, time: str) -> str:
        return {"0": "0abc1", "a": "ac1", "b": "b1", "c": "c1", "1": "1"}[time]

    def join(self, left: str, right: str) -> str:
        """Returns the first common upper bound: the string above lists them in an extension of the order."""
        return next(time for time in self._at_or_after(left) if time in self._at_or_after(right))

    def meet(self, left: str, right: str) -> str:
        """Returns the last common lower bound."""
        return next(time for time in "1cba0" if {left, right} <= set(self._at_or_after(time)))

    def is_time(self, value: object) -> bool:
        """Returns whether it is one of the five."""
        return isinstance(value, str) and len(value) == 1 and value in "0abc1"

    def encode(self, time: str) -> tuple[int, ...]:
        """Returns the position."""
        return ("0abc1".index(time),)

    def decode(self, encoded: Sequence[int]) -> str:
        """Returns the time at the position."""
        if len(encoded) != 1 or encoded[0] not in range(5):
            raise NotATime(encoded, self)
        return "0abc1"[encoded[0]]

    def times_through(self, time: str) -> Iterator[str]:
        """Yields the times at or before it."""
        return (below for below in "0abc1" if time in self._at_or_after(below))


@dataclass(frozen=True)
class Order:
    """Is a lattice with the window of all times through a last one, from which times are drawn."""

    name: str
    lattice: Lattice[Time]
    window: tuple[Time, ...]

    @property
    def last(self) -> Time:
        """The greatest time of the window."""
        return self.window[-1]

    @property
    def timeline(self) -> Timeline[Time]:
        """A timeline of these times."""
        return Timeline(self.name, self.lattice)

    def times(self) -> st.SearchStrategy[Time]:
        """Draws a time of the window."""
        return st.sampled_from(self.window)

    def frontiers(self, least: int = 0) -> st.SearchStrategy[Antichain[Time]]:
        """Draws a frontier of the timeline; `least=1` excludes `{}`."""
        times = st.lists(self.times(), min_size=least, max_size=3)
        return times.map(lambda elements: Antichain.of(self.timeline, *elements))

    def histories(self, size: int = 12) -> st.SearchStrategy[Updates]:
        """Draws updates, not consolidated, of few pieces of data, so that they often meet."""
        one = st.builds(Update, st.sampled_from("abc"), self.times(), st.integers(-2, 3))
        return st.lists(one, max_size=size)

    def __str__(self) -> str:
        """Returns the name."""
        return self.name


def _order(name: str, lattice: Lattice[T], last: T) -> Order:
    return Order(name, cast("Lattice[Time]", lattice), tuple(lattice.times_through(last)))


GRID = Product(NATURAL, NATURAL)
TOTAL = _order("total", NATURAL, 7)
PARTIAL = _order("partial", GRID, (3, 3))
NESTED = _order("nested", Product(EPOCH_MS, GRID), (1, (2, 1)))
PENTAGON = _order("pentagon", Pentagon(), "1")
ORDERS = [TOTAL, PARTIAL, NESTED, PENTAGON]

over_every_order = pytest.mark.parametrize("order", ORDERS, ids=str)
law = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
