"""Values as other programs have them in Arrow: what results, files of COPY and sinks are made of.

The stored form of `arrow_schema` is that of the engines; most kinds have it here, too. These have another, in arrays
and records likewise:

| kind | published as |
|---|---|
| time | `time64[us]` |
| timetz, for which Arrow has no type | its text |
| enum | its label |
| char(n) | its text, padded to n characters |
| record | a struct whose fields have the record's names |
| array of dimensions | a struct of the lists `elements`, `lengths` and `lowers` |

A numeric has the 38 digits that its type keeps, one without a scale is its text, which alone holds all of its values;
uuid, json and jsonb are texts, an interval is a struct of months, days and microseconds. Arrow has no infinite dates
and timestamps: they are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.errors import DataError
from mz_dagster.scalars.infinity import INFINITE_KINDS, INFINITY, NEGATIVE_INFINITY
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import ZonedTime
from mz_dagster.storage.arrow_schema import arrow_type


class InfiniteMoment(DataError):
    """An infinite date or timestamp where only finite ones can be written."""

    sqlstate = "22008"


def published_type(type_: ScalarType, zone: str = "UTC") -> pa.DataType:
    """Returns the Arrow type as which values of an SQL type are published.

    Args:
        type_: The SQL type.
        zone: By which time zone's clocks readers are to show a timestamptz.

    Example:
        >>> from mz_dagster.scalars.types import TIME, array_of
        >>> str(published_type(array_of(TIME)))
        'list<element: time64[us]>'
    """
    if type_.element is not None:
        return pa.list_(pa.field("element", published_type(type_.element, zone)))
    if type_.is_composite:
        names = [name for name, _ in type_.fields]
        if len(set(names)) < len(names):
            names = [f"f{i}" for i in range(1, len(names) + 1)]
        return pa.struct([(name, published_type(one, zone)) for name, one in zip(names, type_.parts, strict=True)])
    if type_.kind is Kind.TIME:
        return pa.time64("us")
    if type_.kind is Kind.TIMETZ:
        return pa.string()
    if type_.kind is Kind.TIMESTAMPTZ:
        return pa.timestamp("us", zone)
    return arrow_type(type_)


def published_schema(columns: Sequence[Column], zone: str = "UTC") -> pa.Schema:
    """Returns the Arrow schema as which rows of these columns are published."""
    return pa.schema([pa.field(one.name, published_type(one.type, zone), one.nullable) for one in columns])


def published(values: pa.Array, column: Column, zone: str = "UTC") -> pa.Array:
    """Returns stored values of a column as they are published.

    Raises:
        InfiniteMoment: One is an infinite date or timestamp.

    Example:
        >>> from mz_dagster.scalars.types import TIME
        >>> published(pa.array([60_000_000, None]), Column("at", TIME)).to_pylist()
        [datetime.time(0, 1), None]
    """
    return _published(values, column.type, zone, column.name)


def _published(values: pa.Array, type_: ScalarType, zone: str, name: str) -> pa.Array:
    own = published_type(type_, zone)
    if type_.kind in INFINITE_KINDS:
        _check_finite(values, type_, name)
    if type_.element is not None:
        lengths = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        elements = _published(values.flatten(), type_.element, zone, name)
        return pa.ListArray.from_arrays(offsets, elements, type=own, mask=values.is_null())
    if type_.is_composite:
        cells = zip(values.flatten(), type_.parts, strict=True)
        fields = [_published(one, part, zone, name) for one, part in cells]
        return pa.StructArray.from_arrays(fields, fields=list(own), mask=values.is_null())
    if type_.kind is Kind.ENUM:
        assert type_.enumeration is not None
        members = values.dictionary_encode()
        labels = pa.array([type_.enumeration.label(one) for one in members.dictionary.to_pylist()], pa.string())
        return labels.take(members.indices)
    if type_.kind is Kind.TIMETZ:
        return pa.array([None if one is None else str(ZonedTime.of_code(one)) for one in values.to_pylist()], own)
    if type_.kind is Kind.CHAR:
        return pc.utf8_rpad(values, width=type_.length, padding=" ")
    return values.cast(own)


def _check_finite(values: pa.Array, type_: ScalarType, name: str) -> None:
    numbers = values.cast(pa.int32() if type_.kind is Kind.DATE else pa.int64())
    for one in (INFINITY, NEGATIVE_INFINITY):
        if pc.any(pc.equal(numbers, pa.scalar(one.stored(type_.kind), numbers.type))).as_py():
            raise InfiniteMoment(
                f'column "{name}" holds {one}, for which Arrow and Parquet have no value',
                hint=f'Leave it out, or take its text: "{name}"::text, or nullif("{name}", \'{one}\').',
            )
