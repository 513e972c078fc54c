"""Fields of times, intervals and timestamps: `extract` exactly, `date_part` in PostgreSQL's doubles; `date_trunc`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from mz_dagster.functions.function import Nullability
from mz_dagster.functions.moments.calendar import DAY, HOUR, MINUTE, SECOND, checked_moment, civil_of, days_of
from mz_dagster.functions.moments.field_names import (
    DATE_PARTS,
    EXTRACT_FIELDS,
    INTERVAL_FIELDS,
    INTERVAL_UNITS,
    TIME_FIELDS,
    TRUNC_UNITS,
)
from mz_dagster.functions.moments.infinite import RULES, InfiniteResult
from mz_dagster.functions.moments.interval import epoch_microseconds, parts_of
from mz_dagster.functions.moments.interval_text import Span
from mz_dagster.functions.registry import function
from mz_dagster.scalars.types import Kind

_YEAR_SECONDS, _MONTH_SECONDS, _DAY_SECONDS = 365.25 * 86_400, 30 * 86_400.0, 86_400.0
#: 1970-01-01 as Python counts days.
_ORDINAL = 719_163
#: Years of the greater fields.
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
#: Microseconds of the units of a clock.
_CLOCK = {"microseconds": 1, "milliseconds": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}


def interval_field(field: str, span: Span) -> Decimal:
    """Returns a field of an interval.

    Example:
        >>> interval_field("second", (0, 0, -1_500_000)), interval_field("epoch", (12, 0, 0))
        (Decimal('-1.500000'), Decimal('31557600.000000'))
    """
    parts = parts_of(span)
    match field:
        case "epoch":
            return Decimal(epoch_microseconds(span)).scaleb(-6)
        case "second" | "milliseconds" | "microseconds":
            return _of_microseconds(field, parts["microseconds"])
        case "quarter":
            return Decimal(_towards_zero(parts["month"], 3) + 1)
        case "year" | "decade" | "century" | "millennium":
            return Decimal(_towards_zero(parts["year"], _YEARS[field]))
        case _:
            return Decimal(parts[field])


def time_field(field: str, clock: int) -> Decimal:
    """Returns a field of a time."""
    return interval_field(field, (0, 0, clock))


def truncated(unit: str, span: Span) -> Span:
    """Returns an interval without what is smaller than a unit.

    Example:
        >>> truncated("month", (14, 3, 5)), truncated("hour", (0, 0, -3_700_000_000))
        ((14, 0, 0), (0, 0, -3600000000))
    """
    months, days, clock = span
    if unit in _CLOCK:
        return months, days, _towards_zero(clock, _CLOCK[unit]) * _CLOCK[unit] if unit != "day" else 0
    size = {"month": 1, "quarter": 3}.get(unit) or 12 * _YEARS[unit]
    return _towards_zero(months, size) * size, 0, 0


def date_field(field: str, day: int) -> Decimal:
    """Returns a field of a date.

    Example:
        >>> date_field("week", 0), date_field("dow", 0), date_field("century", 0)
        (Decimal('1'), Decimal('4'), Decimal('20'))
    """
    year, month, day_of_month = civil_of(day)
    iso_year, week, weekday = date.fromordinal(day + _ORDINAL).isocalendar()
    known = {
        "millennium": (year + 999) // 1000, "century": (year + 99) // 100, "decade": year // 10, "year": year,
        "isoyear": iso_year, "quarter": (month + 2) // 3, "month": month, "week": week, "day": day_of_month,
        "dow": weekday % 7, "isodow": weekday, "doy": day - days_of(year, 1, 1) + 1, "epoch": day * 86_400,
    }  # fmt: skip
    return Decimal(known[field])


def moment_field(field: str, moment: int) -> Decimal:
    """Returns a field of a timestamp, in UTC."""
    if field == "epoch":
        return Decimal(moment).scaleb(-6)
    if field.startswith("timezone"):
        return Decimal(0)
    day, clock = divmod(moment, DAY)
    return time_field(field, clock) if field in _CLOCK and field != "day" else date_field(field, day)


def truncated_moment(unit: str, moment: int) -> int:
    """Returns the start of the unit in which a timestamp is.

    Example:
        >>> truncated_moment("week", 0) // DAY, truncated_moment("decade", 0)
        (-3, 0)
    """
    if unit in _CLOCK:
        return moment - moment % _CLOCK[unit]
    day = moment // DAY
    year, month, _ = civil_of(day)
    match unit:
        case "week":
            day -= (day + 3) % 7
        case "month" | "quarter":
            day = days_of(year, month if unit == "month" else month - (month - 1) % 3, 1)
        case "year" | "decade":
            day = days_of(year - year % _YEARS[unit], 1, 1)
        case _:
            day = days_of(year - (year - 1) % _YEARS[unit], 1, 1)
    return checked_moment(day * DAY)


def clock_part(field: str, clock: int) -> float:
    """Returns `second` or `milliseconds` of a clock that may be negative, as a double."""
    seconds, micros = divmod(abs(clock) % MINUTE, SECOND)
    if clock < 0:
        seconds, micros = -seconds, -micros
    return seconds + micros / 1_000_000.0 if field == "second" else seconds * 1000.0 + micros / 1000.0


def interval_epoch(span: Span) -> float:
    """Returns the seconds of an interval, as a double, added up as PostgreSQL does."""
    years, months = _towards_zero(span[0], 12), span[0] - _towards_zero(span[0], 12) * 12
    return span[2] / 1_000_000.0 + _YEAR_SECONDS * years + _MONTH_SECONDS * months + _DAY_SECONDS * span[1]


def _of_microseconds(field: str, microseconds: int) -> Decimal:
    return Decimal(microseconds).scaleb({"second": -6, "milliseconds": -3, "microseconds": 0}[field])


def _towards_zero(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)


def _moment_part(field: str, moment: int) -> float:
    return clock_part(field, moment % DAY)


def _interval_part(field: str, span: Span) -> float:
    return clock_part(field, span[2])


def _seconds(microseconds: int) -> float:
    return microseconds / 1_000_000.0


def _with_field(reference: Callable[[str, Any], Any], field: str) -> Callable[[Any], Any]:
    return lambda value: reference(field, value)


for _field in TIME_FIELDS:
    function(f"extract_{_field}_time", (Kind.TIME,), Kind.NUMERIC)(_with_field(time_field, _field))
for _field in INTERVAL_FIELDS:
    function(f"extract_{_field}_interval", (Kind.INTERVAL,), Kind.NUMERIC)(_with_field(interval_field, _field))
for _unit in INTERVAL_UNITS:
    function(f"date_trunc_{_unit}_interval", (Kind.INTERVAL,), Kind.INTERVAL)(_with_field(truncated, _unit))
for _field, (_kinds, _) in EXTRACT_FIELDS.items():
    for _kind in _kinds:
        _name = f"extract_{_field}_{_kind.value}"
        # Of what is infinite some fields are unknown, and the others errors.
        _is_growing = RULES[_name].outcome is not InfiniteResult.UNKNOWN
        function(
            _name,
            (_kind,),
            Kind.NUMERIC,
            fallible=_is_growing,
            nullability=Nullability.IF_ANY_ARGUMENT if _is_growing else Nullability.ALWAYS,
        )(_with_field(date_field if _kind is Kind.DATE else moment_field, _field))
for _kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
    for _unit in TRUNC_UNITS:
        # The first week of year 1 and the like begin before the first date there is.
        function(f"date_trunc_{_unit}_{_kind.value}", (_kind,), _kind, fallible=True)(
            _with_field(truncated_moment, _unit)
        )
    for _field in DATE_PARTS:
        # Of an infinite timestamp they are unknown.
        _nullable = Nullability.IF_ANY_ARGUMENT if _field == "epoch" else Nullability.ALWAYS
        function(f"date_part_{_field}_{_kind.value}", (_kind,), Kind.FLOAT8, nullability=_nullable)(
            _seconds if _field == "epoch" else _with_field(_moment_part, _field)
        )
for _field in DATE_PARTS:
    function(f"date_part_{_field}_time", (Kind.TIME,), Kind.FLOAT8)(
        _seconds if _field == "epoch" else _with_field(clock_part, _field)
    )
    function(f"date_part_{_field}_interval", (Kind.INTERVAL,), Kind.FLOAT8)(
        interval_epoch if _field == "epoch" else _with_field(_interval_part, _field)
    )
