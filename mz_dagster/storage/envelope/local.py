"""The envelopes in this process: the same as `none`, `upsert` and `debezium` have Spark make, of a table of records.

Values are not compared but the numbers of their distinct ones, which Arrow gives them (`_numbered`), so that what
remains for each record is a look into two lists.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.scalars.types import Column
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.envelope.log_place import STALE, remembered_one_by_one
from mz_dagster.storage.plain_cells import moments_as_numbers
from mz_dagster.storage.shards import ERROR, TIME


def insertions(records: pa.Table, *, columns: Sequence[Column]) -> pa.Table:
    """Returns `+1` for every record, at its tick: see `none.updates`."""
    data = [records.column(column.name) for column in columns]
    ones = pa.chunked_array([pa.repeat(pa.scalar(1, pa.int64()), len(records))])
    meta = [records.column(TIME), ones, records.column(ERROR)]
    return pa.Table.from_arrays([*data, *meta], schema=update_schema(columns))


def upserts(records: pa.Table, prior: pa.Table | None, *, columns: Sequence[Column], key: Sequence[str]) -> pa.Table:
    """Returns the updates that the records of an interval make: see `upsert.updates`.

    Args:
        records: In ingestion order, of any number of ticks.
        prior: The consolidated state before the interval, at least of the keys in `records`, at most one row per key:
            the data columns and `mz_error`, among others. None before the first load.
        columns: The data columns, in order.
        key: Those that are the key.
    """
    names = [column.name for column in columns]
    new = records.select([*names, ERROR])
    states = new if prior is None else pa.concat_tables([prior.select([*names, ERROR]).cast(new.schema), new])
    first = len(states) - len(new)
    keys = _numbered([states.column(name) for name in key], zeros_are_one=True)
    numbers: list[int] | None = None  # of whole states, which a first load has hardly any to compare
    held: dict[int, int] = {keys[row]: row for row in range(first)}
    deleted = records.column("mz_deleted").to_pylist()
    rows, times, diffs = (array("q") for _ in range(3))
    for tick, at_tick in groupby(enumerate(records.column(TIME).to_pylist(), first), key=lambda one: one[1]):
        last = {keys[row]: row for row, _ in at_tick}
        for own, row in last.items():
            before = held.pop(own, None)
            after = None if deleted[row - first] else row
            if after is not None:
                held[own] = after
                if before is not None:
                    numbers = numbers or _numbered(states.columns, zeros_are_one=False)
                    if numbers[before] == numbers[after]:
                        continue
            for state, diff in ((before, -1), (after, 1)):
                if state is not None:
                    rows.append(state)
                    times.append(tick)
                    diffs.append(diff)
    places, *meta = (np.frombuffer(one, np.int64) for one in (rows, times, diffs))
    is_all = np.array_equal(places, np.arange(len(states)))  # as in a first load; a copy takes as much memory again
    changed = states if is_all else states.take(pa.array(places))
    data = [changed.column(name) for name in names]
    return pa.Table.from_arrays([*data, *map(pa.array, meta), changed.column(ERROR)], schema=update_schema(columns))


def fresh(records: pa.Table, known: pa.Table | None, *, key: Sequence[str]) -> pa.Table:
    """Returns the records that are not stale, with what is remembered behind each: see `debezium.fresh`.

    Args:
        records: In ingestion order, of any number of ticks, with `mz_place`.
        known: The key's columns and `mz_known`.
        key: The key's columns.
    """
    new = records.select(list(key))
    rows = new if known is None else pa.concat_tables([known.select(list(key)).cast(new.schema), new])
    first = len(rows) - len(new)
    numbers = _numbered(rows.columns, zeros_are_one=True)
    memory = dict(zip(numbers[:first], () if known is None else known.column("mz_known").to_pylist(), strict=True))
    behind: list[str | None] = []
    for own, place in zip(numbers[first:], records.column("mz_place").to_pylist(), strict=True):
        (after,) = remembered_one_by_one(memory.get(own), [place])
        behind.append(after)
        if after:
            memory[own] = after
    found = records.append_column("mz_known", pa.array(behind, pa.string()))
    return found.filter(pa.array([one != STALE for one in behind], pa.bool_()))


def memories(fresh_records: pa.Table, *, columns: Sequence[str], key: Sequence[str]) -> pa.Table:
    """Returns what is remembered behind records, as records: see `debezium.memories`."""
    told = fresh_records.filter(fresh_records.column("mz_known").is_valid())
    data = {own: told.column(name) for name, own in zip((*key, "mz_known"), columns, strict=True)}
    deleted, errors = pa.repeat(pa.scalar(False), len(told)), pa.nulls(len(told), pa.string())
    return pa.table({**data, TIME: told.column(TIME), "mz_deleted": deleted, ERROR: errors})


def _numbered(columns: Sequence[pa.ChunkedArray], *, zeros_are_one: bool) -> list[int]:
    """Returns a number for each row, the same for equal ones: NULL equals NULL, and NaN equals NaN.

    0.0 and -0.0 are equal keys, but not equal values: their texts differ.
    """
    found: pa.Array | None = None
    for column in columns:
        codes = _codes(column.combine_chunks(), zeros_are_one=zeros_are_one)
        if found is not None:
            # Both are less than the number of rows and one: a pair of them is one number.
            width = pa.scalar(len(codes) + 1, pa.int64())
            codes = pc.add(pc.multiply(found, width), codes).dictionary_encode().indices.cast(pa.int64())
        found = codes
    assert found is not None, "there is a column"
    numbers: list[int] = found.to_pylist()
    return numbers


def _codes(values: pa.Array, *, zeros_are_one: bool) -> pa.Array:
    """Returns a number from 0 for each value of a column, the same for equal ones."""
    if pa.types.is_floating(values.type):
        zero, nan = pa.scalar(0.0, values.type), pa.scalar(float("nan"), values.type)
        values = pc.if_else(pc.fill_null(pc.is_nan(values), False), nan, values)
        if zeros_are_one:
            values = pc.if_else(pc.fill_null(pc.equal(values, zero), False), zero, values)
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    elif pa.types.is_nested(values.type):
        values = pa.array(
            [None if one is None else repr(one) for one in moments_as_numbers(values).to_pylist()], pa.string()
        )
    encoded: pa.DictionaryArray = values.dictionary_encode(null_encoding="encode")
    return encoded.indices.cast(pa.int64())
