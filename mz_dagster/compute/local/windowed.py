"""Window functions over few updates, in this process: `windowed` of the partitions that change, on columns.

A partition is computed before the interval and at each time that touches it, whole, or of its rows those that see what
changes (`window_reach`); all these versions of all partitions are one table, a version being what functions see as a
partition (`window_functions`). What versions differ in are the updates.

Measured against it: see `window_functions`.

Cost: a sort of the rows of all versions. Memory: some integers for each of these rows and each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.algebra.frame import ERROR
from mz_dagster.compute.local.bucket_pruning import StateLookup
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.expressions.outcome import first_errors
from mz_dagster.compute.local.versions import Versions, versioned_updates
from mz_dagster.compute.local.window_frames import Frames, Partitions
from mz_dagster.compute.local.window_functions import evaluated_functions
from mz_dagster.compute.local.window_reach import near
from mz_dagster.plan.physical import Staged, Windowed
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.arrow_schema import without_error_data, without_errors
from mz_dagster.storage.row_numbers import compact, firsts, numbered, ranked, sums

Integers = NDArray[np.int64]


def windowed_updates(changes: pa.Table, node: Staged, lookup: StateLookup) -> pa.Table:
    """Returns the updates of a state which the input's `changes` make, at their times.

    Arguments and form are those of `versions.versioned_updates`.

    Raises:
        Declined: The versions, or what frames hold, have more than `Budget.versioned_rows` rows.
    """
    function = node.function
    assert isinstance(function, Windowed)

    types = [column.type for column in node.input.relation_type.columns]

    def results(rows: CodedRows, versions: Versions, schema: pa.Schema) -> pa.Table:
        versions = versions.each
        return _differences(versions, rows, _results(versions, rows, function, types), schema)

    def looked_up(values: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        state = lookup(values)
        state = state.filter(pc.and_(pc.is_null(state.column(ERROR)), pc.equal(state.column("c0"), 0)))
        return near(without_errors(changes), state, node)

    return versioned_updates(changes, node, looked_up, results)


def _results(
    versions: Versions, rows: CodedRows, function: Windowed, types: Sequence[ScalarType]
) -> tuple[list[pa.Array], pa.Array | None]:
    """Returns the functions' values for each row of the versions, in their order, and errors, if there are some."""
    cells = [one[versions.row] for one in rows.sorted_by]
    partitions = Partitions.of(versions.version, cells, function.order)
    row = versions.row[partitions.order]

    def column(position: int, places: Integers) -> pa.Array:
        return rows.table.column(position).take(pa.array(row[places])).combine_chunks()

    frames = Frames(partitions, function.order, types, column)
    found = evaluated_functions(function.functions, frames, rows, row)
    back = np.empty(len(versions.row), np.int64)
    back[partitions.order] = np.arange(len(versions.row))
    places, errors = pa.array(back), first_errors(found)
    values = [one.array(len(back)).take(places) for one in found]
    return values, None if errors is None else errors.take(places)


def _differences(
    versions: Versions, rows: CodedRows, results: tuple[list[pa.Array], pa.Array | None], schema: pa.Schema
) -> pa.Table:
    """Returns what the results of each version and the one before differ in, at the version's time.

    A row at which a function fails is an error.
    """
    values, errors = results
    told: list[pa.Array] = [pa.array(versions.row), *values]
    if errors is not None:
        is_wrong = errors.is_valid()
        told = [errors, *(pc.if_else(is_wrong, pa.scalar(None, one.type), one) for one in told)]
    numbers, bound = compact(numbered(told, len(versions.row))[0])
    comes, goes = versions.asserted[versions.version], versions.retracted[versions.version]
    touch = np.concatenate([comes[comes >= 0], goes[goes >= 0]])
    number = np.concatenate([numbers[comes >= 0], numbers[goes >= 0]])
    sign = np.concatenate([np.full(int((comes >= 0).sum()), 1), np.full(int((goes >= 0).sum()), -1)])
    distinct, place = ranked(touch * max(bound, 1) + number)
    diff = sums(place, sign)
    changed = np.flatnonzero(diff)
    at = firsts(numbers)[distinct[changed] % max(bound, 1)]
    data = rows.table.take(pa.array(versions.row[at])).columns
    count = len(changed)
    place_columns = [pa.array(np.full(count, 1, np.int32)), pa.array(np.zeros(count, np.int64))]
    values = [one.take(pa.array(at)) for one in values]
    error = pa.nulls(count, pa.string()) if errors is None else errors.take(pa.array(at))
    meta = [pa.array(versions.times[distinct[changed] // max(bound, 1)]), pa.array(diff[changed]), error]
    return without_error_data(pa.Table.from_arrays([*place_columns, *data, *values, *meta], schema=schema))
