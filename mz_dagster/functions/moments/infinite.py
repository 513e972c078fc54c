"""Infinite dates and timestamps: what functions make of them, as PostgreSQL 15 does.

Owns `RULES`, by the names of functions: whoever evaluates one of them, here, by columns or in Spark, asks its rule for
rows with an infinite argument, and computes with the others. In their plain form they are the day before the first and
the one behind the last, and a timestamp that day's midnight, so that casts among them and comparisons need no rule.
Fields that grow with time are infinite in PostgreSQL, which no numeric with a scale is: they are errors here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mz_dagster.functions.moments.calendar import AFTER, BEFORE, DAY
from mz_dagster.functions.registry import SqlFailure

#: The units of dates and timestamps, and of what is neither, in their plain form.
DATE, MOMENT, OTHER = 1, DAY, 0
#: The last time of a timeline at which something may happen.
LAST_TIME = 2**63 - 2


class InfiniteResult(Enum):
    """Says what a function makes of an infinite argument."""

    KEPT = "the infinite value of the result's type"
    UNKNOWN = "NULL"
    FALSE = "false"
    WORD = "its text"
    QUOTED = "its text as jsonb"
    TIME = "the first time of a timeline, or the last"
    NUMBER = "an infinite float"


@dataclass(frozen=True, slots=True)
class InfinityRule:
    """What a function makes of infinite arguments; the first of them decides.

    Attributes:
        units: What each argument is: `DATE`, `MOMENT` or `OTHER`.
        outcome: What comes out; or the error, its SQLSTATE first.
        result: The unit of what is `KEPT`.
    """

    units: tuple[int, ...]
    outcome: InfiniteResult | str
    result: int = OTHER

    def of(self, value: int, unit: int) -> Any:
        """Returns what comes of an infinite argument of a unit.

        Raises:
            SqlFailure: The error.
        """
        is_late = value > 0
        word = "infinity" if is_late else "-infinity"
        match self.outcome:
            case InfiniteResult.KEPT:
                return value // unit * self.result
            case InfiniteResult.UNKNOWN:
                return None
            case InfiniteResult.FALSE:
                return False
            case InfiniteResult.WORD:
                return word
            case InfiniteResult.QUOTED:
                return f'"{word}"'
            case InfiniteResult.TIME:
                return LAST_TIME if is_late else 0
            case InfiniteResult.NUMBER:
                return float(word)
            case error:
                sqlstate, _, message = error.partition(" ")
                raise SqlFailure(sqlstate, message)


def is_infinite(value: int, unit: int) -> bool:
    """Returns whether a date or a timestamp is infinite.

    Example:
        >>> is_infinite(AFTER, DATE), is_infinite(AFTER * DAY - 1, MOMENT)
        (True, False)
    """
    return not BEFORE * unit < value < AFTER * unit


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function over plain forms that goes by the rule of `name` where an argument is infinite."""
    rule = RULES.get(name)
    if rule is None:
        return function
    units, outcome = rule.units, rule.of

    def apply(*values: Any) -> Any:
        for value, unit in zip(values, units, strict=False):
            if unit and not BEFORE * unit < value < AFTER * unit:
                return outcome(value, unit)
        return function(*values)

    return apply


_GROWING = ("millennium", "century", "decade", "year", "isoyear", "epoch")
_CYCLIC = (
    *("quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second", "milliseconds"),
    *("microseconds", "timezone", "timezone_hour", "timezone_minute"),
)
_TRUNCATED = (
    *("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year"),
    *("decade", "century", "millennium"),
)


def _rules() -> Iterator[tuple[str, InfinityRule]]:
    kept, unknown = InfiniteResult.KEPT, InfiniteResult.UNKNOWN
    for kind, unit in (("date", DATE), ("timestamp", MOMENT), ("timestamptz", MOMENT)):
        yield f"add_{kind}_interval", InfinityRule((unit, OTHER), kept, MOMENT)
        yield f"subtract_{kind}_interval", InfinityRule((unit, OTHER), kept, MOMENT)
        yield f"add_interval_{kind}", InfinityRule((OTHER, unit), kept, MOMENT)
        yield f"isfinite_{kind}", InfinityRule((unit,), InfiniteResult.FALSE)
        yield f"cast_{kind}_to_text", InfinityRule((unit,), InfiniteResult.WORD)
        yield f"to_jsonb_{kind}", InfinityRule((unit,), InfiniteResult.QUOTED)
        yield f"cast_{kind}_to_mz_timestamp", InfinityRule((unit,), InfiniteResult.TIME)
        yield (
            f"subtract_{kind}_{kind}",
            InfinityRule((unit, unit), f"22008 cannot subtract infinite {kind.removesuffix('tz')}s"),
        )
        for field in _CYCLIC:
            yield f"extract_{field}_{kind}", InfinityRule((unit,), unknown)
        for field in _GROWING:
            error = f"0A000 extract({field}) of an infinite {kind.removesuffix('tz')} is not supported"
            yield f"extract_{field}_{kind}", InfinityRule((unit,), error)
        if unit is MOMENT:
            yield f"age_{kind}_{kind}", InfinityRule((unit, unit), "22008 timestamp out of range")
            yield f"cast_{kind}_to_time", InfinityRule((unit,), unknown)
            if kind == "timestamptz":
                yield f"cast_{kind}_to_timetz", InfinityRule((unit,), unknown)
                yield f"timetz_of_{kind}_in_zone", InfinityRule((OTHER, unit), unknown)
            yield f"to_char_{kind}", InfinityRule((unit, OTHER), unknown)
            yield f"timezone_text_{kind}", InfinityRule((OTHER, unit), kept, MOMENT)
            yield f"timezone_interval_{kind}", InfinityRule((OTHER, unit), kept, MOMENT)
            yield f"date_bin_{kind}", InfinityRule((OTHER, unit, OTHER), kept, MOMENT)
            yield f"date_part_epoch_{kind}", InfinityRule((unit,), InfiniteResult.NUMBER)
            for field in ("second", "milliseconds"):
                yield f"date_part_{field}_{kind}", InfinityRule((unit,), unknown)
            for part in _TRUNCATED:
                yield f"date_trunc_{part}_{kind}", InfinityRule((unit,), kept, MOMENT)
    yield "add_date_int4", InfinityRule((DATE, OTHER), kept, DATE)
    yield "subtract_date_int4", InfinityRule((DATE, OTHER), kept, DATE)
    yield "add_int4_date", InfinityRule((OTHER, DATE), kept, DATE)
    yield "add_date_time", InfinityRule((DATE, OTHER), kept, MOMENT)
    yield "add_time_date", InfinityRule((OTHER, DATE), kept, MOMENT)
    yield "add_date_timetz", InfinityRule((DATE, OTHER), kept, MOMENT)
    yield "add_timetz_date", InfinityRule((OTHER, DATE), kept, MOMENT)


RULES: dict[str, InfinityRule] = dict(_rules())
