"""Transactions on the catalog's database, the one place that knows SQLite from PostgreSQL.

Owns the engine and the two kinds of transaction. A *read* sees one committed state. A *write* sees one
committed state that no other writer changes before it ends, so what it checks still holds when it
commits; in SQLite by `BEGIN IMMEDIATE`, in PostgreSQL by locking the one row of `project` first. Writers
queue; a wait is bounded by `WAIT_MS`. When a write returns it is on disk: in SQLite by WAL and `synchronous=FULL`, in
PostgreSQL by `synchronous_commit`, which a connection switches on if it finds it off.

A SQLite file that cannot be written, or in whose folder nothing can, is read all the same, and every write is refused.
SQLite needs files beside it where somebody may write; where nobody has begun to, it is told that nobody does, and that
this was so is compared at the end of each transaction.

A PostgreSQL that is away, since it is restarted for example, is waited for where a transaction begins, the first one
of a process included, up to `AWAY_MS`: nothing has happened yet, so trying again is safe. A log's line says so. A
transaction that it is lost in fails, and so does at once what no waiting mends, as a host's name that nobody knows.

Every write passes the fail points `catalog.before_commit` and `catalog.committed`, so that a crash test
can kill a process around each one. An exception in a write rolls it back.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Select, bindparam, create_engine, event, select, update
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, NoSuchModuleError
from sqlalchemy.exc import OperationalError as UnreachableDatabase
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from mz_dagster.catalog.commits import Commits
from mz_dagster.catalog.compiled_statements import COMPILED_STATEMENTS
from mz_dagster.catalog.contents import Contents
from mz_dagster.catalog.errors import CatalogBusy, CatalogDamaged, CatalogReadOnly, CatalogUnavailable
from mz_dagster.catalog.rows import Batch
from mz_dagster.catalog.schema import COUNTER, PROJECT
from mz_dagster.catalog.url import BadCatalogUrl, CatalogUrl
from mz_dagster.clock import Clock
from mz_dagster.disk import make_folder, make_private, make_private_file
from mz_dagster.errors import ProgrammingError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import GlobalId

#: Lists of live batches, each with what the collection's row said of it.
BatchLists = dict[GlobalId, tuple[Contents, tuple[Batch, ...]]]

T = TypeVar("T")
A = ParamSpec("A")
P = TypeVar("P", bound="Transactions")

_logger = logging.getLogger("mz_dagster.catalog")

WAIT_MS = 30_000
"""How long a write waits for the writers before it, in milliseconds."""

PORTION = 500
"""How many rows or ids one statement names at most."""

AWAY_MS = 90_000
"""For how long the beginning of a transaction waits for a server that is away, in milliseconds."""

_RECALLED = 4_096
"""Of how many reads the results are kept until the next commit."""

_AGAIN_S = 0.25
_LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's SQLSTATE of a lock timeout
_GOING_OR_COMING = ("57P01", "57P02", "57P03")  # and those of a server that is stopped, crashed or is starting

_SHARED = {"compiled_cache": COMPILED_STATEMENTS}
_DURABLE = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"

#: Built once: building a statement takes longer than running it.
_WRITE_LOCK = select(PROJECT.c.id).with_for_update()
_LAST = select(COUNTER.c.last).where(COUNTER.c.name == bindparam("counter"))
_COUNT = update(COUNTER).where(COUNTER.c.name == bindparam("counter"))

_LOOK = "Check that the database is there, intact, and can be written."
_OUTSIDE = {
    "disk is full": "Free space on the disk of the catalog, then try again.",
    "No space left": "Free space on the disk of the catalog, then try again.",
    "disk I/O error": "Check that the disk of the catalog works and has free space, then try again.",
    "readonly": "Make the catalog's file and its folder writable, then try again.",
    "unable to open": "Check that the database is there, and is a file in a folder that can be written: SQLite writes "
    "beside it even where it only reads.",
}
"""What to do about the errors of databases that contain these words, and are no damage of the catalog."""

_WHAT_TO_DO = _OUTSIDE | {
    "malformed": 'Its file is damaged: restore the project from a backup ("mz-dagster restore").',
    "not a database": "Check that the database is there: the file is damaged, or none of a catalog.",
}
"""What to do about any error of a database that contains these words."""


class Database:
    """A pool of connections to the catalog's database, safe to share between threads.

    Attributes:
        engine: SQLAlchemy's engine.
        clock: Tells when leases end.
        read_only: The SQLite file, if it or its folder cannot be written; else None.
        lists: The lists of live batches that this process has read, each good for as long as the collection's row says
            that its list is the same.
    """

    def __init__(self, url: CatalogUrl, clock: Clock) -> None:
        self.read_only = url.file if url.file is not None and _cannot_be_written(url.file) else None
        try:
            if self.read_only is not None:
                self.engine = _read_only_engine(self.read_only)
            else:
                self.engine = _postgres_engine(url) if url.file is None else _sqlite_engine(url, url.file)
        except NoSuchModuleError as error:
            raise BadCatalogUrl(f"not a catalog URL: {error}", hint="Use postgresql+psycopg://...") from error
        except ModuleNotFoundError as error:
            raise ProgrammingError(
                f'the driver of the catalog\'s database is not installed: no module "{error.name}"',
                hint="Install mz_dagster[postgres], and use a URL that begins with postgresql+psycopg://",
            ) from error
        self.clock = clock
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._write_turn = threading.Lock()
        self._has_answered = self._is_closed = False
        self._commits = Commits(url.file) if self.is_sqlite and url.file and self.read_only is None else None
        self._recalling = threading.Lock()
        self._recalled: tuple[int, dict[Hashable, Any]] = (-1, {})
        self.lists: BatchLists = {}

    def recalled(self, key: Hashable, read: Callable[[], T]) -> T:
        """Returns what `read` returns; or has returned to anybody, if nothing has been committed since.

        What is returned is shared, and not to be changed. A server of PostgreSQL tells nobody so cheaply whether
        anything was committed, so there it is read each time.

        Args:
            key: What is read, and with which arguments.
            read: Reads it in transactions that it begins, and nothing else.
        """
        number = None if self._commits is None else self._commits.number()
        if number is None:
            return read()
        known, values = self._recalled
        if known == number and key in values:
            found: T = values[key]
            return found
        found = read()
        with self._recalling:
            if self._recalled[0] < number:
                self._recalled = (number, {})
            known, values = self._recalled
            if known == number and len(values) < _RECALLED:
                values[key] = found
        return found

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yields a connection in a transaction that sees one committed state and writes nothing."""
        alone = None if self.read_only is None else _written_by_nobody(self.read_only)
        with _translated_errors(), self._begun(self._begin_read) as connection:
            yield connection
        if self.read_only is not None and alone is not None and _written_by_nobody(self.read_only) != alone:
            raise CatalogUnavailable("the catalog was written while it was read", hint="Read again.")

    @contextmanager
    def write(self, *, until_power_cut: bool = False) -> Iterator[Connection]:
        """Yields a connection in a transaction that alone may write; commits it unless the block raises.

        Args:
            until_power_cut: Whether it only has to outlive this process. What ends with all processes of the machine
                anyway, a lease or a time that was handed out, need not wait for the disk: whatever is committed later
                and does wait takes it along, so that a power cut never takes back this and not that. SQLite's files are
                of one machine; a server is told to keep everything.

        Raises:
            CatalogReadOnly: It cannot be written.
            CatalogBusy: The writers before it took too long.
            CatalogUnavailable: The database failed; `may_have_taken_effect` says whether it may have committed.
        """
        self._check_writable()
        begin = partial(self._begin_write, until_power_cut=until_power_cut)
        with _translated_errors(), self._begun(begin) as connection:
            yield connection
            fail_point("catalog.before_commit")
            with _committing():
                connection.commit()
            fail_point("catalog.committed")

    @contextmanager
    def migrate(self) -> Iterator[Connection]:
        """Yields a connection in a transaction that alone may read or write; commits it unless the block raises."""
        self._check_writable()
        with _translated_errors(), self._closing_behind(), self.engine.connect() as connection, connection.begin():
            if self.is_sqlite:
                tell_sqlite(connection, "BEGIN EXCLUSIVE")
            yield connection

    def _check_writable(self) -> None:
        if self.read_only is not None:
            raise CatalogReadOnly(self.read_only)

    def close(self) -> None:
        """Closes all connections; what is under way goes on, and its connections are closed behind it."""
        if self._commits is not None:
            self._commits.close()
        self._is_closed = True
        self.engine.pool.dispose()

    @contextmanager
    def _begun(self, begin: Callable[[ExitStack], Connection]) -> Iterator[Connection]:
        """Yields what `begin` returns; what it entered is left at the end, and what was not committed rolled back.

        If the server is away, `begin` is tried again.
        """
        until = self.clock.monotonic_ms() + AWAY_MS
        is_told = False
        while True:
            with self._closing_behind(), ExitStack() as entered:
                try:
                    connection = begin(entered)
                except DBAPIError as error:
                    may_return = _is_unavailable(error) and (self._has_answered or not _is_unknown_host(error))
                    if not may_return or self.clock.monotonic_ms() >= until:
                        raise
                    if not is_told:
                        _logger.warning("waiting for the catalog's database: %s", _first_line(error.orig))
                        is_told = True
                else:
                    self._has_answered = True
                    yield connection
                    return
            self.clock.sleep(_AGAIN_S)

    @contextmanager
    def _closing_behind(self) -> Iterator[None]:
        """Closes the connection that its block has given back, if all have been closed meanwhile."""
        try:
            yield
        finally:
            if self._is_closed:
                self.engine.pool.dispose()

    def _begin_read(self, entered: ExitStack) -> Connection:
        connection = entered.enter_context(self.engine.connect())
        if not self.is_sqlite:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        connection.begin()
        if self.is_sqlite:
            tell_sqlite(connection, "BEGIN")
        return connection

    def _begin_write(self, entered: ExitStack, *, until_power_cut: bool) -> Connection:
        # In one process a lock gives writers their turns; SQLite's own busy handler only polls.
        if not self._write_turn.acquire(timeout=WAIT_MS / 1000):
            raise _busy()
        entered.callback(self._write_turn.release)
        connection = entered.enter_context(self.engine.connect())
        connection.begin()
        if self.is_sqlite:  # the pragma would have no effect in the transaction
            tell_sqlite(connection, f"PRAGMA synchronous={'NORMAL' if until_power_cut else 'FULL'}")
            tell_sqlite(connection, "BEGIN IMMEDIATE")
        else:
            connection.execute(_WRITE_LOCK)
        return connection


