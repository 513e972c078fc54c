"""Cells of few rows: stored values in Arrow's tables, and their plain form, which functions in Python take.

The two differ for moments, which Arrow has types of its own for, and for intervals and records, which are structs
there; also within arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import moment_of
from mz_dagster.storage.arrow_schema import arrow_type

_NUMBERED = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64(), Kind.TIMESTAMPTZ: pa.int64()}


def plain_cells(values: pa.Array | pa.ChunkedArray, type_: ScalarType) -> list[Any]:
    """Returns the plain forms of stored values, NULL as None.

    Example:
        >>> from mz_dagster.scalars.types import DATE, INT4, array_of, record_of
        >>> type_ = array_of(record_of([("n", INT4), ("d", DATE)]))
        >>> plain_cells(stored_cells([[(1, 2), None], None], type_), type_)
        [[(1, 2), None], None]
    """
    if isinstance(values, pa.ChunkedArray):
        return [cell for chunk in values.chunks for cell in plain_cells(chunk, type_)]
    if type_.element is not None:
        elements, ends = plain_cells(values.flatten(), type_.element), np.cumsum(_lengths(values)).tolist()
        starts = [0, *ends][:-1]
        present = values.is_valid().to_pylist()
        return [elements[i:j] if known else None for i, j, known in zip(starts, ends, present, strict=True)]
    if type_.is_composite:
        columns = [plain_cells(one, field) for one, (_, field) in zip(values.flatten(), type_.fields, strict=True)]
        cells = zip(*columns, strict=True) if columns else [()] * len(values)
        return [row if known else None for row, known in zip(cells, values.is_valid().to_pylist(), strict=True)]
    number = _NUMBERED.get(type_.kind)
    found: list[Any] = (values if number is None else values.cast(number)).to_pylist()
    if type_.kind is Kind.INTERVAL:
        return [None if one is None else tuple(one.values()) for one in found]
    return found


def _lengths(values: pa.Array) -> NDArray[np.int64]:
    """Returns how many elements each array has, 0 for NULL."""
    found: NDArray[np.int64] = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    return found


def python_cells(values: pa.ChunkedArray) -> list[Any]:
    """Returns stored values as Python has them, infinite moments included.

    Example:
        >>> python_cells(pa.chunked_array([pa.array([0, 2_932_897], pa.int32()).cast(pa.date32())]))
        [datetime.date(1970, 1, 1), INFINITY]
    """
    numbers = moments_as_numbers(values)
    found: list[Any] = numbers.to_pylist()
    return found if numbers is values else [_python_cell(one, values.type) for one in found]


def _python_cell(number: Any, type_: pa.DataType) -> Any:
    if number is None:
        return None
    if pa.types.is_date32(type_):
        return moment_of(number, Kind.DATE)
    if pa.types.is_timestamp(type_):
        return moment_of(number, Kind.TIMESTAMP if type_.tz is None else Kind.TIMESTAMPTZ)
    if pa.types.is_list(type_):
        return [_python_cell(one, type_.value_type) for one in number]
    if pa.types.is_struct(type_):
        return {one.name: _python_cell(number[one.name], one.type) for one in type_}
    return number


def moments_as_numbers(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Returns values with the days and microseconds of moments: of infinite ones Python has no date.

    Example:
        >>> moments_as_numbers(pa.chunked_array([pa.array([[2_932_897]], pa.list_(pa.date32()))])).to_pylist()
        [[2932897]]
    """
    numbered = _numbered(values.type)
    return values if numbered == values.type else values.cast(numbered)


def _numbered(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(type_):
        return pa.int32()
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_numbered(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([one.with_type(_numbered(one.type)) for one in type_])
    return type_


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
    if type_.element is not None:
        offsets = np.cumsum([0, *(0 if one is None else len(one) for one in values)])
        elements = stored_cells([cell for one in values if one is not None for cell in one], type_.element)
        missing = pa.array([one is None for one in values], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=own, mask=missing)
    if type_.is_composite:
        missing = pa.array([one is None for one in values], pa.bool_())
        columns = [
            stored_cells([None if one is None else one[place] for one in values], field)
            for place, (_, field) in enumerate(type_.fields)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(own), mask=missing)
    if type_.kind is Kind.INTERVAL:
        names = ("months", "days", "microseconds")
        values = [None if one is None else dict(zip(names, one, strict=True)) for one in values]
    elif type_.kind in (Kind.FLOAT4, Kind.FLOAT8):
        values = [math.nan if one != one else one for one in values]  # there are many NaNs, of which one is stored
    return pa.array(values, own)
