"""The columns of an Iceberg table, and what each is in SQL.

| Iceberg | SQL |
|---|---|
| int, long | integer, bigint |
| float, double | real, double precision |
| decimal(p,s) | numeric(p,s) |
| string, uuid, boolean | text, uuid, boolean |
| binary, fixed | bytea |
| date, time | date, time |
| timestamp, timestamptz | timestamp, timestamptz |
| list of these, but of uuids, times and fixed | array |

A source may declare a column otherwise, as far as its values can be read, by the rules of Delta's. Files know columns
by numbers, which are theirs for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from mz_dagster.storage.source.errors import ColumnsChanged
from mz_dagster.storage.source.local.parquet_rows import plain_values
from mz_dagster.storage.source.table_columns import TableColumn, TableColumns, sql_name

#: Spark's name of a type, and Arrow's form of its values.
_TYPES: Mapping[type[IcebergType], tuple[str, pa.DataType]] = MappingProxyType(
    {
        BooleanType: ("boolean", pa.bool_()),
        IntegerType: ("int", pa.int32()),
        LongType: ("bigint", pa.int64()),
        FloatType: ("float", pa.float32()),
        DoubleType: ("double", pa.float64()),
        StringType: ("string", pa.string()),
        BinaryType: ("binary", pa.binary()),
        DateType: ("date", pa.date32()),
        TimestampType: ("timestamp_ntz", pa.timestamp("us")),
        TimestamptzType: ("timestamp", pa.timestamp("us", "UTC")),
    }
)


def columns_of(table: str, schema: Schema) -> TableColumns:
    """Returns a table's columns; their physical names are their numbers."""
    return TableColumns(table, {one.name: _column(one) for one in schema.fields})


class Fields:
    """The newest form of each column, those among them that the table has no more."""

    def __init__(self, table: str, metadata: TableMetadata) -> None:
        self._table = table
        by_age = sorted(metadata.schemas, key=lambda one: (one.schema_id == metadata.current_schema_id, one.schema_id))
        self._fields = {one.field_id: one for schema in by_age for one in schema.fields}

    def __getitem__(self, id: int) -> NestedField:
        """Returns a column by its number.

        Raises:
            ColumnsChanged: Nothing says what it is.
        """
        if id not in self._fields:
            raise ColumnsChanged(
                f"{self._table} has no column with the number {id}",
                detail="It was dropped, and no schema that the table keeps says what it was.",
                hint="ALTER SOURCE ... RESET reads the difference between what it holds and the newest snapshot.",
            )
        return self._fields[id]


def plain(values: pa.Array, type_: IcebergType) -> pa.Array:
    """Returns a file's values of a column in the one form that they are read in, wide as the type is by now.

    Raises:
        pa.ArrowInvalid: They are none of its values.
    """
    match type_:
        case UUIDType():
            stored = values.storage if isinstance(values, pa.ExtensionArray) else values
            texts = [None if one is None else str(UUID(bytes=one)) for one in stored.to_pylist()]
            return pa.array(texts, pa.string())
        case TimeType():
            return pa.array([None if one is None else _text_of(one) for one in values.to_pylist()], pa.string())
        case FixedType():
            return values.cast(pa.binary())
        case _:
            return plain_values(values).cast(plain_type(type_))


def constant(value: Any, type_: IcebergType) -> pa.Scalar:
    """Returns what all rows of a file have in a column, of pyiceberg's form of a value."""
    match type_:
        case DateType() if isinstance(value, int):
            return pa.scalar(value, pa.int32()).cast(pa.date32())
        case TimestampType() | TimestamptzType() if isinstance(value, int):
            return pa.scalar(value, pa.int64()).cast(plain_type(type_))
        case TimeType() if isinstance(value, int):
            return plain(pa.array([value], pa.int64()).cast(pa.time64("us")), type_)[0]
        case UUIDType():
            return pa.scalar(None if value is None else str(UUID(bytes=value) if isinstance(value, bytes) else value))
        case FixedType():
            return pa.scalar(value, pa.binary())
        case _:
            return pa.scalar(value, plain_type(type_))


def plain_type(type_: IcebergType) -> pa.DataType:
    """Returns the one form that values are read in."""
    match type_:
        case DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case ListType():
            return pa.list_(plain_type(type_.element_type))
        case TimeType() | UUIDType():
            return pa.string()
        case FixedType():
            return pa.binary()
        case _:
            return _TYPES[type(type_)][1]


def _column(field: NestedField) -> TableColumn:
    type_, physical = field.field_type, str(field.field_id)
    match type_:
        case UUIDType():
            return TableColumn("uuid", "string", "uuid", physical)
        case TimeType():
            return TableColumn("time", "string", "time", physical)
        case FixedType():
            return TableColumn(str(type_), "binary", "bytea", physical)
        case _:
            read_as = _spark_name(type_)
            shown = str(type_) if type_.is_primitive else None
            return TableColumn(shown if read_as is None else read_as, read_as, sql_name(read_as or "string"), physical)


def _spark_name(type_: IcebergType) -> str | None:
    match type_:
        case DecimalType():
            return f"decimal({type_.precision},{type_.scale})"
        case ListType():
            found = _spark_name(type_.element_type)
            return None if found is None else f"array<{found}>"
        case _:
            return _TYPES[type(type_)][0] if type(type_) in _TYPES else None


def _text_of(moment: time) -> str:
    text = moment.isoformat()
    return text.rstrip("0") if moment.microsecond else text
