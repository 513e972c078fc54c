"""Rows of results as Arrow's record batches, of the types that `storage/published.py` states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mz_dagster.adapter.result import Rows, StreamedRows
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import ZonedTime, dimensioned_of, to_stored
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.published import published, published_schema


def record_batches(portions: Iterable[Rows], columns: Sequence[Column], zone: str) -> Iterator[pa.RecordBatch]:
    """Yields a record batch, or several, of each portion of rows.

    Args:
        portions: Rows as a user gets them.
        columns: Their columns.
        zone: By which time zone's clocks readers are to show a timestamptz.

    Raises:
        InfiniteMoment: Arrow has no value for a date or timestamp.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> [one.to_pylist() for one in record_batches([((1,), (None,))], [Column("a", INT4)], "UTC")]
        [[{'a': 1}, {'a': None}]]
    """
    schema = published_schema(columns, zone)
    for rows in portions:
        stored = rows.stored if isinstance(rows, StreamedRows) else None
        if stored is None:
            yield from _batches(rows, columns, schema, zone)
        else:
            for batch in stored.table.to_batches():
                cells = [published(*one, zone) for one in zip(batch.columns, columns, strict=True)]
                yield pa.RecordBatch.from_arrays(cells, schema=schema)


def _batches(rows: Rows, columns: Sequence[Column], schema: pa.Schema, zone: str) -> Iterator[pa.RecordBatch]:
    arrays = [
        pa.array([_stored(row[place], column.type) for row in rows], arrow_type(column.type))
        for place, column in enumerate(columns)
    ]
    if any(isinstance(one, pa.ChunkedArray) for one in arrays):  # texts of more bytes than one array has
        half = len(rows) // 2
        yield from _batches(rows[:half], columns, schema, zone)
        yield from _batches(rows[half:], columns, schema, zone)
    elif columns:
        cells = [published(*one, zone) for one in zip(arrays, columns, strict=True)]
        yield pa.RecordBatch.from_arrays(cells, schema=schema)


def _stored(cell: Any, type_: ScalarType) -> Any:
    """Returns a cell, which a user gets in Python's types, as it is stored."""
    if cell is None:
        return None
    if type_.element is not None:
        return [_stored(one, type_.element) for one in cell]
    if type_.kind is Kind.DIMENSIONED:
        cell = dimensioned_of(cell)
    if type_.is_composite:
        return {f"f{i}": _stored(one, part) for i, (one, part) in enumerate(zip(cell, type_.parts, strict=True), 1)}
    if isinstance(cell, time) and type_.kind is Kind.TIMETZ:
        return ZonedTime.of_time(cell).code
    if type_.kind is Kind.UNCONSTRAINED and isinstance(cell, Decimal):
        return format(cell, "f") if cell.is_finite() else str(cell)
    return to_stored(cell, type_)
