"""`SUBSCRIBE`, and the older `TAIL`."""

from __future__ import annotations

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidSyntax
from mz_dagster.sql.options import Common, parse_as_of
from mz_dagster.sql.statements import AsOf, Name, RowOrder, SqlText, Subscribe, SubscribeEnvelope

_CLAUSES = (("as", "of"), ("up", "to"), ("with",), ("within", "timestamp"), ("envelope",))


def parse_subscribe(cursor: TokenCursor, common: Common, stop: int | None = None) -> Subscribe:
    """Moves past `SUBSCRIBE [TO] {name | (query)} [clauses]`, up to the token index `stop`, by default the end.

    The clauses stand in any order: `AS OF [AT LEAST] t`, `UP TO t`, `WITH (PROGRESS, SNAPSHOT)`, and one of `WITHIN
    TIMESTAMP ORDER BY a, ...`, `ENVELOPE UPSERT (KEY (a, ...))` and `ENVELOPE DEBEZIUM (KEY (a, ...))`.
    """
    end = len(cursor.tokens) if stop is None else stop
    cursor.expects("subscribe|tail")
    cursor.accepts("to")
    target: Name | SqlText = cursor.parenthesized() if cursor.current.is_symbol("(") else cursor.name()
    as_of: AsOf | None = None
    up_to: SqlText | None = None
    options: dict[str, bool] | None = None
    envelope: SubscribeEnvelope | None = None
    while cursor.at < end:
        token = cursor.current
        next_clause = min(cursor.index_of_any(_CLAUSES, cursor.at + 1), end)
        if cursor.sees("as", "of") and as_of is None:
            as_of = parse_as_of(cursor, next_clause)
        elif cursor.sees("up", "to") and up_to is None:
            cursor.accepts("up", "to")
            up_to = cursor.text_until(next_clause)
        elif cursor.sees("with") and options is None:
            options = _options(cursor)
        elif cursor.sees("within|envelope") and envelope is None:
            envelope = _envelope(cursor)
        elif cursor.sees("as|up|with|within|envelope"):
            raise InvalidSyntax(f"{token.value.upper()} is said twice", position=token.start + 1)
        else:
            raise cursor.unexpected("a clause of SUBSCRIBE")
    found = options or {}
    progress, snapshot = found.get("progress", False), found.get("snapshot", True)
    return Subscribe(*common, target, as_of, up_to, progress, snapshot, envelope or SubscribeEnvelope("none"))


def _options(cursor: TokenCursor) -> dict[str, bool]:
    cursor.expects("with")
    cursor.expects_symbol("(")
    found: dict[str, bool] = {}
    while True:
        name = cursor.identifier("PROGRESS or SNAPSHOT")
        if name not in ("progress", "snapshot"):
            raise InvalidSyntax(f'"{name}" is not an option of SUBSCRIBE', position=cursor.ahead(-1).start + 1)
        cursor.accepts_symbol("=")
        found[name] = not cursor.accepts("false") and (cursor.accepts("true") or True)
        if cursor.accepts_symbol(")"):
            return found
        cursor.expects_symbol(",")


def _envelope(cursor: TokenCursor) -> SubscribeEnvelope:
    if cursor.accepts("within"):
        cursor.expects("timestamp", "order", "by")
        orders = [_row_order(cursor)]
        while cursor.accepts_symbol(","):
            orders.append(_row_order(cursor))
        return SubscribeEnvelope("none", order=tuple(orders))
    cursor.expects("envelope")
    kind = "upsert" if cursor.accepts("upsert") else "debezium"
    if kind == "debezium":
        cursor.expects("debezium")
    cursor.expects_symbol("(")
    cursor.expects("key")
    position = cursor.current.start + 1
    key = cursor.names_in_parentheses()
    cursor.expects_symbol(")")
    if len(set(key)) < len(key):
        raise InvalidSyntax("a column is in the key twice", position=position)
    return SubscribeEnvelope("upsert" if kind == "upsert" else "debezium", key, position=position)


def _row_order(cursor: TokenCursor) -> RowOrder:
    position = cursor.current.start + 1
    name = cursor.identifier("a column")
    descending = cursor.accepts("desc")
    if not descending:
        cursor.accepts("asc")
    nulls_first = descending
    if cursor.accepts("nulls"):
        nulls_first = cursor.accepts("first")
        if not nulls_first:
            cursor.expects("last")
    return RowOrder(name, descending, nulls_first, position)
