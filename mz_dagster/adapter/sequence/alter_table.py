"""ALTER TABLE, in one transaction, with rows, name and sequences.

In a transaction block a table gets another in its place, too, which the block reads and writes from then on, with
indexes like those of before; it gets its name with all that the block has written, if the table and its sequences are
by then what they were. What is computed from a table is bound to it, so where a view is, the other only stands in for
it: when the block commits, the table is altered under its readers to be what the other is by then (`stand_ins`).

A table that nothing reads gets another in its place, which knows of its rows all that its definition says. One that is
read is altered under its readers (`alter_in_place`). Either way the rows are read at one time, become what the actions
make of them, are held against the constraints, and are sealed with the new definition; what was read has not changed by
then. So a process that is killed leaves the table as it was or as it is to be, and whoever writes meanwhile is before
it or after it. One that took another's place has no history before that time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mz_dagster.adapter.alter_in_place import (
    BoundBefore,
    ColumnRead,
    Readers,
    ShapeChange,
    alteration_of,
    readers_of,
    rewritten,
)
from mz_dagster.adapter.block_definitions import BlockDefinitions
from mz_dagster.adapter.catalog_definitions import called
from mz_dagster.adapter.constraints import Enforcement, Read, values_of
from mz_dagster.adapter.declared_references import (
    DeclaringTable,
    NewReferences,
    check_not_pending,
    check_still_referenced,
)
from mz_dagster.adapter.definition import typed_columns
from mz_dagster.adapter.dml import Appender, Autocommit, DecidedWrite, check_not_null, read_and_append
from mz_dagster.adapter.generated_values import GeneratedValues
from mz_dagster.adapter.hidden_tables import definition_of, hidden_table
from mz_dagster.adapter.names import Names, TargetFirst
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.defined import refuse_in_block
from mz_dagster.adapter.sequence_calls import before
from mz_dagster.adapter.stand_ins import StandIn
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.adapter.table_references import TableReferences
from mz_dagster.adapter.transaction import Transaction
from mz_dagster.catalog import (
    COMMENTS,
    REFERENCES,
    SCHEMA,
    STANDS_FOR,
    Alteration,
    CollectionRow,
    Looked,
    NewObject,
    ObjectRow,
    StillNeeded,
    TableAltered,
    Takeover,
    stands_for,
)
from mz_dagster.formalism import GlobalId
from mz_dagster.notices import tell
from mz_dagster.plan.relation import Map
from mz_dagster.plan.semijoin import ONE_ROW
from mz_dagster.scalars.scalar import ColumnRef, Scalar, Value
from mz_dagster.sql import AlterTable, CreateTable, parse
from mz_dagster.sql.altering import AlteredTable
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import OverRows, bind_default
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.errors import (
    InvalidParameterValue,
    UndefinedColumn,
    UndefinedTable,
    UnsupportedForm,
    WrongColumnState,
    suggestion,
)
from mz_dagster.sql.schemas import last_of, written
from mz_dagster.sql.statements import AlterAction
from mz_dagster.sql.table_text import column_text, table_text
from mz_dagster.sql.type_statements import label_text

Row = tuple[Any, ...]


def alter_table(context: Context, statement: AlterTable, _: Sequence[object]) -> Result:
    """Changes a table."""
    _altered(context, statement)
    return Result("ALTER TABLE")


def _altered(context: Context, statement: AlterTable) -> None:
    """Changes a table.

    Raises:
        ColumnRead: Something goes by what is taken from it, and CASCADE was not said.
        NullNotAllowed: A row has a NULL where none may be from here on.
        CheckViolation: A row makes a condition false.
        UniqueViolation: Two rows are equal in a key.
        WriteContended: Others wrote it again and again, until the deadline; nothing was changed.
        NoPartOfBlock: A block is open, and something but indexes depends on it, or it is the session's own.
    """
    names, block = context.names, context.variables.transaction
    try:
        row = names.object(statement.name, "table")
    except UndefinedTable:
        if statement.if_exists:
            tell(f'relation "{statement.name}" does not exist, skipping')
            return
        raise
    if statement.actions[0].kind == "restart":
        refuse_in_block(names, "ALTER TABLE ... RESTART", "Execute it before BEGIN, or call setval().")
        _restart(names, row, statement.actions[0])
        return
    (current,) = parse(row.sql)
    assert isinstance(current, CreateTable)
    types = BoundBefore(names.engine.definitions.as_created(row), names)
    references = TableReferences(names)
    held = tuple(one.key for one in references.of(row))
    current = replace(current, columns=typed_columns(current.columns, types)[0], references=held)
    altered = AlteredTable.of(last_of(row.schema, str(row.name)), current, statement.actions)
    unaltered = AlteredTable.of(last_of(row.schema, str(row.name)), current, ()).definition
    texts, others = ([column_text(column) for column in one.columns] for one in (altered.definition, unaltered))
    if altered.definition == unaltered and texts == others:
        return
    altered.definition.columns = list(typed_columns(altered.definition.columns, types)[0])
    declaring = DeclaringTable.altered(row, altered, is_temporary=names.is_temporary(row.id))
    altered.definition.references = declaring.bound(names, altered.definition.references)
    check_still_referenced(names, row, altered, statement.name.offset)
    alteration = _Alteration(context.peeks, names, row, altered, context.circumstances())
    if block is not None:
        renamed = [one for one in statement.actions if one.kind == "rename constraint"]
        if not renamed and statement.actions[0].kind != "rename column":
            check_not_pending(references, block.constraints, row)
        under_readers = alteration.is_read(block)
        carry_out = alteration.carry_out_under_readers if under_readers else alteration.carry_out_in_block
        for sql in carry_out(block, statement, current.timeline):
            context.sequence(parse(sql)[0], ())
        for one in renamed:
            block.constraints.renamed(stands_for(row), one.column, str(one.new_name))
    elif readers_of(names.engine, row.id):
        alteration.carry_out_in_place(statement, current)
    else:
        alteration.carry_out(current.timeline)


def _restart(names: Names, row: ObjectRow, action: AlterAction) -> None:
    """Says which number a column generates next."""
    identity = constraints_of(row.sql).identities.get(action.column)
    if action.column not in row.relation_type.names:
        raise UndefinedColumn(
            f'column "{action.column}" of relation "{row.name}" does not exist',
            hint=suggestion(action.column, row.relation_type.names),
            position=action.offset + 1,
        )
    if identity is None:
        raise WrongColumnState(
            f'column "{action.column}" of relation "{row.name}" is not an identity column', position=action.offset + 1
        )
    sequence, next_ = identity.sequence, action.number
    if next_ is not None and not sequence.minimum <= next_ <= sequence.maximum:
        bound, limit = ("less", "MINVALUE") if next_ < sequence.minimum else ("greater", "MAXVALUE")
        value = sequence.minimum if bound == "less" else sequence.maximum
        raise InvalidParameterValue(
            f"RESTART value ({next_}) cannot be {bound} than {limit} ({value})", position=action.offset + 1
        )
    last = None if next_ is None else before(sequence, next_)
    names.engine.catalog.restart_numbers(row.id, action.column, last)


@dataclass(frozen=True, slots=True)
class _Alteration:
    peeks: Peeks
    names: Names
    row: ObjectRow
    altered: AlteredTable
    circumstances: Circumstances

    def carry_out(self, timeline: str | None) -> None:
        """Makes the table that takes the place, and fills it."""
        engine, row = self.names.engine, self.row
        new = self._new(timeline)
        is_temporary = self.names.is_temporary(row.id)
        if is_temporary:
            (new,) = self.names.kept([new])
        name, takeover = None if is_temporary else row.name, Takeover(row.id, self.altered.renamed)
        try:
            with hidden_table(engine, new) as table:
                self._fill(replace(table, name=row.name), Autocommit(engine), takeover, name)
        except StillNeeded:  # somebody has just created it
            raise TableAltered(row.id, row.version) from None
        if is_temporary:
            self.names.adopt(str(row.name), table.id)

    def carry_out_in_block(self, block: Transaction, _: AlterTable, timeline: str | None) -> list[str]:
        """Has another table be in the place of the table for a block, and for all once that commits.

        Returns:
            The statements that create the indexes that it is to have.
        """
        names, row, defined = self.names, self.row, block.defined
        catalog = names.engine.catalog
        indexes, readers = self._indexes(block)
        (new,) = names.kept([self._new(timeline)])
        (table,) = catalog.create_objects([new])
        numbers = block.continue_numbers(row.id, table.id, self.altered.renamed)
        takeover = block.takeover_of(row.id)
        if not defined.has_made(row.id):
            looked = Looked(catalog.object(row.id), numbers, readers)
            takeover = Takeover(row.id, self.altered.renamed, looked)
        for id in (*indexes, row.id):
            defined.drop(id)
        defined.create(str(row.name), table.id)
        self._fill(replace(table, name=row.name), block, takeover, None)
        return [text for texts in indexes.values() for text in texts]

    def is_read(self, block: Transaction) -> bool:
        """Returns whether something but indexes is computed from the table, in the block and before it.

        Raises:
            NoPartOfBlock: The table is the session's own.
        """
        names, defined = self.names, block.defined
        if names.is_temporary(self.row.id):
            refuse_in_block(names, "ALTER of a temporary table", "Alter it before BEGIN.")
        if self.row.id in defined.stand_ins:
            return True
        readers = () if defined.has_made(self.row.id) else readers_of(names.engine, self.row.id)
        return any(one.kind not in ("index", "arrangement") and not defined.is_gone(one.id) for one in readers)

    def carry_out_under_readers(self, block: Transaction, statement: AlterTable, timeline: str | None) -> list[str]:
        """Has another table stand in for the table in a block, at whose commit that is altered; see `stand_ins`.

        Returns:
            The statements that create the indexes that the block has made over one that stood in before.

        Raises:
            ColumnRead: Something goes by what is taken away.
            UnsupportedForm: A column would get another type.
        """
        names, engine, defined = self.names, self.names.engine, block.defined
        stood_in = defined.stand_ins.get(self.row.id)
        name = defined.renamed.get(self.row.id, self.row.name)  # which others know it by
        table = replace(self.row, name=name) if stood_in is None else stood_in.table
        origins = {one: one for one in table.relation_type.names} if stood_in is None else stood_in.origins
        sources = [None if one is None else origins.get(one) for one in self.altered.sources]
        altered = replace(self.altered, sources=sources, casts={})
        alteration = self._reshaped(
            table, altered, ShapeChange.of(self.names.engine, table, altered), statement, timeline, defined
        )
        held = self._held() if stood_in is None else stood_in.held
        (new,) = names.kept([self._new(timeline)])
        (made,) = engine.catalog.create_objects([new])
        numbers = block.continue_numbers(self.row.id, made.id, self.altered.renamed)
        indexes = {} if stood_in is None else self._indexes(block)[0]
        for id in (*indexes, self.row.id):
            defined.drop(id)
        defined.create(str(self.row.name), made.id)
        self._fill(replace(made, name=self.row.name), block, None, None)
        numbers = numbers if stood_in is None else stood_in.numbers
        defined.stand_in(made.id, StandIn(table, alteration, numbers, held))
        return [text for texts in indexes.values() for text in texts]

    def _held(self) -> Sequence[Row]:
        """Returns the table's rows as they are stored."""
        engine, peeks, row = self.names.engine, self.peeks, self.row
        plan = peeks.planned(engine.definitions.item(row.id, row.version).contents())
        reads, _ = peeks.reads_for(engine.catalog.collection(row.id), [plan])
        assert reads is not None, "the table is read"
        return peeks.peek_at(plan, reads.time)

    def _reshaped(
        self,
        table: ObjectRow,
        altered: AlteredTable,
        reshaped: ShapeChange,
        statement: AlterTable,
        timeline: str | None,
        defined: BlockDefinitions | None,
    ) -> Alteration:
        """Returns what gives a table another shape under what reads it, but for what a block has dropped.

        Raises:
            ColumnRead: Something goes by what is taken away, and CASCADE was not said.
            UnsupportedForm: A column would get another type.
        """
        engine = self.names.engine
        _check_types(table, altered, statement)
        text = self._text(timeline, engine.catalog.collection(table.id).retention_ms)
        (made,) = engine.definitions.new_objects(definition := definition_of(text, str(table.timeline), self.names))
        readers = Readers.of(engine, table, reshaped)
        gone = readers.going_by()
        left = [one for one in gone if defined is None or not defined.is_gone(one.id)]
        read_by = [one for one in left if one.kind != "index"]  # they go with what they are on
        if read_by and not statement.cascade:
            raise ColumnRead(_verb_phrase(statement), {called(one): one.kind for one in read_by})
        if read_by and defined is not None:
            hint = "DROP what is computed from it first, and create it again behind."
            refuse_in_block(self.names, "ALTER TABLE ... CASCADE", hint)
        dropped = readers.with_all_readers(gone)
        return alteration_of(table, text, definition, altered, reshaped, readers, dropped, made.sequences)

    def _indexes(self, block: Transaction) -> tuple[dict[GlobalId, list[str]], dict[GlobalId, str | None]]:
        """Returns what creates each index of the table on the other, if it can be, and the names of what goes with it.

        Raises:
            NoPartOfBlock: It is not only indexes.
        """
        names, engine, row, defined = self.names, self.names.engine, self.row, block.defined
        found: dict[GlobalId, list[str]] = {}
        going: dict[GlobalId, str | None] = {}
        places = dict(zip(row.relation_type.names, row.places, strict=True))
        kept = {places[old]: new for old, new in self.altered.renamed.items()}
        for reader in readers_of(engine, row.id):
            going[reader.id], one = reader.name, names.as_named(reader)
            is_gone = defined.is_gone(one.id)
            if one.kind not in ("index", "arrangement") and not is_gone:
                refuse_in_block(
                    names,
                    f'ALTER TABLE of "{row.name}", over which there is {one.kind} "{called(one)}",',
                    f"Execute it before BEGIN; or DROP {one.kind.upper()} first, and create it again behind.",
                    detail="It is bound to the table, in whose place the transaction would put another.",
                )
            if one.kind != "index" or is_gone or one.name is None:
                continue
            key = engine.definitions.definition_of(one).key
            found[one.id] = []
            if all(place in kept for place in key):
                name = quoted(last_of(one.schema, one.name))
                columns = ", ".join(quoted(kept[place]) for place in key)
                found[one.id].append(f"CREATE INDEX {name} ON {written(row.schema, str(row.name))} ({columns})")
                if said := one.comments.get(""):
                    found[one.id].append(f"COMMENT ON INDEX {written(one.schema, one.name)} IS {label_text(said)}")
        return found, going

    def _text(self, timeline: str | None, retain_history_ms: int | None) -> str:
        """Returns the table's definition from here on."""
        definition = self.altered.definition
        return table_text(
            last_of(self.row.schema, str(self.row.name)),
            definition.columns,
            keys=definition.keys,
            checks=definition.checks,
            timeline=timeline,
            retain_history_ms=retain_history_ms,
        )

    def _new(self, timeline: str | None) -> NewObject:
        engine = self.names.engine
        text = self._text(timeline, engine.catalog.collection(self.row.id).retention_ms)
        (new,) = engine.definitions.new_objects(definition_of(text, str(self.row.timeline), self.names))
        kept = {"": "", **self.altered.renamed}
        comments = {kept[column]: text for column, text in self.row.comments.items() if column in kept}
        options = {**new.options, COMMENTS: comments} if comments else new.options
        in_schema = {name: id for name, id in self.row.dependencies.items() if name.startswith("schema ")}
        options = {**options, SCHEMA: self.row.schema} if in_schema else options
        options = {**options, STANDS_FOR: stands_for(self.row)}
        if references := [one.as_json() for one in self.altered.definition.references]:
            options[REFERENCES] = references
        return replace(
            new, name=self.row.name, tags=self.row.tags, options=options, dependencies={**in_schema, **new.dependencies}
        )

    def _fill(self, table: ObjectRow, appender: Appender, takeover: Takeover | None, name: str | None) -> None:
        """Appends the rows that the table has from here on, and with them all else."""
        engine, peeks, old = self.names.engine, self.peeks, self.row
        plan = peeks.planned(engine.definitions.item(old.id, old.version).relation())
        enforcement = Enforcement.of(table, TargetFirst(self.names, table, engine), self.circumstances)
        generate = GeneratedValues.of(engine.catalog, enforcement)
        places, given, generated = self._sources(table, generate.columns)
        references = NewReferences.of(self.names, old, self.altered)

        def decide(now: CollectionRow) -> DecidedWrite:
            reads, write_at = peeks.reads_for(now, [plan, *references.reads()])
            assert reads is not None, "the old table is read"
            found = peeks.peek_at(plan, reads.time)
            read = partial(_peek, peeks, reads.time)
            cast = self._cast(found, read)
            rows: list[Row] = [
                tuple(given[i] if place is None else one[place] for i, place in enumerate(places)) for one in cast
            ]
            rows = enforcement.completed(generate.filled(rows, generated), read)
            check_not_null(now.shown, str(old.name), rows)
            enforcement.enforce_among(rows, read)
            references.check(table.relation_type, rows, read)
            updates = [(one, 1) for one in rows]
            return DecidedWrite(updates, reads, write_at, name=name, takeover=takeover)

        read_and_append(appender, table.id, decide)

    def _cast(self, rows: list[Row], read: Read) -> list[Row]:
        """Returns rows of the old table with values of the types that its columns get.

        Raises:
            DataError: A value does not fit.
        """
        columns, found = self.row.relation_type, [list(row) for row in rows]
        for source, casts in self.altered.casts.items():
            place = columns.names.index(source)
            one = columns.columns[place]
            scalar: Scalar = ColumnRef(place, one.type, one.nullable, source)
            for cast in casts:
                scalar = cast(scalar)
            for row, value in zip(found, values_of(scalar, columns, rows, read), strict=True):
                row[place] = value
        return [*map(tuple, found)]

    def carry_out_in_place(self, statement: AlterTable, current: CreateTable) -> None:
        """Gives the table another shape under what reads it.

        Raises:
            ColumnRead: Something goes by what is taken away, and CASCADE was not said.
            UnsupportedForm: A column would get another type.
        """
        engine, row = self.names.engine, self.row
        reshaped = ShapeChange.of(engine, row, self.altered)
        alteration = self._reshaped(row, self.altered, reshaped, statement, current.timeline, None)
        table = replace(row, sql=alteration.sql, columns=alteration.columns, keys=alteration.keys)
        read_and_append(Autocommit(engine), row.id, self._in_place(alteration, table, reshaped))

    def _in_place(
        self, alteration: Alteration, table: ObjectRow, reshaped: ShapeChange
    ) -> Callable[[CollectionRow], DecidedWrite]:
        """Returns what decides which rows are written with an alteration."""
        engine, peeks, old = self.names.engine, self.peeks, self.row
        if not self._reads_rows(reshaped):
            return lambda _: DecidedWrite((), takeover=alteration)
        plan = peeks.planned(engine.definitions.item(old.id, old.version).contents())
        enforcement = Enforcement.of(table, TargetFirst(self.names, table, engine), self.circumstances)
        identities = enforcement.constraints.identities
        places, given, generated = self._sources(table, identities)
        references = NewReferences.of(self.names, old, self.altered)

        def decide(now: CollectionRow) -> DecidedWrite:
            reads, write_at = peeks.reads_for(now, [plan, *references.reads()])
            assert reads is not None, "the table is read"
            claimed: dict[str, int] = {}
            found = peeks.peek_at(plan, reads.time)
            shown = [tuple(one[place] for place in old.places) for one in found]
            rows: list[Row] = [
                tuple(given[i] if place is None else one[place] for i, place in enumerate(places)) for one in shown
            ]
            for place in generated if rows else ():
                column = table.columns[place].name
                name = f"{old.created_as}_{column}_seq"
                numbers = identities[column].sequence.following(None, len(rows), name)
                claimed[column] = numbers[-1]
                rows = [(*one[:place], n, *one[place + 1 :]) for one, n in zip(rows, numbers, strict=True)]
            read = partial(_peek, peeks, reads.time)
            rows = enforcement.completed(rows, read)
            check_not_null(table.columns, str(old.name), rows)
            enforcement.enforce_among(rows, read)
            references.check(table.relation_type, rows, read)
            updates = []
            for one, row in zip(found, rows, strict=True):
                before, after = rewritten(one, reshaped, places, row)
                if before != after:
                    updates += [(before, -1), (after, 1)]
            return DecidedWrite(updates, reads, write_at, takeover=replace(alteration, claimed=claimed))

        return decide

    def _reads_rows(self, reshaped: ShapeChange) -> bool:
        """Returns whether the rows there are have to become others, or to be held against what is new."""
        before = {one.name: one for one in self.row.columns}
        of_rows = any(
            not one.nullable or any(made is not None for made in (one.default, one.identity, one.computed))
            if source is None
            else before[source].nullable and not one.nullable
            for one, source in zip(self.altered.definition.columns, self.altered.sources, strict=True)
        )
        known = constraints_of(self.row.sql)
        now = self.altered.definition
        new_keys = {one.columns for one in now.keys} - {
            tuple(self.altered.renamed.get(name, "") for name in one.columns) for one in known.keys
        }
        new_checks = {one.predicate.text for one in now.checks} - {one.predicate.text for one in known.checks}
        new_references = NewReferences.of(self.names, self.row, self.altered).links
        return of_rows or bool(reshaped.dropped or new_keys or new_checks or new_references)

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


def _peek(peeks: Peeks, time: int, over: OverRows) -> Sequence[Row]:
    return peeks.found_at(peeks.planned(over.relation), time, over.given)


def _check_types(row: ObjectRow, altered: AlteredTable, statement: AlterTable) -> None:
    """Refuses another type for a column that is read."""
    types = {one.name: one.type for one in row.columns}
    for one, source in zip(altered.definition.columns, altered.sources, strict=True):
        if source is not None and one.type != types[source]:
            raise UnsupportedForm(
                f'cannot alter type of column "{source}", because "{row.name}" is read',
                detail="What reads it has a type by that of the column.",
                hint="Drop the views and indexes over it, alter it, and create them again.",
                position=statement.name.offset + 1,
            )


def _verb_phrase(statement: AlterTable) -> str:
    """Returns what a statement does, as an error says it."""
    (first, *others) = statement.actions
    if first.kind == "drop column" and not others:
        return f'drop column "{first.column}" of table "{statement.name}"'
    return f'alter table "{statement.name}"'
