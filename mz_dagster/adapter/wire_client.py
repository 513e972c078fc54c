"""What a session asks of the client at the other end of PostgreSQL's protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from mz_dagster.adapter.kept_statements import KeptStatement
from mz_dagster.errors import IntegrityError
from mz_dagster.scalars.types import Column, ScalarType
from mz_dagster.sql import ClientFormat, Statement
from mz_dagster.sql.errors import UniqueViolation

_KEPT = 1 << 20
"""How many bytes a client may have sent for the text of a line to be told."""
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class ReceivedRows:
    """Rows that a client has sent.

    Attributes:
        columns: Their columns in their stored form.
        first_line: The line of the first of them; None where a row is not one line.
        text: What the client has sent, if that is not long and there are lines.
    """

    columns: list[pa.Array]
    first_line: int | None
    text: bytes

    @classmethod
    def of(cls, text: bytes, format: ClientFormat, columns: list[pa.Array]) -> ReceivedRows:
        """Returns rows that were read from a text."""
        if format.kind == "binary":
            return cls(columns, 1, b"")
        body = text.removesuffix(b"\\.\n")
        lines = body.count(b"\n") + (not body.endswith(b"\n") and body != b"")
        first = 1 if format.header == "no" else 2
        rows = len(columns[0]) if columns else 0
        return cls(columns, first if lines - first + 1 == rows else None, body if len(body) <= _KEPT else b"")

    def blame(self, error: IntegrityError, table: str) -> None:
        """Notes in an error the line that is to blame, as PostgreSQL's COPY does.

        As there, the line itself is not told of an error of a key, which is found after others were read.
        """
        if error.row is None or self.first_line is None:
            return
        line = self.first_line + error.row
        error.context = f"COPY {table}, line {line}"
        if self.text and not isinstance(error, UniqueViolation):
            shown = self.text.split(b"\n", line)[line - 1].decode().removesuffix("\r")
            more = "..." if len(shown) > _LONGEST_SHOWN else ""
            error.context += f': "{shown[:_LONGEST_SHOWN]}{more}"'


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

    def receive(self, format: ClientFormat, columns: Sequence[Column]) -> ReceivedRows:
        """Asks the client for rows of some columns; returns them once all have come.

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

    def kept_statements(self) -> Iterator[KeptStatement]:
        """Yields the statements that the client has prepared under a name."""
        ...

    def forget_prepared(self, name: str | None) -> bool:
        """Forgets a statement that the client has prepared, or all of them; returns whether there was one."""
        ...
