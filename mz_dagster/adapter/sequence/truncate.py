"""TRUNCATE: a table loses all rows, or several do at one time, in a transaction of their own."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.dml import RowUpdate
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Row, Writes
from mz_dagster.adapter.transaction import SerializationFailure
from mz_dagster.adapter.write_attempts import write_attempts
from mz_dagster.catalog import CollectionRow
from mz_dagster.sql import Delete, TransactionModes, Truncate, bind_delete
from mz_dagster.sql.circumstances import Circumstances


def truncate(context: Context, statement: Truncate, _: Sequence[object]) -> Result:
    """Empties the tables that a statement names.

    Raises:
        WriteContended: Others wrote several tables until the deadline for writes.
    """
    variables, circumstances = context.variables, context.circumstances()

    def write() -> None:
        for one in (statement, *statement.further):
            _emptied(context.writes, one, circumstances)

    if not statement.further or variables.transaction is not None:
        write()
        return Result("TRUNCATE TABLE")
    for _attempt in write_attempts(context.engine.project, context.engine.clock):
        try:
            context.begin(TransactionModes(None, None))
            write()
            variables.commit()
            break
        except SerializationFailure:
            continue
        finally:
            variables.roll_back()
    return Result("TRUNCATE TABLE")


def _emptied(writes: Writes, statement: Truncate, circumstances: Circumstances) -> None:
    """Deletes all rows, and lets the table's sequences begin anew if that is said."""
    row, table = writes.table(statement)
    common = statement.text, statement.offset, statement.parameters
    everything = Delete(*common, statement.table, statement.target, alias=None, using=None, predicate=None)
    bound = bind_delete(everything, row.relation_type, writes.resolver(row), circumstances=circumstances)
    plan = writes.peeks.planned(bound.old)

    def decide(now: CollectionRow, time: int) -> tuple[list[RowUpdate], list[Row]]:
        gone = writes.peeks.peek_at(plan, time)
        return [(one, -1) for one in gone], gone

    writes.changed("TRUNCATE", table, [plan], decide, lambda _: None, restarts=statement.restarts)