class Transactions:
    """What each part of the catalog builds on: a database, and methods of one transaction each."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _now_ms(self) -> int:
        return self._database.clock.now_ms()


def recalled(method: Callable[Concatenate[P, A], T]) -> Callable[Concatenate[P, A], T]:
    """Returns a method that reads and does nothing else as one that asks `Database.recalled` for what it returns."""

    @wraps(method)
    def recalling(part: P, /, *arguments: A.args, **named: A.kwargs) -> T:
        key = method.__name__, arguments, *sorted(named.items())
        return part._database.recalled(key, lambda: method(part, *arguments, **named))

    return recalling


def is_missing(url: CatalogUrl) -> bool:
    """Returns whether a URL names a SQLite file that is not there, which opening would make."""
    return url.file is not None and not url.file.exists()


def in_portions(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields some rows or ids at a time: databases bound the number of parameters of a statement."""
    every = list(rows)
    for start in range(0, len(every), PORTION):
        yield every[start : start + PORTION]


class RowsOf:
    """A query of the rows that have one of some ids in a column, built once.

    Of a single one, as most are asked for, it is an equation, which costs half of what a list does.

    Args:
        query: What is asked of the rows.
        column: The column.
    """

    def __init__(self, query: Select[Any], column: ColumnElement[Any]) -> None:
        self._of_one = query.where(column == bindparam("wanted"))
        self._of_some = query.where(column.in_(bindparam("wanted", expanding=True)))

    def rows(self, connection: Connection, ids: Iterable[Any]) -> list[Any]:
        """Returns the rows; no statement names more than `PORTION` ids."""
        found: list[Any] = []
        for portion in in_portions(ids):
            statement, wanted = (self._of_one, portion[0]) if len(portion) == 1 else (self._of_some, portion)
            found += connection.execute(statement, {"wanted": wanted}).all()
        return found


