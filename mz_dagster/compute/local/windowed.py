"""Window functions over few updates, in this process: `windowed` of the partitions that change, on columns.

A partition is computed whole, before the interval and at each time that touches it; all these versions of all
partitions are one table, a version being what functions see as a partition (`window_functions`). What versions differ
in are the updates. What goes wrong in the data is `Declined`, and left to Spark, which tells the error.

Cost: a sort of the rows of all versions. Memory: some integers for each of these rows and each column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME, by_position, positional
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.compute.local.join import failed
from mz_dagster.compute.local.keys import compact, firsts, numbered, sums, whole
from mz_dagster.compute.local.window_functions import Partitions, is_computed_here
from mz_dagster.compute.lookups.lookup_keys import is_key
from mz_dagster.plan.physical import Staged, Windowed
from mz_dagster.storage.arrow_schema import update_schema

Integers = NDArray[np.int64]


def can_window(node: Staged) -> bool:
    """Returns whether window functions are ones whose state `windowed_updates` advances."""
    if not isinstance(node.function, Windowed) or node.monotonic:
        return False
    return all(map(is_key, node.input.relation_type.columns)) and all(map(is_computed_here, node.function.functions))


def windowed_updates(
    changes: pa.Table, node: Staged, lookup: Callable[[Mapping[int, pa.ChunkedArray]], pa.Table]
) -> pa.Table:
    """Returns the updates of a state that `can_window` which the input's `changes` make, at their times.

    Args:
        changes: Of the input: columns `c0`, `c1`, ..., then time, diff and error.
        node: The operator.
        lookup: Returns updates of the state before the interval, and perhaps others: told values of its columns, by
            their positions.

    Returns:
        The state's updates in the same form, consolidated in the data part.

    Raises:
        Declined: A multiplicity is negative, a function fails, or the versions have more than `Budget.versioned_rows`
            rows.
    """
    assert isinstance(node.function, Windowed)
    schema = update_schema(by_position(node.relation_type))
    names = list(positional(node.input.relation_type.arity))
    good = changes.filter(pc.is_null(changes.column(ERROR)))
    if not good.num_rows:
        return failed(changes, schema)
    keys = pa.table({"level": pa.array([0] * len(good), pa.int32()), "bucket": pa.array([0] * len(good), pa.int64())})
    asked = {0: keys.column(0), 1: keys.column(1), **{2 + k: good.column(f"c{k}") for k in node.group}}
    state = lookup(asked)
    state = state.filter(pc.and_(pc.is_null(state.column(ERROR)), pc.equal(state.column("c0"), 0)))
    held = state.select([f"c{2 + place}" for place in range(len(names))]).rename_columns(names)
    rows = CodedRows(pa.concat_tables([good.select(names), held]), len(good) + len(held))
    diffs = np.concatenate([integers(whole(one.column(DIFF))) for one in (good, state)])
    found = _Versions.of(rows, node.group, integers(whole(good.column(TIME))), diffs)
    results = _results(found, rows, node.function)
    parts = [] if node.once else [_changes(good.select([*names, TIME, DIFF]), schema)]
    parts.append(_differences(found, rows, results, schema))
    return pa.concat_tables([*parts, failed(changes, schema)])


@dataclass(frozen=True, slots=True)
class _Versions:
    """The rows of all versions of the partitions that change, each as often as it is there.

    Attributes:
        version: Of each row: the number of its version.
        row: Which of the coded rows it is.
        retracted: Of each version: the number of the touch, a partition's next time, at which its result goes; -1 for
            a partition's last.
        asserted: At which it comes; -1 for its first, which is there before.
        times: Of each touch: its time.
    """

    version: Integers
    row: Integers
    retracted: Integers
    asserted: Integers
    times: Integers

    @classmethod
    def of(cls, rows: CodedRows, group: tuple[int, ...], times: Integers, diffs: Integers) -> _Versions:
        """Returns the versions that changes make, which are the first rows, of what is held, the others.

        Raises:
            Declined: A multiplicity is negative, or there are very many rows.
        """
        count = len(times)
        partitions, _ = compact(numbered([pa.array(rows.columns[position]) for position in group], rows.size)[0])
        kept = np.flatnonzero(np.append(np.full(count, True), np.isin(partitions[count:], partitions[:count])))
        partitions, partition_count = compact(partitions[kept])
        diffs, row = diffs[kept], _whole_rows(rows)[kept]
        # A touch is a partition and a time at which it changes.
        order = np.lexsort((times, partitions[:count]))
        by_partition, by_time = partitions[:count][order], times[order]
        is_next = np.append(True, (by_partition[1:] != by_partition[:-1]) | (by_time[1:] != by_time[:-1]))
        touch = np.empty(count, np.int64)
        touch[order] = np.cumsum(is_next) - 1
        touched = by_partition[is_next]
        touches = np.bincount(touched, minlength=partition_count)
        first_touch = np.cumsum(touches) - touches
        # Each partition has a version more than touches: that from before.
        first_version = first_touch + np.arange(partition_count)
        begins = np.append(touch + touched[touch] + 1, first_version[partitions[count:]])
        ends = first_version[partitions] + touches[partitions] + 1
        spans = ends - begins
        if int(spans.sum()) > budget().versioned_rows:
            raise Declined("there are many rows in the versions of what is touched")
        version = np.repeat(begins - (np.cumsum(spans) - spans), spans) + np.arange(int(spans.sum()))
        numbers = version * rows.size + np.repeat(row, spans)
        distinct, place = np.unique(numbers, return_inverse=True)
        copies = sums(place, np.repeat(diffs, spans))
        if copies.min(initial=0) < 0:
            raise Declined("a multiplicity is negative, which is Spark's to tell")
        if copies.max(initial=0) > budget().versioned_rows or int(copies.sum()) > budget().versioned_rows:
            raise Declined("there are many rows in the versions of what is touched")
        each = np.repeat(distinct, copies)
        is_first, last = np.zeros(len(touched) + partition_count, np.bool_), first_version + touches
        is_first[first_version] = True
        after = np.arange(len(is_first)) - np.cumsum(is_first)
        retracted = after + 1
        retracted[last] = -1
        return cls(each // rows.size, each % rows.size, retracted, np.where(is_first, -1, after), by_time[is_next])


def _whole_rows(rows: CodedRows) -> Integers:
    """Returns for each row the first that is equal to it."""
    numbers, _ = compact(numbered([pa.array(one) for one in rows.columns], rows.size)[0])
    return firsts(numbers)[numbers]


def _results(versions: _Versions, rows: CodedRows, function: Windowed) -> list[pa.Array]:
    """Returns the functions' values for each row of the versions, in their order."""
    cells = [one[versions.row] for one in rows.columns]
    partitions = Partitions.of(versions.version, cells, function.order)
    back = np.empty(len(versions.row), np.int64)
    back[partitions.order] = np.arange(len(versions.row))
    places = pa.array(back)
    return [partitions.values(one, rows, versions.row).take(places) for one in function.functions]


