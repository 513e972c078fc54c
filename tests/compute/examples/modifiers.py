"""Examples of casts to types with parentheses."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.scalars.types import (
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Modifier,
    ScalarType,
    array_of,
    numeric,
)
from tests.compute.examples.example import POOLS, Example, casting

_MOMENTS = [
    "2020-02-29 12:34:56.789500", "1999-12-31 23:59:59.500000", "2000-01-01 00:00:00.5", "1970-01-01 00:00:00.000001",
    "1582-10-15 05:05:05.555555", "infinity", "-infinity",
]  # fmt: skip
POOLS["to_round"] = (TIMESTAMP, _MOMENTS)
POOLS["to_round_tz"] = (TIMESTAMPTZ, _MOMENTS)
POOLS["to_round_time"] = (TIME, ["00:00:00", "12:34:56.789500", "00:00:00.05", "23:59:58.999999"])
POOLS["to_round_all"] = (array_of(TIMESTAMP), ["{}", f"{{{','.join(_MOMENTS)},NULL}}"])
POOLS["to_fit"] = (array_of(numeric(2)), ["{}", "{1.25,NULL,-99.94}", "{1.00,-99.95}", "{123.45}"])
POOLS["to_narrow"] = (array_of(INTERVAL), ["{}", '{"1 mon 3 days 04:05:06",NULL}'])
POOLS["to_round_text"] = (TEXT, ["2020-02-29 12:34:56.789500", "x"])


def examples() -> Iterator[Example]:
    """Yields the examples of this area."""
    for digits in (0, 3, 5):
        for pool, kind in (
            ("to_round", Kind.TIMESTAMP),
            ("to_round_tz", Kind.TIMESTAMPTZ),
            ("to_round_time", Kind.TIME),
            ("to_round_text", Kind.TIMESTAMP),
            ("iv_small", Kind.INTERVAL),
        ):
            yield casting(pool, ScalarType(kind, modifier=Modifier(digits)))
    for fields in ("year", "month", "day", "day to hour", "minute", "year to month", "hour to second"):
        yield casting("iv_small", ScalarType(INTERVAL.kind, modifier=Modifier(None, fields)))
    yield casting("iv_small", ScalarType(INTERVAL.kind, modifier=Modifier(1, "day to second")))
    for pool in ("n2", "n10", "n38", "int4"):
        for precision, scale in ((5, 2), (20, 10), (37, 0), (3, 5), (20, 20)):
            yield casting(pool, ScalarType(Kind.NUMERIC, scale, modifier=Modifier(precision)))
    yield casting("to_round_all", array_of(ScalarType(Kind.TIMESTAMP, modifier=Modifier(0))))
    yield casting("to_fit", array_of(ScalarType(Kind.NUMERIC, 1, modifier=Modifier(3))))
    yield casting("to_narrow", array_of(ScalarType(Kind.INTERVAL, modifier=Modifier(None, "day to hour"))))