def next_ids(connection: Connection, counter: str, number: int) -> range:
    """Returns `number` ids that were never handed out before and never will be again.

    Raises:
        CatalogDamaged: Nobody knows which were.
    """
    last = connection.execute(_LAST, {"counter": counter}).scalar_one_or_none()
    if last is None:
        raise CatalogDamaged(f'the catalog does not say any more which number was the last of a "{counter}"')
    connection.execute(_COUNT, {"counter": counter, "last": last + number})
    return range(last + 1, last + number + 1)


def _postgres_engine(catalog: CatalogUrl) -> Engine:
    url = catalog.without_secret_parameters()
    if url.drivername == "postgresql":  # SQLAlchemy would take psycopg2
        url = url.set(drivername="postgresql+psycopg")
    # Under READ COMMITTED, whatever the server's default is: each statement sees what was committed before it, so those
    # that follow the lock of `project` see what the writers before have done.
    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,
        pool_size=5,
        max_overflow=40,
        connect_args=catalog.secret_parameters(),
        execution_options=_SHARED,
    )

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


def _sqlite_engine(catalog: CatalogUrl, path: Path) -> Engine:
    try:
        make_folder(path.parent)
        make_private_file(path)
        for beside in ("-wal", "-shm"):  # SQLite makes them with the mode of the file
            with suppress(FileNotFoundError):
                make_private(path.with_name(path.name + beside))
    except OSError as error:
        raise CatalogUnavailable(
            f'cannot make the catalog\'s file "{path}": {error.strerror}', hint="Name a folder that can be written."
        ) from error
    engine = create_engine(
        catalog.url,
        connect_args={"timeout": WAIT_MS / 1000},
        pool_size=5,
        max_overflow=40,
        execution_options=_SHARED,
    )

    @event.listens_for(engine, "connect")
    def on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        # sqlite3 shall not begin transactions by itself: `Database` does, for reads too.
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            cursor.execute(f"PRAGMA busy_timeout={WAIT_MS}")
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.execute("PRAGMA foreign_keys=ON")
        finally:
            cursor.close()

    return engine


