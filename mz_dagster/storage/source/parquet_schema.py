"""Reads the schema of a Parquet file and proves its pages readable, without Spark.

Owns which physical types a declared column accepts: those whose values are all exact in it, and integers and decimals
of other widths, whose values are checked one by one when read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mz_dagster.plan.types import Column, Kind
from mz_dagster.storage.source.errors import SourceUnreadable

_INTEGER_KINDS = {Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.NUMERIC}

#: Arrow's name of a readable type, and the Spark type by which Spark's own Parquet reader reads it.
_SPARK_NAMES = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "date32[day]": "date",
}


def read_schema(folder: Path, path: str, columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    """Returns the declared columns' names with the Spark types in which the file holds them.

    Raises:
        SourceUnreadable: The file is not Parquet, lacks a column, or holds one in a type that does not fit.
    """
    try:
        schema = pq.read_schema(folder / path)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, f"It is not a Parquet file: {_first_line(error)}.") from error
    fields = []
    for column in columns:
        same = [name for name in schema.names if name.casefold() == column.name.casefold()]
        if column.name not in same:
            raise _unreadable(path, f'It has no column "{column.name}".')
        if len(same) > 1:
            raise _unreadable(path, f"Its columns {', '.join(same)} differ only in case.")
        found = schema.field(column.name).type
        name = _spark_name(found)
        if name is None or not _fits(column, name):
            raise _unreadable(path, f'Its column "{column.name}" is {found}, which is not readable as {column.type}.')
        fields.append((column.name, name))
    return tuple(fields)


def check_pages(folder: Path, path: str) -> None:
    """Decodes the whole file once, in bounded memory.

    Raises:
        SourceUnreadable: A page is damaged or missing.
    """
    try:
        with pq.ParquetFile(folder / path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(batch_size=65_536):
                del batch
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, f"It is damaged: {_first_line(error)}.") from error


def _spark_name(type_: pa.DataType) -> str | None:
    if pa.types.is_dictionary(type_):
        return _spark_name(type_.value_type)
    if pa.types.is_timestamp(type_) and type_.unit in ("ms", "us"):
        return "timestamp_ntz" if type_.tz is None else "timestamp"
    if pa.types.is_decimal(type_) and type_.precision <= 38 and type_.scale >= 0:
        return f"decimal({type_.precision},{type_.scale})"
    return _SPARK_NAMES.get(str(type_))


def _fits(column: Column, name: str) -> bool:
    match column.type.kind:
        case kind if kind in _INTEGER_KINDS:
            decimal = name.startswith("decimal") and kind is Kind.NUMERIC
            return decimal or name in ("tinyint", "smallint", "int", "bigint")
        case Kind.FLOAT8:
            return name in ("float", "double", "tinyint", "smallint", "int")
        case Kind.FLOAT4:
            return name in ("float", "tinyint", "smallint")
        case Kind.TEXT:
            return name == "string"
        case Kind.TIMESTAMP:
            return name == "timestamp_ntz"
        case Kind.TIMESTAMPTZ:
            return name == "timestamp"
        case _:
            return bool(name == column.type.kind.value)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _unreadable(path: str, detail: str) -> SourceUnreadable:
    return SourceUnreadable(
        f'cannot read Parquet file "{path}"',
        detail=detail,
        hint="Replace the file by one with the source's columns, or move it away.",
    )
