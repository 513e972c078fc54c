"""CREATE TABLE ... AS and SELECT ... INTO: a table of the rows that a query returns once.

The table is made without a name, which it gets with the seal of its rows: so there is nothing or all, wherever the
process ends, and what was read has not changed by the time at which the rows take effect. What never got its name is
dropped by the next sweep, once the lease of who was making it has run out. In a transaction block it gets its name with
all that the block has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.adapter.definition import Definition
from mz_dagster.adapter.dml import Autocommit, DecidedWrite, added, read_and_append
from mz_dagster.adapter.hidden_tables import definition_of, hidden_table
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.catalog import CollectionRow, NameTaken, NewObject
from mz_dagster.formalism import GlobalId
from mz_dagster.notices import tell
from mz_dagster.plan.relation import Relation
from mz_dagster.sql import BoundQuery, ColumnDefinition, CreateTableAs, bind_rows
from mz_dagster.sql.table_text import table_text


def create_table_as(context: Context, statement: CreateTableAs, parameters: Sequence[object]) -> Result:
    """Creates a table of the rows of a query, all at one time.

    Raises:
        NameTaken: The name denotes something already, and IF NOT EXISTS was not said.
        WriteContended: What the query reads was changed again and again, until the deadline; nothing was created.
    """
    engine, peeks, names, circumstances = context.engine, context.peeks, context.names, context.circumstances()
    name = statement.name.last
    try:
        names.check_free(statement.name, temporary=statement.temporary)
    except NameTaken:
        if statement.if_not_exists:
            tell(f'relation "{name}" already exists, skipping', "42P07")
            return Result("CREATE TABLE AS")
        raise
    bound = bind_rows(statement.query, statement.columns, names, params=parameters, circumstances=circumstances)
    definition = _definition(statement, bound, engine.project.timeline, names)
    engine.catalog.declare_timeline(str(definition.timeline))
    (table,) = engine.definitions.new_objects(definition)
    target = names.target(statement.name)
    table = replace(table, name=name if statement.temporary else target.key)
    (table,) = names.kept([table]) if statement.temporary else target.of([table])
    plan = peeks.planned(bound.relation) if statement.with_data else None
    if peeks.transaction is not None:
        return _made_in_block(peeks, peeks.transaction, names, table, plan, is_temporary=statement.temporary)
    try:
        made, count = _made(peeks, table, plan)
    except NameTaken:
        if statement.if_not_exists:
            tell(f'relation "{name}" already exists, skipping', "42P07")
            return Result("CREATE TABLE AS")
        raise
    if statement.temporary:
        names.adopt(name, made)
    return Result("CREATE TABLE AS") if plan is None else Result(f"SELECT {count}", rowcount=count)


def _made_in_block(
    peeks: Peeks, block: Transaction, names: Names, table: NewObject, plan: Relation | None, *, is_temporary: bool
) -> Result:
    """Creates a table that gets its name, and its rows, when a transaction block commits."""
    if is_temporary:
        (made,) = peeks.engine.catalog.create_objects([table])
        names.adopt(str(table.created_as), made.id)
    else:
        (made,) = peeks.engine.catalog.create_objects(names.kept([table]))
        block.defined.create(str(table.name), made.id)
    if plan is None:
        return Result("CREATE TABLE AS")
    count = 0

    def decide(now: CollectionRow) -> DecidedWrite:
        nonlocal count
        reads, write_at = peeks.reads_for(now, [plan])
        rows = peeks.found_at(plan, 0 if reads is None else reads.time)
        count = len(rows)
        return DecidedWrite(added(rows), reads, write_at)

    read_and_append(block, made.id, decide)
    return Result(f"SELECT {count}", rowcount=count)


def _made(peeks: Peeks, table: NewObject, plan: Relation | None) -> tuple[GlobalId, int]:
    """Creates a table, of the rows of a query if there is one; returns its id, and how many rows that were."""
    engine, name, count = peeks.engine, table.name, 0
    if plan is None:
        return engine.catalog.create_object(table).id, 0

    def decide(now: CollectionRow) -> DecidedWrite:
        nonlocal count
        reads, write_at = peeks.reads_for(now, [plan])
        rows = peeks.found_at(plan, 0 if reads is None else reads.time)
        count = len(rows)
        return DecidedWrite(added(rows), reads, write_at, name=name)

    with hidden_table(engine, table) as made:
        read_and_append(Autocommit(engine), made.id, decide)
    return made.id, count


def _definition(statement: CreateTableAs, bound: BoundQuery, default_timeline: str, names: Names) -> Definition:
    timeline = statement.timeline or (None if bound.timeline == default_timeline else bound.timeline)
    columns = [ColumnDefinition(one.name, one.type) for one in bound.relation_type.columns]
    text = table_text(statement.name.last, columns, timeline=timeline, retain_history_ms=statement.retain_history_ms)
    return definition_of(text, default_timeline, names)
