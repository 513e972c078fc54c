"""Tables that are made of what is stored, kept from one step to the next.

A step's joins look little collections up whole: a dimension is read, filtered and consolidated for each join over it,
in each step, though it changes once a month. `KeptTables` keeps what was made of it.

Invariant: a table is found only under the very files that it was made of, by their hashes, as `hot_files` has it, or
if these are the first of what there is: what came since can be added. One is kept for each key, of the files that were
given last.

Memory: a part of what columns of files may take, besides.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa

from mz_dagster.budget import budget

#: The part of `hot_bytes` that they may take.
_PART = 8


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table that is kept.

    Attributes:
        files: The hashes of the files that it was made of.
        table: It.
        as_of: Equal updates of it were summed as far as their times are not beyond this one, at which they all are.
        upper: All updates before this time are in it.
        loose: About how many updates came since, which may cancel others.
    """

    files: tuple[str, ...]
    table: pa.Table
    as_of: int
    upper: int
    loose: int


class KeptTables:
    """Keeps tables by what they are of, the least lately used first to go. Safe for use from several threads.

    Args:
        hot_bytes: What columns of files may take; by default as the budget says.
    """

    def __init__(self, hot_bytes: int | None = None) -> None:
        self._hot_bytes = hot_bytes
        self._lock = threading.Lock()
        self._kept: dict[Hashable, KeptTable] = {}
        self._bytes = 0

    def find(self, key: Hashable, files: tuple[str, ...]) -> KeptTable | None:
        """Returns the table under a key, if it was made of these files, or of the first of them."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                self._kept[key] = found
        return found if found is not None and found.files == files[: len(found.files)] else None

    def keep(self, key: Hashable, made: KeptTable) -> None:
        """Keeps a table instead of the one under its key, unless it is too large."""
        most = (budget().hot_bytes if self._hot_bytes is None else self._hot_bytes) // _PART
        size = made.table.nbytes
        with self._lock:
            self._forget(key)
            if size > most // _PART:
                return
            while self._kept and self._bytes + size > most:
                self._forget(next(iter(self._kept)))
            self._kept[key] = made
            self._bytes += size

    def _forget(self, key: Hashable) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= found.table.nbytes
