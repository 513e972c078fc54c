"""Intervals and times, as far as Spark computes them exactly itself; the rest is Python's (`pure.py`).

Exactness: an interval is a struct of three integers, a time a number of microseconds, so all is integer arithmetic.
Intervals compare by their lengths, whose 128 bits are kept apart as days and the microseconds of a day. Sums of
timestamps with intervals go by days first, within PostgreSQL's own range, then by microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.comparison import compare
from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, call, failing, number, strict, try_cast
from mz_dagster.compute.spark.expressions.moment import MICROS_OF_DAY, micros_of, moment_of
from mz_dagster.functions.errors import TIMESTAMP_OUT_OF_RANGE
from mz_dagster.functions.moments.calendar import EARLIEST_DAY, END_DAY
from mz_dagster.functions.moments.field_names import TIME_FIELDS
from mz_dagster.scalars.scalar import Literal, Scalar
from mz_dagster.scalars.types import INTERVAL, Kind
from mz_dagster.scalars.values import Interval
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")
_MOMENTS = ("date", "timestamp", "timestamptz")
_MONTH_DAYS = 30
#: More months than lie between PostgreSQL's first and last year.
_MANY_MONTHS = 12 * 310_000
_CLOCK_UNITS = {"hour": 3_600_000_000, "minute": 60_000_000}


def _parts(value: Column, scalar: Scalar) -> tuple[Column, Column, Column]:
    """Returns months, days and microseconds; those of a literal as literals."""
    if isinstance(scalar, Literal) and isinstance(scalar.value, Interval):
        months, days, micros = scalar.value
        return number(months, "int"), number(days, "bigint"), number(micros, "bigint")
    return value.getField("months"), value.getField("days").cast("bigint"), value.getField("microseconds")


def _interval(months: Column, days: Column, micros: Column) -> Column:
    """Returns the interval of three numbers that fit; NULL where one of them is."""
    parts = {"months": months.cast("int"), "days": days.cast("int"), "microseconds": micros.cast("bigint")}
    present = months.isNotNull() & days.isNotNull() & micros.isNotNull()
    return sf.when(present, sf.struct(*(part.alias(name) for name, part in parts.items())).cast(spark_type(INTERVAL)))


def lengths_of(value: Column) -> tuple[Column, Column]:
    """Returns the days and the microseconds of a day by which intervals compare."""
    months, days = value.getField("months").cast("bigint"), value.getField("days").cast("bigint")
    micros = value.getField("microseconds")
    clock = sf.pmod(micros, number(MICROS_OF_DAY, "bigint"))
    whole = call("div", micros, number(MICROS_OF_DAY, "bigint"))
    # Rounded down: `micros - clock` could overflow.
    floor = sf.when((micros < 0) & (clock != 0), whole - 1).otherwise(whole)
    return months * _MONTH_DAYS + days + floor, clock


@strict(*(f"{name}_interval" for name in _NAMES), heavy=True)
def _compare(invocation: Invocation) -> Outcome:
    name = invocation.function[:2]
    (days, clock), (other_days, other_clock) = (lengths_of(value) for value in invocation.values)
    if name in ("eq", "ne"):
        same = (days == other_days) & (clock == other_clock)
        return same if name == "eq" else ~same, None
    by_clock = compare(name, clock, other_clock)
    return sf.when(days == other_days, by_clock).otherwise(compare(name, days, other_days)), None


@strict(*(f"{name}_{kind}" for name in _NAMES for kind in ("time", "timetz")))
def _compare_times(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    return compare(invocation.function[:2], left, right), None


@strict(
    *(f"{name}_{moment}_interval" for name in ("add", "subtract") for moment in _MOMENTS),
    *(f"add_interval_{moment}" for moment in _MOMENTS),
    heavy=True,
)
def _later(invocation: Invocation) -> Outcome:
    at = 1 if invocation.function.startswith("add_interval") else 0
    moment, span = invocation.values[at], invocation.values[1 - at]
    type_, scalar = invocation.scalars[at].type, invocation.scalars[1 - at]
    sign = -1 if invocation.function.startswith("subtract") else 1
    months, days, micros = _parts(span, scalar)
    constant = scalar.value if isinstance(scalar, Literal) and isinstance(scalar.value, Interval) else None
    day = moment.cast("date")
    if constant is None or constant.months:
        inside = sf.when((months >= -_MANY_MONTHS) & (months <= _MANY_MONTHS), months * sign)
        day = sf.add_months(day, inside)
    number_of_day = _passable(sf.unix_date(day).cast("bigint"))
    if constant is None or constant.days:
        number_of_day = _passable(number_of_day + days * sign)
    (start,) = invocation.share(number_of_day * MICROS_OF_DAY)
    if type_.kind is not Kind.DATE:
        start = start + sf.pmod(micros_of(moment, type_), number(MICROS_OF_DAY, "bigint"))
    if constant is None or constant.microseconds:
        start = sf.try_add(start, micros) if sign == 1 else sf.try_subtract(start, micros)
    return failing(moment_of(start, invocation.type.kind), invocation.values, TIMESTAMP_OUT_OF_RANGE)


def _passable(day: Column) -> Column:
    """Returns a day if it is of PostgreSQL's range, else NULL."""
    return sf.when((day >= EARLIEST_DAY) & (day < END_DAY), day)


