"""Literals of intervals, and those that an operator reads as moments or intervals where PostgreSQL's rules would not.

`mz_now() < '2020-01-01'` compares with that moment, as in Materialize, and `d + '90 days'`, which PostgreSQL calls
ambiguous, is the date d and so many days later, a timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlglot import exp

from mz_dagster.functions import Failure, Unknown, interval_literal, literal_of
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import DATE, INTERVAL, MZ_TIMESTAMP, TIMESTAMPTZ
from mz_dagster.sql.binding import Bound
from mz_dagster.sql.body_parser import Body
from mz_dagster.sql.errors import InvalidSyntax, error_of
from mz_dagster.sql.type_names import INTERVAL_TYPES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def with_moments(symbol: str, arguments: Sequence[Bound]) -> list[Bound]:
    """Returns the operands, with what is written as a moment or as an interval beside another as that."""
    types = [None if isinstance(one, Unknown) else one.type for one in arguments]
    if MZ_TIMESTAMP in types:
        return [_moment(one) if isinstance(one, Unknown) else one for one in arguments]
    if symbol == "+" and DATE in types:
        return [_length(one) if isinstance(one, Unknown) else one for one in arguments]
    return list(arguments)


def bind_interval(body: Body, node: exp.Interval) -> Literal:
    """Returns the literal of `INTERVAL 'text' [fields]`."""
    text = node.this
    if not isinstance(text, exp.Literal) or not text.is_string:
        raise InvalidSyntax("syntax error: an interval literal is quoted", position=body.position(node))
    matched = re.fullmatch(r"([a-z ]*)(?:\(([0-9])\))?", node.meta.get("fields", ""))
    if matched is None or matched[1] not in INTERVAL_TYPES:
        raise InvalidSyntax("syntax error: there is no such type of intervals", position=body.position(node))
    found = interval_literal(text.this, matched[1], int(matched[2]) if matched[2] else None)
    if isinstance(found, Failure):
        raise error_of(found, body.position(text))
    return found


def _length(unknown: Unknown) -> Bound:
    """Returns the interval that a literal with a unit spells; a bare number could be one of days as well."""
    if unknown.text is None or not re.search("[a-zA-Z:]", unknown.text):
        return unknown
    found = literal_of(unknown.text, INTERVAL)
    return found if isinstance(found, Literal) else unknown


def _moment(unknown: Unknown) -> Bound:
    if unknown.text is None or isinstance(literal_of(unknown.text, MZ_TIMESTAMP), Literal):
        return unknown
    found = literal_of(unknown.text, TIMESTAMPTZ)
    if not isinstance(found, Literal) or not isinstance(found.value, datetime) or found.value < _EPOCH:
        return unknown
    return Literal((found.value - _EPOCH) // timedelta(milliseconds=1), MZ_TIMESTAMP)
