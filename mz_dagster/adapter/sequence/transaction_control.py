"""BEGIN, COMMIT, ROLLBACK and savepoints."""

from __future__ import annotations

from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context, command
from mz_dagster.adapter.sequence.written import Parameters
from mz_dagster.notices import warn
from mz_dagster.sql import Begin, Commit, ReleaseSavepoint, Rollback, RollbackTo, Savepoint, TransactionModes


def begin(context: Context, statement: Begin, _: Parameters) -> Result:
    """Opens a transaction block, or makes an implicit one last; within another, nothing is done, as in PostgreSQL."""
    block = context.variables.transaction
    if block is None:
        context.begin(statement.modes)
        return Result(command(statement))
    with context.failing():
        block.begin_statement(queries=False)
        if block.is_implicit:
            context.variables.set_modes(statement.modes, of_session=False)
    if block.is_implicit:
        block.is_implicit = False
    else:
        warn("there is already a transaction in progress", "25001")
    return Result(command(statement))


def end(context: Context, statement: Commit | Rollback, _: Parameters) -> Result:
    """Ends a transaction block, an implicit one with a warning; where there is none, there is only that."""
    variables, block = context.variables, context.variables.transaction
    if block is None or block.is_implicit:
        if statement.chain:
            with context.failing():
                context.block(statement)
        warn("there is no transaction in progress", "25P01")
    if block is None:
        return Result("COMMIT" if isinstance(statement, Commit) else "ROLLBACK")
    commits = isinstance(statement, Commit) and not block.is_failed
    if commits:
        with context.failing():
            block.begin_statement(queries=False)
        context.commit()
    else:
        variables.roll_back()
    if statement.chain:
        context.begin(TransactionModes(block.level, block.read_only))
    return Result("COMMIT" if commits else "ROLLBACK")


def roll_back_to(context: Context, statement: RollbackTo, _: Parameters) -> Result:
    """Forgets what the block has done since a savepoint."""
    with context.failing():
        context.block(statement).roll_back_to(statement.name)
    context.variables.roll_back_to(statement.name)
    return Result("ROLLBACK")


def savepoint(context: Context, statement: Savepoint, _: Parameters) -> Result:
    """Names where the block stands."""
    with context.failing():
        context.block(statement).save(statement.name)
    context.variables.save(statement.name)
    return Result("SAVEPOINT")


def release(context: Context, statement: ReleaseSavepoint, _: Parameters) -> Result:
    """Forgets a savepoint."""
    with context.failing():
        context.block(statement).release(statement.name)
    context.variables.release(statement.name)
    return Result("RELEASE")
