"""Tournaments over few updates, in this process: `staged` for first rows and extremes.

A column's values are coded by their order, so that a row is a tuple of small integers and a stage function compares no
others: the first rows of a bucket are those whose codes sort first, and an extreme is the least or greatest code. The
two zeros of floats are equal to what orders and groups, and told apart by what a row is.

A stage goes through the times at which a bucket changes, and what it makes of each version, less what it made of the
one before, are changes of the next level. A row whose multiplicity in a version is negative is an error in the place of
the row, and so is a retraction from what never retracts.

What was measured against it is with `tournament`, which is what changes at one time, as a first load, go through.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from heapq import nsmallest
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import DIFF, TIME, by_position, positional
from mz_dagster.compute.algebra.times import PRIOR
from mz_dagster.compute.algebra.tournaments import leaves_one_row
from mz_dagster.compute.local.bucket_pruning import (
    Hashes,
    StateLookup,
    among,
    buckets_of,
    pruned_state,
    prunes_buckets,
)
from mz_dagster.compute.local.coded_rows import NULL, CodedRows, Row
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.error_part import error_updates, failed
from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.compute.local.multiplicities import ensured
from mz_dagster.compute.local.tournament import KERNELS, Rows, Tournament, changed_levels, of_places
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.functions.errors import NEGATIVE_MULTIPLICITY, RETRACTION
from mz_dagster.plan.physical import Extremes, Staged, TopRows
from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.arrow_schema import update_schema, without_errors
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.key_hash import key_hashes
from mz_dagster.storage.row_numbers import firsts, numbered, order_by, whole

_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
#: A bucket, and what is its group's own.
_Place: TypeAlias = tuple[int, Hashable]
_Content: TypeAlias = dict[Row, int]


def staged_updates(changes: pa.Table, node: Staged, lookup: StateLookup) -> pa.Table:
    """Returns the updates of a state which the input's `changes` make, at their times.

    Arguments and form are those of `versions.versioned_updates`.

    Raises:
        Declined: The versions have more than `Budget.versioned_rows` rows.
        MultiplicityOverflow: There are more copies of a row than can be counted.
    """
    return _Tournament(node).updates(changes, lookup)


class _Tournament:
    def __init__(self, node: Staged) -> None:
        self._node = node
        self._columns = node.input.relation_type.columns
        self._names = list(positional(len(self._columns)))
        self._schema = update_schema(by_position(node.relation_type))
        #: How many buckets each level has whose rows are looked at.
        self._buckets = (1,) if node.monotonic else node.buckets
        self._levels = [node.last_level] if node.monotonic else list(range(node.last_level))
        #: Whether the state has the levels below the last, too.
        self._has_all = not node.monotonic and not node.once
        self._codes = CodedRows(pa.table({}), 0)
        self._versioned = 0
        #: By time and error, how many come, less those that go.
        self._errors: Counter[tuple[int, str]] = Counter()
        self._orders: dict[Row, tuple[int, ...]] = {}
        #: The state's updates: by level, bucket, row and time the diff. Buckets of a stage may share one of the next.
        self._found: defaultdict[tuple[int, int, Row, int], int] = defaultdict(int)

    def updates(self, changes: pa.Table, lookup: StateLookup) -> pa.Table:
        good = self._consolidated(without_errors(changes))
        if not good.num_rows:
            return pa.concat_tables([failed(changes, self._schema), self._error_updates()])
        hashes = self._hashes(good)
        if prunes_buckets(self._node, good, hashes):
            keys = self._keys(good, hashes, first=1)
            state = pruned_state(self._node, good, hashes, self._met(keys, lookup(keys)), lookup, self._hashes)
        else:
            keys = self._keys(good, hashes)
            state = self._met(keys, lookup(keys))
        data = state.select([f"c{2 + position}" for position in range(len(self._columns))]).rename_columns(self._names)
        is_one_row = self._node.monotonic and leaves_one_row(self._node.function)
        if is_one_row and len(self._node.group) == len(self._columns) and not any(map(_has_signs, self._columns)):
            return pa.concat_tables(
                [self._first_times(good, data), failed(changes, self._schema), self._error_updates()]
            )
        time = good.column(TIME)[0].as_py()
        codes = self._codes = CodedRows(pa.concat_tables([good.select(self._names), data]), len(good) + len(state))
        errors = failed(changes, self._schema)
        if pc.min_max(good.column(TIME)).as_py() == {"min": time, "max": time} and _are_small(good, state):
            at_once = self._at_once(hashes, good, state, time)
            if at_once is not None:
                return pa.concat_tables([at_once, errors, self._error_updates()])
        flow = self._flow(codes.rows[: len(good)], hashes, good)
        held = self._held(codes.rows[len(good) :], state)
        for stage in range(len(self._buckets)):
            flow = self._above(stage, flow, held)
        return pa.concat_tables([self._table(), errors, self._error_updates()])

    def _error_updates(self) -> pa.Table:
        """Returns the errors that were found."""
        return error_updates(self._errors, self._schema)

    def _at_once(self, hashes: Hashes, changes: pa.Table, state: pa.Table, time: int) -> pa.Table | None:
        """Returns the state's updates if all changes are at one time; None if a multiplicity is negative."""
        assert isinstance(self._node.function, TopRows | Extremes)
        count, codes = len(changes), self._codes
        groups, _ = numbered([pa.array(codes.compared[position]) for position in self._node.group], codes.size)
        cells = codes.columns
        stages = Tournament(
            self._node.function, self._node.group, self._buckets, self._levels, self._node.last_level, self._has_all,
            budget().versioned_rows - self._versioned, codes, [column.type for column in self._columns],
        )  # fmt: skip
        own = tuple(one[:count] for one in cells), tuple(one[count:] for one in cells)
        flow = Rows(buckets_of(hashes, self._buckets[0]), groups[:count], own[0], integers(whole(changes.column(DIFF))))
        held = Rows(integers(whole(state.column("c1"))), groups[count:], own[1], integers(whole(state.column(DIFF))))
        found = changed_levels(stages, flow, held, integers(whole(state.column("c0"))))
        if found is None:
            return None
        tables = [self._schema.empty_table()]
        for level, rows in found:
            arrays = [
                pa.array(np.full(len(rows), level, np.int32)), pa.array(rows.bucket), *codes.arrays(rows.cells),
                pa.array(np.full(len(rows), time)), pa.array(rows.diff), pa.nulls(len(rows), pa.string()),
            ]  # fmt: skip
            tables.append(pa.Table.from_arrays(arrays, schema=self._schema))
        return pa.concat_tables(tables)

    def _consolidated(self, changes: pa.Table) -> pa.Table:
        """Returns the sum of the diffs of each row and time where it is not zero."""
        if not changes.num_rows:
            return changes
        found = summed(changes)
        if not self._node.monotonic:
            return found
        is_retracted = pc.less(found.column(DIFF), 0)
        for time in found.column(TIME).filter(is_retracted).to_pylist():
            self._errors[time, RETRACTION] += 1
        return found.filter(pc.invert(is_retracted))

    def _first_times(self, changes: pa.Table, before: pa.Table) -> pa.Table:
        """Returns each row that was not there before, at the first of its times; the group is the whole row."""
        rows = pa.concat_tables([changes.select(self._names), before])
        numbers, _ = numbered([whole(one) for one in rows.columns], len(rows))
        times = np.append(integers(whole(changes.column(TIME))), np.full(len(before), PRIOR))
        # By number, and there by time: the first is the one that was there before, or came first.
        order = order_by([numbers, times])
        first = order[firsts(numbers[order])]
        come = np.sort(first[times[first] > PRIOR])
        found = rows.take(pa.array(come))
        place = [pa.array(np.full(len(come), self._node.last_level, np.int32)), pa.array(np.zeros(len(come), np.int64))]
        meta = [pa.array(times[come]), pa.array(np.ones(len(come), np.int64)), pa.nulls(len(come), pa.string())]
        return pa.Table.from_arrays([*place, *found.columns, *meta], schema=self._schema)

    def _hashes(self, rows: pa.Table) -> Hashes:
        """Returns the hash of each row, by which it has its buckets (`versions.hashed`)."""
        others = [position for position in range(len(self._columns)) if position not in self._node.group]
        if self._buckets == (1,) or not others:
            return np.zeros(len(rows), np.uint64)
        types = [self._columns[position].type for position in others]
        return key_hashes([rows.column(f"c{position}") for position in others], types)

    def _keys(self, rows: pa.Table, hashes: Hashes, *, first: int = 0) -> dict[int, pa.ChunkedArray]:
        """Returns the values of the state's columns at all places that rows may change, perhaps more than once.

        That is from a first stage on.
        """
        parts = [
            pa.table(
                {
                    "0": pa.array(np.full(len(rows), level, np.int32)),
                    "1": pa.array(buckets_of(hashes, buckets)),
                    **{str(2 + k): rows.column(f"c{k}") for k in self._node.group},
                }
            )
            for level, buckets in list(zip(self._levels, self._buckets, strict=True))[first:]
        ]
        whole = pa.concat_tables(parts)
        return {int(name): whole.column(name) for name in whole.column_names}

    def _met(self, keys: Mapping[int, pa.ChunkedArray], state: pa.Table) -> pa.Table:
        """Returns those updates of the state that a lookup by keys asks for."""
        state = without_errors(state)
        places = state.select([f"c{position}" for position in keys])
        asked = pa.table(list(keys.values()), places.column_names)
        return state.filter(pa.array(among(places, asked, signs=False)))

    def _flow(self, rows: list[Row], hashes: Hashes, changes: pa.Table) -> _Flow:
        """Returns the changes of the first level; as updates, too, if the state has that."""
        flow = _Flow()
        times, diffs = changes.column(TIME).to_pylist(), changes.column(DIFF).to_pylist()
        buckets = buckets_of(hashes, self._buckets[0]).tolist()
        for row, bucket, time, diff in zip(rows, buckets, times, diffs, strict=True):
            flow.add((bucket, self._group(row)), time, row, diff)
            if self._has_all:
                self._found[0, bucket, row, time] += diff
        return flow

    def _held(self, rows: list[Row], state: pa.Table) -> Mapping[tuple[int, _Place], _Content]:
        """Returns, by level and place, what the state held before the interval."""
        found: defaultdict[tuple[int, _Place], _Content] = defaultdict(lambda: defaultdict(int))
        cells = (state.column(name).to_pylist() for name in ("c0", "c1", DIFF))
        for row, level, bucket, diff in zip(rows, *cells, strict=True):
            content = found[level, (bucket, self._group(row))]
            content[row] = ensured(content[row] + diff)
        return found

    def _above(self, stage: int, flow: _Flow, held: Mapping[tuple[int, _Place], _Content]) -> _Flow:
        """Returns the changes of the next level that those of a stage's level make, and notes them as updates."""
        is_last = stage == len(self._buckets) - 1
        buckets = 1 if is_last else self._buckets[stage + 1]
        level, above = self._node.last_level if is_last else stage + 1, _Flow()
        for place, by_time in flow.changes.items():
            content = {row: diff for row, diff in held.get((self._levels[stage], place), {}).items() if diff}
            before, (bucket, group) = self._result(content, is_last=is_last), place
            bucket %= buckets
            wrong = _negative(content)
            for time in sorted(by_time):
                _apply(content, by_time[time])
                after = self._result(content, is_last=is_last)
                if stage == 0:
                    self._errors[time, NEGATIVE_MULTIPLICITY] += _negative(content) - wrong
                    wrong = _negative(content)
                for row in before.keys() | after.keys():
                    diff = after.get(row, 0) - before.get(row, 0)
                    if diff:
                        if is_last or self._has_all:
                            self._found[level, bucket, row, time] += diff
                        above.add((bucket, group), time, row, diff)
                before = after
        return above

    def _result(self, content: _Content, *, is_last: bool) -> _Content:
        """Returns what the stage function makes of a version of a bucket."""
        self._versioned += len(content)
        if self._versioned > budget().versioned_rows:
            raise Declined("there are many rows in the versions of what is touched")
        if _negative(content):
            content = {row: diff for row, diff in content.items() if diff > 0}
        match self._node.function:
            case TopRows() as function:
                return self._first(content, function, function.offset if is_last else 0)
            case Extremes() as function:
                return self._extremes(content, function)
        raise AssertionError("such a tournament is not held here")

    def _first(self, content: _Content, function: TopRows, offset: int) -> _Content:
        end = None if function.limit is None else function.offset + function.limit
        if function.ties and end is not None:
            return self._first_with_ties(content, len(function.order), end)
        # Each row takes a place at least.
        few = sorted(content, key=self._order) if end is None else nsmallest(end, content, key=self._order)
        found: _Content = {}
        place = 0
        for row in few:
            start, place = max(place, offset), place + content[row]
            stop = place if end is None else min(place, end)
            if stop > start:
                found[row] = stop - start
        return found

    def _first_with_ties(self, content: _Content, width: int, limit: int) -> _Content:
        """Returns the rows before which, by the first `width` keys of their order, there are fewer than `limit`."""
        found: _Content = {}
        place = begins = 0
        last: tuple[int, ...] | None = None
        for row in sorted(content, key=self._order):
            keys = self._order(row)[:width]
            if keys != last:
                begins, last = place, keys
            if begins >= limit:
                break
            found[row] = content[row]
            place += content[row]
        return found

    def _group(self, row: Row) -> Hashable:
        """Returns what tells a row's group from others."""
        compared = self._codes.comparable_row(row)
        return tuple(compared[position] for position in self._node.group)

    def _order(self, row: Row) -> tuple[int, ...]:
        """Returns by what a row is sorted among those of its bucket; worked out once for all versions."""
        if row not in self._orders:
            assert isinstance(self._node.function, TopRows)
            keys, compared = [], self._codes.comparable_row(row)
            for one in self._node.function.order:
                code = compared[one.position]
                if code == NULL:
                    keys.append(-NULL if one.nulls_first else NULL)
                else:
                    keys.append(-code if one.descending else code)
            self._orders[row] = (*keys, *compared, *row)
        return self._orders[row]

    def _extremes(self, content: _Content, function: Extremes) -> _Content:
        if not content:
            return {}
        rows = [self._codes.comparable_row(row) for row in content]
        if len(rows) == 1 and leaves_one_row(function):
            return {rows[0]: 1}
        functions = iter(function.functions)
        columns = list(zip(*rows, strict=True))
        found = []
        for position, codes in enumerate(columns):
            if position in self._node.group:
                found.append(codes[0])
                continue
            one = next(functions)
            if one is AggregateFunction.MIN and one in KERNELS:
                found.append(min(codes))
            elif one is AggregateFunction.MAX and one in KERNELS:
                found.append(max((code for code in codes if code != NULL), default=NULL))
            else:
                counts, own = np.array([*content.values()], np.int64), np.array(codes, np.int64)
                place, type_ = np.zeros(1, np.int64), self._columns[position].type
                found.append(int(of_places(one, self._codes, type_, position, own, counts, place)[0]))
        return {tuple(found): 1}

    def _table(self) -> pa.Table:
        found = [(*place, ensured(diff)) for place, diff in self._found.items() if diff]
        levels, buckets, rows, times, diffs = zip(*found, strict=True) if found else ((),) * 5
        arrays = [
            pa.array(levels, pa.int32()), pa.array(buckets, pa.int64()),
            *self._codes.values(rows),
            pa.array(times, pa.int64()), pa.array(diffs, pa.int64()), pa.nulls(len(rows), pa.string()),
        ]  # fmt: skip
        return pa.Table.from_arrays(arrays, schema=self._schema)


