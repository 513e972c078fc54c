"""What a session asks of the client at the other end of PostgreSQL's protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from mz_dagster.errors import ProgrammingError
from mz_dagster.scalars.types import Column
from mz_dagster.sql import ClientFormat
from mz_dagster.storage.copy_csv import Record


class UndefinedStatement(ProgrammingError):
    """The name of a prepared statement that there is none of."""

    sqlstate = "26000"


class WireClient(Protocol):
    """A client that speaks PostgreSQL's protocol: the other end of COPY, and the owner of prepared statements.

    Attributes:
        process_id: What it knows its connection by.
    """

    process_id: int

    @property
    def address(self) -> str:
        """Where it is."""
        ...

    def cancel(self) -> None:
        """Ends what it executes, if it does."""
        ...

    def terminate(self) -> None:
        """Ends its connection."""
        ...

    def receive(self, format: ClientFormat, columns: Sequence[Column]) -> Iterator[Record]:
        """Asks the client for rows of some columns, and yields them once all have come.

        Args:
            format: How the client writes them.
            columns: Their columns, in order.

        Raises:
            BadCopyFormat: They are not written so.
            CopyEnded: The client has given up.
        """
        ...

    def forget_prepared(self, name: str | None) -> bool:
        """Forgets a statement that the client has prepared, or all of them; returns whether there was one."""
        ...
