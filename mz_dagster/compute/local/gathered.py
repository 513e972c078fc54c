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
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.algebra.gathering import MOST_BYTES, MOST_ELEMENTS
from mz_dagster.compute.local.bucket_pruning import StateLookup
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.keys import compact, firsts, sums, whole
from mz_dagster.compute.local.versions import Integers, Versions, has_keys_or_floats, versioned_updates
from mz_dagster.compute.local.window_functions import Partitions
from mz_dagster.plan.physical import Gathered, Staged
from mz_dagster.plan.relation import Aggregate, AggregateFunction
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.arrow_schema import arrow_type


def can_gather(node: Staged) -> bool:
    """Returns whether ordered aggregates are ones whose state `gathered_updates` advances."""
    return isinstance(node.function, Gathered) and not node.monotonic and has_keys_or_floats(node)


def gathered_updates(changes: pa.Table, node: Staged, lookup: StateLookup) -> pa.Table:
    """Returns the updates of a state that `can_gather` which the input's `changes` make, at their times.

    Arguments and form are those of `versions.versioned_updates`.

    Raises:
        Declined: A multiplicity is negative, a result is too large, or the versions have more than
            `Budget.versioned_rows` rows.
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

    @property
    def _offsets(self) -> Integers:
        return np.concatenate([[0], np.cumsum(self.lengths)])

    def _arrays(self) -> _Result:
        if self.lengths.max(initial=0) > MOST_ELEMENTS:
            raise Declined("an array would be too large, which is Spark's to tell")
        (argument,) = self.aggregate.arguments
        offsets, type_ = self._offsets, arrow_type(self.aggregate.type)
        elements = whole(self.rows.table.column(argument)).take(pa.array(self.row)).cast(type_.value_type)
        values = pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), elements, type=type_, mask=pa.array(self.lengths == 0)
        )
        codes = self.rows.columns[argument][self.row]
        return _Result(values, [codes[i:j].tobytes() for i, j in pairwise(offsets)])

    def _texts(self) -> _Result:
        value, separator = self.aggregate.arguments
        empty: Any = b"" if self.aggregate.type.kind is Kind.BYTEA else ""
        chosen = pa.array(self.row)
        texts = whole(self.rows.table.column(value)).take(chosen).to_pylist()
        separators = whole(self.rows.table.column(separator)).take(chosen).to_pylist()
        found: list[Any] = []
        offsets = self._offsets.tolist()
        for i, j in pairwise(offsets):
            behind = [(separators[n] or empty) + texts[n] for n in range(i + 1, j)]
            found.append(empty.join([texts[i], *behind]) if j > i else None)
        if any(one is not None and len(one) > MOST_BYTES // 4 for one in found):
            raise Declined("a text would be very large, which is Spark's to make or to tell")
        return _Result(pa.array(found, arrow_type(self.aggregate.type)), found)


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
    row = pa.array(versions.row[first[at]])
    input_fields = list(schema)[2 : 2 + len(rows.columns)]
    data = [
        rows.table.column(position).take(row) if position in node.group else pa.nulls(count, field.type)
        for position, field in enumerate(input_fields)
    ]
    place_columns = [pa.array(np.full(count, 1, np.int32)), pa.array(np.zeros(count, np.int64))]
    values = [one.values.take(pa.array(present[at])) for one in results]
    meta = [pa.array(versions.times[touch[event]]), pa.array(diff[changed])]
    return pa.Table.from_arrays([*place_columns, *data, *values, *meta, pa.nulls(count, pa.string())], schema=schema)
