"""FOR UPDATE and its like: taken from the text of a statement before it is parsed, as they change nothing of its rows.

A clause is replaced by white space, so that positions are those of the whole text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import UndefinedTable, UnsupportedForm
from mz_dagster.sql.lexer import Token, TokenKind
from mz_dagster.sql.row_lock import RowLock

_STRENGTHS = (("no", "key", "update"), ("key", "share"), ("update",), ("share",))
_BEHIND_FROM = ("where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union", "intersect")
_JOINS = ("join", "inner", "left", "right", "full", "cross", "natural", "on", "using", "tablesample", *_BEHIND_FROM)
#: What rows of a result are not rows of a table behind, and how PostgreSQL calls that.
_NOT_OF_ROWS = {
    "distinct": "DISTINCT clause",
    "group": "GROUP BY clause",
    "having": "HAVING clause",
    "union": "UNION/INTERSECT/EXCEPT",
    "intersect": "UNION/INTERSECT/EXCEPT",
    "except": "UNION/INTERSECT/EXCEPT",
}


class _Relation(NamedTuple):
    parts: tuple[str, ...]
    called: str


def without_row_locks(cursor: TokenCursor) -> tuple[TokenCursor, tuple[RowLock, ...]]:
    """Returns a cursor over a query or write without its row locks, and these.

    Raises:
        UnsupportedForm: What would be locked are no rows of tables.
        UndefinedTable: `OF` names what is not in FROM.
    """
    if not any(token.is_word("for") for token in cursor.tokens):
        return cursor, ()
    found: list[RowLock] = []
    removed: set[int] = set()
    opened = [0]
    for at, token in enumerate(cursor.tokens):
        if token.is_symbol("("):
            opened.append(at + 1)
        elif token.is_symbol(")") and len(opened) > 1:
            opened.pop()
        elif token.is_word("for") and at not in removed and cursor.tokens[opened[-1]].is_word("select", "with"):
            clause = TokenCursor(cursor.source, cursor.tokens, cursor.end, at)
            lock = _lock(clause, opened[-1], is_nested=len(opened) > 1)
            if lock is not None:
                found.append(lock)
                removed.update(range(at, clause.at))
    if not found:
        return cursor, ()
    text = list(cursor.source)
    for at, token in enumerate(cursor.tokens):
        if at in removed:
            text[token.start : token.end] = " " * (token.end - token.start)
    left = tuple(token for at, token in enumerate(cursor.tokens) if at not in removed)
    return TokenCursor("".join(text), left, cursor.end), tuple(found)


def _lock(cursor: TokenCursor, start: int, *, is_nested: bool) -> RowLock | None:
    """Moves past a clause, and returns it; None if there is none.

    Args:
        cursor: Stands at FOR.
        start: Where the query begins.
        is_nested: Whether the query is part of another.
    """
    at, offset = cursor.at, cursor.current.start
    cursor.advance()
    words = next((one for one in _STRENGTHS if cursor.accepts(*one)), None)
    if words is None:
        return None
    strength = " ".join(words).upper()
    query = tuple(_own_tokens(cursor.tokens[start:at]))
    for place, token in enumerate(query):
        is_clause = not token.is_word("distinct") or (place > 0 and query[place - 1].is_word("select"))
        if token.is_word(*_NOT_OF_ROWS) and is_clause:
            raise UnsupportedForm(
                f"FOR {strength} is not allowed with {_NOT_OF_ROWS[token.value]}", position=offset + 1
            )
    relations = tuple(_relations(query))
    if cursor.accepts("of"):
        named = [cursor.name()]
        while cursor.accepts_symbol(","):
            named.append(cursor.name())
        for one in named:
            if all(one.last != relation.called for relation in relations):
                raise UndefinedTable(
                    f'relation "{one}" in FOR {strength} clause not found in FROM clause', position=one.offset + 1
                )
        wanted = {one.last for one in named}
        relations = tuple(one for one in relations if one.called in wanted)
    conflict: Literal["wait", "nowait", "skip"] = "wait"
    if cursor.accepts("nowait"):
        conflict = "nowait"
    elif cursor.accepts("skip", "locked"):
        conflict = "skip"
    return RowLock(strength, tuple(one.parts for one in relations), conflict, offset, is_nested)


def _own_tokens(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yields the tokens of a query that are in no parentheses, and the closing ones of these."""
    depth = 0
    for token in tokens:
        depth += token.is_symbol("(")
        if depth == 0:
            yield token
        elif token.is_symbol(")"):
            depth -= 1
            if depth == 0:
                yield token


def _relations(tokens: Sequence[Token]) -> Iterator[_Relation]:
    """Yields what FROM names."""
    is_from = False
    for at, token in enumerate(tokens):
        if token.is_word("from"):
            is_from = True
        elif token.is_word(*_BEHIND_FROM):
            is_from = False
        if not is_from or not (token.is_word("from", "join") or token.is_symbol(",")):
            continue
        first = at + 1 + (at + 1 < len(tokens) and tokens[at + 1].is_word("only"))
        if first >= len(tokens) or not _is_name(tokens[first]):
            continue
        parts, behind = [tokens[first].value], first + 1
        while behind + 1 < len(tokens) and tokens[behind].is_symbol("."):
            parts.append(tokens[behind + 1].value)
            behind += 2
        behind += behind < len(tokens) and tokens[behind].is_word("as")
        has_alias = behind < len(tokens) and _is_name(tokens[behind]) and not tokens[behind].is_word(*_JOINS)
        yield _Relation(tuple(parts), tokens[behind].value if has_alias else parts[-1])


def _is_name(token: Token) -> bool:
    return token.kind in (TokenKind.WORD, TokenKind.QUOTED)
