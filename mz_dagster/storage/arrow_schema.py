"""The Arrow schemas of update frames: data columns, then time, diff and error.

Each SQL type has one Arrow type that holds exactly its values, in shards, in frames and in what is computed in process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.object_cache import cached_by_object
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import all_to_stored
from mz_dagster.storage.shards import DIFF, ERROR, TIME, UPDATE_COLUMNS

_TYPES: dict[Kind, pa.DataType] = {
    Kind.BOOL: pa.bool_(),
    Kind.INT2: pa.int16(),
    Kind.INT4: pa.int32(),
    Kind.INT8: pa.int64(),
    Kind.FLOAT4: pa.float32(),
    Kind.FLOAT8: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.MZ_TIMESTAMP: pa.int64(),
    Kind.TIME: pa.int64(),
    Kind.TIMETZ: pa.int64(),
    Kind.INTERVAL: pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())]),
    Kind.UUID: pa.string(),
    Kind.BYTEA: pa.binary(),
    Kind.JSON: pa.string(),
    Kind.JSONB: pa.string(),
    Kind.UNCONSTRAINED: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.CHAR: pa.string(),
    Kind.ENUM: pa.string(),
}

UPDATE_FIELDS = (
    pa.field(TIME, pa.int64()),
    pa.field(DIFF, pa.int64()),
    pa.field(ERROR, pa.string()),
)


@cached_by_object(most=20_000)
def arrow_type(scalar: ScalarType) -> pa.DataType:
    """Returns the Arrow type that holds exactly the values of `scalar`.

    Example:
        >>> from mz_dagster.scalars.types import numeric
        >>> str(arrow_type(numeric(2)))
        'decimal128(38, 2)'
    """
    if scalar.element is not None:
        # Delta's name of the field, which a cast would otherwise have to change.
        return pa.list_(pa.field("element", arrow_type(scalar.element)))
    if scalar.is_composite:
        return pa.struct([(f"f{i}", arrow_type(one)) for i, (_, one) in enumerate(scalar.fields, 1)])
    return pa.decimal128(38, scalar.scale) if scalar.kind is Kind.NUMERIC else _TYPES[scalar.kind]


def compares_exactly(scalar: ScalarType) -> bool:
    """Returns whether Arrow's `=` of stored values is theirs: not of floats, nor of what nests.

    Where values have several representations, it is that of these.
    """
    stored = arrow_type(scalar)
    return not (pa.types.is_floating(stored) or pa.types.is_nested(stored))


@cached_by_object(most=20_000)
def update_schema(columns: Sequence[Column]) -> pa.Schema:
    """Returns the schema of an update frame with these data columns, all of them nullable.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> update_schema([Column("a", INT4, nullable=False)]).names
        ['a', 'mz_timestamp', 'mz_diff', 'mz_error']
    """
    return pa.schema([*(pa.field(column.name, arrow_type(column.type)) for column in columns), *UPDATE_FIELDS])


@cached_by_object(most=20_000)
def no_updates(schema: pa.Schema) -> pa.Table:
    """Returns an empty update frame; Arrow takes five microseconds to make each of its columns anew."""
    return schema.empty_table()


def update_table(
    columns: Sequence[Column],
    updates: Sequence[tuple[Sequence[Any], int, int] | tuple[Sequence[Any], int, int, str | None]],
) -> pa.Table:
    """Returns the update frame of `(data, time, diff)` or `(data, time, diff, error)` tuples.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> update_table([Column("a", INT4)], [((1,), 5, 1), ((None,), 6, 1, "22012 division by zero")]).num_rows
        2
    """
    schema = update_schema(columns)
    data = [
        pa.array(all_to_stored((one[0][position] for one in updates), column.type), schema.field(position).type)
        for position, column in enumerate(columns)
    ]
    rest = [
        pa.array([one[1] for one in updates], pa.int64()),
        pa.array([one[2] for one in updates], pa.int64()),
        pa.array([one[3] if len(one) == 4 else None for one in updates], pa.string()),
    ]
    return pa.Table.from_arrays([*data, *rest], schema=schema)


def without_errors(frame: pa.Table) -> pa.Table:
    """Returns a frame but for the updates of its error part; the frame itself if it has none of these.

    Example:
        >>> from mz_dagster.scalars.types import INT4, Column
        >>> frame = update_table([Column("a", INT4)], [((1,), 5, 1), ((None,), 5, 1, "22012 x")])
        >>> without_errors(frame).column("a").to_pylist()
        [1]
    """
    errors = frame.column(ERROR)
    return frame if errors.null_count == len(errors) else frame.filter(pc.is_null(errors))


def without_error_data(frame: pa.Table) -> pa.Table:
    """Returns an update frame with all data NULL in updates of the error part, where they mean nothing.

    Example:
        >>> from mz_dagster.scalars.types import INT4
        >>> without_error_data(update_table([Column("a", INT4)], [((1,), 5, 1, "22012 x")])).column("a").to_pylist()
        [None]
    """
    errors = frame.column(ERROR)
    if errors.null_count == len(errors):
        return frame
    numbers = pc.if_else(pc.is_null(errors), np.arange(len(frame)), pa.scalar(None, pa.int64()))
    for position, field in enumerate(frame.schema):
        if field.name not in UPDATE_COLUMNS:
            frame = frame.set_column(position, field, frame.column(position).take(numbers))
    return frame
