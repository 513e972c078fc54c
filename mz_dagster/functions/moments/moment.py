"""Dates, times and timestamps: sums with intervals, differences, fields, and the makers.

A date is days, a time microseconds since midnight, a timestamp microseconds, since 1970-01-01. What PostgreSQL reckons
in integers is reckoned so here, and where it takes doubles (`date_part`, seconds of the makers), in the same order.
Narrower than PostgreSQL: years 1 to 9999, times before 24:00:00. What is infinite goes by the rules of `infinite.py`.
"""

from __future__ import annotations

import math

from mz_dagster.functions.errors import DATE_OUT_OF_RANGE, failure
from mz_dagster.functions.moments.calendar import (
    AFTER,
    BEFORE,
    DAY,
    FIRST_DAY,
    HOUR,
    LAST_DAY,
    MILLENNIUM_DAY,
    MINUTE,
    SECOND,
    checked_moment,
    civil_of,
    days_in,
    days_of,
    later,
)
from mz_dagster.functions.moments.interval_text import Span, clock_text
from mz_dagster.functions.registry import SqlFailure, function, pure, refuse
from mz_dagster.scalars.types import Kind


@function("add_date_int4", (Kind.DATE, Kind.INT4), Kind.DATE, sql="+", fallible=True)
def add_days(day: int, days: int) -> int:
    """Returns the date that comes so many days after another."""
    found = day + days
    if not FIRST_DAY <= found <= LAST_DAY:
        raise failure(DATE_OUT_OF_RANGE)
    return found


@function("add_int4_date", (Kind.INT4, Kind.DATE), Kind.DATE, sql="+", fallible=True)
def add_to_days(days: int, day: int) -> int:
    """Returns the date that comes so many days after another."""
    return add_days(day, days)


@function("subtract_date_int4", (Kind.DATE, Kind.INT4), Kind.DATE, sql="-", fallible=True)
def subtract_days(day: int, days: int) -> int:
    """Returns the date that comes so many days before another."""
    return add_days(day, -days)


@function("subtract_date_date", (Kind.DATE, Kind.DATE), Kind.INT4, sql="-", fallible=True)
def days_between(later: int, earlier: int) -> int:
    """Returns the days from one date to another."""
    return later - earlier


@function("add_timestamp_interval", (Kind.TIMESTAMP, Kind.INTERVAL), Kind.TIMESTAMP, sql="+", fallible=True)
@function("add_timestamptz_interval", (Kind.TIMESTAMPTZ, Kind.INTERVAL), Kind.TIMESTAMPTZ, sql="+", fallible=True)
def moment_later(moment: int, span: Span) -> int:
    """Returns a timestamp plus an interval: months first, then days, then microseconds.

    Example:
        >>> moment_later(30 * DAY, (1, 0, 0)) == (31 + 27) * DAY
        True
    """
    return later(moment, *span)


@function("add_interval_timestamp", (Kind.INTERVAL, Kind.TIMESTAMP), Kind.TIMESTAMP, sql="+", fallible=True)
@function("add_interval_timestamptz", (Kind.INTERVAL, Kind.TIMESTAMPTZ), Kind.TIMESTAMPTZ, sql="+", fallible=True)
def _moment_later(span: Span, moment: int) -> int:
    return later(moment, *span)


@function("subtract_timestamp_interval", (Kind.TIMESTAMP, Kind.INTERVAL), Kind.TIMESTAMP, sql="-", fallible=True)
@function("subtract_timestamptz_interval", (Kind.TIMESTAMPTZ, Kind.INTERVAL), Kind.TIMESTAMPTZ, sql="-", fallible=True)
def moment_earlier(moment: int, span: Span) -> int:
    """Returns a timestamp minus an interval."""
    return later(moment, -span[0], -span[1], -span[2])


@function("add_date_interval", (Kind.DATE, Kind.INTERVAL), Kind.TIMESTAMP, sql="+", fallible=True)
def _day_later(day: int, span: Span) -> int:
    return later(day * DAY, *span)


