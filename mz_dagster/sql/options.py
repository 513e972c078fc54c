"""Clauses that several statements share: `AS OF`, `RETAIN HISTORY`, `IN TIMELINE`."""

from __future__ import annotations

import re
from typing import NamedTuple

from mz_dagster.functions.numbers.numerics import whole_number
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.statements import AsOf

_UNITS_MS = {
    "ms": 1, "millisecond": 1, "milliseconds": 1,
    "s": 1000, "sec": 1000, "secs": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "mins": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hr": 3_600_000, "hrs": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "weeks": 604_800_000,
}  # fmt: skip
_INTERVAL = re.compile(r"\s*([0-9]+)\s*([A-Za-z]+)\s*")

#: The least history that can be asked for, in milliseconds, as in Materialize.
LEAST_RETENTION_MS = 1000


class Common(NamedTuple):
    """What every statement starts with: text, offset, number of parameters."""

    text: str
    offset: int
    parameters: int

    @classmethod
    def of(cls, cursor: TokenCursor) -> Common:
        """Returns that of the statement whose tokens `cursor` walks."""
        start = cursor.tokens[0].start
        count = sum(token.kind is TokenKind.PARAMETER for token in cursor.tokens)
        return cls(cursor.source[start : cursor.end], start, count)


def parse_as_of(cursor: TokenCursor, stop: int) -> AsOf:
    """Moves past `AS OF [AT LEAST] t`, where `t` ends at the token index `stop`."""
    cursor.expects("as", "of")
    at_least = cursor.accepts("at", "least")
    return AsOf(cursor.text_until(stop), at_least)


def parse_interval_ms(text: str) -> int | None:
    """Returns the milliseconds of an interval of fixed length, or None if it is not one.

    Example:
        >>> parse_interval_ms("1 hour 30 min")
        5400000
    """
    total, at = 0, 0
    while at < len(text):
        match = _INTERVAL.match(text, at)
        if match is None or match.group(2).lower() not in _UNITS_MS:
            return None
        total += whole_number(match.group(1)) * _UNITS_MS[match.group(2).lower()]
        at = match.end()
    return total if text.strip() else None


def parse_retention(cursor: TokenCursor) -> int:
    """Moves past `RETAIN HISTORY [=] FOR '...'` and returns its milliseconds."""
    cursor.expects("retain", "history")
    cursor.accepts_symbol("=")
    cursor.expects("for")
    token = cursor.current
    milliseconds = parse_interval_ms(cursor.string("an interval"))
    if milliseconds is None:
        raise InvalidTableDefinition(
            f"invalid RETAIN HISTORY: '{token.value}' is not an interval of fixed length",
            hint="Write '1 hour', for example; months and years have no fixed length.",
            position=token.start + 1,
        )
    if milliseconds < LEAST_RETENTION_MS:
        raise InvalidTableDefinition(
            f"invalid RETAIN HISTORY: must be at least {LEAST_RETENTION_MS} ms", position=token.start + 1
        )
    return milliseconds


def parse_with_options(cursor: TokenCursor) -> int | None:
    """Moves past `WITH (RETAIN HISTORY = FOR '...')`, if it is there."""
    if not cursor.accepts("with"):
        return None
    cursor.expects_symbol("(")
    if not cursor.sees("retain", "history"):
        raise cursor.refuse("this option", "The only option is RETAIN HISTORY.")
    milliseconds = parse_retention(cursor)
    cursor.expects_symbol(")")
    return milliseconds


def parse_source_options(cursor: TokenCursor, version: str) -> tuple[int | None, int | None]:
    """Moves past `WITH (START VERSION [=] n, RETAIN HISTORY = FOR '...')`, if it is there; returns both.

    Args:
        cursor: Where it may be.
        version: What the table calls a version.
    """
    start: int | None = None
    retain: int | None = None
    if not cursor.accepts("with"):
        return start, retain
    cursor.expects_symbol("(")
    while True:
        token = cursor.current
        if cursor.sees("retain", "history"):
            known, retain = retain, parse_retention(cursor)
        elif cursor.accepts("start", version):
            cursor.accepts_symbol("=")
            known, start = start, cursor.natural_number(f"a {version}", 19)
        else:
            raise cursor.refuse("this option", f"Options are START {version.upper()} and RETAIN HISTORY.")
        if known is not None:
            raise InvalidTableDefinition("an option is given twice", position=token.start + 1)
        if cursor.accepts_symbol(")"):
            return start, retain
        cursor.expects_symbol(",")


def parse_timeline(cursor: TokenCursor) -> str | None:
    """Moves past `IN TIMELINE name`, if it is there."""
    return cursor.identifier("a timeline") if cursor.accepts("in", "timeline") else None
