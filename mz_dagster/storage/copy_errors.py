"""What can be wrong with a file that COPY reads: its form, or the values in it."""

from __future__ import annotations

from mz_dagster.errors import DataError, OperationalError
from mz_dagster.functions import Failure
from mz_dagster.scalars.types import Column


class FileUnreadable(OperationalError):
    """A file that cannot be opened or is not of the format it was said to have; nothing was written."""

    sqlstate = "58P01"


class BadCopyFormat(DataError):
    """A line or column of a file that does not fit the table; nothing was written."""

    sqlstate = "22P04"


class NotUtf8(BadCopyFormat):
    """A file with bytes that are none of a character; nothing was written."""

    sqlstate = "22021"


class BadCopyValue(DataError):
    """A value in a file that is none of its column's type, with its SQLSTATE; nothing was written."""

    def __init__(self, message: str, *, sqlstate: str, detail: str, hint: str | None = None) -> None:
        super().__init__(message, detail=detail, hint=hint or "Correct the file; nothing was written.")
        self.sqlstate = sqlstate

    @classmethod
    def of(cls, failure: Failure, column: Column, place: str) -> BadCopyValue:
        """Returns the error of a text that spells no value of `column`; `place` names its line or row."""
        detail = f'It stands in {place}, column "{column.name}".'
        return cls(failure.message, sqlstate=failure.sqlstate, detail=detail, hint=failure.hint)
