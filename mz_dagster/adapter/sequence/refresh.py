"""REFRESH MATERIALIZED VIEW, ANALYZE and VACUUM: what a script asks for elsewhere, and is done here by itself."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.block_definitions import ActiveTransaction
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.notices import tell
from mz_dagster.sql import Maintenance, Refresh

_BY_ITSELF = {
    "ANALYZE": "statistics are taken of every batch that is written: there is nothing to analyze",
    "VACUUM": "what nobody can read any more is compacted and swept by jobs of their own: there is nothing to vacuum",
}


def refresh(context: Context, statement: Refresh, _: Sequence[object]) -> Result:
    """Tells that there is nothing to do, once it is clear that there is such a view."""
    context.names.object(statement.name, "materialized view")
    tell(f'materialized view "{statement.name}" is what its query says at every time: there is nothing to refresh')
    return Result("REFRESH MATERIALIZED VIEW")


def maintain(context: Context, statement: Maintenance, _: Sequence[object]) -> Result:
    """Tells that there is nothing to do, once it is clear that what the statement names is there.

    Raises:
        ActiveTransaction: It is VACUUM, in a block, which is no statement of one in PostgreSQL.
    """
    if statement.what == "VACUUM" and context.variables.transaction is not None:
        raise ActiveTransaction("VACUUM cannot run inside a transaction block", hint="COMMIT first.")
    for name in statement.tables:
        context.names.object(name)
    tell(_BY_ITSELF[statement.what])
    return Result(statement.what)
