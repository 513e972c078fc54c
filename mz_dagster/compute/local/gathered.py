"""Ordered aggregates over few updates, in this process: `array_agg` and `string_agg` of the groups that change.

A group is gathered whole, before the interval and at each time that touches it (`versions`). `array_agg` keeps NULLs,
`string_agg` skips NULL values and puts before each value but the first that value's own separator, NULL being empty.
Ties go by the whole row; a row of multiplicity n is n elements. What PostgreSQL could not hold is an error in the place
of the group.

Cost: a sort of the rows of all versions for each aggregate. Memory: their elements, and some integers for each row.

What was measured against the rows of its groups in order is with `window_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.algebra.gathering import TOO_MANY_BYTES, TOO_MANY_ELEMENTS
from mz_dagster.compute.local.bucket_pruning import StateLookup
from mz_dagster.compute.local.coded_rows import CodedRows
from mz_dagster.compute.local.elements import are_too_large, are_too_long, arrays, texts
from mz_dagster.compute.local.versions import Integers, Versions, ensure_few_versioned, versioned_updates
from mz_dagster.compute.local.window_frames import Partitions
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Gathered, Staged
from mz_dagster.plan.relation import Aggregate
from mz_dagster.storage.arrow_schema import arrow_type, without_error_data
from mz_dagster.storage.row_numbers import compact, firsts, sums, whole


def gathered_updates(changes: pa.Table, node: Staged, lookup: StateLookup) -> pa.Table:
    """Returns the updates of a state which the input's `changes` make, at their times.

    Arguments and form are those of `versions.versioned_updates`.

    Raises:
        Declined: The versions have more than `Budget.versioned_rows` rows.
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
        identities: Returns by version what is equal where the values are, and the errors.
        error: What a version fails at that is too large; its value is NULL.
        fails: Whether it is, by version.
    """

    values: pa.Array
    identities: Callable[[], Sequence[Hashable]]
    error: str
    fails: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Gathering:
    """The elements of one aggregate, in order, version by version.

    Attributes:
        aggregate: Which.
        rows: The coded rows.
        row: Of each element: which of them it is.
        lengths: Of each version: how many elements it has; 0 of one that has too many.
        fails: Whether it has, by version.
    """

    aggregate: Aggregate
    rows: CodedRows
    row: Integers
    lengths: Integers
    fails: NDArray[np.bool_]

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
        row, version, copies = row[counts], versions.version[order][counts], versions.copies[order][counts]
        of_versions = version, copies, len(versions.asserted)
        if aggregate.function is AggregateFunction.STRING_AGG:
            fails = are_too_large(*of_versions, row, *(rows.table.column(one) for one in aggregate.arguments))
        else:
            fails = are_too_long(*of_versions)
        if fails.any():
            fit = ~fails[version]
            row, version, copies = row[fit], version[fit], copies[fit]
        ensure_few_versioned(copies)
        lengths = np.bincount(np.repeat(version, copies), minlength=len(versions.asserted))
        return cls(aggregate, rows, np.repeat(row, copies), lengths, fails)

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
        ends = np.append(0, np.cumsum(self.lengths))
        return _Result(values, lambda: [codes[i:j].tobytes() for i, j in pairwise(ends)], TOO_MANY_ELEMENTS, self.fails)

    def _texts(self) -> _Result:
        found = texts(self._column(0), self._column(1), self.row, self.lengths, arrow_type(self.aggregate.type))
        return _Result(found, found.to_pylist, TOO_MANY_BYTES, self.fails)

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
    errors = _first_errors(results)
    comes, goes = versions.asserted[present], versions.retracted[present]
    number = _numbered(present, results, errors) if (goes >= 0).any() else np.arange(len(present))
    touch = np.concatenate([comes[comes >= 0], goes[goes >= 0]])
    place = np.concatenate([np.flatnonzero(comes >= 0), np.flatnonzero(goes >= 0)])
    sign = np.concatenate([np.full(int((comes >= 0).sum()), 1), np.full(int((goes >= 0).sum()), -1)])
    # A touch is of one group, so that its number and a result's tell a row.
    events, _ = compact(touch * max(len(present), 1) + number[place])
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
    failed = pa.array([errors[version] for version in present[at].tolist()], pa.string())
    meta = [pa.array(versions.times[touch[event]]), pa.array(diff[changed]), failed]
    return without_error_data(pa.Table.from_arrays([*place_columns, *data, *values, *meta], schema=schema))


def _numbered(present: Integers, results: Sequence[_Result], errors: Sequence[str | None]) -> Integers:
    """Returns numbers of some versions, below how many they are, that are equal where the results are."""
    known: dict[tuple[Hashable, ...], int] = {}
    lists = [
        one if error is None else ((error,),)  # no value is a tuple
        for error, one in zip(errors, zip(*(one.identities() for one in results), strict=True), strict=True)
    ]
    return np.array([known.setdefault(lists[one], len(known)) for one in present.tolist()], np.int64)


def _first_errors(results: Sequence[_Result]) -> list[str | None]:
    """Returns of each version the error of the first aggregate that fails there."""
    found: list[str | None] = [None] * len(results[0].fails)
    for one in reversed(results):
        for version in np.flatnonzero(one.fails).tolist():
            found[version] = one.error
    return found
