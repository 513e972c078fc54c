"""Who sends the rows of COPY FROM STDIN, and gets those of COPY TO STDOUT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from mz_dagster.scalars.types import Column
from mz_dagster.sql import ClientFormat
from mz_dagster.storage.copy_csv import Record


class CopyClient(Protocol):
    """A client that speaks PostgreSQL's protocol of COPY."""

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
