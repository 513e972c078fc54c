"""Tables that are open already: their newest snapshots, for a fraction of what opening them anew costs.

To open a table reads its newest checkpoint and every commit after it; to bring an open one up to date reads what came
since. Invariant: a table that is lent is as new as one opened at that moment, and nobody else's until it is given back.
One whose log is not the folder that it was opened from is forgotten: the log was made anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from mz_dagster.storage.batch_stats import in_one_line
from mz_dagster.storage.shards import ShardUnavailable
from mz_dagster.storage.table_place import InStore
from mz_dagster.storage.table_sync import LOG

#: How often opening a table is tried: between a look at a log and its reading it may be cut, behind a new checkpoint.
_TRIES = 5
#: How many tables are kept open at most; those least lately used are closed.
MOST_TABLES = 500


def open_table(path: Path | InStore) -> DeltaTable | None:
    """Returns the newest snapshot of the table at `path`, or None if there is no table.

    Raises:
        ShardUnavailable: There is one that cannot be read.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            return path.opened() if isinstance(path, InStore) else DeltaTable(str(path))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            if attempt == _TRIES:
                told = path.message_of(error) if isinstance(path, InStore) else in_one_line(error)
                raise ShardUnavailable(
                    f'cannot open the shard at "{path}": {told}',
                    hint="Check that the folder is there and can be read. If its log is damaged, see what "
                    '"mz-dagster doctor" says.',
                ) from error
    raise AssertionError("the last attempt returns or raises")


def up_to_date(path: Path | InStore, table: DeltaTable) -> DeltaTable | None:
    """Returns a table's newest snapshot, where it costs little the same object.

    Raises:
        ShardUnavailable: It cannot be read.
    """
    try:
        table.update_incremental()
    except (DeltaError, OSError):
        return open_table(path)  # which tells what is wrong, if anything is
    return table


class _Idle(NamedTuple):
    """A table that nobody uses, and what tells its log's folder from another under the same name."""

    table: DeltaTable
    log: tuple[int, int]


class OpenTables:
    """Lends tables, open and up to date. Safe for use from several threads, each of which gets one of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: In the order in which they were given back.
        self._idle: dict[Path | InStore, list[_Idle]] = {}

    @contextmanager
    def newest(self, path: Path | InStore) -> Iterator[DeltaTable | None]:
        """Yields the newest snapshot of the table at `path`, or None if there is no table.

        After an error in the block the table is not used again.

        Raises:
            ShardUnavailable: There is one that cannot be read.
        """
        with self.lent(path, is_newest=True) as table:
            yield table

    @contextmanager
    def lent(self, path: Path | InStore, *, is_newest: bool = False) -> Iterator[DeltaTable | None]:
        """Yields a snapshot as `newest` does; any, unless the newest is asked for.

        To append blindly any will do: what was committed since is looked at by the commit, after which the snapshot is
        as new as that.
        """
        idle = self._taken(path)
        table = idle
        if idle is None:
            table = open_table(path)
        elif is_newest:
            table = up_to_date(path, idle)
        yield table
        if table is not None:
            self._give_back(path, table)

    def _taken(self, path: Path | InStore) -> DeltaTable | None:
        with self._lock:
            idle = self._idle.get(path)
            found = idle.pop() if idle else None
        return None if found is None or found.log != _identity(path) else found.table

    def _give_back(self, path: Path | InStore, table: DeltaTable) -> None:
        log = _identity(path)
        if log is None:
            return
        with self._lock:
            self._idle[path] = [*self._idle.pop(path, []), _Idle(table, log)]
            while len(self._idle) > MOST_TABLES:
                del self._idle[next(iter(self._idle))]


def _identity(path: Path | InStore) -> tuple[int, int] | None:
    if isinstance(path, InStore):
        return 0, 0  # what is made anew there goes on with the numbers of the old log
    try:
        found = (path / LOG).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
