"""Dates and timestamps: fields, truncation, and the casts among them.

Exactness: all reckoning is in integer days and microseconds since 1970-01-01, in UTC. A TIMESTAMP_NTZ is read as the
TIMESTAMP of the same clock reading, which in a session in UTC changes no bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, decimal, failing, number, strict, try_cast
from mz_dagster.functions.errors import MZ_TIMESTAMP_OUT_OF_RANGE, STEP_OVERFLOW, TIMESTAMP_OUT_OF_RANGE
from mz_dagster.functions.moments.calendar import FIRST_DAY, LAST_DAY
from mz_dagster.functions.moments.field_names import EXTRACT_FIELDS, TRUNC_UNITS
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

MICROS_OF_DAY = 86_400_000_000
FIRST_MICRO, LAST_MICRO = FIRST_DAY * MICROS_OF_DAY, (LAST_DAY + 1) * MICROS_OF_DAY - 1


def micros_of(value: Column, type_: ScalarType) -> Column:
    """Returns the microseconds since 1970-01-01 of a date or timestamp."""
    if type_.kind is Kind.DATE:
        return sf.unix_date(value).cast("bigint") * MICROS_OF_DAY
    return sf.unix_micros(value.cast("timestamp"))


def moment_of(micros: Column, kind: Kind) -> Column:
    """Returns the timestamp of either kind; NULL beyond the years 1 to 9999."""
    inside = sf.when((micros >= FIRST_MICRO) & (micros <= LAST_MICRO), micros)
    moment = sf.timestamp_micros(inside)
    return moment if kind is Kind.TIMESTAMPTZ else moment.cast("timestamp_ntz")


def _days(value: Column) -> Column:
    return value.cast("date")


def _floor_div(value: Column, divisor: int) -> Column:
    """Returns the integer quotient rounded down; exact, unlike a division through doubles."""
    divisor_ = sf.lit(divisor).cast("bigint")
    return sf.call_function("div", value - sf.pmod(value, divisor_), divisor_)


@strict(
    *(
        f"extract_{field}_{name}"
        for field in EXTRACT_FIELDS
        for name in ("date", "timestamp", "timestamptz")
        if Kind(name) in EXTRACT_FIELDS[field][0]
    )
)
def _extract(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    field = invocation.function.removeprefix("extract_").rpartition("_")[0]
    type_ = invocation.scalars[0].type
    year = sf.year(value).cast("bigint")
    micros = micros_of(value, type_)
    scale = invocation.type.scale
    match field:
        case "millennium":
            found = _floor_div(year + 999, 1000)
        case "century":
            found = _floor_div(year + 99, 100)
        case "decade":
            found = _floor_div(year, 10)
        case "year":
            found = year
        case "isoyear":
            # The year of the week's Thursday.
            found = sf.year(sf.date_add(_days(value), 3 - sf.weekday(_days(value))))
        case "quarter":
            found = sf.quarter(value)
        case "month":
            found = sf.month(value)
        case "week":
            found = sf.weekofyear(_days(value))
        case "day":
            found = sf.dayofmonth(value)
        case "dow":
            found = sf.dayofweek(_days(value)) - 1
        case "isodow":
            found = sf.weekday(_days(value)) + 1
        case "doy":
            found = sf.dayofyear(value)
        case "hour":
            found = _floor_div(sf.pmod(micros, number(MICROS_OF_DAY, "bigint")), 3_600_000_000)
        case "minute":
            found = _floor_div(sf.pmod(micros, number(3_600_000_000, "bigint")), 60_000_000)
        case "second" | "milliseconds" | "microseconds":
            found = sf.pmod(micros, number(60_000_000, "bigint"))
        case "epoch":
            found = micros if scale else sf.unix_date(value).cast("bigint") * 86_400
        case _:  # the zone is UTC
            found = sf.when(value.isNotNull(), sf.lit(0))
    if scale and field in ("second", "milliseconds", "epoch"):
        unit = sf.lit(f"1e-{scale}").cast(f"decimal(38,{scale})")
        found = sf.try_multiply(found.cast("decimal(38,0)"), unit)
    return try_cast(found, f"decimal(38,{scale})"), None


@strict(
    *(f"date_trunc_{unit}_{name}" for unit in TRUNC_UNITS for name in ("timestamp", "timestamptz")),
    heavy=True,
)
def _truncate(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    type_ = invocation.scalars[0].type
    unit = invocation.function.removeprefix("date_trunc_").rpartition("_")[0]
    steps = {
        "microseconds": 1,
        "milliseconds": 1000,
        "second": 1_000_000,
        "minute": 60_000_000,
        "hour": 3_600_000_000,
        "day": MICROS_OF_DAY,
    }
    micros = micros_of(value, type_)
    if unit in steps:
        start = micros - sf.pmod(micros, number(steps[unit], "bigint"))
    elif unit == "week":
        start = _start_of(sf.date_sub(_days(value), sf.weekday(_days(value))))
    else:
        year, month = sf.year(value), sf.month(value)
        match unit:
            case "month":
                first, number_ = year, month
            case "quarter":
                first, number_ = year, month - sf.pmod(month - 1, sf.lit(3))
            case "year":
                first, number_ = year, sf.lit(1)
            case "decade":
                first, number_ = year - sf.pmod(year, sf.lit(10)), sf.lit(1)
            case "century":
                first, number_ = year - sf.pmod(year - 1, sf.lit(100)), sf.lit(1)
            case _:
                first, number_ = year - sf.pmod(year - 1, sf.lit(1000)), sf.lit(1)
        start = _start_of(date_of(first, number_, sf.lit(1)))
    return failing(moment_of(start, type_.kind), [value], TIMESTAMP_OUT_OF_RANGE)


def _start_of(day: Column) -> Column:
    return sf.unix_date(day).cast("bigint") * MICROS_OF_DAY


def date_of(year: Column, month: Column, day: Column) -> Column:
    """Returns the date of three integers; NULL if there is none, or it is before year 1 or after 9999."""
    text = sf.concat_ws(
        "-",
        sf.lpad(year.cast("string"), 4, "0"),
        sf.lpad(month.cast("string"), 2, "0"),
        sf.lpad(day.cast("string"), 2, "0"),
    )
    inside = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return try_cast(sf.when(inside, text), "date")


@strict("cast_date_to_timestamp", "cast_timestamptz_to_timestamp")
def _to_timestamp(invocation: Invocation) -> Outcome:
    return invocation.values[0].cast("timestamp_ntz"), None


@strict("cast_date_to_timestamptz", "cast_timestamp_to_timestamptz")
def _to_timestamptz(invocation: Invocation) -> Outcome:
    return invocation.values[0].cast("timestamp"), None


@strict("cast_timestamp_to_date", "cast_timestamptz_to_date")
def _to_date(invocation: Invocation) -> Outcome:
    return _days(invocation.values[0]), None


@strict("cast_int4_to_mz_timestamp", "cast_int8_to_mz_timestamp")
def _integer_to_mz_timestamp(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    long = value.cast("bigint")
    return failing(sf.when(long >= 0, long), [value], MZ_TIMESTAMP_OUT_OF_RANGE)


@strict("cast_numeric_to_mz_timestamp", heavy=True)
def _numeric_to_mz_timestamp(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    zero = decimal("0", invocation.scalars[0].type.scale)
    whole = sf.when((value >= zero) & (sf.floor(value) == sf.ceil(value)), sf.floor(value))
    return failing(try_cast(whole, "bigint"), [value], MZ_TIMESTAMP_OUT_OF_RANGE)


@strict("cast_date_to_mz_timestamp", "cast_timestamp_to_mz_timestamp", "cast_timestamptz_to_mz_timestamp", heavy=True)
def _moment_to_mz_timestamp(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    millis = _floor_div(micros_of(value, invocation.scalars[0].type), 1000)
    return failing(sf.when(millis >= 0, millis), [value], MZ_TIMESTAMP_OUT_OF_RANGE)


@strict("step_mz_timestamp")
def _step(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return failing(sf.when(value < 2**63 - 1, value + 1), [value], STEP_OVERFLOW)


@strict("cast_mz_timestamp_to_timestamp", "cast_mz_timestamp_to_timestamptz", heavy=True)
def _mz_timestamp_to_moment(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    inside = sf.when(value <= LAST_MICRO // 1000, value)
    return failing(moment_of(inside * 1000, invocation.type.kind), [value], TIMESTAMP_OUT_OF_RANGE)
