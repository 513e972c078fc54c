"""Statements that a session has prepared under a name: by SQL's PREPARE, or by the protocol, whose client keeps those.

Both are of one name space, as in PostgreSQL: EXECUTE finds what the protocol has prepared, and the other way round.
None of them is part of a transaction, and each means what its names stand for when it is executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mz_dagster.errors import ProgrammingError
from mz_dagster.scalars.types import ScalarType
from mz_dagster.sql import Statement


class UndefinedStatement(ProgrammingError):
    """The name of a prepared statement that there is none of."""

    sqlstate = "26000"

    @classmethod
    def named(cls, name: str) -> UndefinedStatement:
        """Returns the error for a name."""
        return cls(f'prepared statement "{name}" does not exist')


class DuplicateStatement(ProgrammingError):
    """The name of a prepared statement that there is one of already."""

    sqlstate = "42P05"

    @classmethod
    def named(cls, name: str) -> DuplicateStatement:
        """Returns the error for a name."""
        return cls(f'prepared statement "{name}" already exists', hint="DEALLOCATE it, or choose another name.")


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement that was prepared.

    Attributes:
        statement: What it says.
        text: That as a text, with `?` for its parameters.
        places: Of each `?` the number of the parameter that stands there, from 0 on.
        types: Of its parameters; None of one whose type is left to where it stands.
        source: The statement that has prepared it.
        kept_ms: When it did, in milliseconds of the wall clock.
    """

    statement: Statement
    text: str
    places: tuple[int, ...]
    types: Sequence[ScalarType | None]
    source: str = ""
    kept_ms: int = 0
