"""ALTER TABLE under readers: the table gets another shape, and its collection stays.

What reads the table is bound to the shape that it had, and reads on (`catalog.shapes`): nothing hydrates anew. The
alteration is sealed as one batch of the table, which gives every row what it has from then on, so whoever writes
meanwhile is before it or after it. Of what a reader may go by, three things can be taken from it, and then it is named
instead, or dropped with CASCADE:

- a column that its query says, or that its plan reads;
- a column's NOT NULL, and a key, if it would be planned otherwise without.

What is added to the table, be it NOT NULL or a key, its plans never go by, because rows of before lack it; writers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mz_dagster.adapter.catalog_definitions import called, shaped
from mz_dagster.adapter.definition import Definition, define_stored
from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import (
    COMMENTS,
    SCHEMA,
    Alteration,
    NewObject,
    ObjectRow,
    Shape,
    Shapes,
    bound_shapes,
    first_shape,
    free_name,
)
from mz_dagster.compute.lookups.common_lookups import used_columns
from mz_dagster.errors import Error, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Linear,
    Physical,
    ReadCollection,
    identity,
    physical_inputs,
    with_physical_inputs,
)
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.sql.altering import AlteredTable


class ColumnRead(ProgrammingError):
    """Others depend on what would be taken from a table; nothing was done."""

    sqlstate = "2BP01"

    def __init__(self, what: str, dependants: Mapping[str, str]) -> None:
        super().__init__(
            f"cannot {what} because other objects depend on it",
            detail=" ".join(f'{kind.capitalize()} "{name}" depends on it.' for name, kind in dependants.items()),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
        self.dependants = tuple(dependants)


@dataclass(frozen=True, slots=True)
class ShapeChange:
    """A table's next shape, and what of the last one it lacks.

    Attributes:
        shapes: With the next one.
        dropped: The places of columns that are no more.
        loosened: The places of columns that may be NULL from then on, and could not.
        keys: The keys that are left, by places.
    """

    shapes: Shapes
    dropped: frozenset[int]
    loosened: frozenset[int]
    keys: frozenset[frozenset[int]]

    @classmethod
    def of(cls, engine: Engine, row: ObjectRow, altered: AlteredTable) -> ShapeChange:
        """Returns what an alteration makes of a table."""
        adds = None in altered.sources
        given_up = engine.shards.given_up_columns(engine.catalog.collection(row.id)) if adds else ()
        before = row.shapes or first_shape(row.columns, row.keys)
        last = before.versions[-1]
        place_of = dict(zip(row.relation_type.names, last.places, strict=True))
        known = dict(zip(last.places, last.columns, strict=True))
        stored, places, columns = list(before.stored), [], []
        loosened = set()
        for one, source in zip(altered.definition.columns, altered.sources, strict=True):
            if source is None:
                places.append(len(stored))
                stored.append(Column(free_name(one.name, stored, given_up), one.type))
                columns.append(Column(one.name, one.type))
                continue
            place = place_of[source]
            nullable = known[place].nullable or one.nullable
            if nullable and not known[place].nullable:
                loosened.add(place)
            places.append(place)
            columns.append(Column(one.name, one.type, nullable))
        named = dict(zip((one.name for one in columns), places, strict=True))
        declared = {frozenset(named[name] for name in key.columns) for key in altered.definition.keys}
        kept = frozenset(
            key
            for key in (frozenset(last.places[i] for i in key) for key in last.keys)
            if key in declared and not key & loosened
        )
        keys = frozenset(frozenset(places.index(place) for place in key) for key in kept)
        shape = Shape(tuple(columns), tuple(places), keys, len(stored))
        shapes = Shapes(tuple(stored), (*before.versions, shape))
        return cls(shapes, frozenset(last.places) - frozenset(places), frozenset(loosened), kept)

    @property
    def takes_away(self) -> bool:
        """True if there is anything that the table had and has no more."""
        before = self.shapes.versions[-2]
        return bool(self.dropped or self.loosened) or len(self.keys) < len(before.keys)


@dataclass(frozen=True, slots=True)
class Readers:
    """What reads a table, and what of it goes by what the table is about to lose.

    Attributes:
        engine: The project.
        table: The table.
        reshaped: What it is about to be.
        rows: All that depends on it, directly or not, in order of creation.
    """

    engine: Engine
    table: ObjectRow
    reshaped: ShapeChange
    rows: tuple[ObjectRow, ...]

    @classmethod
    def of(cls, engine: Engine, table: ObjectRow, reshaped: ShapeChange) -> Readers:
        """Returns those of a table."""
        return cls(engine, table, reshaped, readers_of(engine, table.id))

    def going_by(self) -> tuple[ObjectRow, ...]:
        """Returns what goes by what is taken away, in order of creation; arrangements go with their owners."""
        if not self.reshaped.takes_away:
            return ()
        loosened = _RelaxedDefinitions(self.engine, self.table, self.reshaped)
        return tuple(row for row in self.rows if row.kind != "arrangement" and self._goes_by(row, loosened))

    def with_all_readers(self, rows: tuple[ObjectRow, ...]) -> frozenset[GlobalId]:
        """Returns some of them with all that reads those, directly or not."""
        reached = {row.id for row in rows}
        for row in self.rows:
            if not reached.isdisjoint(row.dependencies.values()) or row.owner in reached:
                reached.add(row.id)
        return frozenset(reached)

    def _goes_by(self, row: ObjectRow, loosened: _RelaxedDefinitions) -> bool:
        definitions, dropped = self.engine.definitions, self.reshaped.dropped
        definition = definitions.definition_of(row)
        if row.kind == "index" and self.table.id in row.dependencies.values():
            return bool(dropped.intersection(definition.key))
        if self.table.id in row.dependencies.values() and not self._binds_without(row, definition):
            return True
        if definition.plan is not None:
            plans = (*(one.plan for one in definition.plan.arrangements), definition.plan.output)
            if any(dropped & _used(plan, self.table.id) for plan in plans):
                return True
        return not loosened.is_as_before(row)

    def _binds_without(self, row: ObjectRow, definition: Definition) -> bool:
        """Returns whether an object says the same without the columns that are dropped."""
        if not self.reshaped.dropped:
            return True
        version = bound_shapes(row.options).get(self.table.id, 0)
        shapes = self.reshaped.shapes
        shape = shapes.versions[version]
        left = [i for i, place in enumerate(shape.places) if place in shapes.places]
        item = Item(
            self.table.id,
            called(self.table),
            "table",
            RelationType(tuple(shape.columns[i] for i in left)),
            self.table.timeline,
            None,
            shapes.stored_type(version),
            tuple(shape.places[i] for i in left),
            version,
        )
        try:
            without = _defined(self.engine, row, {self.table.id: item})
        except Error:
            return False
        return [(one.name, one.type) for one in without.relation_type.columns] == [
            (one.name, one.type) for one in definition.relation_type.columns
        ]


class _RelaxedDefinitions:
    """Defines objects as if a table had always been without some of what is known of its rows."""

    def __init__(self, engine: Engine, table: ObjectRow, reshaped: ShapeChange) -> None:
        self._engine = engine
        self._table = table
        self._reshaped = reshaped
        self._views: dict[GlobalId, Item] = {}

    def is_as_before(self, row: ObjectRow) -> bool:
        """Returns whether an object is planned as it is, and says as much of its rows."""
        before = self._engine.definitions.bound_definition_of(row)
        version = bound_shapes(row.options).get(self._table.id, 0)
        items = {**self._views, self._table.id: self._item(version)}
        try:
            now = _defined(self._engine, row, items)
        except Error:
            return False
        if row.kind == "view":
            self._views[row.id] = now.item(row.id)
        if now.relation_type != before.relation_type:
            return False
        if before.plan is None or now.plan is None:
            return before.plan is now.plan
        plans, others = ([*(one.plan for one in every.arrangements), every.output] for every in (before.plan, now.plan))
        return len(plans) == len(others) and all(map(self._are_alike, plans, others))

    def _are_alike(self, one: Physical, other: Physical) -> bool:
        """Returns whether two plans compute the same, whatever they know of the table's columns."""
        return identity(_all_nullable(one, self._table.id)) == identity(_all_nullable(other, self._table.id))

    def _item(self, version: int) -> Item:
        shapes = self._reshaped.shapes
        shape = shapes.versions[version]
        columns = tuple(
            replace(column, nullable=column.nullable or place in self._reshaped.loosened | self._reshaped.dropped)
            for column, place in zip(shape.columns, shape.places, strict=True)
        )
        keys = frozenset(key for key in shape.keys if frozenset(shape.places[i] for i in key) in self._reshaped.keys)
        loosened = Shapes(
            shapes.stored,
            (*shapes.versions[:version], replace(shape, columns=columns, keys=keys)),
        )
        stored = None if shape.is_plain else loosened.stored_type(version)
        type_ = RelationType(columns, keys)
        id, name, timeline = self._table.id, called(self._table), self._table.timeline
        return Item(id, name, "table", type_, timeline, None, stored, shape.places, version)


