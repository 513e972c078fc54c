"""The query within a statement: where it ends, and the clauses that are no part of it, `AS OF`, `INTO`, `WITH DATA`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mz_dagster.sql.cursor import TokenCursor, quoted
from mz_dagster.sql.errors import InvalidSyntax
from mz_dagster.sql.options import parse_as_of
from mz_dagster.sql.statements import AsOf, Name, SqlText

#: What stands behind the items of a SELECT, where INTO is no longer allowed.
_BEHIND_ITEMS = ("from", "where", "group", "having", "window", "union", "intersect", "except", "order", "limit")


def query_and_as_of(cursor: TokenCursor, stop: int) -> tuple[SqlText, AsOf | None]:
    """Moves past a query up to the token index `stop`, and returns it without its `AS OF`, and that."""
    at = _index_of_as_of(cursor, stop)
    query = cursor.text_until(at)
    as_of = parse_as_of(cursor, stop) if at < stop else None
    return query, as_of


def _index_of_as_of(cursor: TokenCursor, stop: int) -> int:
    """Returns where `AS OF` starts; `SELECT x AS of FROM t` has an alias, not a time."""
    depth = 0
    for index in range(cursor.at, stop):
        token = cursor.tokens[index]
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_word("as") and index + 2 < stop and cursor.tokens[index + 1].is_word("of"):
            behind = cursor.tokens[index + 2]
            if not (behind.is_symbol(",") or behind.is_word("from", "where", "union", "order", "limit", "offset")):
                return index
    return stop


def with_data(cursor: TokenCursor) -> tuple[bool, int]:
    """Returns what `WITH [NO] DATA` at the end says, and the index at which it begins; True and the end without it."""
    for words, says in ((("with", "data"), True), (("with", "no", "data"), False)):
        start = len(cursor.tokens) - len(words)
        ends = all(cursor.tokens[start + i].is_word(word) for i, word in enumerate(words)) if start > 0 else False
        if ends:
            return says, start
    return True, len(cursor.tokens)


def query_text(cursor: TokenCursor, stop: int | None = None) -> SqlText:
    """Moves past a query that defines or explains something, to `stop`; a time has no place there."""
    first = cursor.current
    if not (first.is_symbol("(") or first.is_word("select", "with", "values", "table")):
        raise cursor.unexpected("a query")
    query, as_of = query_and_as_of(cursor, len(cursor.tokens) if stop is None else stop)
    if as_of is not None:
        raise InvalidSyntax("AS OF is not allowed here", position=query.offset + len(query.text) + 2)
    return query


def into_clause(cursor: TokenCursor) -> tuple[Name, bool, SqlText] | None:
    """Moves past a query with an `INTO`; returns its name, if it is temporary, and the query without; None without one.

    The clause is replaced by white space, so that positions in the query are those of the whole text.
    """
    start, stop = cursor.at, len(cursor.tokens)
    at, select = cursor.index_of("into"), cursor.index_of("select")
    if at == stop or select > at:
        return None
    depth = 0
    for previous, token in pairwise(cursor.tokens[select:at]):
        depth += token.is_symbol("(") - token.is_symbol(")")
        ends = token.is_word(*_BEHIND_ITEMS) and not (token.is_word("from") and previous.is_word("distinct"))
        if depth == 0 and ends:
            raise InvalidSyntax("SELECT ... INTO is not allowed here", position=cursor.tokens[at].start + 1)
    cursor.at = at + 1
    if cursor.sees("global|local", "temp|temporary"):
        cursor.advance()
    temporary = cursor.accepts("temp|temporary")
    cursor.accepts("table")
    name = cursor.name()
    behind, cursor.at = cursor.at, start
    query = query_text(cursor)
    first, last = cursor.tokens[at].start - query.offset, cursor.tokens[behind - 1].end - query.offset
    text = "".join(" " if first <= i < last and one != "\n" else one for i, one in enumerate(query.text))
    return name, temporary or name.is_temporary, SqlText(text, query.offset, query.parameters_before)


def table_query(name: Name, columns: Sequence[str] = ()) -> SqlText:
    """Returns the query of a relation's rows, with some of its columns or all.

    Example:
        >>> table_query(Name(("s", "Order"), 5), ("a",))
        SqlText(text='SELECT a FROM s."Order"', offset=5, parameters_before=0)
    """
    wanted = ", ".join(map(quoted, columns)) or "*"
    return SqlText(f"SELECT {wanted} FROM {'.'.join(map(quoted, name.parts))}", name.offset)
