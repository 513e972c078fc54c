"""The fields of moments, times and intervals, and the units that they are cut off to, by PostgreSQL's names."""

from __future__ import annotations

from mz_dagster.scalars.types import Kind

#: Fields of extract: name -> (kinds it applies to, scale). PostgreSQL refuses the others for the kind.
EXTRACT_FIELDS: dict[str, tuple[tuple[Kind, ...], int]] = {
    **dict.fromkeys(
        (
            "millennium",
            "century",
            "decade",
            "year",
            "isoyear",
            "quarter",
            "month",
            "week",
            "day",
            "dow",
            "isodow",
            "doy",
        ),
        ((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 0),
    ),
    **dict.fromkeys(("hour", "minute", "microseconds"), ((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 0)),
    "second": ((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 6),
    "milliseconds": ((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 3),
    "epoch": ((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), 6),
    "timezone": ((Kind.TIMESTAMPTZ,), 0),
    "timezone_hour": ((Kind.TIMESTAMPTZ,), 0),
    "timezone_minute": ((Kind.TIMESTAMPTZ,), 0),
}

#: Units of date_trunc.
TRUNC_UNITS = (
    "microseconds",
    "milliseconds",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
    "decade",
    "century",
    "millennium",
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

_FIELD_SYNONYMS = {
    "years": "year", "y": "year", "yr": "year", "yrs": "year", "months": "month", "mon": "month", "mons": "month",
    "days": "day", "d": "day", "hours": "hour", "h": "hour", "hr": "hour", "hrs": "hour", "minutes": "minute",
    "m": "minute", "min": "minute", "mins": "minute", "seconds": "second", "s": "second", "sec": "second",
    "secs": "second", "weeks": "week", "w": "week", "qtr": "quarter", "decades": "decade", "dec": "decade",
    "decs": "decade", "centuries": "century", "c": "century", "cent": "century", "millennia": "millennium",
    "mil": "millennium", "mils": "millennium", "us": "microseconds", "usec": "microseconds", "usecs": "microseconds",
    "useconds": "microseconds", "usecond": "microseconds", "microsecon": "microseconds", "microsecond": "microseconds",
    "ms": "milliseconds", "msec": "milliseconds", "msecs": "milliseconds", "mseconds": "milliseconds",
    "msecond": "milliseconds", "millisecon": "milliseconds", "millisecond": "milliseconds",
}  # fmt: skip


def field_name(text: str) -> str:
    """Returns the one name of a date field that `text` spells.

    Example:
        >>> field_name("Mons")
        'month'
    """
    lowered = text.lower()
    return _FIELD_SYNONYMS.get(lowered, lowered)
