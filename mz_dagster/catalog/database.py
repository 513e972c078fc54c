"""Transactions on the catalog's database, the one place that knows SQLite from PostgreSQL.

Owns the engine and the two kinds of transaction. A *read* sees one committed state. A *write* sees one
committed state that no other writer changes before it ends, so what it checks still holds when it
commits; in SQLite by `BEGIN IMMEDIATE`, in PostgreSQL by locking the one row of `project` first. Writers
queue; a wait is bounded by `WAIT_MS`. When a write returns it is on disk: in SQLite by WAL and `synchronous=FULL`, in
PostgreSQL by `synchronous_commit`, which a connection switches on if it finds it off.

A PostgreSQL that answered before and is away, since it is restarted for example, is waited for where a transaction
begins, up to `AWAY_MS`: nothing has happened yet, so trying again is safe. A transaction that it is lost in fails.

Every write passes the fail points `catalog.before_commit` and `catalog.committed`, so that a crash test
can kill a process around each one. An exception in a write rolls it back.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, select, update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import OperationalError as UnreachableDatabase
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from mz_dagster.catalog.disk import make_folder
from mz_dagster.catalog.errors import CatalogBusy, CatalogUnavailable
from mz_dagster.catalog.schema import COUNTER, PROJECT
from mz_dagster.clock import Clock
from mz_dagster.errors import ProgrammingError
from mz_dagster.fail_point import fail_point

WAIT_MS = 30_000
"""How long a write waits for the writers before it, in milliseconds."""

AWAY_MS = 90_000
"""For how long the beginning of a transaction waits for a server that is away, in milliseconds."""

_AGAIN_S = 0.25
_LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's SQLSTATE of a lock timeout
_GOING_OR_COMING = ("57P01", "57P02", "57P03")  # and those of a server that is stopped, crashed or is starting

_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"

_LOOK = "Check that the database is there, intact, and can be written."
_WHAT_TO_DO = {
    "disk is full": "Free space on the disk of the catalog, then try again.",
    "No space left": "Free space on the disk of the catalog, then try again.",
    "disk I/O error": "Check that the disk of the catalog works and has free space, then try again.",
    "readonly": "Make the catalog's file and its folder writable, then try again.",
    "malformed": 'Its file is damaged: restore the project from a backup ("mz-dagster restore").',
    "not a database": "Check that the database is there: the file is damaged, or none of a catalog.",
}
"""What to do about the errors of databases that contain these words."""


class Database:
    """Is a pool of connections to the catalog's database, safe to share between threads.

    Attributes:
        engine: SQLAlchemy's engine.
        clock: Tells when leases end.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        try:
            with _understood():
                self.engine = _engine(make_url(url))
        except ModuleNotFoundError as error:
            raise ProgrammingError(
                f'the driver of the catalog\'s database is not installed: no module "{error.name}"',
                hint="Install mz_dagster[postgres], and use a URL that begins with postgresql+psycopg://",
            ) from error
        self.clock = clock
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._write_turn = threading.Lock()
        self._has_answered = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yields a connection in a transaction that sees one committed state and writes nothing."""
        with _told_apart(), self._begun(self._begin_read) as connection:
            yield connection
            connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yields a connection in a transaction that alone may write; commits it unless the block raises.

        Raises:
            CatalogBusy: The writers before it took too long.
            CatalogUnavailable: The database failed; `may_have_taken_effect` says whether it may have committed.
        """
        with _told_apart(), self._begun(self._begin_write) as connection:
            yield connection
            fail_point("catalog.before_commit")
            with _committing():
                connection.commit()
            fail_point("catalog.committed")

    @contextmanager
    def migrate(self) -> Iterator[Connection]:
        """Yields a connection in a transaction that alone may read or write; commits it unless the block raises."""
        with _told_apart(), self.engine.connect() as raw:
            connection = raw.execution_options(mz_begin="BEGIN EXCLUSIVE")
            with connection.begin():
                yield connection

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()

    @contextmanager
    def _begun(self, begin: Callable[[ExitStack], Connection]) -> Iterator[Connection]:
        """Yields what `begin` returns; what it entered is left at the end, and what was not committed rolled back.

        If the server is away, `begin` is tried again.
        """
        until = self.clock.monotonic_ms() + AWAY_MS
        while True:
            with ExitStack() as entered:
                try:
                    connection = begin(entered)
                except DBAPIError as error:
                    may_return = self._has_answered and _is_away(error)
                    if not may_return or self.clock.monotonic_ms() >= until:
                        raise
                else:
                    self._has_answered = True
                    yield connection
                    return
            self.clock.sleep(_AGAIN_S)

    def _begin_read(self, entered: ExitStack) -> Connection:
        connection = entered.enter_context(self.engine.connect())
        if not self.is_sqlite:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        connection.begin()
        return connection

    def _begin_write(self, entered: ExitStack) -> Connection:
        # In one process a lock gives writers their turns; SQLite's own busy handler only polls.
        if not self._write_turn.acquire(timeout=WAIT_MS / 1000):
            raise _busy()
        entered.callback(self._write_turn.release)
        connection = entered.enter_context(self.engine.connect()).execution_options(mz_begin="BEGIN IMMEDIATE")
        connection.begin()
        if not self.is_sqlite:
            connection.execute(select(PROJECT.c.id).with_for_update())
        return connection


