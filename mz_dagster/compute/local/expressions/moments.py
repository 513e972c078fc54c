"""Kernels of dates and timestamps: sums with days and intervals, differences, fields, beginnings of units.

NumPy's calendar is the proleptic Gregorian one, as PostgreSQL's. What leaves the years 1 to 9999, on the way or in the
end, is doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mz_dagster.compute.local.expressions import decimals
from mz_dagster.compute.local.expressions.numbers import Integers, either, integers, product
from mz_dagster.compute.local.expressions.registry import Computed, Mask, Operand, are_constant, strict
from mz_dagster.functions.moments.calendar import DAY, FIRST_DAY, HOUR, LAST_DAY, MINUTE, SECOND
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.arrow_schema import arrow_type

_MOMENTS = ("timestamp", "timestamptz")
_FIRST, _END = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY
_CLOCK = {"microseconds": 1, "milliseconds": 1000, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
_YEARS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
#: Microseconds of an interval that added to any timestamp do not leave 64 bits.
_MOST_REST = 2**62
_DATE_FIELDS = ("quarter", "month", "day", "dow", "isodow", "doy", *_YEARS)


def _dates(found: Integers, *doubtful: Mask | None) -> Computed:
    doubtful = (*doubtful, (found < FIRST_DAY) | (found > LAST_DAY))
    return Computed(pa.array(found.astype(np.int32)).cast(pa.date32()), either(*doubtful))


def _moments(found: Integers, type_: ScalarType, *doubtful: Mask | None) -> Computed:
    return Computed(pa.array(found).cast(arrow_type(type_)), either(*doubtful, (found < _FIRST) | (found >= _END)))


# ---- days


@strict("add_date_int4", "add_int4_date")
def _later_day(_: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(integers, operands)
    return _dates(left + right)


@strict("subtract_date_int4")
def _earlier_day(_: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(integers, operands)
    return _dates(left - right)


@strict("subtract_date_date")
def _days_between(_: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(integers, operands)
    return Computed(pa.array((left - right).astype(np.int32)))


@strict(*(f"cast_date_to_{kind}" for kind in _MOMENTS))
def _midnight(call: Call, operands: Sequence[Operand]) -> Computed:
    return _moments(integers(operands[0]) * DAY, call.type)


@strict(*(f"cast_{kind}_to_date" for kind in _MOMENTS))
def _day_of(_: Call, operands: Sequence[Operand]) -> Computed:
    return _dates(integers(operands[0]) // DAY)


@strict("cast_timestamp_to_timestamptz", "cast_timestamptz_to_timestamp")
def _same_moment(call: Call, operands: Sequence[Operand]) -> Computed:
    return _moments(integers(operands[0]), call.type)


@strict(*(f"cast_{kind}_to_mz_timestamp" for kind in _MOMENTS))
def _milliseconds(_: Call, operands: Sequence[Operand]) -> Computed:
    found = integers(operands[0]) // 1000
    return Computed(pa.array(found), found < 0)


@strict("cast_date_to_mz_timestamp")
def _milliseconds_of_day(_: Call, operands: Sequence[Operand]) -> Computed:
    found = integers(operands[0]) * (DAY // 1000)
    return Computed(pa.array(found), found < 0)


@strict(*(f"cast_mz_timestamp_to_{kind}" for kind in _MOMENTS))
def _moment_of(call: Call, operands: Sequence[Operand]) -> Computed:
    found, doubtful = product(integers(operands[0]), np.array([1000]))
    return _moments(found, call.type, doubtful, found < 0)


# ---- intervals


@strict(
    *(f"{name}_{kind}_interval" for name in ("add", "subtract") for kind in ("date", *_MOMENTS)),
    *(f"add_interval_{kind}" for kind in ("date", *_MOMENTS)),
)
def _later(call: Call, operands: Sequence[Operand]) -> Computed | None:
    """Returns moments later by one interval: by its months first, then by its days, then by the rest."""
    moments, span = reversed(operands) if call.function.startswith("add_interval") else operands
    if not are_constant([span]):
        return None
    parts = span.as_py()
    sign = -1 if call.function.startswith("subtract") else 1
    months, days, rest = (sign * parts[name] for name in ("months", "days", "microseconds"))
    if abs(rest) > _MOST_REST:
        return None
    moment = integers(moments) * (DAY if "date" in call.function.split("_") else 1)
    day, clock = moment // DAY, moment % DAY
    doubtful: Mask | None = None
    if months:
        month = day.astype("M8[D]").astype("M8[M]")
        day_of_month = day - month.astype("M8[D]").astype(np.int64)
        month = month + np.timedelta64(months, "M")
        first, after = (one.astype("M8[D]").astype(np.int64) for one in (month, month + np.timedelta64(1, "M")))
        day = first + np.minimum(day_of_month, after - first - 1)
        doubtful = (day < FIRST_DAY) | (day > LAST_DAY)
    day = day + days
    doubtful = either(doubtful, (day < FIRST_DAY) | (day > LAST_DAY))
    day = np.where(doubtful, 0, day) if doubtful is not None else day
    return _moments(day * DAY + clock + rest, call.type, doubtful)


# ---- fields


@strict(*(f"extract_{field}_{kind}" for field in _DATE_FIELDS for kind in ("date", *_MOMENTS)))
def _date_field(call: Call, operands: Sequence[Operand]) -> Computed:
    _, field, kind = call.function.split("_")
    days = integers(operands[0]) // (1 if kind == "date" else DAY)
    return decimals.of_type(_field(field, days), call.type)


def _field(field: str, days: Integers) -> Integers:
    dates = days.astype("M8[D]")
    if field == "dow":
        return (days + 4) % 7
    if field == "isodow":
        return (days + 3) % 7 + 1
    if field == "day":
        return days - dates.astype("M8[M]").astype("M8[D]").astype(np.int64) + 1
    if field == "doy":
        return days - dates.astype("M8[Y]").astype("M8[D]").astype(np.int64) + 1
    if field in ("month", "quarter"):
        month = dates.astype("M8[M]").astype(np.int64) % 12
        return month + 1 if field == "month" else month // 3 + 1
    year = _years(days)
    if field in ("century", "millennium"):
        return (year + _YEARS[field] - 1) // _YEARS[field]
    return year // _YEARS[field]


def _years(days: Integers) -> Integers:
    return days.astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970


@strict("extract_epoch_date")
def _epoch_of_day(call: Call, operands: Sequence[Operand]) -> Computed:
    return decimals.of_type(integers(operands[0]) * 86_400, call.type)


@strict(*(f"extract_{field}_{kind}" for field in ("hour", "minute", "microseconds") for kind in _MOMENTS))
def _clock_field(call: Call, operands: Sequence[Operand]) -> Computed | None:
    if call.type.scale:
        return None
    clock = integers(operands[0]) % DAY
    match call.function.split("_")[1]:
        case "hour":
            return decimals.of_type(clock // HOUR, call.type)
        case "minute":
            return decimals.of_type(clock // MINUTE % 60, call.type)
        case _:
            return decimals.of_type(clock % MINUTE, call.type)


@strict(*(f"extract_{field}_{kind}" for field in ("second", "epoch") for kind in _MOMENTS))
def _seconds(call: Call, operands: Sequence[Operand]) -> Computed | None:
    if call.type.scale != 6:
        return None
    moment = integers(operands[0])
    return decimals.of_type(moment if "epoch" in call.function else moment % MINUTE, call.type)


@strict(*(f"date_trunc_{unit}_{kind}" for unit in (*_CLOCK, "week", "month", "quarter", *_YEARS) for kind in _MOMENTS))
def _truncated(call: Call, operands: Sequence[Operand]) -> Computed:
    unit = call.function.split("_")[2]
    moment = integers(operands[0])
    if unit in _CLOCK:
        return _moments(moment - moment % _CLOCK[unit], call.type)
    day = moment // DAY
    if unit == "week":
        day = day - (day + 3) % 7
    elif unit in ("month", "quarter"):
        month = day.astype("M8[D]").astype("M8[M]").astype(np.int64)
        day = (month - month % (1 if unit == "month" else 3)).astype("M8[M]").astype("M8[D]").astype(np.int64)
    else:
        year, size = _years(day), _YEARS[unit]
        year = year - (year % size if size <= 10 else (year - 1) % size)
        day = (year - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int64)
    return _moments(day * DAY, call.type)
