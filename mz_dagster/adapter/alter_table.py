"""ALTER TABLE: another table takes the place of one, with its rows, name and sequences, in one transaction.

The rows are read at one time, become what the actions make of them, are held against the constraints, and are sealed
under a new id; what was read has not changed by then. So a process that is killed leaves the table as it was or as it
is to be, and whoever writes meanwhile is before it or after it. The table has no history before that time. It may have
no readers yet, since they follow the old id.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mz_dagster.adapter.catalog_definitions import called
from mz_dagster.adapter.constraints import Enforcement
from mz_dagster.adapter.dml import Decided, check_not_null, read_and_append
from mz_dagster.adapter.generated_values import GeneratedValues
from mz_dagster.adapter.hidden_tables import definition_of, hidden_table
from mz_dagster.adapter.names import Names, TargetFirst
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.catalog import COMMENTS, CollectionRow, NewObject, ObjectRow, StillNeeded, Takeover
from mz_dagster.errors import ProgrammingError
from mz_dagster.plan.relation import Get, Map
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import Value
from mz_dagster.sql import AlterTable, CreateTable, parse
from mz_dagster.sql.altering import Altered
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import bind_default
from mz_dagster.sql.errors import UndefinedTable
from mz_dagster.sql.table_text import table_text

Row = tuple[Any, ...]


class TableRead(ProgrammingError):
    """Reports a table that is not changed, because something reads it; nothing was done."""

    sqlstate = "2BP01"

    def __init__(self, name: str, readers: Sequence[str]) -> None:
        super().__init__(
            f'cannot alter table "{name}" because other objects depend on it',
            detail=f"Dependants: {', '.join(sorted(readers))}.",
            hint="Drop them first, and create them again: they read the table as it was when they were created.",
        )


def alter_table(peeks: Peeks, names: Names, statement: AlterTable, circumstances: Circumstances) -> None:
    """Changes a table.

    Raises:
        TableRead: Something reads it.
        NullNotAllowed: A row has a NULL where none may be from here on.
        CheckViolation: A row makes a condition false.
        UniqueViolation: Two rows are equal in a key.
        WriteContended: Others wrote it again and again, until the deadline; nothing was changed.
    """
    try:
        row = names.object(statement.name, "table")
    except UndefinedTable:
        if statement.if_exists:
            return
        raise
    (current,) = parse(row.sql)
    assert isinstance(current, CreateTable)
    altered = Altered.of(str(row.name), current, statement.actions)
    if altered.definition != Altered.of(str(row.name), current, ()).definition:
        _Alteration(peeks, names, row, altered, circumstances).carry_out(current.timeline)


@dataclass(frozen=True, slots=True)
class _Alteration:
    peeks: Peeks
    names: Names
    row: ObjectRow
    altered: Altered
    circumstances: Circumstances

    def carry_out(self, timeline: str | None) -> None:
        """Makes the table that takes the place, and fills it."""
        engine, row = self.names.engine, self.row
        readers = [called(one) for one in engine.catalog.objects() if row.id in one.dependencies.values()]
        if readers:
            raise TableRead(str(row.name), readers)
        new = self._new(timeline)
        is_temporary = self.names.is_temporary(row.id)
        if is_temporary:
            (new,) = self.names.kept([new])
        try:
            with hidden_table(engine, new) as table:
                self._fill(replace(table, name=row.name), None if is_temporary else row.name)
        except StillNeeded as error:  # somebody has just created it
            raise TableRead(str(row.name), error.dependants) from None
        if is_temporary:
            self.names.adopt(str(row.name), table.id)

    def _new(self, timeline: str | None) -> NewObject:
        engine, definition = self.names.engine, self.altered.definition
        collection = engine.catalog.collection(self.row.id)
        text = table_text(
            str(self.row.name),
            definition.columns,
            keys=definition.keys,
            checks=definition.checks,
            timeline=timeline,
            retain_history_ms=collection.retention_ms,
        )
        (new,) = engine.definitions.new_objects(definition_of(text, str(self.row.timeline)))
        kept = {"": "", **self.altered.renamed}
        comments = {kept[column]: text for column, text in self.row.comments.items() if column in kept}
        options = {**new.options, COMMENTS: comments} if comments else new.options
        return replace(new, tags=self.row.tags, options=options)

    def _fill(self, table: ObjectRow, name: str | None) -> None:
        """Seals the rows that the table has from here on, and with them all else."""
        engine, peeks, old = self.names.engine, self.peeks, self.row
        plan = peeks.planned(Get(old.id, old.relation_type, str(old.name)))
        enforcement = Enforcement.of(table, TargetFirst(self.names, table, engine), self.circumstances)
        generate = GeneratedValues.of(engine, enforcement)
        places, given, generated = self._sources(table, generate.columns)

        def decide(now: CollectionRow) -> Decided:
            reads, write_at = peeks.reads_for(now, [plan])
            assert reads is not None, "the old table is read"
            found = peeks.peek_at(plan, reads.time)
            rows: list[Row] = [
                tuple(given[i] if place is None else one[place] for i, place in enumerate(places)) for one in found
            ]
            rows = generate.filled(rows, generated)
            check_not_null(now, str(old.name), rows)
            enforcement.enforce_among(rows, lambda one: peeks.peek_at(peeks.planned(one), reads.time))
            updates = [(one, 1) for one in rows]
            return Decided(updates, reads, write_at, name=name, takeover=Takeover(old.id, self.altered.renamed))

        read_and_append(engine, table.id, decide)

    def _sources(
        self, table: ObjectRow, generating: Collection[str]
    ) -> tuple[list[int | None], dict[int, Value], list[int]]:
        """Returns for each column its place in the old table, what all rows have in new ones, and which generate it."""
        old, columns = self.row.relation_type.names, table.relation_type.columns
        places = [None if source is None else old.index(source) for source in self.altered.sources]
        given: dict[int, Value] = {}
        generated: list[int] = []
        for i, (column, one) in enumerate(zip(columns, self.altered.definition.columns, strict=True)):
            if places[i] is None:
                given[i] = None
                if column.name in generating:
                    generated.append(i)
                elif one.default is not None:
                    value = Map(ONE_ROW, (bind_default(column, one.default, self.circumstances),), (column.name,))
                    ((given[i],),) = self.peeks.peek_at(self.peeks.planned(value), 0)
        return places, given, generated
