"""Cells of few rows: stored values in Arrow's tables, and their plain form, which functions in Python take.

The two differ for moments, which Arrow has types of its own for, and for intervals, which are structs there. Arrays and
records are left as Arrow has them: nothing here computes with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type

_NUMBERED = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64(), Kind.TIMESTAMPTZ: pa.int64()}


def plain_cells(values: pa.ChunkedArray, type_: ScalarType) -> list[Any]:
    """Returns the plain forms of stored values, NULL as None."""
    number = _NUMBERED.get(type_.kind)
    found: list[Any] = (values if number is None else values.cast(number)).to_pylist()
    if type_.kind is Kind.INTERVAL:
        return [None if one is None else (one["months"], one["days"], one["microseconds"]) for one in found]
    return found


def plain_rows(table: pa.Table, columns: Sequence[Column], positions: Iterable[int]) -> Iterator[dict[int, Any]]:
    """Yields the plain forms of each row's cells, by position, of the columns at some positions."""
    cells = {position: plain_cells(table.column(position), columns[position].type) for position in positions}
    for row in range(len(table)):
        yield {position: values[row] for position, values in cells.items()}


def stored_cells(values: Sequence[Any], type_: ScalarType) -> pa.Array:
    """Returns values in their plain form as stored ones."""
    own, number = arrow_type(type_), _NUMBERED.get(type_.kind)
    if number is not None:
        return pa.array(values, number).cast(own)
    if type_.kind is Kind.INTERVAL:
        names = ("months", "days", "microseconds")
        values = [None if one is None else dict(zip(names, one, strict=True)) for one in values]
    return pa.array(values, own)
