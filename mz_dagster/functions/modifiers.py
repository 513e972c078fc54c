"""What a type with parentheses makes of values: `numeric(5, 2)`, `timestamp(3)`, `interval day to second(0)`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from mz_dagster.functions.moments.calendar import AFTER, BEFORE, DAY, MILLENNIUM_DAY, SECOND, checked_moment
from mz_dagster.functions.moments.interval_text import Span, narrowed
from mz_dagster.functions.moments.timetz import rounded_timetz
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind, ScalarType

#: 2000-01-01, from which PostgreSQL counts, and so rounds away.
_EPOCH = MILLENNIUM_DAY * DAY


@function("bounded_numeric", (Kind.NUMERIC, Kind.INT4), Kind.NUMERIC, fallible=True, scaled=True)
def bounded(value: Decimal, precision: int, scale: int) -> Decimal:
    """Returns a numeric of a scale that has no more digits than its type's precision.

    Example:
        >>> bounded(Decimal("999.99"), 5, 2)
        Decimal('999.99')
    """
    if value.copy_abs() >= Decimal(10) ** (precision - scale):
        raise SqlFailure("22003", "numeric field overflow")
    return value


@function("rounded_timestamp", (Kind.TIMESTAMP, Kind.INT4), Kind.TIMESTAMP, fallible=True)
@function("rounded_timestamptz", (Kind.TIMESTAMPTZ, Kind.INT4), Kind.TIMESTAMPTZ, fallible=True)
def rounded_moment(moment: int, precision: int) -> int:
    """Returns a timestamp, with a zone or not, whose seconds have so many digits; what is infinite stays so.

    Example:
        >>> rounded_moment(1_500_000, 0), rounded_moment(_EPOCH + 1_500_000, 0) - _EPOCH
        (1000000, 2000000)
    """
    if moment in (BEFORE * DAY, AFTER * DAY):
        return moment
    return checked_moment(_EPOCH + _rounded(moment - _EPOCH, precision))


@function("rounded_time", (Kind.TIME, Kind.INT4), Kind.TIME, fallible=True)
def rounded_time(clock: int, precision: int) -> int:
    """Returns a time whose seconds have so many digits."""
    found = _rounded(clock, precision)
    if found >= DAY:
        raise SqlFailure("22008", 'date/time field value out of range: "24:00:00"')
    return found


@function("narrowed_interval", (Kind.INTERVAL, Kind.TEXT, Kind.INT4), Kind.INTERVAL, fallible=True)
def narrowed_interval(span: Span, fields: str, precision: int) -> Span:
    """Returns an interval with the fields of its type, and so many digits of its seconds."""
    return narrowed(span, fields, precision)


def _rounded(number: int, precision: int) -> int:
    unit: int = SECOND // 10**precision
    size = (abs(number) + unit // 2) // unit * unit
    return size if number >= 0 else -size


def modified_plain(value: Any, type_: ScalarType) -> Any:
    """Returns what the modifier of a type makes of a value's plain form; a value that stays as it is without one.

    Raises:
        SqlFailure: The value does not fit.

    Example:
        >>> from mz_dagster.scalars.types import Modifier
        >>> modified_plain(1_260_000, ScalarType(Kind.TIME, modifier=Modifier(1)))
        1300000
    """
    if value is None or type_.value_modifier is None:
        return value
    if type_.kind is Kind.DIMENSIONED:
        elements, *shape = value
        return (modified_plain(elements, type_.parts[0]), *shape)
    if type_.element is not None:
        return [modified_plain(one, type_.element) for one in value]
    modifier = type_.modifier
    assert modifier is not None
    precision = 6 if modifier.precision is None else modifier.precision
    match type_.kind:
        case Kind.NUMERIC:
            return bounded(value, precision, type_.scale)
        case Kind.TIME:
            return rounded_time(value, precision)
        case Kind.TIMETZ:
            return rounded_timetz(value, precision)
        case Kind.INTERVAL:
            return narrowed(value, modifier.fields, precision)
        case _:
            return rounded_moment(value, precision)
