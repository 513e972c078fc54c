"""`pg_cancel_backend` and `pg_terminate_backend`: a query that ends what other clients of this process do.

A query reads and does nothing else. So these are no functions that expressions could have, but a form of `SELECT`,
whose only item is the call:

    SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction';

The argument is what is queried; each row of that is then a client that is told, and becomes whether there was one. So
nobody is told anything before the query has succeeded, and each once for each row.

A role may end what is its own, and the owner everything, as in PostgreSQL.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mz_dagster.adapter.access import InsufficientPrivilege, owner_name
from mz_dagster.adapter.activity import Activity
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.select_call import SelectCall
from mz_dagster.scalars.types import BOOL, Column
from mz_dagster.sql import SqlText

_FUNCTIONS = ("pg_cancel_backend", "pg_terminate_backend")


@dataclass(frozen=True, slots=True)
class Signal:
    """A query by which clients are told to end what they do.

    Attributes:
        function: Which of the two functions it calls.
        column: What its column is called.
        query: What says which clients, by their process ids.
    """

    function: str
    column: str
    query: SqlText

    @classmethod
    def of(cls, query: SqlText) -> Signal | None:
        """Returns what a query is if it is of the form, else None.

        Example:
            >>> Signal.of(SqlText("SELECT pg_cancel_backend(7)")).query.text
            'SELECT            (7)::int4'
        """
        call = SelectCall.of(query.text, _FUNCTIONS)
        if call is None:
            return None
        return cls(call.function, call.column, replace(query, text=call.asked_as("int4")))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the result."""
        return (Column(self.column, BOOL),)

    def sent(self, asked: Result, activity: Activity, user: str) -> Result:
        """Returns the result once the clients have been told.

        Args:
            asked: What the query returned.
            activity: What this process does.
            user: The name of the role that asks.

        Raises:
            InsufficientPrivilege: A client is not the role's own; nobody has been told anything.
        """
        ids = [row[0] for row in asked.rows]
        clients = {one.client.process_id: (one.role, one.client) for _, _, one in activity.sessions() if one.client}
        for id in ids:
            if id in clients and user not in (owner_name(), clients[id][0]):
                raise InsufficientPrivilege(
                    "permission denied to cancel query"
                    if self.function == "pg_cancel_backend"
                    else "permission denied to terminate process",
                    detail="A role may end what is its own, and the owner everything.",
                )
        for id in dict.fromkeys(ids):
            if id in clients:
                _, client = clients[id]
                client.cancel() if self.function == "pg_cancel_backend" else client.terminate()
        rows = tuple((None if id is None else id in clients,) for id in ids)
        return Result(asked.tag, self.columns, rows, len(rows))
