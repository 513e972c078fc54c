"""Times of day with an offset from UTC: sums, conversions, fields; each is its code (`scalars.values.ZonedTime`)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from mz_dagster.functions.function import Nullability
from mz_dagster.functions.moments.calendar import DAY, SECOND, checked_moment
from mz_dagster.functions.moments.field_names import DATE_PARTS, TIMETZ_FIELDS
from mz_dagster.functions.moments.fields import clock_part, time_field
from mz_dagster.functions.moments.interval_text import Span
from mz_dagster.functions.moments.moment_text import timetz_of_text
from mz_dagster.functions.moments.zones import offset_of, reading
from mz_dagster.functions.registry import SqlFailure, function, pure
from mz_dagster.scalars.types import Kind
from mz_dagster.scalars.values import ZonedTime

pure("cast_text_to_timetz")(timetz_of_text)


@pure("cast_timetz_to_text")
def text_of(code: int) -> str:
    """Returns the text of a time with a zone.

    Example:
        >>> text_of(ZonedTime(0, -12_600).code), text_of(ZonedTime(1, 0).code)
        ('00:00:00-03:30', '00:00:00.000001+00')
    """
    return str(ZonedTime.of_code(code))


@pure("cast_timetz_to_time")
def _clock_of(code: int) -> int:
    return ZonedTime.of_code(code).clock


@pure("cast_time_to_timetz")
def _in_utc(clock: int) -> int:
    return ZonedTime(clock, 0).code


@pure("cast_timestamptz_to_timetz")
def _time_of(moment: int) -> int:
    return ZonedTime(moment % DAY, 0).code


@function(
    "timetz_of_timestamptz_in_zone",
    (Kind.TEXT, Kind.TIMESTAMPTZ),
    Kind.TIMETZ,
    fallible=True,
    nullability=Nullability.ALWAYS,
    internal=True,
)
def time_in_zone(zone: str, moment: int) -> int:
    """Returns what the clocks of a zone show at a moment, with their offset.

    Example:
        >>> text_of(time_in_zone("Europe/Berlin", 0))
        '01:00:00+01'
    """
    shown = reading(zone, moment)
    return ZonedTime(shown % DAY, (shown - moment) // SECOND).code


def _later(code: int, microseconds: int) -> int:
    clock, offset = ZonedTime.of_code(code)
    return ZonedTime((clock + microseconds) % DAY, offset).code


@function("add_timetz_interval", (Kind.TIMETZ, Kind.INTERVAL), Kind.TIMETZ, sql="+")
def _plus(code: int, span: Span) -> int:
    return _later(code, span[2])


@function("add_interval_timetz", (Kind.INTERVAL, Kind.TIMETZ), Kind.TIMETZ, sql="+")
def _plus_too(span: Span, code: int) -> int:
    return _later(code, span[2])


@function("subtract_timetz_interval", (Kind.TIMETZ, Kind.INTERVAL), Kind.TIMETZ, sql="-")
def _minus(code: int, span: Span) -> int:
    return _later(code, -span[2])


@function("add_date_timetz", (Kind.DATE, Kind.TIMETZ), Kind.TIMESTAMPTZ, sql="+", fallible=True)
def at_time(day: int, code: int) -> int:
    """Returns the moment of a day's time in its zone."""
    clock, offset = ZonedTime.of_code(code)
    return checked_moment(day * DAY + clock - offset * SECOND)


@function("add_timetz_date", (Kind.TIMETZ, Kind.DATE), Kind.TIMESTAMPTZ, sql="+", fallible=True)
def _at_time_too(code: int, day: int) -> int:
    return at_time(day, code)


@function(
    "timezone_interval_timetz",
    (Kind.INTERVAL, Kind.TIMETZ),
    Kind.TIMETZ,
    sql="timezone",
    says="A moment in a time zone, or the instant that it is there: `AT TIME ZONE`.",
    example="timezone('Europe/Berlin', timestamptz '2024-07-01 12:00+00')",
    gives="2024-07-01 14:00:00",
    fallible=True,
)
def shifted(zone: Span, code: int) -> int:
    """Returns what clocks with another offset show at a time.

    Example:
        >>> text_of(shifted((0, 0, 3_600_000_000), ZonedTime(0, 0).code))
        '01:00:00+01'
    """
    clock, offset = ZonedTime.of_code(code)
    other = offset_of(zone) // SECOND
    return ZonedTime((clock + (other - offset) * SECOND) % DAY, other).code


@function("rounded_timetz", (Kind.TIMETZ, Kind.INT4), Kind.TIMETZ, fallible=True)
def rounded_timetz(code: int, precision: int) -> int:
    """Returns a time with a zone whose seconds have so many digits."""
    clock, offset = ZonedTime.of_code(code)
    unit: int = SECOND // 10**precision
    rounded = (clock + unit // 2) // unit * unit
    if rounded >= DAY:
        raise SqlFailure("22008", 'date/time field value out of range: "24:00:00"')
    return ZonedTime(rounded, offset).code


def field_of(field: str, code: int) -> Decimal:
    """Returns a field of a time with a zone.

    Example:
        >>> field_of("timezone_minute", ZonedTime(0, -12_600).code), field_of("epoch", ZonedTime(0, 3600).code)
        (Decimal('-30'), Decimal('-3600.000000'))
    """
    clock, offset = ZonedTime.of_code(code)
    sign = -1 if offset < 0 else 1
    match field:
        case "timezone":
            return Decimal(offset)
        case "timezone_hour":
            return Decimal(sign * (abs(offset) // 3600))
        case "timezone_minute":
            return Decimal(sign * (abs(offset) // 60 % 60))
        case "epoch":
            return Decimal(clock - offset * SECOND).scaleb(-6)
        case _:
            return time_field(field, clock)


def _extracting(field: str) -> Callable[[int], Decimal]:
    return lambda code: field_of(field, code)


def _double_of(field: str) -> Callable[[int], float]:
    return lambda code: clock_part(field, ZonedTime.of_code(code).clock)


def _seconds(code: int) -> float:
    clock, offset = ZonedTime.of_code(code)
    return clock / 1_000_000.0 - offset


for _field in TIMETZ_FIELDS:
    function(f"extract_{_field}_timetz", (Kind.TIMETZ,), Kind.NUMERIC)(_extracting(_field))
for _field in DATE_PARTS:
    function(f"date_part_{_field}_timetz", (Kind.TIMETZ,), Kind.FLOAT8)(
        _seconds if _field == "epoch" else _double_of(_field)
    )
