"""Counts and sums per key over update frames, column by column: `accumulate` on integers.

Exact: the sums are of bigints, and of numerics of one scale as integers of units of their last digits. They are 64 bits
wide where it is known beforehand that no sum can leave these, whatever the order, and Python's integers else. What
is added up is so little (`spark.accumulate`) that only more rows than can be counted leave the range of its type.

With the changes ordered by key and time, a state row before a time is what the state held plus a running sum, so that
many times of an interval cost what many keys do.

Measured against it, decimals of 2 million rows by 20,000 keys (`bench/column_operators.py`): 301 ms, Arrow's groups
0.07 times that, Polars' 0.21, both of which wrap without a word; DuckDB's, which tell an overflow, 0.2.

Memory: a few integers for each update and sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.expressions.numbers import are_too_many, decimals, integers, of_halves
from mz_dagster.compute.local.multiplicities import ensured
from mz_dagster.errors import InternalError
from mz_dagster.storage.numerics import halves
from mz_dagster.storage.row_numbers import compact, firsts, numbered, order_by, whole
from mz_dagster.storage.shards import DIFF, TIME, MultiplicityOverflow

#: Integers of 64 bits, or Python's.
Exact: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sums:
    """Which columns of updates are keys and which are added up.

    Attributes:
        keys: How many columns come first by which rows are grouped.
        schema: Of the state's updates: the keys, the number of rows, the sums, time, diff and error.
    """

    keys: int
    schema: pa.Schema

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the number of rows and of the sums."""
        return [field.type for field in self.schema][self.keys : -3]


def summed_by_key(changes: pa.Table, state: pa.Table, sums: Sums) -> pa.Table:
    """Returns the updates of a state of counts and sums that changes make, at their times; consolidated.

    Args:
        changes: Updates without errors: keys, what is added up, then time, diff and error.
        state: The updates of the touched keys before all of these times, and perhaps others, in the form of `schema`.
        sums: What is what.

    Raises:
        MultiplicityOverflow: A sum is out of range.
    """
    if not changes.num_rows:
        return sums.schema.empty_table()
    groups, held_groups, state, count = _grouped(changes, state, sums.keys)
    diffs, held_diffs = _integers(changes.column(DIFF)), _integers(state.column(DIFF))
    times = _integers(changes.column(TIME))
    order = order_by([groups, times])
    groups, times = groups[order], times[order]
    # Where a key's next time begins, and where its first one does.
    is_next = np.append(True, (groups[1:] != groups[:-1]) | (times[1:] != times[:-1]))
    starts = np.flatnonzero(is_next)
    keys, times = groups[starts], times[starts]
    first_of = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    span = np.diff(np.append(first_of, len(keys)))
    made: list[tuple[Exact, Exact]] = []
    for place, type_ in enumerate(sums.types):
        values = None if place == 0 else _units(changes.column(sums.keys + place - 1), type_)
        own = _units(state.column(sums.keys + place), type_)
        added, held = _products(diffs, values, held_diffs, own)
        change = np.add.reduceat(added[order], starts)
        before = np.zeros(count, held.dtype) if held.dtype != object else np.full(count, 0, object)
        np.add.at(before, held_groups, held)
        made.append((change, before[keys] + _running(change, first_of, span)))
    changed = _any(change for change, _ in made)
    before_there = _any(total - change for change, total in made) & changed
    after_there = _any(total for _, total in made) & changed
    # Of each key and time what it was goes, and what it is comes.
    picked = np.flatnonzero(np.stack([before_there, after_there], 1).ravel())
    at, is_after = picked >> 1, (picked & 1).astype(np.bool_)
    columns = [
        _stored(np.where(is_after, total[at], (total - change)[at]), type_)
        for (change, total), type_ in zip(made, sums.types, strict=True)
    ]
    representatives = pa.array(order[starts[at]])
    data = [changes.column(place).take(representatives) for place in range(sums.keys)]
    meta = [pa.array(times[at]), pa.array(np.where(is_after, 1, -1)), pa.nulls(len(at), pa.string())]
    return pa.Table.from_arrays([*data, *columns, *meta], schema=sums.schema)


