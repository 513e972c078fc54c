"""Why something cannot be bound, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """Says why something cannot be bound; a value, because the binder knows the position to report.

    Attributes:
        sqlstate: PostgreSQL's code.
        message: PostgreSQL's message.
        hint: What to do, or None.
    """

    sqlstate: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.sqlstate} {self.message}"
