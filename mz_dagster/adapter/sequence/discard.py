"""DISCARD, DEALLOCATE and UNLISTEN: a session gives up what is its own."""

from __future__ import annotations

from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.adapter.prepared_statements import UndefinedStatement
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Parameters
from mz_dagster.sql import Deallocate, Discard, Unlisten


def discard(context: Context, statement: Discard, _: Parameters) -> Result:
    """Makes the session what it was when it began, or drops its temporary objects; there are no plans kept.

    Raises:
        ActiveTransaction: All is to go, while a block is open.
    """
    variables = context.variables
    if statement.what == "all":
        if variables.transaction is not None:
            raise ActiveTransaction("DISCARD ALL cannot run inside a transaction block", hint="COMMIT first.")
        variables.close_cursors(*variables.cursors)
        variables.reset_all()
        variables.give_back_locks()
        _forget_prepared(context, None)
    if statement.what in ("all", "temp"):
        context.names.close()
    return Result(f"DISCARD {statement.what.upper()}")


def deallocate(context: Context, statement: Deallocate, _: Parameters) -> Result:
    """Forgets one statement that was prepared, or all.

    Raises:
        UndefinedStatement: There is none of the name.
    """
    _forget_prepared(context, statement.name)
    return Result("DEALLOCATE ALL" if statement.name is None else "DEALLOCATE")


def _forget_prepared(context: Context, name: str | None) -> None:
    client, prepared = context.variables.client, context.variables.prepared
    is_clients = client is not None and client.forget_prepared(name)
    if name is None:
        prepared.clear()
    elif prepared.pop(name, None) is None and not is_clients:
        raise UndefinedStatement.named(name)


def unlisten(_: Context, __: Unlisten, ___: Parameters) -> Result:
    """Listens to nothing, which is all that any session listens to."""
    return Result("UNLISTEN")
