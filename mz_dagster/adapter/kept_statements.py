"""What `pg_prepared_statements` and `pg_cursors` tell of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mz_dagster.scalars.types import ScalarType


@dataclass(frozen=True, slots=True)
class KeptStatement:
    """A prepared statement.

    Attributes:
        name: Its name.
        text: What the client has said to prepare it.
        kept_ms: When, in milliseconds of the wall clock.
        types: The types of its parameters; None of a text of any length.
        from_sql: Whether PREPARE did, not the protocol.
    """

    name: str
    text: str
    kept_ms: int
    types: Sequence[ScalarType | None]
    from_sql: bool


@dataclass(frozen=True, slots=True)
class KeptCursor:
    """A cursor that was declared.

    Attributes:
        name: Its name.
        text: The statement that declared it.
        kept_ms: When, in milliseconds of the wall clock.
        holds: Whether it outlives its transaction block.
        scrolls: Whether it can go back.
    """

    name: str
    text: str
    kept_ms: int
    holds: bool
    scrolls: bool
