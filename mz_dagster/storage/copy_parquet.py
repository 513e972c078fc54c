"""Reads a Parquet file into the stored columns of a table, or not at all.

Columns are found by name. A column takes what holds its values exactly: integers and decimals of any width as far as
each value fits, timestamps of any unit as far as none is cut. Kinds for which Parquet has no type of its own (jsonb,
uuid, interval ...) are read from text, an interval also from the struct that COPY writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from mz_dagster.functions import Failure, literal_of
from mz_dagster.functions.arrays.dimensions import is_shape
from mz_dagster.functions.modifiers import modified_plain
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import INTERVAL, Column, Kind, ScalarType
from mz_dagster.scalars.values import to_stored
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.copy_errors import BadCopyFormat, BadCopyValue, FileUnreadable, NotUtf8
from mz_dagster.storage.plain_cells import plain_cells, stored_cells

_FROM_TEXT = {
    Kind.JSON, Kind.JSONB, Kind.UUID, Kind.INTERVAL, Kind.TIMETZ, Kind.VARCHAR, Kind.CHAR, Kind.UNCONSTRAINED,
    Kind.ENUM, Kind.DIMENSIONED,
}  # fmt: skip
_LATEST = {Kind.DATE: date.max, Kind.TIMESTAMP: datetime.max, Kind.TIMESTAMPTZ: datetime.max}
_EARLIEST = {Kind.DATE: date.min, Kind.TIMESTAMP: datetime.min, Kind.TIMESTAMPTZ: datetime.min}


def _is_text(found: pa.DataType) -> bool:
    return bool(pt.is_string(found) or pt.is_large_string(found))


def _is_number(found: pa.DataType) -> bool:
    return bool(pt.is_integer(found) or pt.is_decimal(found))


_FITS: dict[Kind, Callable[[pa.DataType], bool]] = {
    Kind.BOOL: pt.is_boolean,
    Kind.INT2: pt.is_integer,
    Kind.INT4: pt.is_integer,
    Kind.INT8: pt.is_integer,
    Kind.MZ_TIMESTAMP: pt.is_integer,
    Kind.NUMERIC: _is_number,
    Kind.FLOAT4: lambda found: bool(pt.is_float16(found) or pt.is_float32(found)),
    Kind.FLOAT8: pt.is_floating,
    Kind.TEXT: _is_text,
    Kind.BYTEA: lambda found: bool(pt.is_binary(found) or pt.is_large_binary(found) or pt.is_fixed_size_binary(found)),
    Kind.DATE: pt.is_date,
    Kind.TIMESTAMP: lambda found: bool(pt.is_timestamp(found) and found.tz is None),
    Kind.TIMESTAMPTZ: lambda found: bool(pt.is_timestamp(found) and found.tz is not None),
    Kind.TIME: pt.is_time,
    Kind.INTERVAL: lambda found: bool(found == arrow_type(INTERVAL)),
}


def read_parquet(path: Path, columns: Sequence[Column]) -> list[pa.Array]:
    """Returns the file's columns of these names in their stored form.

    Raises:
        FileUnreadable: It cannot be opened, or is not Parquet.
        BadCopyFormat: It lacks a column, or holds one in a type that does not fit.
        BadCopyValue: A value does not fit its column.
    """
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                if names.count(column.name) != 1:
                    raise BadCopyFormat(
                        f'file "{path}" has no column "{column.name}"',
                        detail=f"Its columns are {', '.join(names)}.",
                        hint="List the table's columns that the file has: COPY table (columns) FROM ...",
                    )
            found = file.read([column.name for column in columns])
    except (OSError, pa.ArrowException) as error:
        raise FileUnreadable(
            f'could not read Parquet file "{path}": {str(error).partition(chr(10))[0]}',
            hint="Name a Parquet file that this process can read; a path is relative to the project's folder.",
        ) from error
    return [_stored(found.column(column.name), column) for column in columns]


def _stored(found: pa.ChunkedArray, column: Column) -> pa.Array:
    values = found.combine_chunks()
    if pt.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    _check_texts(values, column)
    if column.type.kind is Kind.UNCONSTRAINED and _is_number(values.type):
        values = values.cast(pa.string())
    if column.type.kind in _FROM_TEXT and _is_text(values.type):
        return _from_text(values, column)
    if column.type.kind is Kind.DIMENSIONED and _has_shape(values.type, column.type):
        stored = _dimensioned(values, column)
        return stored if column.type.value_modifier is None else _modified(stored, column)
    if not _fits(values.type, column.type):
        raise BadCopyFormat(
            f'column "{column.name}" of the file is of type {values.type}, which does not hold {column.type}',
            hint="Write the file with a type that holds the column's values exactly.",
        )
    try:
        if column.type.kind is Kind.TIME:
            values = values.cast(pa.time64("us"))
        stored = values.cast(arrow_type(column.type))
    except pa.ArrowInvalid as error:
        raise _out_of_range(column, str(error)) from error
    if column.type.kind in _LATEST and not _in_calendar(stored, column.type):
        raise _out_of_range(column, "Years are 1 to 9999.")
    return stored if column.type.value_modifier is None else _modified(stored, column)


def _check_texts(values: pa.Array, column: Column) -> None:
    """Checks that texts, also those of arrays, are UTF-8 without U+0000; files may hold whatever bytes."""
    if pt.is_list(values.type) or pt.is_large_list(values.type):
        values = values.flatten()
    if not _is_text(values.type):
        return
    try:
        values.validate(full=True)
        is_text = pc.any(pc.match_substring(values, "\0")).as_py() is not True
    except pa.ArrowInvalid:
        is_text = False
    if not is_text:
        raise NotUtf8(
            'invalid byte sequence for encoding "UTF8"',
            detail=f'It is in column "{column.name}".',
            hint="Write the file with texts, or into a column of type bytea.",
        )


def _modified(values: pa.Array, column: Column) -> pa.Array:
    """Returns what the modifier of a column's type makes of values; of numerics the extremes tell that all fit."""
    type_ = column.type
    try:
        if type_.kind is Kind.NUMERIC:
            for one in pc.min_max(values).as_py().values():
                modified_plain(one, type_)
            return values
        return stored_cells([modified_plain(one, type_) for one in plain_cells(values, type_)], type_)
    except SqlFailure as failure:
        raise _out_of_range(column, str(failure).partition(" ")[2]) from failure


