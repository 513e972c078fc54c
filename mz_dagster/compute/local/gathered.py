"""Ordered aggregates over few updates, in this process: `array_agg` and `string_agg` of the groups that change.

A group is gathered whole, before the interval and at each time that touches it (`versions`). `array_agg` keeps NULLs,
`string_agg` skips NULL values and puts before each value but the first that value's own separator, NULL being empty.
Ties go by the whole row; a row of multiplicity n is n elements. What PostgreSQL could not hold is `Declined`, and left
to Spark, which tells the error.

Cost: a sort of the rows of all versions for each aggregate. Memory: their elements, and some integers for each row.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.local.bucket_pruning import StateLookup
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.elements import arrays, texts
from mz_dagster.compute.local.versions import Integers, Versions, versioned_updates
from mz_dagster.compute.local.window_frames import Partitions
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Gathered, Staged
from mz_dagster.plan.relation import Aggregate
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.row_numbers import compact, firsts, sums, whole


def gathered_updates(changes: pa.Table, node: Staged, lookup: StateLookup) -> pa.Table:
    """Returns the updates of a state which the input's `changes` make, at their times.

    Arguments and form are those of `versions.versioned_updates`.

    Raises:
        Declined: A result is too large, or the versions have more than `Budget.versioned_rows` rows.
    """
    function = node.function
    assert isinstance(function, Gathered)

    def results(rows: CodedRows, versions: Versions, schema: pa.Schema) -> pa.Table:
        found = [_Gathering.of(one, rows, versions).result() for one in function.aggregates]
        return _differences(node, rows, versions, found, schema)

    return versioned_updates(changes, node, lookup, results)


@dataclass(frozen=True, slots=True)
class _Result:
    """What an aggregate is of each version.

    Attributes:
        values: By version.
        identities: By version: equal where the values are.
    """

    values: pa.Array
    identities: Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class _Gathering:
    """The elements of one aggregate, in order, version by version.

    Attributes:
        aggregate: Which.
        rows: The coded rows.
        row: Of each element: which of them it is.
        lengths: Of each version: how many elements it has.
    """

    aggregate: Aggregate
    rows: CodedRows
    row: Integers
    lengths: Integers

    @classmethod
    def of(cls, aggregate: Aggregate, rows: CodedRows, versions: Versions) -> _Gathering:
        cells = [one[versions.row] for one in rows.sorted_by]
        order = Partitions.of(versions.version, cells, aggregate.order).order
        row = versions.row[order]
        counts = np.full(len(row), True)
        if aggregate.filter is not None:
            counts &= _mask(pc.fill_null(rows.table.column(aggregate.filter), False))[row]
        if aggregate.function is AggregateFunction.STRING_AGG:
            counts &= _mask(pc.is_valid(rows.table.column(aggregate.arguments[0])))[row]
        lengths = np.bincount(versions.version[order][counts], minlength=len(versions.asserted))
        return cls(aggregate, rows, row[counts], lengths)

    def result(self) -> _Result:
        """Returns the aggregate of each version; NULL of one without elements."""
        match self.aggregate.function:
            case AggregateFunction.ARRAY_AGG:
                return self._arrays()
            case AggregateFunction.STRING_AGG:
                return self._texts()
        raise AssertionError("such an aggregate is not gathered")

    def _arrays(self) -> _Result:
        (argument,) = self.aggregate.arguments
        values = arrays(self._column(0), self.row, self.lengths, arrow_type(self.aggregate.type))
        codes = self.rows.columns[argument][self.row]
        return _Result(values, [codes[i:j].tobytes() for i, j in pairwise(np.append(0, np.cumsum(self.lengths)))])

    def _texts(self) -> _Result:
        found = texts(self._column(0), self._column(1), self.row, self.lengths, arrow_type(self.aggregate.type))
        return _Result(found, found.to_pylist())

    def _column(self, number: int) -> pa.Array:
        return whole(self.rows.table.column(self.aggregate.arguments[number]))


def _mask(values: pa.ChunkedArray) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = whole(values).to_numpy(zero_copy_only=False)
    return found


def _differences(
    node: Staged, rows: CodedRows, versions: Versions, results: Sequence[_Result], schema: pa.Schema
) -> pa.Table:
    """Returns what each version's row and that of the one before differ in, at the version's time."""
    present, first = np.unique(versions.version, return_index=True)
    known: dict[tuple[Hashable, ...], int] = {}
    lists = list(zip(*(one.identities for one in results), strict=True))
    number = np.array([known.setdefault(lists[one], len(known)) for one in present.tolist()], np.int64)
    comes, goes = versions.asserted[present], versions.retracted[present]
    touch = np.concatenate([comes[comes >= 0], goes[goes >= 0]])
    place = np.concatenate([np.flatnonzero(comes >= 0), np.flatnonzero(goes >= 0)])
    sign = np.concatenate([np.full(int((comes >= 0).sum()), 1), np.full(int((goes >= 0).sum()), -1)])
    # A touch is of one group, so that its number and a result's tell a row.
    events, _ = compact(touch * max(len(known), 1) + number[place])
    diff = sums(events, sign)
    changed = np.flatnonzero(diff)
    event = firsts(events)[changed]
    at, count = place[event], len(changed)
    row = versions.row[first[at]]
    input_fields = list(schema)[2 : 2 + len(rows.columns)]
    data = [
        rows.decoded(position, rows.compared[position][row]) if position in node.group else pa.nulls(count, field.type)
        for position, field in enumerate(input_fields)
    ]
    place_columns = [pa.array(np.full(count, 1, np.int32)), pa.array(np.zeros(count, np.int64))]
    values = [one.values.take(pa.array(present[at])) for one in results]
    meta = [pa.array(versions.times[touch[event]]), pa.array(diff[changed])]
    return pa.Table.from_arrays([*place_columns, *data, *values, *meta, pa.nulls(count, pa.string())], schema=schema)
