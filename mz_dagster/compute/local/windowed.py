"""Window functions over few updates, in this process: `windowed` of the partitions that change, on columns.

A partition is computed whole, before the interval and at each time that touches it; all these versions of all
partitions are one table, a version being what functions see as a partition (`window_functions`). What versions differ
in are the updates. What goes wrong in the data is `Declined`, and left to Spark, which tells the error.

Cost: a sort of the rows of all versions. Memory: some integers for each of these rows and each column.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.bucket_pruning import StateLookup
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.keys import compact, firsts, numbered, sums
from mz_dagster.compute.local.versions import Versions, has_keys_or_floats, versioned_updates
from mz_dagster.compute.local.window_functions import Partitions, is_computed_here
from mz_dagster.plan.physical import Staged, Windowed

Integers = NDArray[np.int64]


def can_window(node: Staged) -> bool:
    """Returns whether window functions are ones whose state `windowed_updates` advances."""
    if not isinstance(node.function, Windowed) or node.monotonic:
        return False
    columns = node.input.relation_type.columns
    return has_keys_or_floats(node) and all(is_computed_here(one, columns) for one in node.function.functions)


def windowed_updates(changes: pa.Table, node: Staged, lookup: StateLookup) -> pa.Table:
    """Returns the updates of a state that `can_window` which the input's `changes` make, at their times.

    Arguments and form are those of `versions.versioned_updates`.

    Raises:
        Declined: A multiplicity is negative, a function fails, or the versions have more than `Budget.versioned_rows`
            rows.
    """
    function = node.function
    assert isinstance(function, Windowed)

    def results(rows: CodedRows, versions: Versions, schema: pa.Schema) -> pa.Table:
        return _differences(versions, rows, _results(versions, rows, function), schema)

    return versioned_updates(changes, node, lookup, results)


def _results(versions: Versions, rows: CodedRows, function: Windowed) -> list[pa.Array]:
    """Returns the functions' values for each row of the versions, in their order."""
    cells = [one[versions.row] for one in rows.sorted_by]
    partitions = Partitions.of(versions.version, cells, function.order)
    back = np.empty(len(versions.row), np.int64)
    back[partitions.order] = np.arange(len(versions.row))
    places = pa.array(back)
    return [partitions.values(one, rows, versions.row).take(places) for one in function.functions]


def _differences(versions: Versions, rows: CodedRows, results: list[pa.Array], schema: pa.Schema) -> pa.Table:
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
