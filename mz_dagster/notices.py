"""What a statement tells beside its result, which is no error: PostgreSQL's notices and warnings.

Whoever does a part of a statement tells; whoever executes it chooses who hears. Where nobody does, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a statement tells.

    Attributes:
        message: What, with PostgreSQL's grammar: lower case, no full stop, names quoted.
        severity: How important that is.
        sqlstate: Its code.
        detail: Sentences that say more.
    """

    message: str
    severity: Literal["NOTICE", "WARNING"] = "NOTICE"
    sqlstate: str = "00000"
    detail: str | None = None

    def __str__(self) -> str:
        return f"{self.severity}:  {self.message}" + (f"\nDETAIL:  {self.detail}" if self.detail else "")


_HEARD: ContextVar[Callable[[Notice], object] | None] = ContextVar("notices", default=None)


@contextmanager
def heard_by(hear: Callable[[Notice], object]) -> Iterator[None]:
    """Has `hear` be given what is told in the block."""
    token = _HEARD.set(hear)
    try:
        yield
    finally:
        _HEARD.reset(token)


def tell(message: str, sqlstate: str = "00000", *, detail: str | None = None) -> None:
    """Tells that something was not as the statement says, or more than it says: a notice."""
    _tell(Notice(message, "NOTICE", sqlstate, detail))


def warn(message: str, sqlstate: str) -> None:
    """Tells that a statement did nothing of what it is for: a warning."""
    _tell(Notice(message, "WARNING", sqlstate))


def _tell(notice: Notice) -> None:
    hear = _HEARD.get()
    if hear is not None:
        hear(notice)