@strict("subtract_timestamp_timestamp", "subtract_timestamptz_timestamptz")
def _between(invocation: Invocation) -> Outcome:
    end, start = (micros_of(v, s.type) for v, s in zip(invocation.values, invocation.scalars, strict=True))
    (size,) = invocation.share(end - start)
    day = number(MICROS_OF_DAY, "bigint")
    return _interval(sf.lit(0), call("div", size, day), size % day), None


@strict("subtract_time_time")
def _between_times(invocation: Invocation) -> Outcome:
    end, start = invocation.values
    return _clock_interval(end - start), None


@strict("cast_time_to_interval")
def _time_to_interval(invocation: Invocation) -> Outcome:
    return _clock_interval(invocation.values[0]), None


def _clock_interval(micros: Column) -> Column:
    return _interval(sf.lit(0), sf.lit(0), micros)


@strict("add_date_time", "add_time_date")
def _date_at_time(invocation: Invocation) -> Outcome:
    day, clock = invocation.values if invocation.function == "add_date_time" else invocation.values[::-1]
    return moment_of(sf.unix_date(day).cast("bigint") * MICROS_OF_DAY + clock, Kind.TIMESTAMP), None


@strict("cast_timestamp_to_time", "cast_timestamptz_to_time")
def _time_of(invocation: Invocation) -> Outcome:
    micros = micros_of(invocation.values[0], invocation.scalars[0].type)
    return sf.pmod(micros, number(MICROS_OF_DAY, "bigint")), None


@strict("cast_interval_to_time")
def _interval_to_time(invocation: Invocation) -> Outcome:
    return sf.pmod(invocation.values[0].getField("microseconds"), number(MICROS_OF_DAY, "bigint")), None


@strict("comparable_interval", heavy=True)
def _comparable(invocation: Invocation) -> Outcome:
    days, clock = lengths_of(invocation.values[0])
    (days,) = invocation.share(days)
    low, high = -(2**31), 2**31 - 1
    months = call("div", days - sf.pmod(days, number(_MONTH_DAYS, "bigint")), number(_MONTH_DAYS, "bigint"))
    months = sf.greatest(number(low, "bigint"), sf.least(months, number(high, "bigint")))
    (rest,) = invocation.share(days - months * _MONTH_DAYS)
    kept = sf.greatest(number(low, "bigint"), sf.least(rest, number(high, "bigint")))
    return sf.when(
        invocation.values[0].isNotNull(), _interval(months, kept, clock + (rest - kept) * MICROS_OF_DAY)
    ), None


@strict("months_interval", "days_interval", "microseconds_interval")
def _part(invocation: Invocation) -> Outcome:
    name = invocation.function.removesuffix("_interval")
    return invocation.values[0].getField(name).cast("bigint"), None


@strict(*(f"extract_{field}_{kind}" for field in TIME_FIELDS for kind in ("time", "interval") if field != "epoch"))
def _clock_field(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    field, _, kind = invocation.function.removeprefix("extract_").rpartition("_")
    micros = value if kind == "time" else value.getField("microseconds")
    scale = invocation.type.scale
    if field in _CLOCK_UNITS:
        within = micros % number(3_600_000_000, "bigint") if field == "minute" else micros
        return call("div", within, number(_CLOCK_UNITS[field], "bigint")).cast("decimal(38,0)"), None
    rest = micros % number(60_000_000, "bigint")
    return _scaled(rest, scale), None


@strict("extract_epoch_time", "extract_epoch_interval")
def _epoch(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    if invocation.function == "extract_epoch_time":
        return _scaled(value, 6), None
    months, days = value.getField("months").cast("bigint"), value.getField("days").cast("bigint")
    twelve, four = number(12, "bigint"), 4
    quarters = 365 * four * call("div", months, twelve) + call("div", months, twelve)
    seconds = (quarters + four * _MONTH_DAYS * (months % twelve) + four * days) * (86_400 // four)
    micros = seconds.cast("decimal(20,0)") * sf.lit("1000000").cast("decimal(7,0)")
    return _scaled(micros.cast("decimal(38,0)") + value.getField("microseconds").cast("decimal(20,0)"), 6), None


def _scaled(micros: Column, scale: int) -> Column:
    """Returns a number of units of `10^-scale` as a numeric of that scale."""
    unit = sf.lit(f"1e-{scale}").cast(f"decimal(38,{scale})")
    whole = try_cast(micros, "decimal(38,0)")
    return try_cast(whole if not scale else sf.try_multiply(whole, unit), f"decimal(38,{scale})")
