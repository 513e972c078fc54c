"""Trees of queries and expressions that are bound again and again: of statements that write, of tables' definitions.

Binders may add to a tree only what they would add again.

Memory: the trees of up to `_MOST` texts of at most `_LONGEST` characters, and of the last longer one, which is bound to
be described and to be executed: some 50 MB at most.
"""

from __future__ import annotations

from functools import lru_cache

from mz_dagster.budget import budget
from mz_dagster.sql.body_parser import Body, parse_body, parse_scalar
from mz_dagster.sql.statements import SqlText

_MOST = 256
_LONGEST = 4_096
_LONGEST_LONG = 131_072


def body_of(text: SqlText) -> Body:
    """Returns the tree of a query, as `parse_body` does."""
    if len(text.text) > _LONGEST_LONG:
        return parse_body(text)
    known = _known_body if len(text.text) <= _LONGEST else _known_long_body
    return known(text, budget().compared_constants)  # which the lexer goes by


@lru_cache(_MOST)
def scalar_body_of(text: SqlText) -> Body:
    """Returns the tree of an expression of a definition, as `parse_scalar` does."""
    return parse_scalar(text)


@lru_cache(_MOST)
def _known_body(text: SqlText, _: int) -> Body:
    return parse_body(text)


@lru_cache(1)
def _known_long_body(text: SqlText, _: int) -> Body:
    return parse_body(text)
