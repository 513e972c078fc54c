"""`DECLARE`, `FETCH`, `MOVE` and `CLOSE`: cursors that a client names."""

from __future__ import annotations

from typing import Literal

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidParameterValue
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.options import Common, parse_interval_ms
from mz_dagster.sql.query_clauses import query_and_as_of
from mz_dagster.sql.session_statements import CloseCursor, Declare, Fetch
from mz_dagster.sql.statements import Select
from mz_dagster.sql.subscribe_statement import parse_subscribe

_Step = Literal["forward", "backward", "absolute", "relative"]


def parse_declare(cursor: TokenCursor, common: Common) -> Declare:
    """Moves past `DECLARE name [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR {query | SUBSCRIBE ...}`."""
    cursor.expects("declare")
    name = cursor.identifier("a cursor")
    if cursor.sees("binary"):
        raise cursor.refuse("a BINARY cursor", "Clients ask for binary rows by the protocol.")
    scrolls: bool | None = None
    while not cursor.accepts("cursor"):
        if cursor.accepts("no", "scroll"):
            scrolls = False
        elif cursor.accepts("scroll"):
            scrolls = True
        elif not cursor.accepts("insensitive") and not cursor.accepts("asensitive"):
            raise cursor.unexpected("CURSOR")
    holds = cursor.accepts("with", "hold")
    if not holds:
        cursor.accepts("without", "hold")
    cursor.expects("for")
    if cursor.sees("subscribe|tail"):
        return Declare(*common, name, parse_subscribe(cursor, common), holds, scrolls)
    query, as_of = query_and_as_of(cursor, len(cursor.tokens))
    return Declare(*common, name, Select(*common, query, as_of), holds, scrolls)


def parse_fetch(cursor: TokenCursor, common: Common) -> Fetch:
    """Moves past `{FETCH | MOVE} [direction] [FROM | IN] name [WITH (TIMEOUT = '1 s')]`."""
    moves = cursor.accepts("move")
    if not moves:
        cursor.expects("fetch")
    step, count = _direction(cursor)
    cursor.accepts("from|in")
    name = cursor.identifier("a cursor")
    timeout_ms = None
    if cursor.accepts("with"):
        cursor.expects_symbol("(")
        cursor.expects("timeout")
        cursor.accepts_symbol("=")
        position = cursor.current.start + 1
        timeout_ms = parse_interval_ms(cursor.string("a time"))
        if timeout_ms is None:
            raise InvalidParameterValue("a timeout is a time", hint="Write '1 s' or '500 ms'.", position=position)
        cursor.expects_symbol(")")
    return Fetch(*common, name, step, count, moves, timeout_ms)


def parse_close(cursor: TokenCursor, common: Common) -> CloseCursor:
    """Moves past `CLOSE {name | ALL}`."""
    cursor.expects("close")
    return CloseCursor(*common, None if cursor.accepts("all") else cursor.identifier("a cursor"))


def _direction(cursor: TokenCursor) -> tuple[_Step, int | None]:
    """Moves past a direction, by default the next row."""
    if cursor.sees("absolute|relative"):
        step: _Step = "absolute" if cursor.advance().value == "absolute" else "relative"
        return step, _count(cursor)
    for word, found in _PLACES.items():
        if cursor.sees(word) and not _is_name_here(cursor):
            cursor.accepts(word)
            return found
    if cursor.sees("forward|backward") and not _is_name_here(cursor):
        step = "forward" if cursor.advance().value == "forward" else "backward"
        return _by(step, _how_many(cursor))
    return _by("forward", _how_many(cursor))


def _how_many(cursor: TokenCursor) -> int | None:
    """Moves past a number of rows, by default one, or ALL, which is None."""
    if cursor.accepts("all"):
        return None
    return _count(cursor) if cursor.current.kind is TokenKind.NUMBER or cursor.current.is_symbol("-", "+") else 1


def _by(step: Literal["forward", "backward"], count: int | None) -> tuple[_Step, int | None]:
    """Returns a direction and how many rows that way; a negative number is that of the other way."""
    if count is None or count >= 0:
        return step, count
    return "backward" if step == "forward" else "forward", -count


_PLACES: dict[str, tuple[_Step, int | None]] = {
    "next": ("forward", 1),
    "prior": ("backward", 1),
    "first": ("absolute", 1),
    "last": ("absolute", -1),
}


def _is_name_here(cursor: TokenCursor) -> bool:
    """Returns whether the word is the cursor's own name, behind which nothing stands, or WITH."""
    behind = cursor.ahead(1)
    return behind.kind is TokenKind.END or behind.is_word("with")


def _count(cursor: TokenCursor) -> int:
    sign = -1 if cursor.accepts_symbol("-") else 1
    cursor.accepts_symbol("+")
    token = cursor.current
    if token.kind is not TokenKind.NUMBER or not token.value.isdecimal():
        raise cursor.unexpected("a number of rows")
    cursor.advance()
    return sign * int(token.value)
