"""Foreign keys as statements declare them, bound: which table they refer to, and to which of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.bound_tables import note_table
from mz_dagster.adapter.constraints import Read, Row
from mz_dagster.adapter.deferred_constraints import DeferredConstraints
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.keeping_references import Matched, check_full, keys_of, violation
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.reference_columns import (
    ReferencedTable,
    check_can_be_referenced,
    check_types,
    referring_to,
)
from mz_dagster.adapter.table_constraints import constraints_of, foreign_keys_of
from mz_dagster.adapter.table_references import Link, TableReferences, name_in_schema
from mz_dagster.catalog import ObjectRow, stands_for
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.types import Column, Kind, RelationType, ScalarType
from mz_dagster.sql import Name
from mz_dagster.sql.altering import AlteredTable
from mz_dagster.sql.constraints import bind_matching
from mz_dagster.sql.declared_keys import SELF, ForeignKey, UniqueKey
from mz_dagster.sql.errors import (
    ColumnUsed,
    InvalidTableDefinition,
    ObjectInUse,
    UndefinedTable,
    UnsupportedForm,
)

_INTEGERS = {Kind.INT2, Kind.INT4, Kind.INT8}
_TEXTS = {Kind.TEXT, Kind.VARCHAR}


@dataclass(frozen=True, slots=True)
class DeclaringTable:
    """A table that declares foreign keys.

    Attributes:
        name: Its name in its schema.
        schema: Its schema.
        columns: Its columns.
        keys: Its keys.
        timeline: Its timeline.
        is_temporary: Whether it is the session's own.
    """

    name: str
    schema: str
    columns: RelationType
    keys: Sequence[UniqueKey]
    timeline: str | None
    is_temporary: bool

    @classmethod
    def altered(cls, row: ObjectRow, altered: AlteredTable, *, is_temporary: bool) -> DeclaringTable:
        """Returns what a table is once it is altered."""
        columns = RelationType(tuple(Column(one.name, one.type) for one in altered.definition.columns))
        keys = altered.definition.keys
        return cls(name_in_schema(row), row.schema, columns, keys, row.timeline, is_temporary)

    def bound(self, names: Names, references: Sequence[ForeignKey]) -> list[ForeignKey]:
        """Returns foreign keys, each with the table that it refers to.

        Raises:
            UndefinedTable: There is no such table.
            UndefinedColumn: A column is none of its table's.
            UndefinedObject: The table has no primary key, and no columns are named.
            InvalidForeignKey: The columns that are referred to are no key of their table.
            DatatypeMismatch: Columns do not compare.
            InvalidTableDefinition: Of the two tables one alone is the session's own.
        """
        return [one if one.parent else self._bound(names, one) for one in references]

    def _bound(self, names: Names, key: ForeignKey) -> ForeignKey:
        name, position = Name(key.table, key.offset), key.offset + 1
        row = names.find(name)
        if self._is_named(names, name, row):
            return referring_to(key, self.columns, SELF, ReferencedTable(self.name, self.columns, self.keys))
        if row is None:
            raise UndefinedTable.named(str(name), names.names(), position)
        if row.kind == "table" and names.is_temporary(row.id) is not self.is_temporary:
            kind = "temporary" if self.is_temporary else "permanent"
            raise InvalidTableDefinition(
                f"constraints on {kind} tables may reference only {kind} tables", position=position
            )
        check_can_be_referenced(key, row.kind, (self.timeline, row.timeline))
        table = ReferencedTable(name_in_schema(row), row.relation_type, constraints_of(row.sql).keys)
        return referring_to(key, self.columns, stands_for(row), table)

    def _is_named(self, names: Names, name: Name, found: ObjectRow | None) -> bool:
        """Returns whether a name is the table's, given what else it denotes before the table is there."""
        if name.last != self.name or self.is_temporary or len(name.parts) > 1:
            return name.last == self.name and name.parts[:-1] in ((), (self.schema,))
        path = names.path()
        if self.schema not in path or (found is not None and names.is_temporary(found.id)):
            return False
        return found is None or path.index(self.schema) <= path.index(found.schema)


def check_not_pending(references: TableReferences, deferred: DeferredConstraints, row: ObjectRow) -> None:
    """Returns if no foreign key has been put off whose keys are of a table's rows; raises ObjectInUse if one has."""
    touched = {(one.child, one.name, one.by_parent) for one in deferred.touched}
    for link in references:
        child, name = stands_for(link.child), link.key.name
        of = {(child, name, False): link.child.id, (child, name, True): link.parent.id}
        if any(known in touched and id == row.id for known, id in of.items()):
            raise ObjectInUse(
                f'cannot ALTER TABLE "{name_in_schema(row)}" because it has pending trigger events',
                detail=f'Constraint "{name}" is yet to be looked at.',
                hint="SET CONSTRAINTS ALL IMMEDIATE before it.",
            )


