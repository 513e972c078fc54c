"""DECLARE, FETCH, MOVE and CLOSE."""

from __future__ import annotations

from mz_dagster.adapter.declared_cursors import DeclaredCursor, DuplicateCursor
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.subscribe import queried
from mz_dagster.adapter.sequence.written import Parameters
from mz_dagster.adapter.transaction import NoActiveTransaction
from mz_dagster.sql import CloseCursor, Declare, Fetch


def declare(context: Context, statement: Declare, parameters: Parameters) -> Result:
    """Executes the query of a cursor.

    Raises:
        NoActiveTransaction: It would be gone with its own statement.
        DuplicateCursor: There is one of its name.
    """
    variables = context.variables
    if variables.transaction is None and not statement.holds:
        raise NoActiveTransaction(
            "DECLARE CURSOR can only be used in transaction blocks", hint="BEGIN, or declare it WITH HOLD."
        )
    if statement.name in variables.cursors:
        raise DuplicateCursor(f'cursor "{statement.name}" already exists', hint="CLOSE it, or choose another name.")
    result = queried(context, statement.query, parameters)
    cursor = DeclaredCursor(
        result, variables.transaction, statement.holds, statement.scrolls, statement.text, context.engine.clock.now_ms()
    )
    variables.declare(statement.name, cursor)
    return Result("DECLARE CURSOR")


def fetch(context: Context, statement: Fetch, _: Parameters) -> Result:
    """Returns rows of a cursor, or moves it by them."""
    cursor = context.variables.cursor(statement.name)
    rows = cursor.fetch(statement, context.engine.clock)
    if statement.moves:
        return Result(f"MOVE {len(rows)}", rowcount=len(rows))
    return Result(f"FETCH {len(rows)}", cursor.result.columns, rows, len(rows))


def close_cursor(context: Context, statement: CloseCursor, _: Parameters) -> Result:
    """Closes a cursor, or all."""
    variables = context.variables
    if statement.name is None:
        variables.close_cursors(*variables.cursors)
        return Result("CLOSE CURSOR ALL")
    variables.cursor(statement.name)
    variables.close_cursors(statement.name)
    return Result("CLOSE CURSOR")
