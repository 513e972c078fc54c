"""generate_series over moments: each element is the one before it plus the step, as PostgreSQL has it."""

from __future__ import annotations

from mz_dagster.functions.function import list_of
from mz_dagster.functions.moments.calendar import DAY, later
from mz_dagster.functions.moments.infinite import is_infinite
from mz_dagster.functions.moments.interval import length
from mz_dagster.functions.moments.interval_text import Span
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import TIMESTAMP, TIMESTAMPTZ, Kind

#: A series of moments has at most so many elements.
MOMENTS = 1_000_000
_TOO_MANY = f"generate_series makes more than {MOMENTS} rows"


@function(
    "generate_series_timestamp",
    (Kind.TIMESTAMP, Kind.TIMESTAMP, Kind.INTERVAL),
    Kind.ARRAY,
    rows="generate_series",
    fallible=True,
    type=list_of(TIMESTAMP),
)
@function(
    "generate_series_timestamptz",
    (Kind.TIMESTAMPTZ, Kind.TIMESTAMPTZ, Kind.INTERVAL),
    Kind.ARRAY,
    rows="generate_series",
    fallible=True,
    type=list_of(TIMESTAMPTZ),
)
def moments(start: int, stop: int, step: Span) -> list[int]:
    """Returns the moments from `start` to `stop`, both included.

    Example:
        >>> moments(0, 3, (0, 0, 2)), moments(0, 3, (0, 0, -2))
        ([0, 2], [])
    """
    direction = length(step)
    if direction == 0:
        raise SqlFailure("22023", "step size cannot equal zero")
    for bound in (start, stop):
        if is_infinite(bound, DAY) and (start <= stop if direction > 0 else start >= stop):
            raise SqlFailure("54000", _TOO_MANY)
    straight = all(one * direction >= 0 for one in step)
    found: list[int] = []
    moment = start
    while moment <= stop if direction > 0 else moment >= stop:
        if len(found) == MOMENTS:
            raise SqlFailure("54000", _TOO_MANY)
        found.append(moment)
        try:
            moment = later(moment, *step)
        except SqlFailure:
            if straight:
                break  # beyond the last moment there is, and so beyond `stop`
            raise
    return found
