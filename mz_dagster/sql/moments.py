"""Literals that an operator reads as moments or as days, where PostgreSQL's rules alone would not.

`mz_now() < '2020-01-01'` compares with that moment, as in Materialize, and `d + '90 days'` is the date d and so many
days later, a timestamp: the only intervals there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from mz_dagster.plan.functions import Unknown, literal_of
from mz_dagster.plan.scalar import Call, Literal, Scalar
from mz_dagster.plan.types import DATE, INT4, MZ_TIMESTAMP, TIMESTAMP, TIMESTAMPTZ
from mz_dagster.sql.binding import Bound
from mz_dagster.sql.options import parse_interval_ms

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000


def with_moments(arguments: Sequence[Bound]) -> list[Bound]:
    """Returns the operands, with what is written as a moment beside an mz_timestamp as its milliseconds."""
    beside = any(not isinstance(one, Unknown) and one.type == MZ_TIMESTAMP for one in arguments)
    return [_moment(one) if beside and isinstance(one, Unknown) else one for one in arguments]


def days_later(symbol: str, arguments: Sequence[Bound]) -> Scalar | None:
    """Returns the sum of a date and a literal of whole days, from either side, or None if it is none."""
    if symbol != "+" or len(arguments) != 2:
        return None
    for day, literal in (arguments, reversed(arguments)):
        if isinstance(literal, Unknown) and literal.text and not isinstance(day, Unknown) and day.type == DATE:
            length = parse_interval_ms(literal.text)
            if length is None or length % _DAY_MS or length // _DAY_MS >= 2**31:
                return None
            later = Call("add_date_int4", (day, Literal(length // _DAY_MS, INT4)), DATE, day.nullable)
            return Call("cast_date_to_timestamp", (later,), TIMESTAMP, day.nullable)
    return None


def _moment(unknown: Unknown) -> Bound:
    if unknown.text is None or isinstance(literal_of(unknown.text, MZ_TIMESTAMP), Literal):
        return unknown
    found = literal_of(unknown.text, TIMESTAMPTZ)
    if not isinstance(found, Literal) or not isinstance(found.value, datetime) or found.value < _EPOCH:
        return unknown
    return Literal((found.value - _EPOCH) // timedelta(milliseconds=1), MZ_TIMESTAMP)