class Transactions:
    """Is what each part of the catalog builds on: a database, and methods of one transaction each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _now_ms(self) -> int:
        return self._database.clock.now_ms()


def is_missing(url: str) -> bool:
    """Returns whether a URL names a SQLite file that is not there, which opening would make."""
    with _understood():
        parsed = make_url(url)
    path = parsed.database if parsed.get_backend_name() == "sqlite" else None
    return path is not None and not Path(path).exists()


def next_ids(connection: Connection, counter: str, number: int) -> range:
    """Returns `number` ids that were never handed out before and never will be again."""
    last = connection.execute(select(COUNTER.c.last).where(COUNTER.c.name == counter)).scalar_one()
    connection.execute(update(COUNTER).where(COUNTER.c.name == counter).values(last=last + number))
    return range(last + 1, last + number + 1)


def _engine(url: URL) -> Engine:
    match url.get_backend_name():
        case "sqlite":
            return _sqlite_engine(url)
        case "postgresql":
            return _postgres_engine(url)
        case other:
            raise ArgumentError(f'a catalog cannot live in "{other}"')


def _postgres_engine(url: URL) -> Engine:
    if url.drivername == "postgresql":  # SQLAlchemy would take psycopg2
        url = url.set(drivername="postgresql+psycopg")
    # Under READ COMMITTED, whatever the server's default is: each statement sees what was committed before it, so those
    # that follow the lock of `project` see what the writers before have done.
    engine = create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True, pool_size=5, max_overflow=40)

    @event.listens_for(engine, "connect")
    def on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        try:
            cursor.execute(f"SET lock_timeout = {WAIT_MS}")
            cursor.execute(_DURABLE)
            connection.commit()
        finally:
            cursor.close()

    return engine


def _sqlite_engine(url: URL) -> Engine:
    path = url.database
    if path in (None, "", ":memory:"):
        raise ProgrammingError(
            "a catalog cannot live in memory",
            detail="Several processes share it, and it must survive them.",
            hint="Use sqlite:///path/to/file.",
        )
    assert path is not None
    try:
        make_folder(Path(path).parent)
    except OSError as error:
        raise CatalogUnavailable(
            f'cannot make the folder of "{path}": {error.strerror}', hint="Name a folder that can be written."
        ) from error
    engine = create_engine(url, connect_args={"timeout": WAIT_MS / 1000}, pool_size=5, max_overflow=40)

    @event.listens_for(engine, "connect")
    def on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # sqlite3 shall not begin transactions by itself: `on_begin` does, for reads too.
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            cursor.execute(f"PRAGMA busy_timeout={WAIT_MS}")
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.execute("PRAGMA foreign_keys=ON")
        finally:
            cursor.close()

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("mz_begin", "BEGIN"))

    return engine


def _busy() -> CatalogBusy:
    return CatalogBusy(
        "the catalog is busy",
        detail=f"Its write lock was not free for {WAIT_MS // 1000} s; nothing was changed.",
        hint="Try again; if it persists, look for a stuck process that has the catalog open.",
    )


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (ArgumentError, NoSuchModuleError) as error:
        raise ProgrammingError(
            f"not a catalog URL: {error}", hint="Use sqlite:///path/to/file or postgresql+psycopg://..."
        ) from error


@contextmanager
def _told_apart() -> Iterator[None]:
    """Translates the database's errors into ours; before its commit, a failed write has had no effect."""
    try:
        yield
    except DBAPIError as error:
        cause = error.orig
        if isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause):
            raise _busy() from error
        if getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise _busy() from error
        raise CatalogUnavailable(
            f"the catalog's database failed: {_first_line(cause)}", hint=f"{_what_to_do(cause)} Nothing was changed."
        ) from error
    except PoolTimeout as error:
        raise _busy() from error


@contextmanager
def _committing() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise CatalogUnavailable(
            f"the catalog's database failed in a commit: {_first_line(error.orig)}",
            hint=f"{_what_to_do(error.orig)} Look at the state before trying again: the transaction may have taken "
            "effect.",
            may_have_taken_effect=True,
        ) from error


def _is_away(error: DBAPIError) -> bool:
    """Returns whether a server cannot be reached, shuts down or starts; what has no server is never away."""
    sqlstate = getattr(error.orig, "sqlstate", "")  # psycopg has None where it got no answer at all
    return isinstance(error, UnreachableDatabase) and (
        sqlstate is None or sqlstate.startswith("08") or sqlstate in _GOING_OR_COMING
    )


def _first_line(error: BaseException | None) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _what_to_do(error: BaseException | None) -> str:
    text = str(error)
    return next((todo for part, todo in _WHAT_TO_DO.items() if part in text), _LOOK)
