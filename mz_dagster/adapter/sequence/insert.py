"""INSERT: rows that are said or read, held against what the table demands, appended as one batch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

from mz_dagster.adapter.bound_tables import note_table
from mz_dagster.adapter.conflicts import Conflicts
from mz_dagster.adapter.constraints import Enforcement
from mz_dagster.adapter.dml import RowUpdate, Updates, added, check_not_null, in_columns
from mz_dagster.adapter.generated_values import GeneratedValues
from mz_dagster.adapter.names import TargetFirst
from mz_dagster.adapter.planned_queries import PlannedInsert, QueryKey, with_types
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.written import Parameters, Row, Writes
from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import StoredRows
from mz_dagster.plan.relation import Constant, Relation
from mz_dagster.sql import Insert, SqlText, bind_insert_many
from mz_dagster.sql.circumstances import Circumstances


def insert(context: Context, statement: Insert, parameters: Parameters) -> Result:
    """Inserts the rows that the statement says, as one batch."""
    return insert_many(context, statement, [parameters])


def insert_many(context: Context, statement: Insert, many: Sequence[Parameters]) -> Result:
    """Inserts the rows that the statement says with each of the sets of parameters, as one batch.

    Rows that a set makes the statement read are those before any of the sets wrote.
    """
    return context.in_own_block(lambda: _inserted(context, statement, many))


def _inserted(context: Context, statement: Insert, many: Sequence[Parameters]) -> Result:
    writes, circumstances = context.writes, context.circumstances()
    name = statement.table.last
    many = [*map(with_types, many)]
    plans = writes.engine.planned_queries
    state = plans.state(writes.engine.catalog)
    key = _key(writes, statement, many, circumstances)
    known = None if key is None else plans.get(key, state, PlannedInsert)
    if known is not None:
        note_table(known.table.id, known.table.version)
        made = known.of_values(many[0])

        def decide_known(now: CollectionRow, _: int) -> tuple[list[RowUpdate], list[Row]]:
            check_not_null(now.shown, name, made)
            return [(one, 1) for one in made], made

        return writes.changed("INSERT 0", known.table, [], decide_known, lambda _: None)
    row, table = writes.table(statement)
    looked = writes.looked(row, circumstances, adds=True, removes=statement.conflict is not None)
    enforcement = Enforcement.of(row, TargetFirst(writes.names, row, writes.engine), circumstances)
    conflict = None if statement.conflict is None else Conflicts.of(statement, enforcement, many)
    constraints, generate = enforcement.constraints, GeneratedValues.of(writes.numbers, enforcement)
    generated: tuple[int, ...] = ()
    parts: list[Sequence[Row] | Relation] = []
    for bound, places in bind_insert_many(
        statement,
        row.relation_type,
        writes.names,
        many,
        circumstances=circumstances,
        defaults=constraints.defaults,
        identities=constraints.identities,
        computed=constraints.computed,
        claim=generate.claim if constraints.identities else None,
    ):
        generated = places  # the same for all sets
        if key is not None and enforcement.is_free and table.version == row.version:
            planned = PlannedInsert.of(bound, table, many[0])
            if planned is not None:
                plans.keep(key, state, planned)
        if isinstance(bound.relation, Constant):
            parts.append([tuple(cell.value for cell in one) for one in bound.relation.rows])
        else:
            parts.append(writes.peeks.planned(bound.relation))
    reading = [one for one in parts if isinstance(one, Relation)]

    def decide(now: CollectionRow, time: int) -> tuple[Updates, Sequence[Row]]:
        read = writes.reader(time)
        found = [writes.peeks.found_at(one, time) if isinstance(one, Relation) else one for one in parts]
        given = found[0] if len(found) == 1 else [row for one in found for row in one]
        rows = in_columns(given, row.relation_type.columns)
        if isinstance(rows, StoredRows):
            stored = enforcement.completed_columns(generate.filled_columns(rows, generated), read)
            check_not_null(now.shown, name, stored)
            if conflict is None:
                return added(stored), stored
            changes = conflict.resolved_columns(stored, read)
            assert changes.added is not None, "there may be none of them"
            stored = enforcement.completed_columns(changes.added, read)
            check_not_null(now.shown, name, stored)
            return replace(changes, added=stored), stored
        rows = enforcement.completed(generate.filled(rows, generated), read)
        check_not_null(now.shown, name, rows)
        if conflict is None:
            return added(rows), rows
        updates = conflict.resolved(rows, read)
        written = enforcement.completed([one for one, diff in updates if diff > 0], read)
        check_not_null(now.shown, name, written)
        return [one for one in updates if one[1] < 0] + [(one, 1) for one in written], written

    returned = partial(writes.returned, statement, row, many[0] if many else (), circumstances)
    reading += [] if conflict is None else conflict.reads()
    return writes.changed("INSERT 0", table, reading, decide, returned, enforcement, looked=looked)


def _key(
    writes: Writes, statement: Insert, many: Sequence[Parameters], circumstances: Circumstances
) -> Hashable | None:
    """Returns under what the rows of an INSERT are kept; None if they are none for others."""
    if len(many) != 1 or not writes.names.is_shared or statement.query is None:
        return None
    if statement.conflict is not None or statement.returning is not None:
        return None
    settings = writes.names.reading(circumstances.settings["timezone"])
    key = QueryKey.of(SqlText(statement.text), many[0], settings)
    return None if key is None or key.types is None else ("insert", key.query, key.types)
