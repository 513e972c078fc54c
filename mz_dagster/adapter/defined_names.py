"""The names of what statements create, told from their first words, although the rest of them is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.sql.lexer import Token, TokenKind
from mz_dagster.sql.schemas import PUBLIC, key_of

#: What stands between CREATE and the name.
_BEFORE_NAME = (
    "or",
    "replace",
    "source",
    "table",
    "view",
    "materialized",
    "default",
    "index",
    "sink",
    "check",
    "if",
    "not",
    "exists",
    "type",
    "connection",
    "secret",
)


def defined_names(tokens: Sequence[Token]) -> list[str | None]:
    """Returns the name that each CREATE among these gives an object; None if it cannot be told.

    Example:
        >>> from mz_dagster.sql.lexer import tokens_of
        >>> defined_names(tokens_of("CREATE TABLE s.t (a nonsense; CREATE INDEX ON t (a)"))
        ['s.t', None]
    """
    return [_name_in(tokens[n:]) for n, token in enumerate(tokens) if token.is_word("create")]


def _name_in(tokens: Sequence[Token]) -> str | None:
    """Returns the name that a statement's first words give an object."""
    at, schema = 1, PUBLIC
    while at < len(tokens) and tokens[at].is_word(*_BEFORE_NAME):
        at += 1
    while at + 2 < len(tokens) and tokens[at + 1].is_symbol("."):
        at, schema = at + 2, tokens[at].value
    named = 1 < at < len(tokens) and tokens[at].kind in (TokenKind.WORD, TokenKind.QUOTED)
    return key_of(schema, tokens[at].value) if named and not tokens[at].is_word("on") else None
