"""Trees of queries and expressions that are bound again and again: of statements that write, of tables' definitions.

Binders may add to a tree only what they would add again.

Memory: the trees of up to `_MOST` short texts, and of the last long one, which is bound to be described and to be
executed: some 50 MB at most.
"""

from __future__ import annotations

from functools import lru_cache

from mz_dagster.sql.body_parser import Body, parse_body, parse_scalar
from mz_dagster.sql.parse_cache import kept_by_length
from mz_dagster.sql.statements import SqlText

_MOST = 256
_LONGEST = 131_072


@kept_by_length(most=_MOST, most_long=1, longest=_LONGEST)
def body_of(text: SqlText) -> Body:
    """Returns the tree of a query, as `parse_body` does."""
    return parse_body(text)


@lru_cache(_MOST)
def scalar_body_of(text: SqlText) -> Body:
    """Returns the tree of an expression of a definition, as `parse_scalar` does."""
    return parse_scalar(text)
