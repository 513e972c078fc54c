"""What a session asks of the client at the other end of PostgreSQL's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from mz_dagster.scalars.types import Column, ScalarType
from mz_dagster.sql import ClientFormat, Statement


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

    def receive(self, format: ClientFormat, columns: Sequence[Column]) -> list[pa.Array]:
        """Asks the client for rows of some columns; returns the columns in their stored form once all have come.

        Args:
            format: How the client writes them.
            columns: Their columns, in order.

        Raises:
            BadCopyFormat: They are not written so.
            BadCopyValue: A cell is no value of its column.
            CopyEnded: The client has given up.
        """
        ...

    def prepared_statement(
        self, name: str
    ) -> tuple[Statement, str, tuple[int, ...], Sequence[ScalarType | None]] | None:
        """Returns a statement that the client has prepared, as the protocol does; None if there is none of the name.

        It is followed by its text with `?`, of each of which comes the number of a parameter, and what is said of their
        types.
        """
        ...

    def forget_prepared(self, name: str | None) -> bool:
        """Forgets a statement that the client has prepared, or all of them; returns whether there was one."""
        ...
