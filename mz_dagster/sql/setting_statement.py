"""SET, RESET and SHOW of a session's settings, and what clears a session: DISCARD and DEALLOCATE."""

from __future__ import annotations

from mz_dagster.functions import Failure
from mz_dagster.functions.moments.calendar import HOUR
from mz_dagster.functions.moments.interval_text import interval_of
from mz_dagster.functions.moments.zones import offset_of
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import error_of
from mz_dagster.sql.lexer import TokenKind
from mz_dagster.sql.options import Common
from mz_dagster.sql.schemas import path_of
from mz_dagster.sql.session_statements import (
    Deallocate,
    Discard,
    ResetAll,
    SetConstraints,
    SetSetting,
    SetTransaction,
    ShowSetting,
    Unlisten,
)
from mz_dagster.sql.transaction_statements import parse_set_transaction


def parse_set(cursor: TokenCursor, common: Common) -> SetConstraints | SetSetting | SetTransaction:
    """Moves past `SET [SESSION | LOCAL] name {= | TO} {value | DEFAULT}`, and forms of single settings.

    They are `SET TIME ZONE`, `SET NAMES`, `SET ROLE`, `SET CONSTRAINTS {ALL | name, ...} {DEFERRED | IMMEDIATE}`, and
    SET TRANSACTION and SET SESSION CHARACTERISTICS (`transaction_statements`).

    Raises:
        UnsupportedForm: It is of another user.
    """
    first = cursor.current
    cursor.expects("set")
    found = parse_set_transaction(cursor, common)
    if found is not None:
        return found
    if cursor.accepts("constraints"):
        names = [] if cursor.accepts("all") else [cursor.name()]
        while names and cursor.accepts_symbol(","):
            names.append(cursor.name())
        deferred = cursor.accepts("deferred")
        if not deferred:
            cursor.expects("immediate")
        return SetConstraints(*common, tuple(names), deferred)
    if cursor.accepts("session", "authorization", "default"):
        return SetSetting(*common, "role", None)  # whom one has authenticated as
    if cursor.sees("session", "authorization"):
        raise cursor.refuse("SET of a user", "Access is the folder's and the catalog's.", token=first)
    is_local = cursor.accepts("local")
    if not is_local:
        cursor.accepts("session")
    if cursor.accepts("time", "zone"):
        return SetSetting(*common, "timezone", _zone(cursor), is_local)
    if cursor.accepts("role"):
        is_text = cursor.current.kind is TokenKind.STRING
        return SetSetting(
            *common, "role", cursor.string("a role") if is_text else cursor.identifier("a role"), is_local
        )
    if cursor.accepts("names"):
        return SetSetting(*common, "client_encoding", _value(cursor), is_local)
    name = _name(cursor)
    if not cursor.accepts_symbol("="):
        cursor.expects("to")
    return SetSetting(*common, name, _schemas(cursor) if name == "search_path" else _value(cursor), is_local)


def parse_reset(cursor: TokenCursor, common: Common) -> SetSetting | ResetAll:
    """Moves past `RESET {name | ALL}`."""
    cursor.expects("reset")
    if cursor.accepts("all"):
        return ResetAll(*common)
    if cursor.accepts("time", "zone"):
        return SetSetting(*common, "timezone", None)
    if cursor.accepts("session", "authorization"):
        return SetSetting(*common, "role", None)
    return SetSetting(*common, _name(cursor), None)


def parse_discard(cursor: TokenCursor, common: Common) -> Discard:
    """Moves past `DISCARD {ALL | PLANS | SEQUENCES | TEMP | TEMPORARY}`."""
    cursor.expects("discard")
    if not cursor.sees("all|plans|sequences|temp|temporary"):
        raise cursor.unexpected("ALL, PLANS, SEQUENCES or TEMP")
    what = cursor.advance().value
    return Discard(*common, "temp" if what == "temporary" else what)


def parse_unlisten(cursor: TokenCursor, common: Common) -> Unlisten:
    """Moves past `UNLISTEN {channel | *}`."""
    cursor.expects("unlisten")
    if not cursor.accepts_symbol("*"):
        cursor.identifier("a channel")
    return Unlisten(*common)


def parse_deallocate(cursor: TokenCursor, common: Common) -> Deallocate:
    """Moves past `DEALLOCATE [PREPARE] {name | ALL}`."""
    cursor.expects("deallocate")
    cursor.accepts("prepare")
    return Deallocate(*common, None if cursor.accepts("all") else cursor.identifier("a prepared statement"))


def parse_show_setting(cursor: TokenCursor, common: Common) -> ShowSetting:
    """Moves past `name`, `TIME ZONE`, `TRANSACTION ISOLATION LEVEL` or `ALL`, behind SHOW."""
    if cursor.accepts("all"):
        return ShowSetting(*common, None)
    if cursor.accepts("time", "zone"):
        return ShowSetting(*common, "timezone")
    if cursor.accepts("transaction", "isolation", "level"):
        return ShowSetting(*common, "transaction_isolation")
    return ShowSetting(*common, _name(cursor))


def _name(cursor: TokenCursor) -> str:
    """Moves past the name of a setting; one of the client's own has dots."""
    parts = [cursor.identifier("the name of a setting")]
    while cursor.accepts_symbol("."):
        parts.append(cursor.identifier("the name of a setting"))
    return ".".join(parts).lower()


def _zone(cursor: TokenCursor) -> str | None:
    """Moves past `LOCAL`, a value, or `INTERVAL 'offset' [HOUR [TO MINUTE]]`, which is as many hours."""
    if cursor.accepts("local"):
        return None
    if not cursor.accepts("interval"):
        return _value(cursor)
    at = cursor.current.start + 1
    text = cursor.string("an offset")
    fields = "hour to minute" if cursor.accepts("hour", "to", "minute") else "hour" if cursor.accepts("hour") else ""
    try:
        offset = offset_of(interval_of(text, fields))
    except SqlFailure as failure:
        sqlstate, _, message = str(failure).partition(" ")
        raise error_of(Failure(sqlstate, message), at) from None
    return f"{offset / HOUR:g}"


def _value(cursor: TokenCursor) -> str | None:
    if cursor.accepts("default"):
        return None
    values: list[str] = []
    while True:
        sign = "-" if cursor.accepts_symbol("-") else ""
        kinds = (TokenKind.NUMBER,) if sign else (TokenKind.STRING, TokenKind.NUMBER, TokenKind.WORD, TokenKind.QUOTED)
        if cursor.current.kind not in kinds:
            raise cursor.unexpected("a value")
        values.append(sign + cursor.advance().value)
        if not cursor.accepts_symbol(","):
            return ", ".join(values)


def _schemas(cursor: TokenCursor) -> str | None:
    """Moves past a list of schemas, and returns it as SQL writes it."""
    if cursor.accepts("default"):
        return None
    found: list[str] = []
    while True:
        token = cursor.current
        if token.kind is TokenKind.STRING:
            found.append(cursor.string("a schema"))
        else:
            found.append(cursor.identifier("a schema"))
        if not cursor.accepts_symbol(","):
            return path_of([one for one in found if one not in ("$user", "")])
