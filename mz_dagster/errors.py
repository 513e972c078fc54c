"""The one error hierarchy, which is also PEP 249's.

Owns the base classes from which every layer derives errors that name the broken fact
(`UpdateNotBeyondLower`, `NameTaken`). The three kinds of the design are kept apart:

- the caller broke a documented rule: `ProgrammingError`, `NotSupportedError`, `DataError`.
  Never retried.
- the outside world failed: `OperationalError`, which says whether the attempt may have taken
  effect, since that decides whether a retry is safe.
- we broke an invariant: `InternalError`.

Message grammar is PostgreSQL's: the message is lower case, has no full stop, quotes names and tells
no internals; detail and hint are sentences. Expected outcomes (an upper that moved, a lost
race) are values, not exceptions.
"""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """Is the base of all errors this package raises on purpose.

    Attributes:
        message: What is wrong, in PostgreSQL's grammar.
        detail: A sentence with the facts, or None.
        hint: A sentence that says what to do, or None.
        position: The 1-based character offset in the SQL text that is to blame, or None.
        sqlstate: The five-character SQLSTATE code of the class.

    Example:
        >>> print(ProgrammingError("no such thing", hint="Create it."))
        no such thing
        HINT: Create it.
    """

    sqlstate: ClassVar[str] = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position

    def __str__(self) -> str:
        lines = [self.message if self.position is None else f"{self.message} at character {self.position}"]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)


class InterfaceError(Error):
    """Reports a misuse of the Python interface itself, such as a closed connection."""

    sqlstate = "08003"


class DatabaseError(Error):
    """Is PEP 249's base of everything that is about the database."""


class ProgrammingError(DatabaseError):
    """Reports that the caller broke a documented rule; repeating the call cannot help."""

    sqlstate = "42000"


class NotSupportedError(DatabaseError):
    """Reports a form that is legal SQL but is refused, with the reason."""

    sqlstate = "0A000"


class DataError(DatabaseError):
    """Reports an error that is part of the data: reading the collection cannot succeed until it heals."""

    sqlstate = "22000"


class IntegrityError(DatabaseError):
    """Reports a write that would break a declared constraint."""

    sqlstate = "23000"


class OperationalError(DatabaseError):
    """Reports that the outside world failed.

    Attributes:
        may_have_taken_effect: True if the failed attempt may nevertheless have been carried out; only
            when it is False is a blind retry safe for an operation that is not idempotent.
    """

    sqlstate = "58000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        may_have_taken_effect: bool = False,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint, position=position)
        self.may_have_taken_effect = may_have_taken_effect


class InternalError(DatabaseError):
    """Reports that we broke an invariant of our own; always a bug."""

    sqlstate = "XX000"
