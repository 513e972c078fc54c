"""Dagster's own storage on SQLite, for a process that has much to record: it prepares nothing anew for each event.

Dagster's makes an engine and opens the database for each event, in each of the two databases that an event of an asset
goes to: statements are compiled anew, and whoever closes a database last moves its log into it and removes the log.
Here a connection stays, with the statements that were compiled for it, and what is told *together* is one transaction
in each database.

The databases are Dagster's, as it makes and migrates them, in the same folder: other processes read and write them at
the same time by Dagster's own storage. What is told is durable once it is told, or, together, once the block ends.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg
from alembic.script import ScriptDirectory
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData

from mz_dagster.disk import scratch_folder, sync, sync_tree

#: The database of what is told across runs, beside which each run has its own.
_INDEX = "index"
#: The folders that Dagster keeps its databases in; and where files are in memory, on Linux.
_PARTS, _MEMORY = ("history", "schedules"), Path("/dev/shm")
#: Of how many runs, the newest, the databases are kept open, beside that one and the one of what no run tells.
_RUNS = 2
#: The scripts of migrations by their folder, and what the thread holds that has Dagster use them.
_migrations: dict[str | None, Any] = {}
_patching = threading.RLock()


def told_together(instance: dg.DagsterInstance) -> AbstractContextManager[None]:
    """Returns a block in which what this thread tells an instance is told at its end, all of it or, if it fails, none.

    If the instance keeps its events elsewhere than `instance_keeping` has them kept, each is told as ever.
    """
    log = instance.event_log_storage
    return log.together() if isinstance(log, KeptEventLog) else nullcontext()


def instance_keeping(home: Path) -> dg.DagsterInstance:
    """Opens the instance of a folder; if its storage is Dagster's own on SQLite, by what this module makes of it."""
    ref = InstanceRef.from_dir(str(home))
    kept = keeping(ref)
    with _migrations_read_once():
        if kept is not ref and kept.storage_data is not None:
            _make_databases(Path(kept.storage_data.config_dict["base_dir"]))
        return dg.DagsterInstance.from_ref(kept)


def keeping(ref: InstanceRef) -> InstanceRef:
    """Returns how to open an instance by what this module makes of its storage; as before if that is another one."""
    data = ref.storage_data
    if data is None or data.class_name != DagsterSqliteStorage.__name__:
        return ref
    return ref._replace(storage_data=ConfigurableClassData(__name__, KeptSqliteStorage.__name__, data.config_yaml))


@contextmanager
def _migrations_read_once() -> Iterator[None]:
    """Has Dagster keep, for the length of a block, the scripts of its migrations that a process has read.

    It asks for the newest one's number twelve times to make and open an instance, and once for the database of each
    run, and reads all hundred of them each time.
    """
    scripts: Any = ScriptDirectory
    with _patching:
        before, read = vars(scripts)["from_config"], scripts.from_config

        def kept(config: Any) -> Any:
            place = config.get_main_option("script_location")
            if place not in _migrations:
                _migrations[place] = read(config)
            return _migrations[place]

        scripts.from_config = kept
        try:
            yield
        finally:
            scripts.from_config = before


def _make_databases(base: Path) -> None:
    """Makes the databases of an instance that has none, and puts them in their place whole.

    Dagster makes them by two hundred statements, each of which the disk is waited for; in memory it is not.
    """
    if any((base / part).exists() for part in _PARTS):
        return
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix="mz-dagster-", dir=memory) as made, scratch_folder(base, ".made-") as draft:
        DagsterSqliteStorage.from_local(made).dispose()
        for part in _PARTS:
            shutil.copytree(Path(made, part), draft / part)
        sync_tree(draft)
        for part in _PARTS:
            with suppress(OSError):  # another process was first, or Dagster makes it now
                (draft / part).rename(base / part)
        sync(base)


