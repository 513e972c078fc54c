"""The context of a statement: the session that it is carried out for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from mz_dagster.adapter.bound_tables import noting_tables
from mz_dagster.adapter.dml import Autocommit
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.group_commit import QueuedWrite
from mz_dagster.adapter.keeping_references import NeedsBlock, References
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.written import Writes
from mz_dagster.adapter.system_catalogs import FactsOnDemand
from mz_dagster.adapter.transaction import NoActiveTransaction, SerializationFailure, Transaction
from mz_dagster.adapter.variables import Variables
from mz_dagster.adapter.wire_client import WireClient
from mz_dagster.adapter.write_attempts import write_attempts
from mz_dagster.compute import Progress
from mz_dagster.errors import NotSupportedError
from mz_dagster.sql import Commit, ReleaseSavepoint, Rollback, RollbackTo, Statement, TransactionModes
from mz_dagster.sql.circumstances import Circumstances


@dataclass(frozen=True, slots=True)
class Context:
    """What a statement is carried out with. What hangs on the block that is open is as it is when that is asked for.

    Attributes:
        engine: The project.
        names: What names denote in the session.
        variables: The session's settings, its block and its cursors.
        progress: Receives the story of what takes long.
        queue: Takes what is written to be sealed with others' writes; None where it is sealed at once.
        failing: Has the block that is open fail if what is done within fails.
        sequence: Executes another statement, with a value for each of its parameters.
    """

    engine: Engine
    names: Names
    variables: Variables
    progress: Progress
    queue: list[QueuedWrite] | None
    failing: Callable[[], AbstractContextManager[None]]
    sequence: Callable[[Statement, Sequence[object]], Result]

    @property
    def facts(self) -> FactsOnDemand:
        """What the system's catalogs say of the session."""
        return FactsOnDemand(lambda: self.names.facts(self.variables.settings(), self.variables.user))

    @property
    def peeks(self) -> Peeks:
        """What reads at a time that the session may read at."""
        block = self.variables.transaction
        isolation = self.variables.isolation if block is None else block.isolation
        return Peeks(self.engine, isolation, self.facts, block)

    @property
    def writes(self) -> Writes:
        """What writes tables, in the block that is open or at once."""
        appender = self.variables.transaction or Autocommit(self.engine, self.queue)
        return Writes(self.engine, self.peeks, self.names, appender)

    def circumstances(self) -> Circumstances:
        """Returns what a statement that begins now is to know of the clock and the session.

        In a transaction block the clock stands where it was when that began.
        """
        block = self.variables.transaction
        now_ms = self.engine.clock.now_ms() if block is None else block.began_ms
        return self.variables.circumstances(now_ms, self.facts)

    def commit(self) -> None:
        """Commits the block that is open, and ends it: rolls it back if that raises.

        Raises:
            ForeignKeyViolation: What it has put off until now breaks a key.
            SerializationFailure: Others wrote what it has read; nothing was written.
        """
        try:
            self.check_deferred(at_commit=True)
        except BaseException:
            self.variables.roll_back()
            raise
        self.variables.commit()

    def check_deferred(self, *, at_commit: bool) -> None:
        """Returns if what the block that is open has put off breaks no key; raises `ForeignKeyViolation` if it does."""
        block = self.variables.transaction
        assert block is not None, "it is open"
        if block.constraints.touched:
            references = References(self.engine, self.names, self.peeks, block, self.circumstances())
            with noting_tables():
                references.check_deferred(at_commit=at_commit)

    def in_own_block(self, carry_out: Callable[[], Result]) -> Result:
        """Carries out a statement that writes; in a transaction block of its own if it needs one, and none is open.

        Raises:
            WriteContended: Others wrote what it reads until the deadline for writes.
        """
        try:
            return carry_out()
        except NeedsBlock:
            pass
        for _ in write_attempts(self.engine.project, self.engine.clock):
            try:
                self.begin(TransactionModes(None, None))
                result = carry_out()
                self.commit()
                return result
            except SerializationFailure:
                continue
            finally:
                self.variables.roll_back()
        raise AssertionError("attempts end with a return or an error")

    def begin(self, modes: TransactionModes, *, is_implicit: bool = False) -> None:
        """Opens a transaction block."""
        variables, engine = self.variables, self.engine
        variables.begin(
            Transaction(
                engine,
                modes.isolation or variables.level,
                read_only=variables.read_only if modes.read_only is None else modes.read_only,
                began_ms=engine.clock.now_ms(),
                idle_timeout_ms=engine.project.idle_transaction_ms,
                is_implicit=is_implicit,
            )
        )

    def block(self, statement: Statement) -> Transaction:
        """Returns the block that BEGIN has opened.

        Raises:
            NoActiveTransaction: There is none.
        """
        block = self.variables.transaction
        if block is None or block.is_implicit:
            raise NoActiveTransaction(f"{command(statement)} can only be used in transaction blocks", hint="BEGIN.")
        return block

    def client(self, statement: Statement) -> WireClient:
        """Returns who sends or gets the rows of a COPY.

        Raises:
            NotSupportedError: Nobody does: the session is a program's own.
        """
        if self.variables.client is None:
            raise NotSupportedError(
                "COPY FROM STDIN and COPY TO STDOUT are for clients of PostgreSQL's protocol",
                hint="Use executemany() to write many rows, and SELECT to read them; or connect to mz-dagster serve.",
                position=statement.offset + 1,
            )
        return self.variables.client


def command(statement: Statement) -> str:
    """Returns what a statement is called in messages: its leading words."""
    words = statement.text.upper().rstrip("; \n").split()
    if isinstance(statement, Commit | Rollback) and statement.chain:
        return f"{words[0]} AND CHAIN"
    if isinstance(statement, ReleaseSavepoint | RollbackTo):
        return "RELEASE SAVEPOINT" if isinstance(statement, ReleaseSavepoint) else "ROLLBACK TO SAVEPOINT"
    count = 2 if words[0] in ("CREATE", "ALTER", "DROP", "COMMENT", "START", "ROLLBACK", "SET", "TRUNCATE") else 1
    return " ".join(words[:count]).rstrip(";")