class _Flow:
    """Changes of a level: for each place, by time, rows and their diffs."""

    def __init__(self) -> None:
        self.changes: defaultdict[_Place, defaultdict[int, _Content]] = defaultdict(lambda: defaultdict(dict))

    def add(self, place: _Place, time: int, row: Row, diff: int) -> None:
        rows = self.changes[place][time]
        rows[row] = rows.get(row, 0) + diff


def _has_signs(column: Column) -> bool:
    """Returns whether a column's values are or hold numbers with signed zeros."""
    return column.type.kind in _FLOATS or column.type.holds(_FLOATS)


def _are_small(*updates: pa.Table) -> bool:
    """Returns whether no sum of some of the updates' diffs is beyond a bigint."""
    bounds = [pc.min_max(one.column(DIFF)).as_py() for one in updates]
    most: int = max(abs(one or 0) for bound in bounds for one in bound.values())
    return most * sum(map(len, updates)) < 2**62


def _negative(content: _Content) -> int:
    """Returns how many rows have a negative multiplicity."""
    return sum(diff < 0 for diff in content.values())


def _apply(content: _Content, changes: Mapping[Row, int]) -> None:
    for row, diff in changes.items():
        total = ensured(content.get(row, 0) + diff)
        if total:
            content[row] = total
        else:
            content.pop(row, None)