class KeptEventLog(SqliteEventLogStorage):
    """The events of an instance, by connections that stay; one thread uses it at a time, as with Dagster's own."""

    def __init__(self, base_dir: str) -> None:
        self._turn = threading.RLock()
        self._kept: dict[str, _Kept] = {}
        self._joint: dict[str, Any] | None = None
        super().__init__(base_dir)

    def run_connection(self, run_id: str | None = None) -> Any:
        """Returns a transaction in the database of a run, or of no run."""
        return self._transaction(run_id or "")

    def index_connection(self) -> Any:
        """Returns a transaction in the database of what is told across runs."""
        return self._transaction(_INDEX)

    def store_event_batch(self, events: Sequence[Any]) -> None:
        """Stores events together."""
        with self.together():
            super().store_event_batch(events)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Makes what this thread writes in a block one transaction in each database; none of it stays if it fails.

        They are committed in the order in which they were begun: of an event, what is seen across runs comes last.
        """
        with self._turn:
            if self._joint is not None:
                yield
                return
            begun: dict[str, Any] = {}
            self._joint = begun
            try:
                yield
                self._joint = None
                for transaction in begun.values():
                    transaction.commit()
            except BaseException:
                self._joint = None
                for shard in begun:
                    self._let_go(shard)
                raise

    @contextmanager
    def _transaction(self, shard: str) -> Iterator[Any]:
        with self._turn:
            connection = self._connection(shard)
            if self._joint is not None:
                if shard not in self._joint:
                    self._joint[shard] = connection.begin()
                yield connection
                return
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                self._let_go(shard)
                raise

    def _connection(self, shard: str) -> Any:
        """Returns a connection to a database, which is made if it is not there."""
        path = Path(self.path_for_shard(shard))
        if shard in self._kept and not self._kept[shard].is_to(path):
            self._let_go(shard)
        if shard not in self._kept:
            if shard != _INDEX and not path.exists():
                _make_like(path, Path(self.path_for_shard(_INDEX)))
            with super().run_connection(shard) as connection:  # of what is there, it only looks at the version
                engine = connection.engine
            self._kept[shard] = _Kept(engine.connect(), path.stat())
            for old in [one for one in self._kept if one not in (_INDEX, "")][:-_RUNS]:
                self._let_go(old)
        return self._kept[shard].connection

    def _let_go(self, shard: str) -> None:
        """Closes the connection to a database; what is not committed is undone."""
        kept = self._kept.pop(shard, None)
        if kept is not None:
            kept.connection.close()

    def _initdb(self, engine: Any, for_index_shard: bool = False) -> None:
        with _migrations_read_once():
            super()._initdb(engine, for_index_shard)

    def dispose(self) -> None:
        """Lets go of the databases."""
        with self._turn:
            for shard in list(self._kept):
                self._let_go(shard)
        super().dispose()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A connection, and which file it was opened to."""

    connection: Any
    file: os.stat_result

    def is_to(self, path: Path) -> bool:
        """Returns whether that file is at the path still: somebody may have deleted the instance."""
        try:
            return os.path.samestat(self.file, path.stat())
        except FileNotFoundError:
            return False


def _make_like(path: Path, model: Path) -> None:
    """Makes a database with the tables of another one, of the same version, in one transaction.

    Dagster makes a run's database by fifty statements, each of which the disk is waited for four times.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as new:
        new.execute("PRAGMA journal_mode=WAL")
        new.execute("ATTACH ? AS model", (str(model),))
        new.execute("BEGIN IMMEDIATE")
        tables = new.execute("SELECT count(*) FROM main.sqlite_master").fetchone()
        if tables == (0,):  # else another process was first
            for (statement,) in new.execute(
                "SELECT sql FROM model.sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
                " ORDER BY rowid"
            ).fetchall():
                new.execute(statement)
            new.execute("INSERT INTO main.alembic_version SELECT * FROM model.alembic_version")
        new.execute("COMMIT")


class KeptSqliteStorage(DagsterSqliteStorage):
    """Dagster's storage on SQLite, with events as this module keeps them."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        plain = self.event_log_storage
        assert isinstance(plain, SqliteEventLogStorage)
        self._event_log_storage = KeptEventLog(str(Path(plain.path_for_shard(_INDEX)).parent))

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> KeptSqliteStorage:
        """Returns what a configuration describes."""
        return cls.from_local(inst_data=inst_data, **config_value)
