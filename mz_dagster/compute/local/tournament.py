"""Tournaments whose changes are all at one time, column by column: `staged`'s stages without a loop over places.

Rows are codes of their values, which have the order of these, NULL being last. A stage sums, for each row of a place
that changes, what the state held and what comes; from both the stage function takes its rows at once for all places,
and what they differ in are the changes of the next level.

Memory: a few integers for each row of the places that change, and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.coded_rows import NULL
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.keys import compact, firsts, numbered, sums
from mz_dagster.plan.physical import Extremes, TopRows
from mz_dagster.plan.relation import AggregateFunction

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in places, and how often they are there, or come and go.

    Attributes:
        bucket: Of each row: its bucket.
        group: A number of its group.
        cells: For each column the codes of the values.
        diff: Its multiplicity.
    """

    bucket: Codes
    group: Codes
    cells: tuple[Codes, ...]
    diff: Codes

    def __len__(self) -> int:
        return len(self.diff)

    def take(self, chosen: NDArray[np.int64]) -> Rows:
        """Returns some of the rows."""
        cells = tuple(one[chosen] for one in self.cells)
        return Rows(self.bucket[chosen], self.group[chosen], cells, self.diff[chosen])

    def joined(self, other: Rows) -> Rows:
        """Returns these rows, then others."""
        cells = (np.concatenate(both) for both in zip(self.cells, other.cells, strict=True))
        bucket, group = np.concatenate([self.bucket, other.bucket]), np.concatenate([self.group, other.group])
        return Rows(bucket, group, tuple(cells), np.concatenate([self.diff, other.diff]))

    def places(self) -> Codes:
        """Returns a number for each row's place, from 0 on without gaps."""
        return _numbered([self.bucket, self.group], len(self))

    def numbers(self) -> Codes:
        """Returns a number for each row and its place, from 0 on without gaps."""
        return _numbered([self.bucket, self.group, *self.cells], len(self))

    def summed(self) -> Rows:
        """Returns each row once, with the sum of its multiplicities, if that is not zero."""
        numbers = self.numbers()
        total, first = sums(numbers, self.diff), firsts(numbers)
        found = self.take(first)
        kept = np.flatnonzero(total)
        return Rows(found.bucket, found.group, found.cells, total).take(kept)


@dataclass(frozen=True, slots=True)
class Tournament:
    """How a tournament is held.

    Attributes:
        function: What a stage does with one place.
        group: Positions of the group's columns.
        buckets: How many each stage has.
        levels: The level of the state that each stage reads.
        last: The level of the result.
        keeps_all: Whether the state has the levels below that, too.
        most: How many rows versions may have, all in all.
    """

    function: TopRows | Extremes
    group: tuple[int, ...]
    buckets: Sequence[int]
    levels: Sequence[int]
    last: int
    keeps_all: bool
    most: int


def changed_levels(stages: Tournament, changes: Rows, held: Rows, level: Codes) -> list[tuple[int, Rows]]:
    """Returns the changes of the state, by level.

    Args:
        stages: How it is held.
        changes: Of the first level.
        held: What the state has of the places that change, and perhaps others.
        level: The level of each row of `held`.

    Raises:
        Declined: A multiplicity is negative, or the versions have very many rows.
    """
    found = [(0, changes)] if stages.keeps_all else []
    versioned = 0
    for stage, buckets in enumerate([*stages.buckets[1:], 1]):
        is_last = stage == len(stages.buckets) - 1
        own = held.take(np.flatnonzero(level == stages.levels[stage]))
        both = _of_places(own, changes).joined(changes)
        numbers = both.numbers()
        rows = both.take(firsts(numbers))
        is_change = np.arange(len(both)) >= len(both) - len(changes)
        change = sums(numbers, np.where(is_change, both.diff, 0))
        before = sums(numbers, np.where(is_change, 0, both.diff))
        after = before + change
        if min(before.min(initial=0), after.min(initial=0)) < 0:
            raise Declined("a multiplicity is negative, which is Spark's to tell")
        versioned += int(np.count_nonzero(before)) + int(np.count_nonzero(after))
        if versioned > stages.most:
            raise Declined("there are many rows in the versions of what is touched")
        if isinstance(stages.function, TopRows):
            results = _first_rows(stages.function, rows, before, after, is_last=is_last)
        else:
            results = _extremes(stages.function, stages.group, rows, before, after)
        changes = Rows(results.bucket % buckets, results.group, results.cells, results.diff).summed()
        if is_last or stages.keeps_all:
            found.append((stages.last if is_last else stage + 1, changes))
    return found


