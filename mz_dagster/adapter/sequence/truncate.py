"""TRUNCATE: a table loses all rows, or several do at one time, in a transaction of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.adapter.dml import RowUpdate
from mz_dagster.adapter.keeping_references import LookedReferences
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Row, Writes
from mz_dagster.adapter.table_references import TableReferences, name_in_schema
from mz_dagster.adapter.transaction import SerializationFailure
from mz_dagster.adapter.write_attempts import write_attempts
from mz_dagster.catalog import CollectionRow
from mz_dagster.notices import tell
from mz_dagster.sql import Delete, Name, SqlText, TransactionModes, Truncate, bind_delete
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import UnsupportedForm


def truncate(context: Context, statement: Truncate, _: Sequence[object]) -> Result:
    """Empties the tables that a statement names.

    Raises:
        WriteContended: Others wrote several tables until the deadline for writes.
    """
    variables, circumstances = context.variables, context.circumstances()
    number = context.engine.catalog.number_of_references()
    tables = _with_referring(context.names, statement)

    def write() -> None:
        for one in tables:
            _emptied(context.writes, one, LookedReferences(number, circumstances))

    if len(tables) == 1 or variables.transaction is not None:
        write()
        return Result("TRUNCATE TABLE")
    for _attempt in write_attempts(context.engine.project, context.engine.clock):
        try:
            context.begin(TransactionModes(None, None))
            write()
            context.commit()
            break
        except SerializationFailure:
            continue
        finally:
            variables.roll_back()
    return Result("TRUNCATE TABLE")


def _with_referring(names: Names, statement: Truncate) -> list[Truncate]:
    """Returns what empties the tables that a statement names, and those that are to be emptied with them.

    Raises:
        UnsupportedForm: Another table refers to one of them, and CASCADE was not said.
    """
    found = [statement, *statement.further]
    ids = {names.table(one.table).id for one in found}
    links = [*TableReferences(names)]
    while others := [one for one in links if one.parent.id in ids and one.child.id not in ids]:
        link = others[0]
        child = name_in_schema(link.child)
        if not statement.cascade:
            raise UnsupportedForm(
                "cannot truncate a table referenced in a foreign key constraint",
                detail=f'Table "{child}" references "{name_in_schema(link.parent)}".',
                hint=f'Truncate table "{child}" at the same time, or use TRUNCATE ... CASCADE.',
                position=statement.table.offset + 1,
            )
        tell(f'truncate cascades to table "{child}"')
        parts = (child,) if names.is_temporary(link.child.id) else (link.child.schema, child)
        target = SqlText(".".join(map(quoted, parts)), statement.target.offset)
        found.append(replace(statement, table=Name(parts, statement.table.offset), target=target))
        ids.add(link.child.id)
    return found


def _emptied(writes: Writes, statement: Truncate, looked: LookedReferences) -> None:
    """Deletes all rows, and lets the table's sequences begin anew if that is said."""
    row, table = writes.table(statement)
    common = statement.text, statement.offset, statement.parameters
    everything = Delete(*common, statement.table, statement.target, alias=None, using=None, predicate=None)
    bound = bind_delete(everything, row.relation_type, writes.resolver(row), circumstances=looked.circumstances)
    plan = writes.peeks.planned(bound.old)

    def decide(now: CollectionRow, time: int) -> tuple[list[RowUpdate], list[Row]]:
        gone = writes.peeks.peek_at(plan, time)
        return [(one, -1) for one in gone], gone

    writes.changed("TRUNCATE", table, [plan], decide, lambda _: None, looked=looked, restarts=statement.restarts)