def totals_by_key(changes: pa.Table, sums: Sums, time: int) -> pa.Table:
    """Returns the state of counts and sums of changes that are all taken to be at one time: a row for each key.

    Args:
        changes: Updates without errors: keys, what is added up, then time, diff and error.
        sums: What is what.
        time: The time.

    Raises:
        MultiplicityOverflow: A sum is out of range.
    """
    diffs = _integers(changes.column(DIFF))
    values: list[Exact | _Halves] = []
    for place, type_ in enumerate(sums.types):
        column = None if place == 0 else changes.column(sums.keys + place - 1)
        values.append(diffs if column is None else _addends(column, type_, diffs))
    return _totals(changes, values, sums, time)


def added_totals(states: Sequence[pa.Table], sums: Sums, time: int) -> pa.Table:
    """Returns what several states that `totals_by_key` made come to; raises as it does."""
    if not states:
        return sums.schema.empty_table()
    both = pa.concat_tables(states)
    diffs = _integers(both.column(DIFF))
    values = [_addends(both.column(sums.keys + place), type_, diffs) for place, type_ in enumerate(sums.types)]
    return _totals(both, values, sums, time)


class _Halves(NamedTuple):
    """Integers of 128 bits: the lower 64 and the upper ones."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]


def _addends(column: pa.ChunkedArray, type_: pa.DataType, diffs: NDArray[np.int64]) -> Exact | _Halves:
    """Returns what rows add to their sums: integers of 64 bits if no sum can leave these, or else of 128, or any."""
    array = whole(column)
    if pa.types.is_decimal(type_) and len(array) < 2**31 and (diffs == 1).all() and not array.null_count:
        low, high = halves(array)
        if not np.array_equal(high, low >> 63) and _most(high) * len(high) < 2**62:
            return _Halves(low, high)
    nothing = np.zeros(0, np.int64)
    return _products(diffs, _units(column, type_), nothing, nothing)[0]


def _totals(rows: pa.Table, values: Sequence[Exact | _Halves], sums: Sums, time: int) -> pa.Table:
    """Returns the state of rows that begin with their keys, and of what each adds to their number and the sums."""
    keys = [whole(rows.column(place)) for place in range(sums.keys)]
    numbers, count = compact(numbered(keys, len(rows))[0]) if len(rows) else (np.zeros(0, np.int64), 0)
    totals = [_total_halves(one, numbers, count) if isinstance(one, _Halves) else _total(one, numbers, count)
              for one in values]  # fmt: skip
    is_there = np.flatnonzero(_any(one.low | one.high if isinstance(one, _Halves) else one for one in totals))
    of_each = pa.array(firsts(numbers)[is_there])
    columns = [
        _stored_halves(_Halves(one.low[is_there], one.high[is_there]), type_)
        if isinstance(one, _Halves)
        else _stored(one[is_there], type_)
        for one, type_ in zip(totals, sums.types, strict=True)
    ]
    ones, times = np.ones(len(is_there), np.int64), np.full(len(is_there), time, np.int64)
    meta = [pa.array(times), pa.array(ones), pa.nulls(len(is_there), pa.string())]
    return pa.Table.from_arrays([*(key.take(of_each) for key in keys), *columns, *meta], schema=sums.schema)


def _total(values: Exact, numbers: NDArray[np.int64], count: int) -> Exact:
    """Returns the sum of the values of each number."""
    total: Exact = np.zeros(count, np.int64) if values.dtype != object else np.full(count, 0, object)
    np.add.at(total, numbers, values)
    return total


def _total_halves(values: _Halves, numbers: NDArray[np.int64], count: int) -> _Halves:
    """Returns the sum of the values of each number, of fewer than 2^31: 32 bits of them are added up at a time."""
    mask = 2**32 - 1
    first = _total(values.low & mask, numbers, count)
    second = _total((values.low >> 32) & mask, numbers, count) + (first >> 32)
    return _Halves((first & mask) | (second << 32), _total(values.high, numbers, count) + (second >> 32))


def _stored_halves(totals: _Halves, type_: pa.DataType) -> pa.Array:
    if are_too_many(totals.low, totals.high).any():
        raise MultiplicityOverflow
    return of_halves(totals.low, totals.high, type_)


def _grouped(
    changes: pa.Table, state: pa.Table, keys: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], pa.Table, int]:
    """Returns the number of each change's key, and of each state row's; the state rows of these keys; how many keys."""
    both = [
        pa.concat_arrays([*changes.column(place).chunks, *state.column(place).chunks])
        if changes.column(place).num_chunks + state.column(place).num_chunks
        else pa.array([], changes.schema.field(place).type)
        for place in range(keys)
    ]
    numbers, _ = numbered(both, len(changes) + len(state))
    own, held = numbers[: len(changes)], numbers[len(changes) :]
    if len(state):
        met = np.isin(held, own)
        state, held = state.filter(pa.array(met)), held[met]
    found, count = compact(np.concatenate([own, held]))
    return found[: len(own)], found[len(own) :], state, count


def _integers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return integers(whole(column))


def _units(column: pa.ChunkedArray, type_: pa.DataType) -> Exact:
    """Returns numbers as integers, units of the last digit of decimals."""
    if column.null_count:
        raise InternalError("what is added up is never NULL")
    array = whole(column)
    if not pa.types.is_decimal(type_):
        return integers(array)
    low, high = halves(array)
    if np.array_equal(high, low >> 63):
        return low
    wide: Exact = high.astype(object) * 2**64 + low.astype(np.uint64).astype(object)
    return wide


def _products(
    diffs: NDArray[np.int64], values: Exact | None, held_diffs: NDArray[np.int64], held: Exact
) -> tuple[Exact, Exact]:
    """Returns what changes add and what state rows held, each as often as it is there.

    They are 64 bits wide if no sum of them can leave these.
    """
    most = _most(diffs) * len(diffs) * (1 if values is None else _most(values))
    most += _most(held_diffs) * len(held) * _most(held)
    if most >= 2**63:
        diffs, held_diffs = diffs.astype(object), held_diffs.astype(object)
        values, held = None if values is None else values.astype(object), held.astype(object)
    return diffs if values is None else diffs * values, held_diffs * held


def _most(values: Exact) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


def _running(changes: Exact, first_of: NDArray[np.int64], span: NDArray[np.int64]) -> Exact:
    """Returns the sums of each key's changes so far; 64 bits may wrap on the way, and come back."""
    total: Exact = np.cumsum(changes)
    before: Exact = np.repeat(total[first_of] - changes[first_of], span)
    return total - before


def _any(columns: Any) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] | None = None
    for one in columns:
        there = np.asarray(one != 0, np.bool_)
        found = there if found is None else found | there
    assert found is not None, "rows are always counted"
    return found


def _stored(totals: Exact, type_: pa.DataType) -> pa.Array:
    is_decimal = pa.types.is_decimal(type_)
    if totals.dtype != object:
        return decimals(totals, type_) if is_decimal else pa.array(totals)
    if not is_decimal:
        return pa.array(np.array([ensured(int(one)) for one in totals], np.int64))
    if len(totals) and _most(totals) >= 10**38:
        raise MultiplicityOverflow
    both = np.empty((len(totals), 2), np.int64)
    both[:, 0] = (totals & (2**64 - 1)).astype(np.uint64).view(np.int64)
    both[:, 1] = (totals >> 64).astype(np.int64)
    return pa.Array.from_buffers(type_, len(totals), [None, pa.py_buffer(both)])