def _of_places(held: Rows, changes: Rows) -> Rows:
    """Returns the rows that are in a place that changes."""
    places = _numbered([np.concatenate(both) for both in ((held.bucket, changes.bucket), (held.group, changes.group))],
                       len(held) + len(changes))  # fmt: skip
    return held.take(np.flatnonzero(np.isin(places[: len(held)], places[len(held) :])))


def _first_rows(function: TopRows, rows: Rows, before: Codes, after: Codes, *, is_last: bool) -> Rows:
    """Returns what differs between the first rows of each place before and after."""
    places = rows.places()
    keys = []
    for one in function.order:
        codes = rows.cells[one.position]
        null = -NULL if one.nulls_first else NULL
        keys.append(np.where(codes == NULL, null, -codes if one.descending else codes))
    order = np.lexsort([*reversed([places, *keys, *rows.cells])])
    offset = function.offset if is_last else 0
    end = None if function.limit is None else function.offset + function.limit
    chosen = [_taken(places[order], one[order], offset, end) for one in (before, after)]
    diff = np.empty_like(before)
    diff[order] = chosen[1] - chosen[0]
    return Rows(rows.bucket, rows.group, rows.cells, diff)


def _taken(places: Codes, counts: Codes, offset: int, end: int | None) -> Codes:
    """Returns how many of each row's copies, in order in its place, lie from the offset to the end."""
    total = np.cumsum(counts)
    first = _starts(places)
    behind = np.repeat(total[first] - counts[first], np.diff(np.append(first, len(places))))
    stop = total - behind
    start = np.maximum(stop - counts, offset)
    taken: Codes = np.maximum((stop if end is None else np.minimum(stop, end)) - start, 0)
    return taken


def _extremes(function: Extremes, group: tuple[int, ...], rows: Rows, before: Codes, after: Codes) -> Rows:
    """Returns the rows of extremes that go, and those that come."""
    gone, come = (
        _extreme(function, group, rows.take(np.flatnonzero(one)), sign) for one, sign in ((before, -1), (after, 1))
    )
    return gone.joined(come)


def _extreme(function: Extremes, group: tuple[int, ...], rows: Rows, sign: int) -> Rows:
    places = rows.places()
    order = np.argsort(places, kind="stable")
    rows = rows.take(order)
    first = _starts(places[order])
    functions = iter(function.functions)
    cells = []
    for position, codes in enumerate(rows.cells):
        if position in group or not len(first):
            cells.append(codes[first])
        elif next(functions) is AggregateFunction.MIN:
            cells.append(np.minimum.reduceat(codes, first))
        else:
            greatest = np.maximum.reduceat(np.where(codes == NULL, -1, codes), first)
            cells.append(np.where(greatest < 0, NULL, greatest))
    return Rows(rows.bucket[first], rows.group[first], tuple(cells), np.full(len(first), sign))


def _numbered(columns: Sequence[Codes], rows: int) -> Codes:
    return compact(numbered([pa.array(one) for one in columns], rows)[0])[0]


def _starts(places: Codes) -> NDArray[np.int64]:
    """Returns where places begin that are in order."""
    return np.flatnonzero(np.append(True, places[1:] != places[:-1])) if len(places) else np.zeros(0, np.int64)
