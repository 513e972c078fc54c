"""A table's rows as updates: the declared columns, of which a file may lack some.

A column that a file does not have is NULL in it, unless it is said what it is there: a partition's value, say. A value
that its declared type does not hold makes the row an error of the data, whose text depends on nothing but the row, so
that the row cancels it once it goes, whichever file it is in by then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.scalars.types import Column, Kind
from mz_dagster.storage.arrow_schema import arrow_type, update_schema
from mz_dagster.storage.source.faults import BAD_BYTES, null_in
from mz_dagster.storage.source.local.cells import positions, without
from mz_dagster.storage.source.local.decode import decoded
from mz_dagster.storage.source.local.parquet_rows import converted, plain_values, untextual
from mz_dagster.storage.source.parquet_schema import TEXTUAL


class ReadColumn(NamedTuple):
    """A column as it is declared, by the name that the collection's shard has for it, and by that of the files."""

    declared: Column
    stored: Column
    physical: str


def row_updates(
    batch: pa.RecordBatch,
    diffs: NDArray[np.int64],
    columns: Sequence[ReadColumn],
    constants: Mapping[str, pa.Scalar],
    tick: int,
    key: Collection[str],
) -> pa.Table:
    """Returns rows as updates.

    Args:
        batch: Rows of a file, by physical names.
        diffs: How often each counts.
        columns: What to make of them.
        constants: What all rows have in a column, by physical names.
        tick: When they take effect.
        key: The columns that rows with an error keep, unless one of them is at fault, by their declared names.
    """
    rows, names = batch.num_rows, set(batch.schema.names)
    values: list[pa.Array] = []
    faults: dict[int, str] = {}
    unkeyed: set[int] = set()
    for one in columns:
        if one.physical in constants:
            found = plain_values(pa.repeat(constants[one.physical], rows))
        elif one.physical in names:
            found = plain_values(batch.column(one.physical))
        else:
            found = pa.nulls(rows, arrow_type(one.declared.type))
        typed, of_column = _typed(found, one.declared)
        values.append(typed)
        for row, fault in of_column.items():
            faults.setdefault(row, f'{fault} (column "{one.declared.name}")')
        if one.declared.name in key:
            unkeyed |= of_column.keys()
    meta = [
        pa.repeat(pa.scalar(tick, pa.int64()), rows),
        pa.array(diffs, pa.int64()),
        pa.array(map(faults.get, range(rows)), pa.string()) if faults else pa.nulls(rows, pa.string()),
    ]
    data = [
        without(value, unkeyed if one.declared.name in key else faults)
        for one, value in zip(columns, values, strict=True)
    ]
    return pa.Table.from_arrays([*data, *meta], schema=update_schema([one.stored for one in columns]))


def _typed(found: pa.Array, column: Column) -> tuple[pa.Array, dict[int, str]]:
    """Returns values of a column's declared type, and what is wrong with those that are none, by row."""
    faults: dict[int, str] = dict.fromkeys(untextual(found), BAD_BYTES)
    found = without(found, faults)
    stored, kind = arrow_type(column.type), column.type.kind
    if found.type == stored and found.null_count == len(found):
        values = found
    elif kind in TEXTUAL or (pa.types.is_string(found.type) and kind is not Kind.TEXT):
        texts = found.cast(pa.string())
        values, wrong = decoded(texts, column.type)
        faults |= wrong
    else:
        if pa.types.is_date(found.type) and kind is Kind.TIMESTAMP:  # of before the column was widened
            found = found.cast(pa.timestamp("us"))
        values, wrong = converted(found, column.type)
        faults |= wrong
    if not column.nullable and found.null_count:
        for row in positions(found.is_null()):
            faults.setdefault(row, null_in(column.name))
    return values, faults
