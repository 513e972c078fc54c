"""The rows that transaction blocks of this server have locked, as far as others are to know before these commit.

What is locked is a table's rows all together. Nobody waits: whoever has locked a table commits only if nobody has
written it since (`transaction`), which is what a lock is for, whoever wrote it, in whichever process. What is kept here
tells those who ask not to meet a lock at all, by SKIP LOCKED or NOWAIT, of the locks of this server's clients.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from mz_dagster.errors import OperationalError
from mz_dagster.formalism import GlobalId


class LockNotAvailable(OperationalError):
    """What was to be locked at once, or not at all, is locked by others."""

    sqlstate = "55P03"

    def __init__(self, what: str) -> None:
        super().__init__(f"could not obtain lock on {what}", hint="Try again once the other transaction has ended.")


class RowLocks:
    """The locks of a server, by whom they are held."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held: dict[GlobalId, dict[object, bool]] = {}

    def take(self, holder: object, tables: Collection[GlobalId], *, shared: bool, anyway: bool) -> GlobalId | None:
        """Has a block hold locks on tables, all or none; returns a table that another has locked, and None if none.

        Args:
            holder: The block.
            tables: The tables.
            shared: Whether others may have locks of this kind, too.
            anyway: Whether to hold them whatever others hold.
        """
        with self._guard:
            taken = None if anyway else self._other(holder, tables, shared)
            if taken is None:
                for one in tables:
                    held = self._held.setdefault(one, {})
                    held[holder] = held.get(holder, True) and shared
            return taken

    def other(self, holder: object, tables: Collection[GlobalId], *, shared: bool) -> GlobalId | None:
        """Returns a table that another than a holder has locked, if one of some is."""
        with self._guard:
            return self._other(holder, tables, shared)

    def give_back(self, holder: object) -> None:
        """Forgets all locks of a block."""
        with self._guard:
            for table in [one for one, held in self._held.items() if holder in held]:
                del self._held[table][holder]
                if not self._held[table]:
                    del self._held[table]

    def _other(self, holder: object, tables: Collection[GlobalId], shared: bool) -> GlobalId | None:
        for table in tables:
            held = self._held.get(table, {})
            if any(by is not holder and not (shared and is_shared) for by, is_shared in held.items()):
                return table
        return None
