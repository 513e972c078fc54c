"""Intervals: three numbers, months, days and microseconds, that turn into each other only where a function says so.

Arithmetic is PostgreSQL 15's, operation by operation: products and quotients are reckoned in doubles, and what is
left of a month or a day goes down to the smaller units, rounded to microseconds on the way. Equal are intervals whose
lengths are, a month being 30 days and a day 24 hours. Narrower than PostgreSQL: where a number of PostgreSQL 15 would
wrap around silently, the interval is out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from mz_dagster.functions.moments.calendar import DAY, HOUR, MINUTE, SECOND
from mz_dagster.functions.moments.interval_text import Span
from mz_dagster.functions.registry import SqlFailure, function, pure
from mz_dagster.scalars.types import Kind

_INT4, _INT8 = 2**31, 2**63
_MONTH_DAYS = 30
_DAY_SECONDS = 86_400
#: Quarters of a second in a day: a year has 365.25 days.
_QUARTERS = 4


def checked(months: int, days: int, microseconds: int) -> Span:
    """Returns the interval of three numbers, which must fit."""
    small = all(-_INT4 <= one < _INT4 for one in (months, days))
    if not small or not -_INT8 <= microseconds < _INT8:
        raise SqlFailure("22008", "interval out of range")
    return months, days, microseconds


def length(span: Span) -> int:
    """Returns the microseconds by which intervals compare."""
    months, days, clock = span
    return (months * _MONTH_DAYS + days) * DAY + clock


@function("comparable_interval", (Kind.INTERVAL,), Kind.INTERVAL, internal=True)
def comparable(span: Span) -> Span:
    """Returns the one interval that stands for all equal ones; these have the order of their three numbers.

    Example:
        >>> comparable((0, 45, 0)), comparable((0, 0, -1)), comparable((1, 0, -1))
        ((1, 15, 0), (-1, 29, 86399999999), (0, 29, 86399999999))
    """
    days, clock = divmod(length(span), DAY)
    months = max(-_INT4, min(days // _MONTH_DAYS, _INT4 - 1))
    days -= months * _MONTH_DAYS
    kept = max(-_INT4, min(days, _INT4 - 1))
    return months, kept, clock + (days - kept) * DAY


@function("ordered_interval", (Kind.INTERVAL,), Kind.BYTEA, internal=True)
def ordered(span: Span) -> bytes:
    """Returns bytes that have the order of intervals, and among equal ones that of their three numbers."""
    return b"".join(
        (number + limit).to_bytes(size, "big")
        for three in (comparable(span), span)
        for number, limit, size in zip(three, (_INT4, _INT4, _INT8), (4, 4, 8), strict=True)
    )


@function("restored_interval", (Kind.BYTEA,), Kind.INTERVAL, internal=True)
def restored(ordering: bytes) -> Span:
    """Returns the interval that `ordered` was given.

    Example:
        >>> restored(ordered((1, -2, 3)))
        (1, -2, 3)
    """
    own = bytes(ordering[16:])
    months, days = (int.from_bytes(one, "big") - _INT4 for one in (own[:4], own[4:8]))
    return months, days, int.from_bytes(own[8:], "big") - _INT8


@function("months_interval", (Kind.INTERVAL,), Kind.INT8, internal=True)
def _months(span: Span) -> int:
    return span[0]


@function("days_interval", (Kind.INTERVAL,), Kind.INT8, internal=True)
def _days(span: Span) -> int:
    return span[1]


@function("microseconds_interval", (Kind.INTERVAL,), Kind.INT8, internal=True)
def _microseconds(span: Span) -> int:
    return span[2]


@function("whole_interval", (Kind.INT8, Kind.INT8, Kind.NUMERIC), Kind.INTERVAL, fallible=True, internal=True)
def _whole(months: int, days: int, microseconds: Decimal) -> Span:
    return checked(months, days, int(microseconds))


@function("eq_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.BOOL, sql="=")
def _equal(left: Span, right: Span) -> bool:
    return length(left) == length(right)


@function("ne_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.BOOL, sql="<>")
def _unequal(left: Span, right: Span) -> bool:
    return length(left) != length(right)


@function("lt_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.BOOL, sql="<")
def _less(left: Span, right: Span) -> bool:
    return length(left) < length(right)


@function("le_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.BOOL, sql="<=")
def _at_most(left: Span, right: Span) -> bool:
    return length(left) <= length(right)


@function("gt_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.BOOL, sql=">")
def _greater(left: Span, right: Span) -> bool:
    return length(left) > length(right)


@function("ge_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.BOOL, sql=">=")
def _at_least(left: Span, right: Span) -> bool:
    return length(left) >= length(right)


@function("add_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.INTERVAL, sql="+", fallible=True)
def total(left: Span, right: Span) -> Span:
    """Returns the sum of two intervals, part by part."""
    return checked(left[0] + right[0], left[1] + right[1], left[2] + right[2])


@function("subtract_interval", (Kind.INTERVAL, Kind.INTERVAL), Kind.INTERVAL, sql="-", fallible=True)
def difference(left: Span, right: Span) -> Span:
    """Returns the first interval without the second, part by part."""
    return checked(left[0] - right[0], left[1] - right[1], left[2] - right[2])


@function("negate_interval", (Kind.INTERVAL,), Kind.INTERVAL, sql="-", fallible=True)
def _negated(span: Span) -> Span:
    return checked(-span[0], -span[1], -span[2])


@function("multiply_interval_float8", (Kind.INTERVAL, Kind.FLOAT8), Kind.INTERVAL, sql="*", fallible=True)
def product(span: Span, factor: float) -> Span:
    """Returns an interval times a number.

    Example:
        >>> product((1, 0, 0), 0.5), product((0, 1, 0), 1.5)
        ((0, 15, 0), (0, 1, 43200000000))
    """
    return _scaled(span, lambda value: value * factor)


@function("multiply_float8_interval", (Kind.FLOAT8, Kind.INTERVAL), Kind.INTERVAL, sql="*", fallible=True)
def _product(factor: float, span: Span) -> Span:
    return product(span, factor)


@function("divide_interval_float8", (Kind.INTERVAL, Kind.FLOAT8), Kind.INTERVAL, sql="/", fallible=True)
def quotient(span: Span, divisor: float) -> Span:
    """Returns an interval divided by a number.

    Example:
        >>> quotient((1, 0, 0), 4.0)
        (0, 7, 43200000000)
    """
    if divisor == 0:
        raise SqlFailure("22012", "division by zero")
    return _scaled(span, lambda value: value / divisor)


def _scaled(span: Span, scale: Callable[[int], float]) -> Span:
    months, days = (_small(scale(one)) for one in span[:2])
    rest_days = _rounded((scale(span[0]) - months) * _MONTH_DAYS)
    rest_seconds = _rounded((scale(span[1]) - days + rest_days - int(rest_days)) * _DAY_SECONDS)
    if abs(rest_seconds) >= _DAY_SECONDS:
        carried = int(rest_seconds / _DAY_SECONDS)
        days += carried
        rest_seconds -= carried * _DAY_SECONDS
    clock = scale(span[2]) + rest_seconds * SECOND
    if not -float(_INT8) <= clock < float(_INT8):
        raise SqlFailure("22008", "interval out of range")
    return checked(months, days + int(rest_days), round(clock))


def _small(value: float) -> int:
    if not -_INT4 <= value <= _INT4 - 1:
        raise SqlFailure("22008", "interval out of range")
    return int(value)


def _rounded(value: float) -> float:
    """Returns a number to six places, as doubles have them."""
    return round(value * 1_000_000.0) / 1_000_000.0


@function(
    "justify_hours_interval",
    (Kind.INTERVAL,),
    Kind.INTERVAL,
    sql="justify_hours",
    says="An interval with 24 hours as a day.",
    example="justify_hours(interval '27 hours')",
    gives="1 day 03:00:00",
    fallible=True,
)
def justified_hours(span: Span) -> Span:
    """Returns the interval with days in the place of each 24 hours, and one sign for both.

    Example:
        >>> justified_hours((0, 1, -3_600_000_000))
        (0, 0, 82800000000)
    """
    months, days, clock = span
    return checked(months, *_carried(days, clock, DAY))


@function(
    "justify_days_interval",
    (Kind.INTERVAL,),
    Kind.INTERVAL,
    sql="justify_days",
    says="An interval with 30 days as a month.",
    example="justify_days(interval '35 days')",
    gives="1 mon 5 days",
    fallible=True,
)
def justified_days(span: Span) -> Span:
    """Returns the interval with months in the place of each 30 days, and one sign for both."""
    months, days, clock = span
    return checked(*_carried(months, days, _MONTH_DAYS), clock)


@function(
    "justify_interval",
    (Kind.INTERVAL,),
    Kind.INTERVAL,
    sql="justify_interval",
    says="An interval with both, and one sign.",
    example="justify_interval(interval '1 mon -1 hour')",
    gives="29 days 23:00:00",
    fallible=True,
)
def justified(span: Span) -> Span:
    """Returns the interval with days for hours, months for days, and one sign.

    Example:
        >>> justified((1, 0, -3_600_000_000))
        (0, 29, 82800000000)
    """
    months, days, clock = span
    whole, clock = _split(clock, DAY)
    days += whole
    whole, days = _split(days, _MONTH_DAYS)
    months += whole
    if months > 0 and (days < 0 or (days == 0 and clock < 0)):
        days, months = days + _MONTH_DAYS, months - 1
    elif months < 0 and (days > 0 or (days == 0 and clock > 0)):
        days, months = days - _MONTH_DAYS, months + 1
    days, clock = _one_sign(days, clock, DAY)
    return checked(months, days, clock)


def _split(value: int, unit: int) -> tuple[int, int]:
    """Returns quotient and remainder, both with the sign of `value`."""
    whole = abs(value) // unit * (1 if value >= 0 else -1)
    return whole, value - whole * unit


def _carried(great: int, small: int, unit: int) -> tuple[int, int]:
    """Returns both with one sign, each `unit` of the small ones carried over as one of the great."""
    whole, small = _split(small, unit)
    return _one_sign(great + whole, small, unit)


def _one_sign(great: int, small: int, unit: int) -> tuple[int, int]:
    """Returns both with one sign, `unit` of the small ones being one of the great."""
    if great > 0 > small:
        return great - 1, small + unit
    if great < 0 < small:
        return great + 1, small - unit
    return great, small


@function(
    "make_interval",
    (Kind.INT4, Kind.INT4, Kind.INT4, Kind.INT4, Kind.INT4, Kind.INT4, Kind.FLOAT8),
    Kind.INTERVAL,
    sql="make_interval",
    says="The interval of years, months, weeks, days, hours, minutes and seconds, each by its name.",
    example="make_interval(days => 10)",
    gives="10 days",
    fallible=True,
)
def made(years: int, months: int, weeks: int, days: int, hours: int, minutes: int, seconds: float) -> Span:
    """Returns the interval of its parts.

    Example:
        >>> made(1, 2, 1, 0, 0, 0, 1.5)
        (14, 7, 1500000)
    """
    if not math.isfinite(seconds):
        raise SqlFailure("22008", "interval out of range")
    return checked(years * 12 + months, weeks * 7 + days, hours * HOUR + minutes * MINUTE + round(seconds * SECOND))


@pure("cast_time_to_interval")
def _of_time(clock: int) -> Span:
    return 0, 0, clock


@pure("cast_interval_to_time")
def _clock_of(span: Span) -> int:
    return span[2] % DAY


@function("isfinite_interval", (Kind.INTERVAL,), Kind.BOOL, sql="isfinite")
def _is_finite(span: Span) -> bool:
    return True


def parts_of(span: Span) -> dict[str, int]:
    """Returns the fields of an interval, each with its sign."""
    years, months = _split(span[0], 12)
    hours, rest = _split(span[2], HOUR)
    minutes, microseconds = _split(rest, MINUTE)
    return {
        "year": years, "month": months, "day": span[1], "hour": hours, "minute": minutes,
        "microseconds": microseconds,
    }  # fmt: skip


def epoch_microseconds(span: Span) -> int:
    """Returns the length in microseconds where a year has 365.25 days, a month of it 30."""
    years, months = _split(span[0], 12)
    quarters = (1461 * years + _QUARTERS * _MONTH_DAYS * months + _QUARTERS * span[1]) * (_DAY_SECONDS // _QUARTERS)
    return quarters * SECOND + span[2]
