"""Stories that views are told: a table, views of it, and what is written into it; PostgreSQL is told the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Story:
    """Is a table, views of it, and what is written into it, as SQL that means the same here and in PostgreSQL.

    Attributes:
        table: What creates the table.
        views: The queries of views, by name.
        writes: Statements, each at a time of its own.
        asked: Queries with a whole order, asked once, at the end.
    """

    table: str
    views: Mapping[str, str]
    writes: Sequence[str]
    asked: Sequence[str] = ()
