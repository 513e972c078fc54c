"""A session: statements in, results out, one after the other.

Sequences each statement into commands to the engine: what a statement says is bound here, at which time it reads is
decided by `timestamps`, and what it does is done by `peeks`, `writes`, `ddl` and the engine. Outside of a transaction
block each statement is a transaction of its own: when `execute` returns, it is acknowledged and durable.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NoReturn

from mz_dagster.adapter import ddl
from mz_dagster.adapter.alter_table import alter_table
from mz_dagster.adapter.block_definitions import DEFINED_IN_BLOCKS, ActiveTransaction, BlockDefinitions
from mz_dagster.adapter.bound_tables import noting_tables
from mz_dagster.adapter.catalog_definitions import tell_whose
from mz_dagster.adapter.config_calls import every_setting
from mz_dagster.adapter.copy_to_file import copy_to_file
from mz_dagster.adapter.declared_cursors import DeclaredCursor, DuplicateCursor
from mz_dagster.adapter.describing import describe
from mz_dagster.adapter.dml import Autocommit
from mz_dagster.adapter.engine import Engine, ObjectRecreated
from mz_dagster.adapter.explaining import Explaining
from mz_dagster.adapter.group_commit import QueuedWrite
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.project import FolderNotAllowed
from mz_dagster.adapter.reads import Reads, copied_query
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.roles import change_roles
from mz_dagster.adapter.shows import show
from mz_dagster.adapter.system_catalogs import FactsOnDemand
from mz_dagster.adapter.table_as import create_table_as
from mz_dagster.adapter.timestamps import Isolation
from mz_dagster.adapter.transaction import (
    NoActiveTransaction,
    ReadOnlyTransaction,
    Transaction,
)
from mz_dagster.adapter.truncation import truncate
from mz_dagster.adapter.variables import Variables
from mz_dagster.adapter.wire_client import UndefinedStatement, WireClient
from mz_dagster.adapter.writes import Writes
from mz_dagster.budget import engine_of
from mz_dagster.catalog import UnknownObject
from mz_dagster.compute import Progress, quiet
from mz_dagster.errors import Error, NotSupportedError, ProgrammingError
from mz_dagster.functions import UTC
from mz_dagster.notices import Notice, heard_by, warn
from mz_dagster.scalars.types import TEXT, Column
from mz_dagster.sql import (
    AlterRename,
    AlterReset,
    AlterRetainHistory,
    AlterTable,
    AlterType,
    Begin,
    CloseCursor,
    Comment,
    Commit,
    Copy,
    CopyFromClient,
    CopyToClient,
    CopyToFile,
    CreateCheck,
    CreateIndex,
    CreateMaterializedView,
    CreateSchema,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateTableAs,
    CreateType,
    CreateView,
    Deallocate,
    Declare,
    Delete,
    Discard,
    Drop,
    Explain,
    Fetch,
    Insert,
    Refresh,
    ReleaseSavepoint,
    ResetAll,
    Rollback,
    RollbackTo,
    Savepoint,
    Select,
    SetSetting,
    SetTransaction,
    Show,
    ShowSetting,
    Statement,
    Subscribe,
    TransactionModes,
    Truncate,
    Unlisten,
    Update,
)
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.connection_statements import AlterMeans, CreateConnection, CreateSecret
from mz_dagster.sql.definition_zone import check_definition_in
from mz_dagster.sql.errors import UndefinedParameter, UndefinedTable
from mz_dagster.sql.lexer import Fragment
from mz_dagster.sql.parsed_texts import fragments_of, statement_of
from mz_dagster.sql.role_statements import AlterRole, CreateRole, DropRole, Grant, GrantRole
from mz_dagster.storage.foreign import only_our_errors

#: Statements that define what others see at once.
_DEFINING = (
    CreateSource
    | CreateSink
    | CreateCheck
    | CreateTable
    | CreateView
    | CreateMaterializedView
    | CreateSchema
    | CreateType
    | CreateSecret
    | CreateConnection
    | CreateIndex
    | CreateTableAs
    | Drop
    | AlterRename
    | AlterTable
    | AlterReset
    | AlterType
    | AlterMeans
    | AlterRetainHistory
    | Comment
    | CreateRole
    | AlterRole
    | DropRole
    | GrantRole
    | Grant
)
_WRITING = Insert | Delete | Update | Copy | CopyFromClient | Truncate
#: Statements about the session itself, which neither read nor write.
_OF_SESSION = (
    SetSetting
    | SetTransaction
    | ResetAll
    | Deallocate
    | Discard
    | Unlisten
    | Savepoint
    | ReleaseSavepoint
    | Show
    | ShowSetting
    | Explain
    | Fetch
    | CloseCursor
)


class Session:
    """A series of statements on one engine.

    Args:
        engine: The project.
        isolation: What reads may miss.
        progress: Receives lines that read as the story of what takes long, such as the hydration of a view.
        names: What names denote in it, if it shares its temporary objects with others.
        variables: What SET changes in it, if it shares that with others.
    """

    def __init__(
        self,
        engine: Engine,
        isolation: Isolation = Isolation.STRICT_SERIALIZABLE,
        *,
        progress: Progress = quiet,
        names: Names | None = None,
        variables: Variables | None = None,
    ) -> None:
        self._progress = progress
        self._engine = engine
        self._variables = variables or Variables(engine.project, isolation.value)
        self._names = names or Names(engine)
        self._names.search_path = lambda: self._variables.search_path
        self._names.block = self._block_definitions
        self._queue: list[QueuedWrite] | None = None

    def close(self) -> None:
        """Rolls back the transaction block that is open, and drops the session's temporary objects."""
        self._variables.roll_back()
        self._names.close()

    def notices(self) -> tuple[Notice, ...]:
        """Returns what statements have told since this was last asked."""
        return self._variables.notices()

    def _block_definitions(self) -> BlockDefinitions | None:
        block = self._variables.transaction
        return None if block is None else block.defined

    @property
    def _peeks(self) -> Peeks:
        block = self._variables.transaction
        isolation = self._variables.isolation if block is None else block.isolation
        return Peeks(self._engine, isolation, self._facts, block)

    @property
    def _facts(self) -> FactsOnDemand:
        return FactsOnDemand(lambda: self._names.facts(self._variables.settings(), self._variables.user))

    @property
    def _writes(self) -> Writes:
        appender = self._variables.transaction or Autocommit(self._engine, self._queue)
        return Writes(self._engine, self._peeks, self._names, appender)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Result:
        """Executes one statement.

        Args:
            sql: The statement; a semicolon at its end is allowed.
            parameters: A value for each `?`.

        Raises:
            ProgrammingError: It is no statement, or more than one, or does not bind.
            NotSupportedError: It is refused, with position and reason.
            DataError: What it read is an error of the data.
            OperationalError: The outside world failed.
        """
        (result,) = self._executed(sql, _only(_fragments(sql)), parameters)
        return result

    def execute_each(
        self, sql: str, parameters: Sequence[object] = (), *, may_be_empty: bool = False, queues: bool = False
    ) -> Iterator[Result]:
        """Executes the statements of a text one by one, each a transaction of its own, and yields what each returns.

        Whatever is wrong with one, even a syntax error, is raised when its turn comes: those before it are done.

        Args:
            sql: Statements, separated by semicolons.
            parameters: A value for each `?`, if it is one statement.
            may_be_empty: Whether there may be none, as PostgreSQL's clients have it who look whether it is there.
            queues: Whether what a single statement writes may be sealed with others' later (`Result.queued`).

        Raises:
            ProgrammingError: There is none; there are parameters for several; or as `execute`.
            NotSupportedError: As `execute`, and the errors below.
        """
        fragments = _fragments(sql)
        if parameters or not (fragments or may_be_empty):
            _only(fragments)
        self._queue = [] if queues and len(fragments) == 1 else None
        yield from self._executed(sql, fragments, parameters)

    def _executed(self, sql: str, fragments: Sequence[Fragment], parameters: Sequence[object]) -> Iterator[Result]:
        for number, one in enumerate(fragments):
            try:
                result = self._execute(sql, fragments, number, parameters)
                yield replace(result, queued=self._queue.pop()) if self._queue else result
            except Error as error:
                error.point_out(sql, one.tokens[0].start if len(fragments) > 1 else None)
                raise

    @only_our_errors(writing=True)
    def _execute(self, sql: str, fragments: Sequence[Fragment], number: int, parameters: Sequence[object]) -> Result:
        with heard_by(self._variables.hear):
            with self._failing():
                statement = statement_of(sql, fragments, number)
            return self.sequence(statement, parameters)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Has the transaction block that is open fail if what is done in it fails, and errors name what is damaged."""
        try:
            yield
        except BaseException as error:
            if self._variables.transaction is not None:
                self._variables.transaction.fail()
            tell_whose(error, self._engine.catalog)
            raise

    @only_our_errors()
    def parsed(self, sql: str) -> Statement:
        """Returns what a text says that is one statement, whatever that means; raises as `execute`."""
        with self._failing():
            try:
                return statement_of(sql, _only(_fragments(sql)))
            except Error as error:
                error.point_out(sql)
                raise

    @only_our_errors()
    def describe(self, sql: str, parameters: Sequence[object]) -> tuple[Column, ...] | None:
        """Returns the columns of what a statement would return, without executing it; None if there is no result set.

        Args:
            sql: The statement.
            parameters: A value for each `?`, or an `OpenParameter`, which notes the types that the statement gives it.

        Raises:
            ProgrammingError: It does not bind.
        """
        with self._failing():
            statement = statement_of(sql, _only(_fragments(sql)))
            if self._variables.transaction is not None and not isinstance(statement, Commit | Rollback | RollbackTo):
                self._variables.transaction.begin_statement(queries=False)
            try:
                if isinstance(statement, Fetch):
                    return None if statement.moves else self._variables.cursor(statement.name).result.columns
                return self._described(statement, parameters)
            except Error as error:
                error.point_out(sql)
                raise

    def _described(self, statement: Statement, parameters: Sequence[object]) -> tuple[Column, ...] | None:
        if isinstance(statement, Select):
            return self._reads.described(statement, parameters)
        return describe(self._names, statement, parameters, self._circumstances())

    @only_our_errors()
    def meaning(self) -> Hashable | None:
        """Returns what is the same as long as every query means the same; None where this session alone knows that."""
        if not self._names.is_shared:
            return None
        state = self._engine.planned_queries.state(self._engine.catalog)
        return state and (state.mark, state.definitions, self._names.reading(self._variables.zone))

    @only_our_errors()
    def note_types(self, sql: str, parameters: Sequence[object]) -> bool:
        """Notes in open parameters of which types they are; returns False if that hangs on their values.

        Then whoever executes it with these finds out what it is. Nothing fails, and no block with it.
        """
        if (block := self._variables.transaction) is not None and block.is_failed:
            return False
        try:
            statement = statement_of(sql, fragments_of(sql))
            self._described(statement, parameters)
        except Error:
            return False
        return True

    @only_our_errors(writing=True)
    def execute_many(self, sql: str, many: Sequence[Sequence[object]]) -> Result:
        """Executes a statement that writes with each of many sets of parameters.

        An INSERT is one batch, which is written whole or not at all. Of any other statement each set is a transaction
        of its own, and sees what those before it wrote.

        Raises:
            ProgrammingError: The statement returns rows; else as `execute`.
        """
        with self._failing():
            statement = statement_of(sql, _only(_fragments(sql)))
            if not isinstance(statement, Insert | Delete | Update) or statement.returning is not None:
                raise ProgrammingError(
                    "executemany() takes statements that write and return no rows",
                    hint="Use execute() for this one.",
                )
        if isinstance(statement, Insert):
            for parameters in many:
                _check_count(statement, parameters)
            return self._carried_out(statement, lambda: self._writes.insert(statement, many, self._circumstances()))
        total = sum(self.sequence(statement, parameters).rowcount for parameters in many)
        return Result(f"{statement.text.split(maxsplit=1)[0].upper()} {total}", rowcount=total)

    @only_our_errors(writing=True)
    def sequence(self, statement: Statement, parameters: Sequence[object] = ()) -> Result:
        """Executes one parsed statement; see `execute`."""
        if isinstance(statement, Begin | Commit | Rollback | RollbackTo):
            return self._bounded(statement)
        return self._carried_out(statement, lambda: self._sequenced(statement, parameters), parameters)

    def _carried_out(
        self, statement: Statement, carry_out: Callable[[], Result], parameters: Sequence[object] | None = None
    ) -> Result:
        """Returns what carrying out a statement returns, which may be part of a transaction block."""
        with self._failing():
            self._begin_statement(statement)
            if parameters is not None:
                _check_count(statement, parameters)
            with engine_of(self._variables.engine), self._names.in_statement():
                result = self._bound_anew_while_lost(carry_out)
            if self._variables.transaction is not None:
                self._variables.transaction.end_statement()
            return result if self._variables.zone == UTC else result.in_zone(self._variables.zone)

    # ---- transaction blocks

    def _begin_statement(self, statement: Statement) -> None:
        """Returns if a statement may be executed now; opens a block for it if it needs one.

        Raises:
            ReadOnlyTransaction: It writes, and may not.
            ActiveTransaction: It is no part of a block.
            TransactionAborted: Its block has failed.
            TransactionTimedOut: Its block has ended.
        """
        variables = self._variables
        self._names.access.check_statement(statement)
        defines, writes = isinstance(statement, _DEFINING), isinstance(statement, _WRITING)
        begins = not variables.autocommit and not defines and not isinstance(statement, _OF_SESSION)
        if variables.transaction is None and begins:
            self._begin(TransactionModes(None, None))
        block = variables.transaction
        if block is not None:
            block.begin_statement(queries=not isinstance(statement, _OF_SESSION))
        command = _command(statement)
        if (writes or defines) and (variables.read_only if block is None else block.read_only):
            raise ReadOnlyTransaction(
                f"cannot execute {command} in a read-only transaction", hint="Begin it with READ WRITE."
            )
        if defines and block is not None and not isinstance(statement, DEFINED_IN_BLOCKS):
            raise ActiveTransaction(
                f"{command} cannot run inside a transaction block",
                detail="Others would see what it defines before the transaction commits.",
                hint="Execute it before BEGIN, or commit first.",
            )

    def _begin(self, modes: TransactionModes) -> None:
        variables, engine = self._variables, self._engine
        variables.begin(
            Transaction(
                engine,
                modes.isolation or variables.level,
                read_only=variables.read_only if modes.read_only is None else modes.read_only,
                began_ms=engine.clock.now_ms(),
                idle_timeout_ms=engine.project.idle_transaction_ms,
            )
        )

    def _bounded(self, statement: Begin | Commit | Rollback | RollbackTo) -> Result:
        """Begins or ends a transaction block; where there is none to end, nothing is done, as in PostgreSQL."""
        variables, block = self._variables, self._variables.transaction
        if isinstance(statement, Begin):
            if block is None:
                self._begin(statement.modes)
            else:
                with self._failing():
                    block.begin_statement(queries=False)
                warn("there is already a transaction in progress", "25001")
            return Result(_command(statement))
        if isinstance(statement, RollbackTo):
            self._block(statement).roll_back_to(statement.name)
            variables.roll_back_to(statement.name)
            return Result("ROLLBACK")
        if block is None:
            if statement.chain:
                self._block(statement)
            warn("there is no transaction in progress", "25P01")
            return Result("COMMIT" if isinstance(statement, Commit) else "ROLLBACK")
        commits = isinstance(statement, Commit) and not block.is_failed
        if commits:
            with self._failing():
                block.begin_statement(queries=False)
            variables.commit()
        else:
            variables.roll_back()
        if statement.chain:
            self._begin(TransactionModes(block.level, block.read_only))
        return Result("COMMIT" if commits else "ROLLBACK")

    def _block(self, statement: Statement) -> Transaction:
        """Returns the block that is open.

        Raises:
            NoActiveTransaction: There is none.
        """
        block = self._variables.transaction
        if block is None:
            raise NoActiveTransaction(f"{_command(statement)} can only be used in transaction blocks", hint="BEGIN.")
        return block

    def _bound_anew_while_lost(self, carry_out: Callable[[], Result]) -> Result:
        """Carries out a statement, again as long as what its names stood for has gone meanwhile: nothing was written.

        Somebody may replace a table again and again; the same loss twice is none that binding anew can help.
        """
        lost: ObjectRecreated | UnknownObject | None = None
        while True:
            try:
                with noting_tables():
                    return carry_out()
            except (ObjectRecreated, UnknownObject) as error:
                if lost is not None and str(error) == str(lost):
                    raise
                lost = error
            except UndefinedTable:
                if lost is None:
                    raise
                raise lost from None  # the name has gone with what it stood for

    def _sequenced(self, statement: Statement, parameters: Sequence[object]) -> Result:
        match statement:
            case Select() | Subscribe():
                return self._read(statement, parameters)
            case Insert():
                return self._writes.insert(statement, [parameters], self._circumstances())
            case Delete():
                return self._writes.delete(statement, parameters, self._circumstances())
            case Update():
                return self._writes.update(statement, parameters, self._circumstances())
            case Copy():
                return self._writes.copy(statement, self._circumstances())
            case CopyFromClient():
                return self._writes.copy_from_client(statement, self._client(statement), self._circumstances())
            case CopyToClient():
                self._client(statement)
                return self._copy_to_client(statement, parameters)
            case CopyToFile():
                return self._copy_to_file(statement, parameters)
            case Declare():
                return self._declare(statement, parameters)
            case Fetch():
                return self._fetch(statement)
            case CloseCursor(name=None):
                self._variables.close_cursors(*self._variables.cursors)
                return Result("CLOSE CURSOR ALL")
            case CloseCursor(name=str(name)):
                self._variables.cursor(name)
                self._variables.close_cursors(name)
                return Result("CLOSE CURSOR")
            case CreateRole() | AlterRole() | DropRole() | Grant() | GrantRole():
                return Result(change_roles(self._names, statement))
            case Truncate():
                begin = partial(self._begin, TransactionModes(None, None))
                return truncate(self._writes, self._variables, begin, statement, self._circumstances())
            case Refresh():
                self._names.object(statement.name, "materialized view")
                return Result("REFRESH MATERIALIZED VIEW")  # it is what its query says at every time
            case (
                CreateSource()
                | CreateSink()
                | CreateCheck()
                | CreateTable()
                | CreateView()
                | CreateMaterializedView()
                | CreateIndex()
                | CreateType()
                | CreateSecret()
                | CreateConnection()
            ):
                if self._variables.zone != UTC and isinstance(
                    statement, CreateCheck | CreateTable | CreateView | CreateMaterializedView
                ):
                    check_definition_in(self._variables.zone, statement, self._names)
                return Result(ddl.create(self._names, statement, self._progress))
            case CreateTableAs():
                return create_table_as(self._peeks, self._names, statement, parameters, self._circumstances())
            case CreateSchema():
                return Result(ddl.create_schema(self._names, statement))
            case Drop():
                return Result(ddl.drop(self._names, statement))
            case AlterTable():
                alter_table(self._peeks, self._names, statement, self._circumstances())
                return Result("ALTER TABLE")
            case AlterRename() | AlterReset() | AlterType() | AlterMeans() | AlterRetainHistory():
                return Result(ddl.alter(self._names, statement))
            case Comment():
                return Result(ddl.comment(self._names, statement))
            case Explain():
                return Explaining(self._engine, self._reads).explained(statement, parameters)
            case Savepoint():
                self._block(statement).save(statement.name)
                self._variables.save(statement.name)
                return Result("SAVEPOINT")
            case ReleaseSavepoint():
                self._block(statement).release(statement.name)
                self._variables.release(statement.name)
                return Result("RELEASE")
            case SetTransaction():
                if not statement.of_session:
                    self._block(statement)
                self._variables.set_modes(statement.modes, of_session=statement.of_session)
                return Result("SET")
            case SetSetting():
                self._variables.set(statement.name, statement.value, is_local=statement.is_local)
                return Result(statement.text.split(maxsplit=1)[0].upper())
            case ResetAll():
                self._variables.reset_all()
                return Result("RESET")
            case Unlisten():
                return Result("UNLISTEN")
            case Deallocate(name=name):
                return self._deallocate(name)
            case Discard(what=what):
                return self._discard(what)
            case ShowSetting(name=None):
                return every_setting(self._variables)
            case ShowSetting(name=str(name)):
                return Result("SHOW", (Column(name, TEXT, False),), ((self._variables.get(name),),), 1)
            case Show():
                columns, rows = show(self._peeks, self._names, statement, parameters)
                return Result("SHOW", columns, rows, len(rows))
            case _:
                _refuse(statement)

    def _circumstances(self) -> Circumstances:
        """Returns what a statement that begins now is to know of the clock and the session.

        In a transaction block the clock stands where it was when that began.
        """
        block = self._variables.transaction
        now_ms = self._engine.clock.now_ms() if block is None else block.began_ms
        return self._variables.circumstances(now_ms, self._facts)

    # ---- reads

    @property
    def _reads(self) -> Reads:
        return Reads(self._peeks, self._names, self._variables, self._circumstances, self._progress)

    def _read(self, query: Select | Subscribe, parameters: Sequence[object]) -> Result:
        if isinstance(query, Select):
            return self._reads.select(query, parameters)
        return self._reads.subscribe(query, parameters)

    # ---- what is the session's own

    def _deallocate(self, name: str | None) -> Result:
        """Forgets one statement that the client has prepared, or all.

        Raises:
            UndefinedStatement: There is none of the name.
        """
        client = self._variables.client
        is_there = client is not None and client.forget_prepared(name)
        if name is not None and not is_there:
            raise UndefinedStatement(f'prepared statement "{name}" does not exist')
        return Result("DEALLOCATE ALL" if name is None else "DEALLOCATE")

    def _discard(self, what: str) -> Result:
        """Makes the session what it was when it began, or drops its temporary objects; there are no plans kept.

        Raises:
            ActiveTransaction: All is to go, while a block is open.
        """
        variables = self._variables
        if what == "all":
            if variables.transaction is not None:
                raise ActiveTransaction("DISCARD ALL cannot run inside a transaction block", hint="COMMIT first.")
            variables.close_cursors(*variables.cursors)
            variables.reset_all()
            self._deallocate(None)
        if what in ("all", "temp"):
            self._names.close()
        return Result(f"DISCARD {what.upper()}")

    # ---- cursors and COPY

    def _declare(self, statement: Declare, parameters: Sequence[object]) -> Result:
        """Executes the query of a cursor.

        Raises:
            NoActiveTransaction: It would be gone with its own statement.
            DuplicateCursor: There is one of its name.
        """
        variables = self._variables
        if variables.transaction is None and not statement.holds:
            raise NoActiveTransaction(
                "DECLARE CURSOR can only be used in transaction blocks", hint="BEGIN, or declare it WITH HOLD."
            )
        if statement.name in variables.cursors:
            raise DuplicateCursor(f'cursor "{statement.name}" already exists', hint="CLOSE it, or choose another name.")
        result = self._read(statement.query, parameters)
        variables.declare(
            statement.name, DeclaredCursor(result, variables.transaction, statement.holds, statement.scrolls)
        )
        return Result("DECLARE CURSOR")

    def _fetch(self, statement: Fetch) -> Result:
        cursor = self._variables.cursor(statement.name)
        rows = cursor.fetch(statement, self._engine.clock)
        if statement.moves:
            return Result(f"MOVE {len(rows)}", rowcount=len(rows))
        return Result(f"FETCH {len(rows)}", cursor.result.columns, rows, len(rows))

    def _client(self, statement: Statement) -> WireClient:
        """Returns who sends or gets the rows of a COPY.

        Raises:
            NotSupportedError: Nobody does: the session is a program's own.
        """
        if self._variables.client is None:
            raise NotSupportedError(
                "COPY FROM STDIN and COPY TO STDOUT are for clients of PostgreSQL's protocol",
                hint="Use executemany() to write many rows, and SELECT to read them; or connect to mz-dagster serve.",
                position=statement.offset + 1,
            )
        return self._variables.client

    def _copy_to_client(self, statement: CopyToClient, parameters: Sequence[object]) -> Result:
        result = self._read(copied_query(statement), parameters)
        return replace(result, tag=f"COPY {len(result.rows)}", sent_as=statement.format)

    def _copy_to_file(self, statement: CopyToFile, parameters: Sequence[object]) -> Result:
        try:
            path = self._engine.project.output_path(statement.path)
        except FolderNotAllowed as error:
            error.position = statement.path_offset + 1
            raise
        result = self._read(copied_query(statement), parameters)
        copy_to_file(path, result, statement.format, self._variables.zone)
        return Result(f"COPY {len(result.rows)}", rowcount=len(result.rows))


@only_our_errors()
def _fragments(sql: str) -> tuple[Fragment, ...]:
    try:
        return fragments_of(sql)
    except Error as error:
        error.point_out(sql)
        raise


def _only(fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    """Returns the statements of a text, which must be one.

    Raises:
        ProgrammingError: There are several, or none.
    """
    if len(fragments) != 1:
        raise ProgrammingError(
            f"{len(fragments)} statements where one is expected",
            hint="Execute them one at a time." if fragments else "Write a statement.",
        )
    return fragments


def _check_count(statement: Statement, parameters: Sequence[object]) -> None:
    if len(parameters) != statement.parameters:
        raise UndefinedParameter(
            f"{len(parameters)} values for {statement.parameters} parameters", hint="Give one value for each ?."
        )


def _command(statement: Statement) -> str:
    """Returns what a statement is called in messages: its leading words."""
    words = statement.text.upper().split()
    count = 2 if words[0] in ("CREATE", "ALTER", "DROP", "COMMENT", "START", "ROLLBACK", "SET", "TRUNCATE") else 1
    return " ".join(words[:count]).rstrip(";")


def _refuse(statement: Statement) -> NoReturn:
    raise NotSupportedError(
        f"{_command(statement)} is not supported yet",
        hint="See docs/sql.md for the statements that are.",
        position=1,
    )