def _cannot_be_written(path: Path) -> bool:
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _read_only_engine(path: Path) -> Engine:
    def connect() -> sqlite3.Connection:
        how = "mode=ro" if _written_by_nobody(path) is None else "mode=ro&immutable=1"
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?{how}", uri=True, timeout=WAIT_MS / 1000, check_same_thread=False
        )

    # Each transaction has its own connection: whether somebody writes may be otherwise by then.
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, execution_options=_SHARED)

    @event.listens_for(engine, "connect")
    def on_connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None

    return engine


def _written_by_nobody(path: Path) -> tuple[int, int, int] | None:
    """Returns what changes with a file's bytes, if nobody has begun to write it; else None."""
    with suppress(FileNotFoundError):
        if path.with_name(f"{path.name}-wal").stat().st_size:
            return None
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _busy() -> CatalogBusy:
    return CatalogBusy(
        "the catalog is busy",
        detail=f"Its write lock was not free for {WAIT_MS // 1000} s; nothing was changed.",
        hint="Try again; if it persists, look for a stuck process that has the catalog open.",
    )


def tell_sqlite(connection: Connection, command: str) -> None:
    """Has SQLite's driver execute a command, for a third of what that costs by way of SQLAlchemy."""
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute(command)
    except sqlite3.Error as error:
        raise DBAPIError(command, None, error) from error


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translates the database's errors into ours; before its commit, a failed write has had no effect."""
    try:
        yield
    except DBAPIError as error:
        cause = error.orig
        if isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause):
            raise _busy() from error
        if getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise _busy() from error
        failed = CatalogUnavailable(
            f"the catalog's database failed: {_first_line(cause)}", hint=f"{_what_to_do(cause)} Nothing was changed."
        )
        failed.is_outside = _is_unavailable(error) or any(part in str(cause) for part in _OUTSIDE)
        raise failed from error
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


def _is_unavailable(error: DBAPIError) -> bool:
    """Returns whether a server cannot be reached, shuts down or starts; what has no server is never away."""
    sqlstate = getattr(error.orig, "sqlstate", "")  # psycopg has None where it got no answer at all
    return isinstance(error, UnreachableDatabase) and (
        sqlstate is None or sqlstate.startswith("08") or sqlstate in _GOING_OR_COMING
    )


def _is_unknown_host(error: DBAPIError) -> bool:
    text = str(error.orig)
    return any(part in text for part in ("resolve host", "translate host name"))


def _first_line(error: BaseException | None) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _what_to_do(error: BaseException | None) -> str:
    text = str(error)
    return next((todo for part, todo in _WHAT_TO_DO.items() if part in text), _LOOK)
