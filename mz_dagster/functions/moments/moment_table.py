"""Intervals and times, and what dates and timestamps have to do with them.

What they return is said in `interval.py` and `moment.py`; the few that Spark computes exactly itself are in
`compute/spark/expressions/interval.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions.function import COMPARISONS, Function, Nullability, Overload
from mz_dagster.scalars.types import Kind

_B, _I4, _F8, _N, _T = Kind.BOOL, Kind.INT4, Kind.FLOAT8, Kind.NUMERIC, Kind.TEXT
_I8, _BYTES = Kind.INT8, Kind.BYTEA
_D, _TM, _TS, _TZ, _IV = Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL
_TMZ = Kind.TIMETZ

#: What only plans call.
INTERNAL = (
    # One interval for all equal ones: what is grouped and ordered by.
    Function("comparable_interval", (_IV,), _IV),
    # An interval as bytes that have its order, and the interval of such bytes.
    Function("ordered_interval", (_IV,), _BYTES),
    Function("restored_interval", (_BYTES,), _IV),
    # The three numbers, and the interval of three sums of them.
    Function("months_interval", (_IV,), _I8),
    Function("days_interval", (_IV,), _I8),
    Function("microseconds_interval", (_IV,), _I8),
    Function("whole_interval", (_I8, _I8, _N), _IV, fallible=True),
    # Conversions in a session whose time zone is not UTC.
    Function("timestamptz_of_text_in_zone", (_T, _T), _TZ, fallible=True),
    Function("text_of_timestamptz_in_zone", (_T, _TZ), _T),
    Function("date_trunc_in_zone", (_T, _I8, _TZ), _TZ, fallible=True),
    Function("add_timestamptz_interval_in_zone", (_T, _TZ, _IV), _TZ, fallible=True),
    Function("timetz_of_timestamptz_in_zone", (_T, _TZ), _TMZ, fallible=True, nullability=Nullability.ALWAYS),
)

#: Fields of times and intervals: name -> scale.
TIME_FIELDS = {"microseconds": 0, "milliseconds": 3, "second": 6, "minute": 0, "hour": 0, "epoch": 6}
TIMETZ_FIELDS = {**TIME_FIELDS, "timezone": 0, "timezone_hour": 0, "timezone_minute": 0}
INTERVAL_FIELDS = {
    **TIME_FIELDS,
    **dict.fromkeys(("day", "month", "quarter", "year", "decade", "century", "millennium"), 0),
}
INTERVAL_UNITS = (
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "month", "quarter", "year", "decade", "century",
    "millennium",
)  # fmt: skip
#: Fields that `date_part` reckons in doubles, and of what.
DATE_PARTS = ("second", "milliseconds", "epoch")
#: What `to_char` shows.
_SHOWN = {"timestamp": _TS, "timestamptz": _TZ, "interval": _IV}
_DATE_PART_KINDS = {"timestamp": _TS, "timestamptz": _TZ, "time": _TM, "timetz": _TMZ, "interval": _IV}

#: (SQL names, implementation, arguments, result, fallible).
_FUNCTIONS: tuple[tuple[tuple[str, ...], str, tuple[Kind, ...], Kind, bool], ...] = (
    (("+",), "add_date_interval", (_D, _IV), _TS, True),
    (("+",), "add_interval_date", (_IV, _D), _TS, True),
    (("-",), "subtract_date_interval", (_D, _IV), _TS, True),
    (("+",), "add_timestamp_interval", (_TS, _IV), _TS, True),
    (("+",), "add_interval_timestamp", (_IV, _TS), _TS, True),
    (("-",), "subtract_timestamp_interval", (_TS, _IV), _TS, True),
    (("+",), "add_timestamptz_interval", (_TZ, _IV), _TZ, True),
    (("+",), "add_interval_timestamptz", (_IV, _TZ), _TZ, True),
    (("-",), "subtract_timestamptz_interval", (_TZ, _IV), _TZ, True),
    (("-",), "subtract_timestamp_timestamp", (_TS, _TS), _IV, True),
    (("-",), "subtract_timestamptz_timestamptz", (_TZ, _TZ), _IV, True),
    (("+",), "add_date_time", (_D, _TM), _TS, False),
    (("+",), "add_time_date", (_TM, _D), _TS, False),
    (("+",), "add_time_interval", (_TM, _IV), _TM, False),
    (("+",), "add_interval_time", (_IV, _TM), _TM, False),
    (("-",), "subtract_time_interval", (_TM, _IV), _TM, False),
    (("-",), "subtract_time_time", (_TM, _TM), _IV, False),
    (("+",), "add_interval", (_IV, _IV), _IV, True),
    (("-",), "subtract_interval", (_IV, _IV), _IV, True),
    (("-",), "negate_interval", (_IV,), _IV, True),
    (("*",), "multiply_interval_float8", (_IV, _F8), _IV, True),
    (("*",), "multiply_float8_interval", (_F8, _IV), _IV, True),
    (("/",), "divide_interval_float8", (_IV, _F8), _IV, True),
    (("justify_hours",), "justify_hours_interval", (_IV,), _IV, True),
    (("justify_days",), "justify_days_interval", (_IV,), _IV, True),
    (("justify_interval",), "justify_interval", (_IV,), _IV, True),
    (("age",), "age_timestamp_timestamp", (_TS, _TS), _IV, True),
    (("age",), "age_timestamptz_timestamptz", (_TZ, _TZ), _IV, True),
    (("date_bin",), "date_bin_timestamp", (_IV, _TS, _TS), _TS, True),
    (("date_bin",), "date_bin_timestamptz", (_IV, _TZ, _TZ), _TZ, True),
    (("make_interval",), "make_interval", (_I4,) * 6 + (_F8,), _IV, True),
    (("make_date",), "make_date", (_I4, _I4, _I4), _D, True),
    (("make_time",), "make_time", (_I4, _I4, _F8), _TM, True),
    (("make_timestamp",), "make_timestamp", (_I4,) * 5 + (_F8,), _TS, True),
    (("make_timestamptz",), "make_timestamptz", (_I4,) * 5 + (_F8,), _TZ, True),
    (("to_timestamp",), "to_timestamp_float8", (_F8,), _TZ, True),
    (("to_timestamp",), "to_timestamp_text_text", (_T, _T), _TZ, True),
    (("to_date",), "to_date_text_text", (_T, _T), _D, True),
    (("timezone",), "timezone_text_timestamp", (_T, _TS), _TZ, True),
    (("timezone",), "timezone_text_timestamptz", (_T, _TZ), _TS, True),
    (("timezone",), "timezone_interval_timestamp", (_IV, _TS), _TZ, True),
    (("timezone",), "timezone_interval_timestamptz", (_IV, _TZ), _TS, True),
    (("isfinite",), "isfinite_date", (_D,), _B, False),
    (("isfinite",), "isfinite_timestamp", (_TS,), _B, False),
    (("isfinite",), "isfinite_timestamptz", (_TZ,), _B, False),
    (("isfinite",), "isfinite_interval", (_IV,), _B, False),
)


def functions() -> Iterator[Function]:
    """Yields the implementations of this area."""
    for name in COMPARISONS.values():
        yield Function(f"{name}_interval", (_IV, _IV), _B)
    for _, name, arguments, result, fallible in _FUNCTIONS:
        yield Function(name, arguments, result, fallible=fallible)
    for short, kind in _SHOWN.items():
        # NULL for an empty template; some patterns are none for an interval.
        yield Function(f"to_char_{short}", (kind, _T), _T, fallible=kind is _IV, nullability=Nullability.ALWAYS)
    for field in TIME_FIELDS:
        yield Function(f"extract_{field}_time", (_TM,), _N)
    for field in TIMETZ_FIELDS:
        yield Function(f"extract_{field}_timetz", (_TMZ,), _N)
    for field in INTERVAL_FIELDS:
        yield Function(f"extract_{field}_interval", (_IV,), _N)
    for unit in INTERVAL_UNITS:
        yield Function(f"date_trunc_{unit}_interval", (_IV,), _IV)
    for field in DATE_PARTS:
        for short, kind in _DATE_PART_KINDS.items():
            # Of an infinite timestamp they are unknown.
            nullable = Nullability.ALWAYS if kind in (_TS, _TZ) and field != "epoch" else Nullability.IF_ANY_ARGUMENT
            yield Function(f"date_part_{field}_{short}", (kind,), _F8, nullability=nullable)


def overloads() -> Iterator[Overload]:
    """Yields the SQL names of this area."""
    for symbol, name in COMPARISONS.items():
        yield Overload(symbol, (_IV, _IV), f"{name}_interval")
    for names, implementation, arguments, _, _ in _FUNCTIONS:
        for name in names:
            yield Overload(name, arguments, implementation)
    for short, kind in _SHOWN.items():
        yield Overload("to_char", (kind, _T), f"to_char_{short}")
    for kind in (_TS, _TZ):
        yield Overload(
            "age", (kind,), "", refused="it counts from the day of the statement, of which a definition knows nothing"
        )
