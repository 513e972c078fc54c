"""`pg_advisory_lock` and its like: a query that takes locks of the session, or gives them back.

A query reads and does nothing else. So they are no functions that expressions could have, but forms of `SELECT`, whose
only item is the call:

    SELECT pg_try_advisory_lock(42);
    SELECT pg_advisory_xact_lock(1, 2) AS locked;
    SELECT pg_advisory_unlock_all();

Its arguments are what is queried, a bigint or two integers; each row of that then takes a lock, or gives it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.advisory_locks import Hold, SessionLocks
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.select_call import SelectCall
from mz_dagster.notices import warn
from mz_dagster.scalars.scalar import Value
from mz_dagster.scalars.types import BOOL, TEXT, Column
from mz_dagster.sql import SqlText

_TAKES = ("pg_advisory_lock", "pg_try_advisory_lock", "pg_advisory_xact_lock", "pg_try_advisory_xact_lock")
_GIVES, _GIVES_ALL = "pg_advisory_unlock", "pg_advisory_unlock_all"
_MOST = 2
"""How many numbers a lock has."""
#: Those that lock alone, and those that share.
_FUNCTIONS = (_GIVES_ALL, *_TAKES, _GIVES, *(f"{one}_shared" for one in (*_TAKES, _GIVES)))


@dataclass(frozen=True, slots=True)
class AdvisoryCall:
    """A query that takes locks or gives them back.

    Attributes:
        function: Which function it calls.
        column: What its column is called.
        query: What says which locks, by their numbers.
    """

    function: str
    column: str
    query: SqlText

    @classmethod
    def of(cls, query: SqlText) -> AdvisoryCall | None:
        """Returns what a query is if it is of the form, else None.

        Example:
            >>> AdvisoryCall.of(SqlText("SELECT pg_advisory_lock(1, 2) AS x")).query.text
            'SELECT        (1)::int4,( 2)::int4'
        """
        call = SelectCall.of(query.text, _FUNCTIONS, several=True, none=True)
        if call is None or len(call.commas) >= _MOST:
            return None
        if (call.function == _GIVES_ALL) != (not call.has_arguments):
            return None
        return cls(call.function, call.column, replace(query, text=call.asked_as("int4" if call.commas else "int8")))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result."""
        return (Column(self.column, BOOL if self._tells else TEXT),)

    @property
    def _tells(self) -> bool:
        return self.function.startswith(("pg_try_", _GIVES)) and self.function != _GIVES_ALL

    def carried_out(self, asked: Result, locks: SessionLocks) -> Result:
        """Returns the result once the locks are taken, or given back.

        Args:
            asked: What the query returned.
            locks: The session's.

        Raises:
            DeadlockDetected: Who holds a lock waits for this session.
        """
        rows = tuple((self._done(row, locks),) for row in asked.rows)
        return Result(asked.tag, self.columns, rows, len(rows))

    def _done(self, key: Sequence[int | None], locks: SessionLocks) -> Value:
        if self.function == _GIVES_ALL:
            locks.give_back_own()
            return ""
        numbers = tuple(one for one in key if one is not None)
        if len(numbers) < len(key):
            return None
        is_shared = self.function.endswith("_shared")
        if self.function.startswith(_GIVES):
            found = locks.give_back(numbers, is_shared=is_shared)
            if not found:
                warn(f"you don't own a lock of type {'Share' if is_shared else 'Exclusive'}Lock", "01000")
            return found
        found = locks.take(numbers, Hold(is_shared, "_xact_" in self.function), waits=not self._tells)
        return found if self._tells else ""