@function("add_interval_date", (Kind.INTERVAL, Kind.DATE), Kind.TIMESTAMP, sql="+", fallible=True)
def _day_later_too(span: Span, day: int) -> int:
    return later(day * DAY, *span)


@function("subtract_date_interval", (Kind.DATE, Kind.INTERVAL), Kind.TIMESTAMP, sql="-", fallible=True)
def _day_earlier(day: int, span: Span) -> int:
    return moment_earlier(day * DAY, span)


@function("add_date_time", (Kind.DATE, Kind.TIME), Kind.TIMESTAMP, sql="+")
def _at_time(day: int, clock: int) -> int:
    return day * DAY + clock


@function("add_time_date", (Kind.TIME, Kind.DATE), Kind.TIMESTAMP, sql="+")
def _at_time_too(clock: int, day: int) -> int:
    return day * DAY + clock


@function("add_time_interval", (Kind.TIME, Kind.INTERVAL), Kind.TIME, sql="+")
def _clock_later(clock: int, span: Span) -> int:
    return (clock + span[2]) % DAY


@function("add_interval_time", (Kind.INTERVAL, Kind.TIME), Kind.TIME, sql="+")
def _clock_later_too(span: Span, clock: int) -> int:
    return (clock + span[2]) % DAY


@function("subtract_time_interval", (Kind.TIME, Kind.INTERVAL), Kind.TIME, sql="-")
def _clock_earlier(clock: int, span: Span) -> int:
    return (clock - span[2]) % DAY


@function("subtract_time_time", (Kind.TIME, Kind.TIME), Kind.INTERVAL, sql="-")
def _between_times(end: int, start: int) -> Span:
    return 0, 0, end - start


