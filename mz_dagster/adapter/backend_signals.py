"""`pg_cancel_backend` and `pg_terminate_backend`: a query that ends what other clients of this process do.

A query reads and does nothing else. So these are no functions that expressions could have, but a form of `SELECT`,
whose only item is the call:

    SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction';

The argument is what is queried; each row of that is then a client that is told, and becomes whether there was one. So
nobody is told anything before the query has succeeded, and each once for each row.

A role may end what is its own, and the owner everything, as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.access import InsufficientPrivilege, owner_name
from mz_dagster.adapter.activity import Activity
from mz_dagster.adapter.result import Result
from mz_dagster.scalars.types import BOOL, Column
from mz_dagster.sql import SqlText
from mz_dagster.sql.lexer import Token, TokenKind, tokens_of

_FUNCTIONS = ("pg_cancel_backend", "pg_terminate_backend")
_CAST = "::int4"
#: What may follow the only item of a SELECT.
CLAUSES = ("from", "where", "order", "limit", "offset", "fetch")


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
        if not any(one in query.text.lower() for one in _FUNCTIONS):
            return None
        tokens = tokens_of(query.text)
        at = 3 if tokens[1].is_word("pg_catalog") and tokens[2].is_symbol(".") else 1
        if not tokens[0].is_word("select") or not tokens[at].is_word(*_FUNCTIONS):
            return None
        end = end_of_call(tokens, at + 1)
        if end is None:
            return None
        function = column = tokens[at].value
        rest = tokens[end + 1 :]
        if rest[0].is_word("as"):
            column, rest = rest[1].value, rest[2:]
        elif rest[0].kind in (TokenKind.WORD, TokenKind.QUOTED) and not rest[0].is_word(*CLAUSES):
            column, rest = rest[0].value, rest[1:]
        if not rest[:1] or (rest[0].kind is not TokenKind.END and not rest[0].is_word(*CLAUSES)):
            return None
        opening, closing = tokens[at + 1], tokens[end]
        begin = tokens[0].end
        blank = " " * (opening.start - begin - len(_CAST))
        text = query.text
        asked = f"{text[:begin]}{blank}{text[opening.start : closing.end]}{_CAST}{text[closing.end :]}"
        return cls(function, column, replace(query, text=asked))

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


def end_of_call(tokens: Sequence[Token], opening: int, *, several: bool = False) -> int | None:
    """Returns the number of the parenthesis that closes a call; None if it is none of one argument, or of several."""
    depth = 0
    for number in range(opening, len(tokens)):
        depth += tokens[number].is_symbol("(", "[") - tokens[number].is_symbol(")", "]")
        if depth == 1 and not several and tokens[number].is_symbol(","):
            return None
        if depth == 0:
            return number if number > opening + 1 else None
    return None
