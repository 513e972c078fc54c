"""Statements that lock: SELECT ... FOR UPDATE and its like, and LOCK TABLE.

A block that has locked a table commits only if nobody has written that since it read it, or fails with 40001, also if
it writes nothing itself. A statement that is a transaction of its own needs no lock: it reads and writes at one time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.row_locks import LockNotAvailable
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.select import reads_of
from mz_dagster.adapter.transaction import NoActiveTransaction, ReadOnlyTransaction, SerializationFailure
from mz_dagster.formalism import GlobalId
from mz_dagster.sql import LockTable, RowLock, Select, Statement
from mz_dagster.sql.errors import UnsupportedForm
from mz_dagster.sql.statements import Name

#: The modes of LOCK TABLE that keep others from writing; what the others keep them from never hinders a transaction.
_KEEPS_FROM_WRITING = ("SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE")


def with_rows_locked(
    context: Context, statement: Statement, parameters: Sequence[object], carry_out: Callable[[], Result]
) -> Result:
    """Carries out a statement with what it locks locked.

    Raises:
        LockNotAvailable: Another transaction has locked it, and NOWAIT was said.
        SerializationFailure: It was written since the block has read it; or another has locked what a subquery skips.
        ReadOnlyTransaction: The block only reads.
        UnsupportedForm: It is of no table, or is read at a time that the statement says.
    """
    for lock in statement.locks:
        what = f"FOR {lock.strength}"
        if isinstance(statement, Select) and statement.as_of is not None:
            raise UnsupportedForm(
                f"{what} of what is read AS OF a time is not supported",
                detail="Nobody can change that any more.",
                hint=f"Leave out {what}.",
                position=lock.offset + 1,
            )
        block = context.variables.transaction
        if context.variables.read_only if block is None else block.read_only:
            raise ReadOnlyTransaction(
                f"cannot execute SELECT {what} in a read-only transaction", hint="Begin it with READ WRITE."
            )
        if _lock(context, lock):
            continue
        if isinstance(statement, Select) and not lock.is_nested:
            columns = reads_of(context).described(replace(statement, locks=()), parameters)
            return Result("SELECT 0", columns, (), 0)
        raise SerializationFailure(
            "could not serialize access due to concurrent update",
            detail="Another transaction has locked rows of a table that a subquery would skip.",
            hint="Execute the transaction again.",
        )
    return carry_out()


def _lock(context: Context, lock: RowLock) -> bool:
    """Locks what a clause says; returns False if another has locked it, and it is to be skipped."""
    names, block = context.names, context.variables.transaction
    tables = [id for parts in lock.relations if (id := _table(names, parts, lock)) is not None]
    locks = context.engine.activity.row_locks
    if block is None:
        locked = None if lock.conflict == "wait" else locks.other(None, tables, shared=lock.is_shared)
    else:
        locked = block.lock(tables, shared=lock.is_shared, anyway=lock.conflict == "wait")
    if locked is None:
        return True
    if lock.conflict == "nowait":
        raise LockNotAvailable(f'row in relation "{context.engine.names().get(locked, locked)}"')
    return False


def _table(names: Names, parts: tuple[str, ...], lock: RowLock) -> GlobalId | None:
    """Returns the table of a name; None if it is of the system's own relations, or of the query's."""
    row = names.find(Name(parts))
    if row is None:
        return None
    if row.kind != "table":
        raise UnsupportedForm(
            f'FOR {lock.strength} of {row.kind} "{".".join(parts)}" is not supported',
            detail="Only rows of tables are locked.",
            hint="Name tables behind OF, or lock what it is computed from.",
            position=lock.offset + 1,
        )
    if not names.is_temporary(row.id):
        names.access.check(row, "w")
    return row.id


def lock_table(context: Context, statement: LockTable, _: Sequence[object]) -> Result:
    """Has the block fail if others write tables before it commits, if that is what the mode keeps them from.

    Raises:
        NoActiveTransaction: There is no block.
        LockNotAvailable: Another block has locked one of them, and NOWAIT was said.
    """
    block = context.variables.transaction
    if block is None:
        raise NoActiveTransaction("LOCK TABLE can only be used in transaction blocks", hint="BEGIN.")
    rows = [context.names.object(name, "table") for name in statement.names]
    for row in rows:
        if not context.names.is_temporary(row.id):
            context.names.access.check(row, "r" if statement.mode == "ACCESS SHARE" else "w")
    if statement.mode in _KEEPS_FROM_WRITING:
        tables = [row.id for row in rows]
        locked = block.lock(tables, shared=statement.mode == "SHARE", anyway=not statement.nowait)
        if locked is not None:
            raise LockNotAvailable(f'relation "{context.engine.names().get(locked, locked)}"')
        for table in tables:
            context.peeks.time_for(table, None)
    return Result("LOCK TABLE")