def check_still_referenced(names: Names, row: ObjectRow, altered: AlteredTable, offset: int) -> None:
    """Returns if a table that is altered still has the keys that others refer to, under whatever names.

    Raises:
        ColumnUsed: It would not.
        DatatypeMismatch: Columns would not compare any more.
        UnsupportedForm: A block is open, and a column that others refer to would get another name; or values that
            others refer to could become others.
    """
    renamed, keys = altered.renamed, [set(one.columns) for one in altered.definition.keys]
    own = [Link(one, row, row) for one in altered.definition.references if one.parent == SELF]
    references = TableReferences(names)
    others = [one for one in references.to(row) if one.child.id != row.id]
    for link in (*own, *others):
        now = set(link.key.referenced) if link in own else {renamed.get(one, "") for one in link.key.referenced}
        if now not in keys:
            what = next((one for one in link.key.referenced if one not in renamed), None)
            called = f"column {what} of table" if what else "a key of table"
            raise ColumnUsed(
                f"cannot drop {called} {name_in_schema(row)} because other objects depend on it",
                detail=told(link),
                hint=f"ALTER TABLE {name_in_schema(link.child)} DROP CONSTRAINT {link.key.name} first.",
                position=offset + 1,
            )
        if names.block() is not None and link in others and now != set(link.key.referenced):
            raise UnsupportedForm(
                f'another name of a column that "{name_in_schema(link.child)}" refers to, in a transaction block,',
                detail=told(link),
                hint="Rename it before BEGIN.",
                position=offset + 1,
            )
    if altered.casts:
        _check_cast(row, altered, others, references, offset)


def _check_cast(
    row: ObjectRow, altered: AlteredTable, links: Sequence[Link], references: TableReferences, offset: int
) -> None:
    """Returns if columns that get other types still compare with those that refer to them, or that they refer to."""
    now = DeclaringTable.altered(row, altered, is_temporary=False)
    for key in altered.definition.references:
        parent = references.parent_of(key, row)
        columns = now.columns if key.parent == SELF or parent is None else parent.relation_type
        for own, other in zip(key.columns, key.referenced, strict=True):
            check_types(key, now.columns, own, columns, other)
    for link in links:
        for own, other in zip(link.key.columns, link.key.referenced, strict=True):
            if other not in altered.casts:
                continue
            check_types(link.key, link.child.relation_type, own, now.columns, altered.renamed[other])
            before = row.relation_type.columns[row.relation_type.names.index(other)].type
            after = now.columns.columns[now.columns.names.index(altered.renamed[other])].type
            if not _keeps_values(before, after):
                raise UnsupportedForm(
                    f'another type of column "{other}", to which "{name_in_schema(link.child)}" refers, '
                    "is not supported",
                    detail="Values that rows refer to could become others.",
                    hint=f"ALTER TABLE {name_in_schema(link.child)} DROP CONSTRAINT {link.key.name} first.",
                    position=offset + 1,
                )


def _keeps_values(before: ScalarType, after: ScalarType) -> bool:
    """Returns whether a value that is cast to another type is the same, or does not fit."""
    if {before.kind, after.kind} <= _TEXTS:  # what is longer loses spaces, and by USING whatever it has
        return not after.length or 0 < (before.length or 0) <= after.length
    return {before.kind, after.kind} <= _INTEGERS


def told(link: Link) -> str:
    """Returns what an error tells of a foreign key that refers to a table."""
    child, parent = name_in_schema(link.child), name_in_schema(link.parent)
    return f"constraint {link.key.name} on table {child} depends on table {parent}"


@dataclass(frozen=True, slots=True)
class NewReferences:
    """Foreign keys that a table gets, to which the rows that it has are held.

    Attributes:
        engine: The project.
        links: They, with the two tables as they are before.
    """

    engine: Engine
    links: tuple[Link, ...]

    @classmethod
    def of(cls, names: Names, row: ObjectRow, altered: AlteredTable) -> NewReferences:
        """Returns those that an alteration gives a table."""
        old = {replace(one, name="", is_enforced=True) for one in foreign_keys_of(row) if one.is_enforced}
        renamed = {new: old for old, new in altered.renamed.items()}
        links, references = [], TableReferences(names)
        for key in altered.definition.references:
            before = key
            for column in key.columns:
                before = before.renamed(column, renamed.get(column, column))
            own = key.referenced if key.parent == SELF else ()
            is_cast = not altered.casts.keys().isdisjoint((*before.columns, *(renamed.get(one, one) for one in own)))
            parent = references.parent_of(key, row) if key.is_enforced else None
            if parent is not None and (is_cast or replace(before, name="", table=(), offset=0) not in old):
                links.append(Link(key, row, parent))
        return cls(names.engine, tuple(links))

    def reads(self) -> list[Relation]:
        """Returns the plans of what is read to hold rows to them."""
        found = []
        for link in self.links:
            if link.key.parent != SELF:
                note_table(link.parent.id, link.parent.version)
                found.append(self._parent(link).relation())
        return found

    def check(self, columns: RelationType, rows: Sequence[Row], read: Read) -> None:
        """Returns if each row refers to one that is there.

        Args:
            columns: The table's columns from here on.
            rows: Its rows.
            read: Reads a plan at the time of the rows.

        Raises:
            ForeignKeyViolation: One does not.
        """
        for link in self.links:
            key = link.key
            keys = keys_of(rows, [columns.names.index(one) for one in key.columns])
            if key.is_full:
                check_full(link, rows, [columns.names.index(one) for one in key.columns])
            cells = [*keys.values()]
            if key.parent == SELF:
                there = keys_of(rows, [columns.names.index(one) for one in key.referenced])
                missing = [one for known, one in keys.items() if known not in there]
            else:
                types = [columns.columns[columns.names.index(one)] for one in key.columns]
                over = bind_matching(key.referenced, cells, types, Matched(self._parent(link)), whole=False)
                numbers = {number for (number,) in read(over)} if cells else set()
                missing = [one for number, one in enumerate(cells) if number not in numbers]
            if missing:
                raise violation(link, missing[0], by_parent=False)

    def _parent(self, link: Link) -> Item:
        return self.engine.definitions.item(link.parent.id, link.parent.version, link.parent.values)
