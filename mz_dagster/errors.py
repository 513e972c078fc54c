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

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self


class Warning(Exception):
    """PEP 249's class for warnings; none is raised, but `messages` of cursors and connections are such."""


class Error(Exception):
    """The base of all errors this package raises on purpose.

    Attributes:
        message: What is wrong, in PostgreSQL's grammar.
        detail: A sentence with the facts, or None.
        hint: A sentence that says what to do, or None.
        context: Where it was found, as PostgreSQL's CONTEXT; None until that is known.
        position: The 1-based character offset in the SQL text that is to blame, or None.
        line: The line of the text on which that is, or the failed statement of several begins; None until it is known.
        column: The character of the line, from 1; None until it is known.
        sqlstate: The five-character SQLSTATE code: that of the class, or of the data where the data say which.

    Example:
        >>> print(ProgrammingError("no such thing", hint="Create it."))
        no such thing
        HINT: Create it.
    """

    sqlstate: str = "XX000"
    context: str | None = None
    line: int | None = None
    column: int | None = None
    _place: str | None = None

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
        return "\n".join(self._lines())

    def shown(self) -> str:
        """Returns the error as psql shows one to a person: with the line to blame, where `point_out` has noted it."""
        first, *others = self._lines()
        return "\n".join((f"ERROR: {first}", *getattr(self, "__notes__", ()), *others))

    def _lines(self) -> list[str]:
        place = self._place
        if place is None and self.position is not None:
            place = f"at character {self.position}"
        lines = [self.message if place is None else f"{self.message} {place}"]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        if self.context:
            lines.append(f"CONTEXT: {self.context}")
        return lines

    def point_out(self, sql: str, start: int | None = None) -> None:
        """Notes the line and the column of `sql` that are to blame, and the line itself with a caret, as psql does.

        Tracebacks show the note, and `shown`. The message says the line and column where the text has several lines.

        Args:
            sql: The whole text.
            start: The offset of the failed statement, if there are several: what is said of an error without a place.
        """
        offset = start if self.position is None else self.position - 1
        if offset is None:
            self.line = self.column = self._place = None  # of another text, if the error was raised before
            return
        self.line, self.column = line, column = line_and_column(sql, offset)
        if self.position is None:
            self._place = f"in the statement at line {line}, column {column}"
            return
        self._place = f"at line {line}, column {column}" if "\n" in sql.rstrip() else None
        if getattr(self, "__notes__", None):
            return
        before = column - 1
        first = max(0, before - _SHOWN_AROUND)
        end = sql.find("\n", offset)
        shown = sql[offset - before + first : min(len(sql) if end < 0 else end, offset + _SHOWN_AROUND)]
        shown = f"{'...' if first else ''}{shown}".replace("\t", " ")
        label = f"LINE {line}: "
        self.add_note(f"{label}{shown}\n{' ' * (len(label) + before - first + (3 if first else 0))}^")

    def point_out_file(self, file: str) -> None:
        """Notes what the file is called that holds the text."""
        if self.line is not None:
            place = self._place or f"at line {self.line}, column {self.column}"
            self._place = f"{place} of {file}"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    r"""Returns the line and the column, each from 1, of an offset in a text.

    Example:
        >>> line_and_column("SELECT 1;\nSELCT 2", 10)
        (2, 1)
    """
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


#: How many characters of a line are shown before and behind what is to blame in it.
_SHOWN_AROUND = 60


class InterfaceError(Error):
    """A misuse of the Python interface itself, such as a closed connection."""

    sqlstate = "08003"


class DatabaseError(Error):
    """PEP 249's base of everything that is about the database."""


class ProgrammingError(DatabaseError):
    """The caller broke a documented rule; repeating the call cannot help."""

    sqlstate = "42000"


class NotSupportedError(DatabaseError):
    """A form that is legal SQL but is refused, with the reason."""

    sqlstate = "0A000"


class DataError(DatabaseError):
    """An error that is part of the data: reading the collection cannot succeed until it heals."""

    sqlstate = "22000"


class IntegrityError(DatabaseError):
    """A write that would break a declared constraint.

    Attributes:
        blamed: The names of what is to blame, as far as they are known: "schema", "table", "column", "constraint".
        row: The place among the statement's new rows of the one that is to blame, from 0 on; None if it is not known.
    """

    sqlstate = "23000"
    blamed: Mapping[str, str] = MappingProxyType({})
    row: int | None = None

    def about(self, **names: str) -> Self:
        """Returns the error, with the names of what is to blame."""
        self.blamed = names
        return self

    def of_row(self, row: int) -> Self:
        """Returns the error, with the place of the row that is to blame."""
        self.row = row
        return self


class OperationalError(DatabaseError):
    """The outside world failed.

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


class DamageError(OperationalError):
    """Durable state that is not what was written: a file, a log or a row of the catalog.

    Nothing is answered from it. Every such error says what is damaged, and has a way back.

    Attributes:
        collection: The id of the collection whose it is; None if it is no one's.
    """

    sqlstate = "XX001"
    collection: str | None = None

    def __init__(self, message: str, *, detail: str | None = None) -> None:
        super().__init__(
            message,
            detail=detail,
            hint='"mz-dagster doctor --deep" finds all that is damaged, and says how to get it back.',
        )


class InternalError(DatabaseError):
    """We broke an invariant of our own; always a bug."""

    sqlstate = "XX000"


def first_line(error: BaseException) -> str:
    r"""Returns the first line of what another's error says, without a full stop.

    Example:
        >>> first_line(ValueError("No magic bytes.\nIs it a file?"))
        'No magic bytes'
    """
    return str(error).partition("\n")[0].rstrip(".")


def one_line(error: Error) -> str:
    """Returns what an error says, its detail and its hint in one line.

    Example:
        >>> one_line(ProgrammingError("no such thing", hint="Create it."))
        'no such thing. Create it.'
    """
    said = (error.message, error.detail, error.hint)
    return " ".join(f"{part.rstrip('.')}." for part in said if part).replace("\n", " ")
