"""Cells as PostgreSQL shows them: the output functions of its types."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from mz_dagster.functions.arrays.arrays import array_text, dimensioned_text, record_text
from mz_dagster.functions.moments.interval_text import text_of_interval
from mz_dagster.functions.numbers.floats import float4_text, float8_text
from mz_dagster.scalars.infinity import Infinity
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.scalars.values import ZonedTime, dimensioned_of


def cell_text(value: Any, type_: ScalarType, zone: ZoneInfo | None = None) -> str:
    r"""Returns what PostgreSQL shows of a cell that is not NULL, in a time zone; None for the cell's own.

    Example:
        >>> from datetime import UTC
        >>> from mz_dagster.scalars.types import BOOL, BYTEA, TIMESTAMPTZ
        >>> cell_text(True, BOOL), cell_text(b"a", BYTEA), cell_text(datetime(2020, 1, 1, tzinfo=UTC), TIMESTAMPTZ)
        ('t', '\\x61', '2020-01-01 00:00:00+00')
    """
    if type_.label in ("int2vector", "oidvector"):
        return " ".join(map(str, dimensioned_of(value).elements))
    match type_.kind:
        case Kind.BOOL:
            return "t" if value else "f"
        case Kind.FLOAT8:
            return float8_text(value)
        case Kind.FLOAT4:
            return float4_text(value)
        case Kind.NUMERIC | Kind.UNCONSTRAINED:
            return _numeric_text(value)
        case Kind.BYTEA:
            return "\\x" + bytes(value).hex()
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ if isinstance(value, Infinity):
            return str(value)
        case Kind.TIMESTAMP:
            return _moment_text(value)
        case Kind.TIMESTAMPTZ:
            local = value if zone is None else value.astimezone(zone)
            return _moment_text(local.replace(tzinfo=None)) + _offset_text(local.utcoffset())
        case Kind.TIME:
            return _with_fraction(value.strftime("%H:%M:%S"), value.microsecond)
        case Kind.TIMETZ:
            return str(value if isinstance(value, ZonedTime) else ZonedTime.of_time(value))
        case Kind.INTERVAL:
            return text_of_interval(tuple(value))
        case Kind.CHAR:
            return str(value).ljust(type_.length)
        case Kind.ARRAY:
            element = type_.parts[0]
            return array_text([None if one is None else cell_text(one, element, zone) for one in value])
        case Kind.DIMENSIONED:
            elements, lengths, lowers = dimensioned_of(value)
            element = type_.parts[0].parts[0]
            texts = [None if one is None else cell_text(one, element, zone) for one in elements]
            return dimensioned_text(texts, lengths, lowers)
        case Kind.RECORD:
            cells = zip(value, type_.parts, strict=True)
            return record_text([None if one is None else cell_text(one, part, zone) for one, part in cells])
        case _:
            return str(value)


def _numeric_text(value: Decimal | str | int) -> str:
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    return str(value)


def _moment_text(value: datetime) -> str:
    # strftime leaves out zeros at the beginning of a year
    stem = f"{value.year:04d}-{value.month:02d}-{value.day:02d} {value.hour:02d}:{value.minute:02d}:{value.second:02d}"
    return _with_fraction(stem, value.microsecond)


def _with_fraction(text: str, microseconds: int) -> str:
    return f"{text}.{microseconds:06d}".rstrip("0") if microseconds else text


def _offset_text(offset: timedelta | None) -> str:
    seconds = int((offset or timedelta()).total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{sign}{hours:02d}" + (f":{minutes:02d}" if minutes or rest else "") + (f":{rest:02d}" if rest else "")
