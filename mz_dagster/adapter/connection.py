"""PEP 249: connections and cursors over a session.

A connection that commits by itself, which is the default, as duckdb's, executes each statement as a transaction of its
own, acknowledged when `execute` returns, unless BEGIN was said. With `autocommit=False` the first statement begins a
transaction, which `commit` or `rollback` end. Parameters are written `?`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakSet

import pyarrow as pa

from mz_dagster.adapter.access import Access
from mz_dagster.adapter.applying import apply_project
from mz_dagster.adapter.arrow_rows import record_batches
from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.adapter.catalog_definitions import tell_whose
from mz_dagster.adapter.copy_to_file import check_names
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.prepared_statements import PreparedStatement
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.result import Result, Rows, RowStream, StreamedRows
from mz_dagster.adapter.session import Session
from mz_dagster.adapter.timestamps import Isolation
from mz_dagster.adapter.transaction import TransactionAborted
from mz_dagster.adapter.variables import Variables
from mz_dagster.adapter.wire_client import WireClient
from mz_dagster.catalog import RoleRow
from mz_dagster.errors import Error, InterfaceError, Warning
from mz_dagster.notices import Notice
from mz_dagster.scalars.types import Column
from mz_dagster.sql import Statement
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.published import published_schema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

#: How many rows are taken at once where all are wanted.
_MANY = 1000
#: How many rows a record batch has at most, unless somebody asks for another number.
_BATCH = 100_000

#: PEP 249's seven fields about a result column.
ColumnDescription = tuple[str, str, None, None, int | None, int | None, bool]


@only_our_errors()
def connect(
    path: str | Path,
    *,
    isolation: Isolation | str = Isolation.STRICT_SERIALIZABLE,
    autocommit: bool = True,
    apply: bool = False,
) -> Connection:
    """Returns a connection to the project in a folder; a missing or empty folder becomes an embedded project.

    Args:
        path: The folder.
        isolation: `strict serializable`, where a read sees every acknowledged write and may have to drive a step for
            it, or `serializable`, where it takes the latest time that is complete.
        autocommit: Whether each statement is a transaction of its own unless BEGIN was said; else the first begins one.
        apply: Whether what the project's files define is created and replaced first, as `mz-dagster apply` does.

    Raises:
        ProgrammingError: The path is a file, the project's settings are wrong, or one of its files is that is applied.
        OperationalError: The project's catalog or shards cannot be opened.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, connect(folder) as connection:
        ...     cursor = connection.cursor()
        ...     _ = cursor.execute("CREATE TABLE t (a integer)")
        ...     _ = cursor.execute("INSERT INTO t VALUES (?)", (1,))
        ...     cursor.execute("SELECT a FROM t").fetchall()
        [(1,)]
    """
    engine = Engine(Project.load(Path(path)))
    try:
        if apply:
            apply_project(engine)
        return Connection(engine, Isolation(isolation), autocommit=autocommit)
    except BaseException:
        engine.close()
        raise


class Connection:
    """A PEP 249 connection; also a context manager that commits, or after an error rolls back, and closes itself.

    Attributes:
        messages: What the statements that were executed last told: notices and warnings, each with its class.

    Args:
        engine: The project, opened.
        isolation: How fresh reads are.
        autocommit: Whether each statement is a transaction of its own unless BEGIN was said.
        owns_engine: Whether the engine is closed with it; not if others use it, too.
        role: Whose it is; None if it is the owner's.
    """

    def __init__(
        self,
        engine: Engine,
        isolation: Isolation,
        *,
        autocommit: bool = True,
        owns_engine: bool = True,
        role: RoleRow | None = None,
    ) -> None:
        self._engine: Engine | None = engine
        self._owns_engine = owns_engine
        self._names = Names(engine)
        self._names.access = Access(role, self._names.held_roles)
        self.messages: list[tuple[type[Warning], Warning]] = []
        name = None if role is None else role.name
        self._variables = Variables(engine.project, isolation.value, autocommit=autocommit, role=name)
        self._names.session = engine.activity.open_session(self._variables)
        self._depth = 0
        self._cursors: WeakSet[Cursor] = WeakSet()

    @property
    def engine(self) -> Engine:
        """The engine behind it.

        Raises:
            InterfaceError: The connection is closed.
        """
        if self._engine is None:
            raise InterfaceError("the connection is closed", hint="Open another one with mz_dagster.connect().")
        return self._engine

    def cursor(self) -> Cursor:
        """Returns a new cursor."""
        cursor = Cursor(self, self._session())
        self._cursors.add(cursor)
        return cursor

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Cursor:
        """Executes one statement on a new cursor and returns it, as sqlite3 does."""
        return self.cursor().execute(sql, parameters)

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own unless BEGIN was said; can be set between transactions."""
        return self._variables.autocommit

    @autocommit.setter
    def autocommit(self, on: bool) -> None:
        if self._variables.transaction is not None:
            raise ActiveTransaction("autocommit cannot change inside a transaction", hint="Commit or roll back first.")
        self._variables.autocommit = on

    def commit(self) -> None:
        """Commits the transaction that is open; without one there is nothing to do.

        Raises:
            TransactionAborted: A statement of it has failed; it is rolled back.
            SerializationFailure: Others wrote what it has read; nothing was written.
        """
        _ = self.engine
        block = self._variables.transaction
        if block is None:
            return
        if self.execute("COMMIT").tag != "COMMIT":
            raise TransactionAborted(
                "the transaction was rolled back",
                detail="One of its statements has failed.",
                hint="Execute it again, or set savepoints before what may fail.",
            )

    def rollback(self) -> None:
        """Undoes what the transaction that is open has written; without one there is nothing to do.

        So what expects it of a connection after an error, as pandas does, goes on to tell that error.
        """
        _ = self.engine
        self._variables.roll_back()

    @property
    def transaction_status(self) -> Literal["I", "T", "E"]:
        """What PostgreSQL's protocol says of the transaction: `I` if none is open, `T` if one is, `E` if it failed."""
        block = self._variables.transaction
        return "I" if block is None else "E" if block.is_failed else "T"

    @property
    def statement_timeout_ms(self) -> int:
        """After how long a statement is to be cancelled, in milliseconds, as SET has it; 0 for never."""
        return self._variables.statement_timeout_ms

    @property
    def idle_timeout_ms(self) -> int:
        """After how long a client that is idle now is to be ended, in milliseconds, as SET has it; 0 for never."""
        return self._variables.idle_timeout_ms

    @property
    def is_in_implicit_block(self) -> bool:
        """Whether a block is open that no BEGIN has opened."""
        block = self._variables.transaction
        return block is not None and block.is_implicit

    def begin_implicitly(self, statement: Statement) -> None:
        """Opens an implicit block for a statement and those that follow; see `Session.begin_implicitly`."""
        self._session().begin_implicitly(statement)

    def end_implicitly(self) -> None:
        """Commits the implicit block that is open, if one is, or rolls it back; see `Session.end_implicitly`."""
        self._session().end_implicitly()

    def fail(self) -> None:
        """Has the block that is open fail, if one is: what it did could not be told."""
        self._session().fail()

    def notices(self) -> tuple[Notice, ...]:
        """Returns what statements have told since this was last asked: notices and warnings."""
        return self._variables.notices()

    def settings(self) -> Mapping[str, str]:
        """Returns the values of all settings of the session, by their names in lower case."""
        return self._variables.settings()

    def begin_with(self, name: str, value: str) -> None:
        """Sets a setting of the session, as SET does, to what RESET sets it to from now on."""
        self._variables.begin_with(name, value)

    def serve(self, client: WireClient) -> None:
        """Has the session be one of a client's: its COPY, and its prepared statements."""
        self._variables.client = client

    def cursor_columns(self, name: str) -> tuple[Column, ...] | None:
        """Returns the columns of a cursor that was declared; None if there is none of the name."""
        found = self._variables.cursors.get(name)
        return None if found is None else found.result.columns

    def describe(self, sql: str, parameters: Sequence[object] = ()) -> tuple[Column, ...] | None:
        """Returns the columns of what a statement would return; see `Session.describe`."""
        return self._session().describe(sql, parameters)

    def meaning(self) -> Hashable | None:
        """Returns what is the same as long as every query means the same; see `Session.meaning`."""
        return self._session().meaning()

    @property
    def zone(self) -> str:
        """The name of the session's time zone."""
        return self._variables.zone

    @only_our_errors(writing=True)
    def acknowledged(self, result: Result) -> Result:
        """Returns the result of a write that was queued as it is to be told, once that is over.

        Raises:
            UnknownObject: The table is not what it was any more, and nothing was written: it can be executed again.
            Error: It was not sealed.
        """
        assert result.queued is not None, "it was queued"
        try:
            result.queued.wait()
        except Error as error:
            tell_whose(error, self.engine.catalog)
            raise
        return replace(result, queued=None)

    def note_types(self, sql: str, parameters: Sequence[object]) -> bool:
        """Notes in the open parameters of a query of which types they are; see `Session.note_types`."""
        return self._session().note_types(sql, parameters)

    def prepared_statement(self, name: str) -> PreparedStatement | None:
        """Returns what SQL's PREPARE has prepared under a name; None if that is nothing."""
        return self._variables.prepared.get(name)

    def forget_prepared(self, name: str) -> None:
        """Forgets what SQL's PREPARE has prepared under a name, if that is something."""
        self._variables.prepared.pop(name, None)

    def parsed(self, sql: str) -> Statement:
        """Returns what a text says that is one statement, whatever that means; raises as `execute`."""
        return self._session().parsed(sql)

    def _session(self) -> Session:
        return Session(self.engine, names=self._names, variables=self._variables)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Executes the statements of a block as one transaction, which is rolled back if the block raises.

        In a transaction that is open it is a savepoint: what the inner block wrote is undone if that raises.

        Example:
            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder, connect(folder) as connection:
            ...     for table in "ab":
            ...         _ = connection.execute(f"CREATE TABLE {table} (x integer)")
            ...     with connection.transaction():
            ...         _ = connection.execute("INSERT INTO a VALUES (1)")
            ...         _ = connection.execute("INSERT INTO b VALUES (1)")
            ...     connection.execute("SELECT a.x FROM a JOIN b ON a.x = b.x").fetchall()
            [(1,)]
        """
        inner = self._variables.transaction is not None
        begin, undo, end = ("SAVEPOINT", "ROLLBACK TO", "RELEASE") if inner else ("BEGIN", "ROLLBACK", "COMMIT")
        self._depth += 1
        name = f" mz_{self._depth}" if inner else ""
        try:
            self.execute(f"{begin}{name}")
            try:
                yield self
            except BaseException:
                self.execute(f"{undo}{name}")
                raise
            if inner:
                self.execute(f"{end}{name}")
            else:
                self.commit()
        finally:
            self._depth -= 1

    def close(self) -> None:
        """Closes it, rolls back what is open, and drops its temporary objects; a second time does nothing."""
        if self._engine is not None:
            engine, self._engine = self._engine, None
            if self._names.session is not None:
                engine.activity.end(self._names.session)
            try:
                for one in list(self._cursors):
                    one.close()
                self._variables.close_cursors(*self._variables.cursors)
                self._variables.roll_back()
                self._variables.give_back_locks()
                self._names.close()
            finally:
                if self._owns_engine:
                    engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._engine is not None:
                self.commit()
        finally:
            self.close()


class Cursor:
    """A PEP 249 cursor; iterating it yields the rows that are left.

    Attributes:
        connection: Its connection.
        arraysize: How many rows `fetchmany` returns.
        messages: What the last statements told: notices and warnings, each with its class.
    """

    def __init__(self, connection: Connection, session: Session) -> None:
        self.connection = connection
        self.arraysize = 1
        self.messages: list[tuple[type[Warning], Warning]] = []
        self._session: Session | None = session
        self._results: deque[Result] = deque()
        self._next = 0
        self._come: deque[tuple[Any, ...]] = deque()

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Self:
        """Executes a statement; or several, one by one, whose results `nextset` moves along.

        Outside of a transaction each statement is one of its own: when one fails, those before it are done, and those
        behind it are not begun.

        Args:
            sql: The statement, or statements separated by semicolons.
            parameters: A value for each `?`, if it is one statement.

        Raises:
            mz_dagster.Error: See the class of the error for what went wrong.
        """
        session = self._open_session()
        _check_arguments(sql, parameters)
        try:
            self._results.extend([*session.execute_each(sql, parameters)])
        finally:
            self._hear()
        return self

    def results(
        self, sql: str, parameters: Sequence[object] = (), *, queues: bool = False, as_one: bool = False
    ) -> Iterator[Result]:
        """Executes statements as `execute`, and yields what each returns as soon as it has been executed.

        What is written may be queued if that is said, to be sealed with what others write (`Result.queued`). Several
        may be one implicit block, which who asks for them ends (`Connection.end_implicitly`).
        """
        session = self._open_session()
        _check_arguments(sql, parameters)
        yield from session.execute_each(sql, parameters, may_be_empty=True, queues=queues, as_one=as_one)

    def executemany(self, sql: str, parameters: Sequence[Sequence[object]]) -> Self:
        """Executes a statement that writes with each of many sets of parameters; an INSERT is one batch.

        Any other statement is a transaction of its own with each set.

        Raises:
            mz_dagster.Error: As for `execute`; also if the statement returns rows.
        """
        session = self._open_session()
        _check_arguments(sql, parameters, *parameters)
        try:
            self._results.append(session.execute_many(sql, parameters))
        finally:
            self._hear()
        return self

    def _hear(self) -> None:
        told = [(Warning, Warning(str(one))) for one in self.connection.notices()]
        self.messages += told
        self.connection.messages += told

    def nextset(self) -> bool | None:
        """Moves to the result of the next of several statements; returns True, or None if there is none."""
        if len(self._results) < 2:
            return None
        self._forget(self._results.popleft())
        return True

    @property
    def _result(self) -> Result | None:
        return self._results[0] if self._results else None

    @property
    def description(self) -> list[ColumnDescription] | None:
        """The result's columns, with the SQL type's name as type code; None if there is no result set."""
        if self._result is None or not self._result.columns:
            return None
        return [
            (one.name, str(one.type), None, None, None, one.type.scale or None, one.nullable)
            for one in self._result.columns
        ]

    @property
    def rowcount(self) -> int:
        """How many rows the last statement returned or changed; -1 before any."""
        return -1 if self._result is None else self._result.rowcount

    @property
    def tag(self) -> str:
        """The last statement's command tag, such as `INSERT 0 3`."""
        return "" if self._result is None else self._result.tag

    def fetchone(self) -> tuple[Any, ...] | None:
        """Returns the next row, or None when there is none left."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None, *, wait_s: float | None = None) -> list[tuple[Any, ...]]:
        """Returns the next `size` rows, by default `arraysize`.

        Of a subscription those that have come, at least one: none says that it has ended, or that none came in time.

        Args:
            size: How many at most.
            wait_s: How long to wait for the first of a subscription, in seconds; None for as long as it takes.
        """
        rows = self._rows()
        most = self.arraysize if size is None else size
        if self._result is not None and self._result.stream is not None:
            return self._taken(self._result.stream, most, wait_s)
        start, self._next = self._next, min(len(rows), self._next + most)
        return list(rows[start : self._next])

    def _taken(self, stream: RowStream, most: int, wait_s: float | None) -> list[tuple[Any, ...]]:
        if not self._come and most > 0:
            self._come.extend(stream.next_rows(wait_s) or ())
        return [self._come.popleft() for _ in range(min(most, len(self._come)))]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows that are left; of a subscription it waits until that has ended."""
        found = self.fetchmany(len(self._rows()))
        if self._result is not None and self._result.stream is not None:
            while some := self.fetchmany(_MANY):
                found += some
        return found

    def fetch_record_batch(self, rows_per_batch: int = _BATCH) -> pa.RecordBatchReader:
        """Returns a reader of the rows that are left as Arrow's record batches, each made when it is asked for.

        Of a subscription a batch has what has come, and the reader waits for the next. `storage/published.py` states
        the types.

        Args:
            rows_per_batch: How many rows a batch has at most.

        Raises:
            InfiniteMoment: Arrow has no value for a date or timestamp; raised by the reader.
        """
        if rows_per_batch < 1:
            raise InterfaceError(f"{rows_per_batch} rows are no batch", hint="Ask for one at least.")
        self._rows()
        result = self._results[0]
        portions = self._portions(result, rows_per_batch)
        batches = record_batches(portions, result.columns, result.zone)
        return pa.RecordBatchReader.from_batches(published_schema(result.columns, result.zone), batches)

    def _portions(self, result: Result, most: int) -> Iterator[Rows]:
        """Yields the rows that are left of a result, so many at a time.

        Raises:
            InterfaceError: The cursor has been closed, or has another result now.
        """
        while True:
            if self._result is not result:
                raise InterfaceError(
                    "the cursor has gone on to another result",
                    hint="Read all batches first, or execute the next statement on a cursor of its own.",
                )
            if isinstance(result.rows, StreamedRows):
                rows, self._next = result.rows[self._next : self._next + most], min(len(result.rows), self._next + most)
            else:
                rows = self.fetchmany(most)
            if not rows:
                return
            yield rows

    def fetch_arrow_table(self) -> pa.Table:
        """Returns all rows that are left as an Arrow table; see `fetch_record_batch`."""
        return self.fetch_record_batch().read_all()

    def df(self) -> pd.DataFrame:
        """Returns all rows that are left as a pandas DataFrame, whose columns keep Arrow's exact types."""
        import pandas as pd

        found: pd.DataFrame = self.fetch_arrow_table().to_pandas(types_mapper=pd.ArrowDtype)
        return found

    def pl(self) -> pl.DataFrame:
        """Returns all rows that are left as a Polars DataFrame.

        Raises:
            InterfaceError: Polars is not installed.
            RepeatedColumn: Two columns have the same name, by which Polars tells them apart.
        """
        try:
            import polars
        except ImportError as error:
            raise InterfaceError("Polars is not installed", hint="pip install polars") from error
        table = self.fetch_arrow_table()
        check_names(tuple(table.column_names), "Polars")
        found = polars.from_arrow(table)
        assert isinstance(found, polars.DataFrame)
        return found

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def _open_session(self) -> Session:
        """Returns the session, and forgets the result of the statement before."""
        _ = self.connection.engine
        if self._session is None:
            raise InterfaceError("the cursor is closed", hint="Take another one from the connection.")
        self._forget(*self._results)
        self._results.clear()
        self.messages.clear()
        self.connection.messages.clear()
        return self._session

    def _forget(self, *results: Result) -> None:
        """Forgets what is left of results."""
        self._next = 0
        self._come.clear()
        for one in results:
            if one.stream is not None:
                one.stream.close()

    def _rows(self) -> Rows:
        if self._result is None or not self._result.columns:
            raise InterfaceError("the last statement returned no rows", hint="Execute a SELECT first.")
        return self._result.rows

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Closes the cursor, and ends its subscription."""
        self._session = None
        self._forget(*self._results)
        self._results.clear()

    def __aiter__(self) -> AsyncIterator[tuple[Any, ...]]:
        return self._each_awaited()

    async def _each_awaited(self) -> AsyncIterator[tuple[Any, ...]]:
        """Yields the rows that are left; who waits for those of a subscription holds up no event loop."""
        while rows := await asyncio.to_thread(self.fetchmany, _MANY):
            for row in rows:
                yield row


def _check_arguments(sql: object, *many: object) -> None:
    if not isinstance(sql, str):
        raise InterfaceError(f"a statement is a str, not {type(sql).__name__}", hint="Pass the SQL as its text.")
    for one in many:
        if not isinstance(one, Sequence) or isinstance(one, str | bytes):
            raise InterfaceError(
                f"parameters are a sequence, not {type(one).__name__}",
                hint="Pass a tuple or a list, one value for each ?.",
            )
