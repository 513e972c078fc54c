"""A session: statements in, results out, one after the other.

Owns what is the same for all statements: texts are parsed, privileges and parameters checked, and blocks kept; what
each one does is the function's that `sequence` has for its type. Outside of a transaction
block each statement is a transaction of its own: when `execute` returns, it is acknowledged and durable. A client's
statements may be one implicit block without having said so (`begin_implicitly`); one that cannot be part of that
commits what is before it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from mz_dagster.adapter.block_definitions import DEFINED_IN_BLOCKS, BlockDefinitions, NoPartOfBlock
from mz_dagster.adapter.bound_tables import noting_tables
from mz_dagster.adapter.catalog_definitions import tell_whose
from mz_dagster.adapter.describing import describe
from mz_dagster.adapter.engine import Engine, ObjectRecreated
from mz_dagster.adapter.group_commit import QueuedWrite
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.prepared_statements import UndefinedStatement
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context, command
from mz_dagster.adapter.sequence.insert import insert_many
from mz_dagster.adapter.sequence.locking import with_rows_locked
from mz_dagster.adapter.sequence.prepare import find
from mz_dagster.adapter.sequence.select import reads_of
from mz_dagster.adapter.sequence.statements import STATEMENTS, Effect
from mz_dagster.adapter.timestamps import Isolation
from mz_dagster.adapter.transaction import OtherTimeline, ReadOnlyTransaction
from mz_dagster.adapter.variables import Variables
from mz_dagster.budget import engine_of
from mz_dagster.catalog import UnknownObject
from mz_dagster.compute import Progress, quiet
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.functions import UTC
from mz_dagster.notices import Notice, heard_by
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Column
from mz_dagster.sql import (
    Begin,
    Commit,
    CopyToClient,
    CopyToFile,
    Delete,
    Execute,
    Fetch,
    Insert,
    Rollback,
    RollbackTo,
    Select,
    Statement,
    Subscribe,
    TransactionModes,
    Update,
)
from mz_dagster.sql.errors import UndefinedParameter, UndefinedTable
from mz_dagster.sql.lexer import Fragment
from mz_dagster.sql.parsed_texts import fragments_of, statement_of
from mz_dagster.sql.syntax import check_syntax
from mz_dagster.storage.foreign import only_our_errors


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
        self._names.kept_statements = self._variables.kept_statements
        self._names.kept_cursors = self._variables.kept_cursors
        self._queue: list[QueuedWrite] | None = None

    def close(self) -> None:
        """Rolls back the transaction block that is open, and drops the session's temporary objects."""
        self._variables.roll_back()
        self._variables.give_back_locks()
        self._names.close()

    def notices(self) -> tuple[Notice, ...]:
        """Returns what statements have told since this was last asked."""
        return self._variables.notices()

    def _block_definitions(self) -> BlockDefinitions | None:
        block = self._variables.transaction
        return None if block is None else block.defined

    @property
    def _context(self) -> Context:
        """What a statement that begins now is carried out with."""
        return Context(
            self._engine, self._names, self._variables, self._progress, self._queue, self._failing, self.sequence
        )

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
        self,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        may_be_empty: bool = False,
        queues: bool = False,
        as_one: bool = False,
    ) -> Iterator[Result]:
        """Executes the statements of a text one by one, each a transaction of its own, and yields what each returns.

        Whatever is wrong with one, even a syntax error, is raised when its turn comes: those before it are done.
        As one transaction they are parsed before the first is executed, and who asks for them ends it.

        Args:
            sql: Statements, separated by semicolons.
            parameters: A value for each `?`, if it is one statement.
            may_be_empty: Whether there may be none, as PostgreSQL's clients have it who look whether it is there.
            queues: Whether what a single statement writes may be sealed with others' later (`Result.queued`).
            as_one: Whether several are one implicit block.

        Raises:
            ProgrammingError: There is none; there are parameters for several; or as `execute`.
            NotSupportedError: As `execute`, and the errors below.
        """
        fragments = _fragments(sql)
        if parameters or not (fragments or may_be_empty):
            _only(fragments)
        self._queue = [] if queues and len(fragments) == 1 else None
        as_one = as_one and len(fragments) > 1
        for number in range(len(fragments) if as_one else 0):
            self._parsed(sql, fragments, number, wholly=True)
        yield from self._executed(sql, fragments, parameters, as_one=as_one)

    @only_our_errors()
    def _parsed(self, sql: str, fragments: Sequence[Fragment], number: int, *, wholly: bool = False) -> Statement:
        with self._failing():
            try:
                statement = statement_of(sql, fragments, number)
                if wholly:
                    check_syntax(statement)
                return statement
            except Error as error:
                error.point_out(sql, fragments[number].tokens[0].start if len(fragments) > 1 else None)
                raise

    def _executed(
        self, sql: str, fragments: Sequence[Fragment], parameters: Sequence[object], *, as_one: bool = False
    ) -> Iterator[Result]:
        for number, one in enumerate(fragments):
            try:
                if as_one:
                    self.begin_implicitly(statement_of(sql, fragments, number))
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
            fragments = _only(_fragments(sql))
        return self._parsed(sql, fragments, 0)

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
        if isinstance(statement, Execute):
            prepared = find(self._context, statement.name.last)
            if prepared is None:
                raise UndefinedStatement.named(statement.name.last)
            nulls = [None if one is None else Literal(None, one) for one in prepared.types]
            return self._described(prepared.statement, [nulls[place] for place in prepared.places])
        if isinstance(statement, Select):
            return reads_of(self._context).described(statement, parameters)
        return describe(self._names, statement, parameters, self._context.circumstances())

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
            return self._carried_out(statement, lambda: insert_many(self._context, statement, many))
        total = sum(self.sequence(statement, parameters).rowcount for parameters in many)
        return Result(f"{statement.text.split(maxsplit=1)[0].upper()} {total}", rowcount=total)

    @only_our_errors(writing=True)
    def sequence(self, statement: Statement, parameters: Sequence[object] = ()) -> Result:
        """Executes one parsed statement; see `execute`."""
        sequenced, context = STATEMENTS[type(statement)], self._context
        if sequenced.effect is Effect.BOUNDS:
            return sequenced.carry_out(context, statement, parameters)

        def carry_out() -> Result:
            return sequenced.carry_out(context, statement, parameters)

        def carry_out_locking() -> Result:
            return with_rows_locked(context, statement, parameters, carry_out)

        return self._carried_out(statement, carry_out_locking if statement.locks else carry_out, parameters)

    def _carried_out(
        self, statement: Statement, carry_out: Callable[[], Result], parameters: Sequence[object] | None = None
    ) -> Result:
        """Returns what carrying out a statement returns, which may be part of a transaction block."""
        with self._failing():
            self._begin_statement(statement)
            if parameters is not None:
                _check_count(statement, parameters)
            with engine_of(self._variables.engine), self._names.in_statement():
                result = self._in_implicit_block(lambda: self._bound_anew_while_lost(carry_out))
            if self._variables.transaction is not None:
                self._variables.transaction.end_statement()
            return result if self._variables.zone == UTC else result.in_zone(self._variables.zone)

    # ---- transaction blocks

    def begin_implicitly(self, statement: Statement) -> None:
        """Opens an implicit block for a statement and those that follow, unless one is open, or it says that itself."""
        if self._variables.transaction is None and not isinstance(statement, Begin | Commit | Rollback | RollbackTo):
            self._context.begin(TransactionModes(None, None), is_implicit=True)

    def fail(self) -> None:
        """Has the transaction block that is open, if one is, refuse all that follows until it is rolled back."""
        if self._variables.transaction is not None:
            self._variables.transaction.fail()

    @only_our_errors(writing=True)
    def end_implicitly(self) -> None:
        """Commits the implicit block that is open, if one is; or rolls it back if a statement of it has failed.

        Raises:
            SerializationFailure: Others wrote what it has read; nothing was written.
        """
        block = self._variables.transaction
        if block is None or not block.is_implicit:
            return
        if block.is_failed:
            self._variables.roll_back()
            return
        with heard_by(self._variables.hear), self._failing():
            block.begin_statement(queries=False)
            self._context.commit()

    def _in_implicit_block(self, carry_out: Callable[[], Result]) -> Result:
        """Carries out a statement; if it cannot be part of the implicit block that is open, behind that."""
        block = self._variables.transaction
        if block is None or not block.is_implicit:
            return carry_out()
        before = "statement"
        block.save(before)
        try:
            result = carry_out()
            block.release(before)
            return result
        except (NoPartOfBlock, OtherTimeline):
            block.roll_back_to(before)
            self.end_implicitly()
            return carry_out()

    def _begin_statement(self, statement: Statement) -> None:
        """Returns if a statement may be executed now; opens a block for it if it needs one.

        Raises:
            ReadOnlyTransaction: It writes, and may not.
            NoPartOfBlock: It is no part of a block.
            TransactionAborted: Its block has failed.
            TransactionTimedOut: Its block has ended.
        """
        variables = self._variables
        self._names.access.check_statement(statement)
        if is_read_alone(statement):
            self.end_implicitly()
        effect = STATEMENTS[type(statement)].effect
        defines, of_session = effect is Effect.DEFINES, effect is Effect.OF_SESSION
        if variables.transaction is None and not variables.autocommit and not defines and not of_session:
            self._context.begin(TransactionModes(None, None))
        block = variables.transaction
        if block is not None:
            block.begin_statement(queries=not of_session)
        if defines and block is not None and block.is_implicit and not isinstance(statement, DEFINED_IN_BLOCKS):
            self.end_implicitly()
            block = None
        if effect in (Effect.WRITES, Effect.DEFINES) and (variables.read_only if block is None else block.read_only):
            raise ReadOnlyTransaction(
                f"cannot execute {command(statement)} in a read-only transaction", hint="Begin it with READ WRITE."
            )
        if defines and block is not None and not isinstance(statement, DEFINED_IN_BLOCKS):
            raise NoPartOfBlock(
                f"{command(statement)} cannot run inside a transaction block",
                detail="Others would see what it defines before the transaction commits.",
                hint="Execute it before BEGIN, or commit first.",
            )

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


def is_read_alone(statement: Statement) -> bool:
    """Returns whether a statement reads at a time that it says itself, or at all that come."""
    match statement:
        case Subscribe():
            return True
        case Select(as_of=as_of):
            return as_of is not None
        case CopyToClient(source=Select() | Subscribe() as source) | CopyToFile(source=Select() as source):
            return is_read_alone(source)
    return False


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
