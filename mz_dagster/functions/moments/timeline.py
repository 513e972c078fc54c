"""Times of a timeline, `mz_timestamp`: milliseconds since 1970 as integers, and what becomes one."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from mz_dagster.functions.errors import MZ_TIMESTAMP_OUT_OF_RANGE, STEP_OVERFLOW, TIMESTAMP_OUT_OF_RANGE
from mz_dagster.functions.moments.calendar import DAY, LAST_DAY
from mz_dagster.functions.numbers.arithmetic import within
from mz_dagster.functions.registry import function, pure
from mz_dagster.scalars.types import Kind

_TIMES = (0, 2**63 - 1)


def _whole(number: Decimal) -> int | None:
    return int(number) if number == int(number) else None


def _time_of(reference: Callable[[Any], int | None]) -> Callable[..., int]:
    return within(reference, _TIMES, MZ_TIMESTAMP_OUT_OF_RANGE)


# The next time after a time; the last one has none.
function("step_mz_timestamp", (Kind.MZ_TIMESTAMP,), Kind.MZ_TIMESTAMP, fallible=True, internal=True)(
    within(lambda time: time + 1, _TIMES, STEP_OVERFLOW)
)
pure("cast_int4_to_mz_timestamp", "cast_int8_to_mz_timestamp")(_time_of(int))
pure("cast_numeric_to_mz_timestamp")(_time_of(_whole))
pure("cast_date_to_mz_timestamp")(_time_of(lambda days: days * (DAY // 1000)))
pure("cast_timestamp_to_mz_timestamp", "cast_timestamptz_to_mz_timestamp")(_time_of(lambda micros: micros // 1000))
pure("cast_mz_timestamp_to_timestamp", "cast_mz_timestamp_to_timestamptz")(
    within(lambda millis: millis * 1000, (0, (LAST_DAY + 1) * DAY - 1), TIMESTAMP_OUT_OF_RANGE)
)