def _fits(found: pa.DataType, type_: ScalarType) -> bool:
    if type_.element is not None:
        return bool(pt.is_list(found) or pt.is_large_list(found)) and _fits(found.value_type, type_.element)
    return type_.kind in _FITS and bool(_FITS[type_.kind](found))


def _has_shape(found: pa.DataType, type_: ScalarType) -> bool:
    """Returns whether a type is that by which arrays of any dimensions are published: elements, lengths and bounds."""
    if not pt.is_struct(found) or [one.name for one in found] != [name for name, _ in type_.fields]:
        return False
    return all(_fits(one.type, part) for one, part in zip(found, type_.parts, strict=True))


def _dimensioned(values: pa.Array, column: Column) -> pa.Array:
    """Returns published arrays of any dimensions as stored ones, each of which has the elements that it says."""
    own = arrow_type(column.type)
    parts = [part.cast(one.type) for part, one in zip(values.flatten(), own, strict=True)]
    for part in parts[:1]:
        _check_texts(part, column)
    shapes = zip(pc.list_value_length(parts[0]).to_pylist(), *(one.to_pylist() for one in parts[1:]), strict=True)
    for is_known, (count, lengths, lowers) in zip(values.is_valid().to_pylist(), shapes, strict=True):
        try:
            if is_known and not is_shape(count, lengths, lowers):
                raise _out_of_range(column, "Its elements are not as many as its dimensions have.")
        except SqlFailure as failure:
            raise _out_of_range(column, str(failure).partition(" ")[2]) from failure
    return pa.StructArray.from_arrays(parts, fields=list(own), mask=values.is_null())


def _in_calendar(values: pa.Array, type_: ScalarType) -> bool:
    unzoned = values.cast(pa.date32() if type_.kind is Kind.DATE else pa.timestamp("us"))
    low, high = (pa.scalar(one[type_.kind], unzoned.type) for one in (_EARLIEST, _LATEST))
    inside = pc.and_(pc.greater_equal(unzoned, low), pc.less_equal(unzoned, high))
    return pc.all(inside).as_py() is not False


def _from_text(values: pa.Array, column: Column) -> pa.Array:
    cells = []
    for row, text in enumerate(values.to_pylist(), start=1):
        found = literal_of(text, column.type, assigned=True)
        if isinstance(found, Failure):
            raise BadCopyValue.of(found, column, f"row {row}")
        cells.append(to_stored(found.value, column.type))
    return pa.array(cells, arrow_type(column.type))


def _out_of_range(column: Column, reason: str) -> BadCopyValue:
    return BadCopyValue(
        f'a value of column "{column.name}" is out of range for type {column.type}',
        sqlstate="22003",
        detail=reason.partition("\n")[0],
    )
