"""The statement that would create an object as it is now: the user's own text, under the names of today.

An object keeps the text that created it, and is bound to ids. Where it, or what it reads, has another name by now,
that name is written in the old one's place, and everything else is left as it was: a relation keeps its old name as an
alias.
"""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import ObjectRow
from mz_dagster.sql import (
    CreateIndex,
    CreateMaterializedView,
    CreateSource,
    CreateTable,
    CreateView,
    bind_definition,
    parse,
)
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.lexer import Token, TokenKind, tokens_of

#: From one offset to another, what to write instead.
_Edit = tuple[int, int, str]


def create_sql(engine: Engine, row: ObjectRow) -> str:
    """Returns the statement that would create an object anew."""
    text = row.sql
    for start, end, written in sorted(_edits(engine, row), reverse=True):
        text = text[:start] + written + text[end:]
    return text


def _edits(engine: Engine, row: ObjectRow) -> Iterator[_Edit]:
    (statement,) = parse(row.sql)
    tokens = tokens_of(row.sql)
    assert isinstance(statement, CreateSource | CreateTable | CreateView | CreateMaterializedView | CreateIndex)
    assert row.name is not None, "what is shown was found by its name"
    if statement.name is not None and statement.name.last != row.name:
        yield *_span(tokens, statement.name.offset), quoted(row.name)
    if isinstance(statement, CreateView | CreateMaterializedView):
        resolver = engine.definitions.as_created(row)
        for position, name in bind_definition(statement.query, statement.columns, resolver).uses:
            now = engine.catalog.object(row.dependencies[name]).name
            start, end = _span(tokens, position - 1)
            last = name.rpartition(".")[2]
            if now is not None and now != last:
                yield start, end, quoted(now) if _has_alias(tokens, end) else f"{quoted(now)} AS {quoted(last)}"
    if isinstance(statement, CreateIndex):
        on = engine.catalog.object(row.dependencies[str(statement.on)]).name
        if on is not None and on != statement.on.last:
            yield *_span(tokens, statement.on.offset), quoted(on)
        if statement.name is None and (on != statement.on.last or row.name != row.created_as):
            before = next(one for one in tokens if one.is_word("on")).start
            yield before, before, f"{quoted(row.name)} "


def _span(tokens: tuple[Token, ...], start: int) -> tuple[int, int]:
    """Returns where the possibly qualified name that begins at an offset begins and ends."""
    at = next(i for i, token in enumerate(tokens) if token.start == start)
    while tokens[at + 1].is_symbol("."):
        at += 2
    return start, tokens[at].end


_NO_ALIAS = (
    "where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union", "intersect", "except",
    "join", "inner", "left", "right", "full", "cross", "natural", "on", "using", "tablesample", "qualify", "options",
)  # fmt: skip


def _has_alias(tokens: tuple[Token, ...], end: int) -> bool:
    """Returns whether the relation whose name ends at an offset has an alias."""
    behind = next(token for token in tokens if token.start >= end)
    return behind.kind is TokenKind.QUOTED or (behind.kind is TokenKind.WORD and behind.value not in _NO_ALIAS)
