"""Pipelines: messages of extended queries up to a Sync, which are one transaction.

A statement that a Sync follows at once is a transaction of its own, which is tried again if others were faster, and is
sealed together with what others write. So of each Execute it has to be known what follows before it is carried out. No
client may wait for its answer before it has sent a Flush or a Sync, but for that of COPY FROM STDIN, for which it is
asked for rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pygwire import messages

from mz_dagster.sql import Discard, Statement
from mz_dagster.sql.statements import Maintenance


def runs_alone(statement: Statement) -> bool:
    """Returns whether a statement is no part of a block in PostgreSQL, so that none begins with it."""
    is_vacuum = isinstance(statement, Maintenance) and statement.what == "VACUUM"
    return is_vacuum or (isinstance(statement, Discard) and statement.what == "all")


class Pipeline:
    """Yields what a client sends, an Execute only once it is known what follows it; iterating it ends with the client.

    Attributes:
        ends: Whether the last Execute that it has yielded is followed by a Sync.

    Args:
        received: The messages; None where there is none yet.
        asks_for_rows: Returns whether an Execute is of COPY FROM STDIN.
    """

    def __init__(
        self, received: Iterator[messages.PGMessage | None], asks_for_rows: Callable[[messages.Execute], bool]
    ) -> None:
        self.ends = False
        self._received = received
        self._asks_for_rows = asks_for_rows
        self._put_off: messages.Execute | None = None
        self._next: messages.PGMessage | None = None

    def __iter__(self) -> Iterator[messages.PGMessage | None]:
        return self

    def __next__(self) -> messages.PGMessage | None:
        found, self._next = self._next or next(self._received), None
        if self._put_off is None:
            if not isinstance(found, messages.Execute):
                return found
            self._put_off, found = found, next(self._received)
        if found is None and not self._asks_for_rows(self._put_off):
            return None
        execute, self._put_off, self._next = self._put_off, None, found
        self.ends = isinstance(found, messages.Sync)
        return execute

    def forget_sync(self) -> None:
        """Passes over the Sync or Flush behind the last Execute, of who did not know that it is a COPY FROM STDIN."""
        if isinstance(self._next, messages.Sync | messages.Flush):
            self._next = None