def _differences(versions: _Versions, rows: CodedRows, results: list[pa.Array], schema: pa.Schema) -> pa.Table:
    """Returns what the results of each version and the one before differ in, at the version's time."""
    numbers, bound = compact(numbered([pa.array(versions.row), *results], len(versions.row))[0])
    comes, goes = versions.asserted[versions.version], versions.retracted[versions.version]
    touch = np.concatenate([comes[comes >= 0], goes[goes >= 0]])
    number = np.concatenate([numbers[comes >= 0], numbers[goes >= 0]])
    sign = np.concatenate([np.full(int((comes >= 0).sum()), 1), np.full(int((goes >= 0).sum()), -1)])
    distinct, place = np.unique(touch * max(bound, 1) + number, return_inverse=True)
    diff = sums(place, sign)
    changed = np.flatnonzero(diff)
    at = firsts(numbers)[distinct[changed] % max(bound, 1)]
    data = rows.table.take(pa.array(versions.row[at])).columns
    count = len(changed)
    place_columns = [pa.array(np.full(count, 1, np.int32)), pa.array(np.zeros(count, np.int64))]
    values = [one.take(pa.array(at)) for one in results]
    meta = [pa.array(versions.times[distinct[changed] // max(bound, 1)]), pa.array(diff[changed])]
    return pa.Table.from_arrays([*place_columns, *data, *values, *meta, pa.nulls(count, pa.string())], schema=schema)


def _changes(changes: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the input's changes as those of the state's first level, consolidated."""
    *names, _, _ = changes.column_names
    summed = changes.group_by([*names, TIME], use_threads=False).aggregate([(DIFF, "sum")])
    summed = summed.filter(pc.not_equal(summed.column(f"{DIFF}_sum"), 0))
    count = len(summed)
    place = [pa.array(np.zeros(count, np.int32)), pa.array(np.zeros(count, np.int64))]
    results = [pa.nulls(count, field.type) for field in list(schema)[2 + len(names) : -3]]
    meta = [summed.column(TIME), summed.column(f"{DIFF}_sum"), pa.nulls(count, pa.string())]
    return pa.Table.from_arrays([*place, *(summed.column(name) for name in names), *results, *meta], schema=schema)