@function("subtract_timestamp_timestamp", (Kind.TIMESTAMP, Kind.TIMESTAMP), Kind.INTERVAL, sql="-", fallible=True)
@function(
    "subtract_timestamptz_timestamptz", (Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ), Kind.INTERVAL, sql="-", fallible=True
)
def between(end: int, start: int) -> Span:
    """Returns the days and the time between two timestamps, with one sign.

    Example:
        >>> between(0, DAY + 1)
        (0, -1, -1)
    """
    size = abs(end - start)
    sign = 1 if end >= start else -1
    return 0, sign * (size // DAY), sign * (size % DAY)


for _kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
    refuse("age", (_kind,), "it counts from the day of the statement, of which a definition knows nothing")


@function(
    "age_timestamp_timestamp",
    (Kind.TIMESTAMP, Kind.TIMESTAMP),
    Kind.INTERVAL,
    sql="age",
    says="What lies between two moments, in years, months, days and a time.",
    example="age(timestamp '2001-04-10', timestamp '1957-06-13')",
    gives="43 years 9 mons 27 days",
    fallible=True,
)
@function("age_timestamptz_timestamptz", (Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ), Kind.INTERVAL, sql="age", fallible=True)
def age(end: int, start: int) -> Span:
    """Returns the symbolic difference of two timestamps: months, days and the time between their readings.

    Example:
        >>> age(days_of(2020, 3, 1) * DAY, days_of(2020, 1, 31) * DAY)
        (1, 1, 0)
    """
    if end < start:
        months, days, clock = age(start, end)
        return -months, -days, -clock
    (end_day, end_clock), (start_day, start_clock) = divmod(end, DAY), divmod(start, DAY)
    (year, month, day), (start_year, start_month, start_of_month) = civil_of(end_day), civil_of(start_day)
    months = (year - start_year) * 12 + month - start_month
    days = day - start_of_month
    clock = end_clock - start_clock
    if clock < 0:
        clock, days = clock + DAY, days - 1
    lent = days_in(start_year, start_month)
    while days < 0:
        days, months = days + lent, months - 1
    return months, days, clock


@function(
    "date_bin_timestamp",
    (Kind.INTERVAL, Kind.TIMESTAMP, Kind.TIMESTAMP),
    Kind.TIMESTAMP,
    sql="date_bin",
    says="The beginning of the interval, counted from an origin, that a moment is in.",
    example="date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01')",
    gives="2020-02-11 15:30:00",
    fallible=True,
)
@function(
    "date_bin_timestamptz",
    (Kind.INTERVAL, Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ),
    Kind.TIMESTAMPTZ,
    sql="date_bin",
    fallible=True,
)
def binned(stride: Span, moment: int, origin: int) -> int:
    """Returns the start of the bin of a timestamp, bins being `stride` long and one of them starting at `origin`."""
    if not FIRST_DAY * DAY <= origin < AFTER * DAY:
        raise SqlFailure("22008", "origin out of range")
    if stride[0]:
        raise SqlFailure("0A000", "timestamps cannot be binned into intervals containing months or years")
    size = stride[1] * DAY + stride[2]
    if size <= 0:
        raise SqlFailure("22008", "stride must be greater than zero")
    return checked_moment(moment - (moment - origin) % size)


@pure("cast_time_to_text")
def text_of_time(clock: int) -> str:
    """Returns the text of a time."""
    return clock_text(clock)


@pure("cast_date_to_text")
def text_of_date(days: int) -> str:
    """Returns the text of a date."""
    return "{:04}-{:02}-{:02}".format(*civil_of(days))


@pure("cast_timestamp_to_text")
def text_of_timestamp(moment: int) -> str:
    """Returns the text of a timestamp.

    Example:
        >>> text_of_timestamp(DAY + 1_500_000)
        '1970-01-02 00:00:01.5'
    """
    return f"{text_of_date(moment // DAY)} {clock_text(moment % DAY)}"


@pure("cast_timestamptz_to_text")
def text_of_timestamptz(moment: int) -> str:
    """Returns the text of a timestamp with time zone, which is shown in UTC."""
    return f"{text_of_timestamp(moment)}+00"


@pure("cast_timestamp_to_time", "cast_timestamptz_to_time")
def _clock_of(moment: int) -> int:
    return moment % DAY


@function(
    "make_date",
    (Kind.INT4, Kind.INT4, Kind.INT4),
    Kind.DATE,
    sql="make_date",
    says="The date of a year, month and day.",
    example="make_date(2013, 7, 15)",
    gives="2013-07-15",
    fallible=True,
)
def made_date(year: int, month: int, day: int) -> int:
    """Returns the date of three numbers.

    Example:
        >>> made_date(1970, 1, 2)
        1
    """
    return _checked_day(_day(year, month, day), year, month, day)


@function(
    "make_time",
    (Kind.INT4, Kind.INT4, Kind.FLOAT8),
    Kind.TIME,
    sql="make_time",
    says="The time of an hour, minute and seconds.",
    example="make_time(8, 15, 23.5)",
    gives="08:15:23.5",
    fallible=True,
)
def made_time(hour: int, minute: int, second: float) -> int:
    """Returns the time of three numbers.

    Example:
        >>> made_time(1, 2, 3.5)
        3723500000
    """
    clock = _clock(hour, minute, second)
    if clock == DAY:
        raise _no_time(hour, minute, second)
    return clock


@function(
    "make_timestamp",
    (Kind.INT4, Kind.INT4, Kind.INT4, Kind.INT4, Kind.INT4, Kind.FLOAT8),
    Kind.TIMESTAMP,
    sql="make_timestamp",
    says="The timestamp of a year, month, day, hour, minute and seconds.",
    example="make_timestamp(2013, 7, 15, 8, 15, 23.5)",
    gives="2013-07-15 08:15:23.5",
    fallible=True,
)
@function(
    "make_timestamptz",
    (Kind.INT4, Kind.INT4, Kind.INT4, Kind.INT4, Kind.INT4, Kind.FLOAT8),
    Kind.TIMESTAMPTZ,
    sql="make_timestamptz",
    says="Likewise with a time zone.",
    example="make_timestamptz(2013, 7, 15, 8, 15, 23.5)",
    gives="2013-07-15 08:15:23.5+00",
    fallible=True,
)
def made_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    """Returns the timestamp of six numbers; 24:00 is the next day's beginning."""
    days = _day(year, month, day)
    clock = _clock(hour, minute, second)
    return checked_moment(_checked_day(days, year, month, day) * DAY + clock)


def _day(year: int, month: int, day: int) -> int:
    if year == 0:
        raise SqlFailure("22008", f"date field value out of range: 0-{month:02}-{day:02}")
    # The year before 1 is -1.
    year += year < 0
    if not 1 <= month <= 12 or not 1 <= day <= days_in(year, month):
        raise SqlFailure("22008", f"date field value out of range: {year}-{month:02}-{day:02}")
    return days_of(year, month, day)


def _checked_day(days: int, year: int, month: int, day: int) -> int:
    if not FIRST_DAY <= days <= LAST_DAY:
        raise SqlFailure("22008", f"date out of range: {year}-{month:02}-{day:02}")
    return days


def _clock(hour: int, minute: int, second: float) -> int:
    """Returns the time of three numbers, 24:00 among them."""
    if math.isfinite(second):
        clock = hour * HOUR + minute * MINUTE + round(second * SECOND)
        if 0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= round(second * SECOND) <= MINUTE and clock <= DAY:
            return clock
    raise _no_time(hour, minute, second)


def _no_time(hour: int, minute: int, second: float) -> SqlFailure:
    shown = "NaN" if math.isnan(second) else f"{second:02g}"
    return SqlFailure("22008", f"time field value out of range: {hour}:{minute:02}:{shown}")


@function(
    "to_timestamp_float8",
    (Kind.FLOAT8,),
    Kind.TIMESTAMPTZ,
    sql="to_timestamp",
    says="The instant that a text spells by a template, or of seconds since 1970.",
    example="to_timestamp('05 Dec 2000', 'DD Mon YYYY')",
    gives="2000-12-05 00:00:00+00",
    fallible=True,
)
def of_epoch(seconds: float) -> int:
    """Returns the timestamptz so many seconds after 1970-01-01, by PostgreSQL's arithmetic in doubles.

    Example:
        >>> of_epoch(1.5)
        1500000
    """
    # PostgreSQL counts from 2000-01-01.
    shift = MILLENNIUM_DAY * 86_400
    if math.isnan(seconds):
        raise SqlFailure("22008", "timestamp cannot be NaN")
    micros = (seconds - shift) * 1_000_000.0
    if math.isinf(seconds):
        return (AFTER if seconds > 0 else BEFORE) * DAY
    if not FIRST_DAY * DAY <= micros + shift * SECOND < (LAST_DAY + 1) * DAY:
        raise SqlFailure("22008", f'timestamp out of range: "{seconds:g}"')
    return checked_moment(round(micros) + shift * SECOND)


@function(
    "isfinite_date",
    (Kind.DATE,),
    Kind.BOOL,
    sql="isfinite",
    says="Whether a moment or interval is finite.",
    example="isfinite(date '2001-02-16')",
    gives="true",
)
@function("isfinite_timestamp", (Kind.TIMESTAMP,), Kind.BOOL, sql="isfinite")
@function("isfinite_timestamptz", (Kind.TIMESTAMPTZ,), Kind.BOOL, sql="isfinite")
def _is_finite(moment: int) -> bool:
    return True


@pure("cast_date_to_timestamp", "cast_date_to_timestamptz")
def _midnight(day: int) -> int:
    return day * DAY


@pure("cast_timestamp_to_date", "cast_timestamptz_to_date")
def _day_of(moment: int) -> int:
    return moment // DAY


@pure("cast_timestamp_to_timestamptz", "cast_timestamptz_to_timestamp")
def _same(moment: int) -> int:
    return moment
