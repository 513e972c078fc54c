"""Rows that a join has put together so far, as numbers of rows of its inputs.

    JoinSide    an input's good rows: columns, times, diffs, and once it is asked again, its keys in order
    JoinedRows  for each input that is joined: which of its rows is part of each joined row

A column is copied when it is looked at: a key where it is compared, the others at the end, for the rows that are left.
A join of few rows with what is looked up whole, as most of a step are, then costs a search in its keys, and none of the
columns of what is not met.

Memory: an integer for each joined row and input, and the columns that were asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import DIFF, TIME
from mz_dagster.compute.local.matching import RowPairs, SortedKeys, matches, sorted_matches
from mz_dagster.compute.local.multiplicities import products

Rows = NDArray[np.int64]


class JoinSide:
    """An input's updates that may be joined.

    Args:
        frame: Data columns, then time and diff; none is an error.

    Attributes:
        rows: How many there are.
    """

    def __init__(self, frame: pa.Table) -> None:
        self._frame = frame.slice()  # not the table itself, which is to go though this is kept
        self.rows: int = frame.num_rows
        self._asked: set[str] = set()
        self._sorted: dict[str, SortedKeys | None] = {}

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns a column."""
        return self._frame.column(name)

    def only(self, mask: NDArray[np.bool_]) -> JoinSide:
        """Returns the rows for which the mask is true, which is to be kept."""
        return JoinSide(self._frame.filter(pa.array(mask)))

    @cached_property
    def times(self) -> Rows:
        """The time of each row."""
        found: Rows = self._frame.column(TIME).to_numpy()
        return found

    @cached_property
    def diffs(self) -> Rows:
        """The diff of each row."""
        found: Rows = self._frame.column(DIFF).to_numpy()
        return found

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first and the last time, of at least one row."""
        return int(self.times.min()), int(self.times.max())

    @cached_property
    def is_once(self) -> bool:
        """Whether each row is there once: every diff is 1."""
        return bool((self.diffs == 1).all())

    def sorted_keys(self, name: str) -> SortedKeys | None:
        """Returns a column's values in order; None if they have none, or it does not pay: it is asked for once."""
        if name not in self._sorted:
            if name not in self._asked or self.rows < budget().sorted_rows:
                self._asked.add(name)
                return None
            self._sorted[name] = SortedKeys.of(self.column(name))
        return self._sorted[name]


class JoinedRows:
    """The rows of one input, and of others as they are joined to it.

    Args:
        input: The number of the first input, whose updates' times are those of the joined rows.
        side: Its rows.

    Attributes:
        sides: The inputs that are joined.
        length: How many rows there are.
        failed: What each row failed at, NULL where it did not; None if no row did.
    """

    def __init__(self, input: int, side: JoinSide) -> None:
        self._first = input
        self.sides = {input: side}
        self.length = side.rows
        self.failed: pa.ChunkedArray | pa.Array | None = None
        #: None stands for all rows of the side, in their order.
        self._rows: dict[int, Rows | None] = {input: None}
        self._found: dict[tuple[int, str], pa.ChunkedArray] = {}

    def column(self, input: int, name: str) -> pa.ChunkedArray:
        """Returns a column of an input that is joined, of the joined rows."""
        rows = self._rows[input]
        if rows is None:
            return self.sides[input].column(name)
        if (input, name) not in self._found:
            self._found[input, name] = self.sides[input].column(name).take(pa.array(rows))
        return self._found[input, name]

    def matches(self, side: JoinSide, keys: Sequence[tuple[pa.ChunkedArray, str]], most: int) -> RowPairs:
        """Returns the numbers of the joined rows, and of an input's, whose columns are equal.

        Args:
            side: The input's rows.
            keys: Pairs of a column of the joined rows and one of the side.
            most: How many pairs of rows there may be.

        Raises:
            TooManyMade: There are more.
        """
        if len(keys) == 1 and (known := side.sorted_keys(keys[0][1])) is not None:
            found = sorted_matches(keys[0][0], known, most)
            if found is not None:
                return found
        return matches([(one, side.column(name)) for one, name in keys], self.length, side.rows, most)

    def meet_rows(self, input: int, side: JoinSide, lefts: Rows, rights: Rows) -> None:
        """Joins an input's rows to the joined ones, pair by pair of their numbers, where they come in time.

        An input before the first meets at the same time, too, one behind it does not: each pair is met once.
        """
        self._take(lefts)
        self.sides[input], self._rows[input] = side, rights
        if not self.length:
            return
        first, last = self.sides[self._first].span[0], side.span[1]
        if last < first or (input < self._first and last == first):
            return
        times, others = self._times(self._first), self._times(input)
        self.keep(others <= times if input < self._first else others < times)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Leaves only the rows for which the mask is true."""
        if not mask.all():
            self._take(np.flatnonzero(mask))

    def fail(self, errors: pa.Array) -> None:
        """Notes errors of rows, NULL for those that have none; what a row failed at before stays."""
        self.failed = errors if self.failed is None else pc.coalesce(self.failed, errors)

    def times(self) -> pa.Array:
        """Returns the times of the joined rows."""
        return pa.array(self._times(self._first))

    def diffs(self) -> pa.Array:
        """Returns the diffs of the joined rows.

        Raises:
            MultiplicityOverflow: One is beyond a bigint.
        """
        found = None
        for input, side in sorted(self.sides.items()):
            if side.is_once:
                continue
            rows = self._rows[input]
            own = pa.array(side.diffs if rows is None else side.diffs[rows])
            found = own if found is None else products(found, own)
        return pa.array(np.ones(self.length, np.int64)) if found is None else found

    def _times(self, input: int) -> Rows:
        times, rows = self.sides[input].times, self._rows[input]
        return times if rows is None else times[rows]

    def _take(self, numbers: Rows) -> None:
        """Leaves the rows with these numbers, which may repeat."""
        if len(numbers) == self.length and (numbers == np.arange(self.length)).all():
            return
        self._rows = {one: numbers if rows is None else rows[numbers] for one, rows in self._rows.items()}
        self._found.clear()
        self.length = len(numbers)
        if self.failed is not None:
            self.failed = self.failed.take(pa.array(numbers))