def _all_nullable(plan: Physical, table: GlobalId) -> Physical:
    if isinstance(plan, ReadCollection):
        if plan.id != table:
            return plan
        columns = tuple(replace(one, nullable=True) for one in plan.relation_type.columns)
        return replace(plan, relation_type=RelationType(columns))
    return with_physical_inputs(plan, [_all_nullable(one, table) for one in physical_inputs(plan)])


def _used(plan: Physical, table: GlobalId) -> frozenset[int]:
    """Returns the columns of a table that a plan reads."""

    def found(node: Physical) -> Iterator[int]:
        below = node
        while isinstance(below, Linear):
            below = below.input
        if isinstance(below, ReadCollection):
            if below.id == table:
                yield from used_columns(node)
            return
        for one in physical_inputs(below):
            yield from found(one)

    return frozenset(found(plan))


@dataclass(frozen=True, slots=True)
class _OverridingResolver:
    """A resolver that answers for some ids itself."""

    resolver: Resolver
    items: Mapping[GlobalId, Item]

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        item = self.resolver.resolve(name)
        return item if item is None else self.items.get(item.id, item)

    def names(self) -> tuple[str, ...]:
        return self.resolver.names()


@dataclass(frozen=True, slots=True)
class BoundBefore:
    """Resolves names to what they were when an object was created, and new ones to what there is now."""

    before: Resolver
    now: Resolver

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for."""
        return self.before.resolve(name) or self.now.resolve(name)

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return self.now.names()


def _defined(engine: Engine, row: ObjectRow, items: Mapping[GlobalId, Item]) -> Definition:
    resolver = _OverridingResolver(engine.definitions.as_created(row), items)
    return define_stored(row, row.sql, resolver, engine.project.timeline)


def index_over(
    engine: Engine, index: ObjectRow, name: str, stand_in: GlobalId, alteration: Alteration, *, is_copy: bool
) -> NewObject:
    """Returns what creates an index over an altered table.

    Args:
        engine: The project.
        index: An index that was made over the table that stands in for it.
        name: The key by which the catalog will know the one to create.
        stand_in: The table that stands in.
        alteration: What the altered table is to be.
        is_copy: Whether the table has an index that is its own order already.
    """
    table = replace(alteration.looked, shapes=alteration.shapes)
    item = shaped(table, len(alteration.shapes.versions) - 1)
    options = {**index.options, "copy": is_copy}
    definition = _defined(engine, replace(index, created_as=name, options=options), {stand_in: item})
    (new,) = engine.definitions.new_objects(definition)
    said = {COMMENTS: dict(index.comments)} if index.comments else {}
    in_schema = {one: id for one, id in index.dependencies.items() if one.startswith("schema ")}
    in_schema_of = {SCHEMA: index.schema} if in_schema else {}
    return replace(
        new,
        options={**new.options, **in_schema_of, **said},
        dependencies={**in_schema, **new.dependencies},
    )


def readers_of(engine: Engine, id: GlobalId) -> tuple[ObjectRow, ...]:
    """Returns all that depends on an object, directly or not, in order of creation."""
    reached, found = {id}, []
    for row in engine.catalog.objects():
        if not reached.isdisjoint(row.dependencies.values()):
            reached.add(row.id)
            found.append(row)
    return tuple(found)


def rewritten(
    row: tuple[Any, ...], reshaped: ShapeChange, places: list[int | None], new: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Returns a row as it was stored and as it is to be, both with all the columns that the table has from then on.

    Args:
        row: The row, as it was stored.
        reshaped: What becomes of the table.
        places: For each column of the table to be, its place in the table as it was; None for one that is new.
        new: The table's row to be.
    """
    shapes = reshaped.shapes
    old = (*row, *[None] * (len(shapes.stored) - len(row)))
    cells = [None if i in reshaped.dropped else cell for i, cell in enumerate(old)]
    for place, source, cell in zip(shapes.places, places, new, strict=True):
        if source is None:
            cells[place] = cell
    return old, tuple(cells)


def alteration_of(
    row: ObjectRow,
    text: str,
    definition: Definition,
    altered: AlteredTable,
    reshaped: ShapeChange,
    readers: Readers,
    dropped: frozenset[GlobalId],
    sequences: frozenset[str],
) -> Alteration:
    """Returns what the catalog is told."""
    kept = {"": "", **altered.renamed}
    return Alteration(
        row,
        text,
        definition.relation_type.columns,
        definition.relation_type.keys,
        reshaped.shapes,
        altered.renamed,
        sequences,
        {kept[column]: said for column, said in row.comments.items() if column in kept},
        frozenset(one.id for one in readers.rows),
        dropped,
        types=definition.dependencies,
        references=[one.as_json() for one in altered.definition.references],
    )
