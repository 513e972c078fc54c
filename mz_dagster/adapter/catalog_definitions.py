"""The definitions of what the catalog holds: its rows, bound and planned again.

The catalog stores the user's own SQL and the ids that its names stood for. From these this module makes what the rest
needs: items for the binder, nodes for the graphs of steps (`graphs`). An object's definition never changes but for its
words and the shapes of tables that they are bound to, so each is made once per process, when it is asked for, and again
where its text is another; and after a change of the values of types all are made anew.

A plan is made anew by whatever version of this package opens the project. Its output is the same collection
whatever the plan, but arrangements are collections too, with contents on disk: a digest of the arrangements' plans is
stored with each object, and a version that would plan them otherwise refuses to step it instead of misreading them.

Each object is its own affair: what reads one that does not bind any more is bound by the columns in the catalog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from mz_dagster.adapter import introspection
from mz_dagster.adapter.definition import Definable, Definition, define, define_stored
from mz_dagster.adapter.definition_cache import DefinitionCache, RecordingResolver, parts_of_query
from mz_dagster.adapter.kept_views import Kept, KeptViews, contents, reading
from mz_dagster.adapter.origins import sink_of, source_of
from mz_dagster.adapter.plan_digest import is_planned_as, plan_digest
from mz_dagster.adapter.project import Project
from mz_dagster.catalog import (
    ADDED_AT,
    BOUND_SHAPES,
    SCHEMA,
    Catalog,
    CatalogDamaged,
    CatalogState,
    CollectionRow,
    NewObject,
    ObjectRow,
    Ref,
    UnknownObject,
    bound_shapes,
)
from mz_dagster.compute import MaintainedNode, Node, SinkNode, SourceNode, TableNode
from mz_dagster.errors import (
    DamageError,
    Error,
    InternalError,
    OperationalError,
    ProgrammingError,
    first_line,
    one_line,
)
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import collections_read
from mz_dagster.plan.relation import Get, Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.scalars.types import TEXT, Column, RelationType
from mz_dagster.sql import CreateSource, CreateTable, TableConstraints, parse
from mz_dagster.sql.errors import UndefinedTable
from mz_dagster.sql.schemas import PUBLIC, key_of, last_of
from mz_dagster.storage import BatchIncomplete
from mz_dagster.storage.sink.delta_sink import DeltaSink
from mz_dagster.storage.sink.sink import SinkTaken
from mz_dagster.storage.source import FileSource, Source
from mz_dagster.version import __version__, is_later

logger = logging.getLogger("mz_dagster.definitions")


#: The option of an object whose plan reads indexes of plain views; they are among its dependencies.
_READS_INDEXES = "reads_indexes"

#: Kinds whose columns are those of their collections, so that what reads them needs no definition.
_OF_CONTENTS = ("source", "table", "materialized view", "check")

#: Kinds that may be altered in place.
_ALTERED = ("source", "table")


class PlannedDifferently(OperationalError):
    """An object whose arrangements were made by a release of this package that planned it otherwise."""

    def __init__(self, name: str, release: str | None, *, newer: bool) -> None:
        super().__init__(
            f'"{name}" was created by {f"release {release}" if release else "an older release"} of mz_dagster, '
            f"which planned its state otherwise than {__version__} does",
            detail="What is hydrated is readable; nothing is added to it.",
            hint="Use that release, or a later one."
            if newer
            else 'Run "mz-dagster apply", or step it: it hydrates anew, and so does what reads it.',
        )
        self.newer = newer


@dataclass(frozen=True, slots=True)
class _Frozen:
    """Resolves names to what they stood for when an object was created."""

    definitions: CatalogDefinitions
    ids: Mapping[str, GlobalId]
    shapes: Mapping[GlobalId, int]

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        id = self.ids.get(".".join(name))
        return None if id is None else self.definitions.item(id, self.shapes.get(id, 0))

    def names(self) -> tuple[str, ...]:
        return tuple(self.ids)


@dataclass(frozen=True, slots=True)
class _Known:
    """What was made of rows of the catalog, and with the types' values of one moment.

    Attributes:
        values: `ObjectRow.values` of no row that it was made of was greater.
        bound: Definitions as they are without indexes.
        definitions: As they are planned.
    """

    values: int = 0
    bound: dict[GlobalId, Definition] = field(default_factory=dict)
    definitions: dict[GlobalId, Definition] = field(default_factory=dict)
    tables: dict[tuple[GlobalId, int], Definition] = field(default_factory=dict)
    items: dict[tuple[GlobalId, int], Item] = field(default_factory=dict)
    sources: dict[tuple[GlobalId, int], Source] = field(default_factory=dict)


class CatalogDefinitions:
    """Answers what names and ids stand for, from the catalog.

    It is a `Resolver` for new statements: names stand for what bears them now.
    """

    def __init__(self, catalog: Catalog, project: Project) -> None:
        self._catalog = catalog
        self._project = project
        self._kept = DefinitionCache(project.state, "catalog")
        self._known = _Known()
        self._temporal: dict[GlobalId, bool] = {}
        self._inputs: dict[GlobalId, frozenset[GlobalId]] = {}
        self._sources_of: dict[GlobalId, frozenset[GlobalId]] = {}

    # ---- a resolver

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        """Returns what a name stands for now, or None."""
        relation = introspection.find(name)
        if relation is not None:
            return relation.item()
        schema = PUBLIC if len(name) == 1 else name[0]
        id = self._catalog.id_of(key_of(schema, name[-1])) if len(name) < 3 else None
        if id is None:
            return None
        version, values = self._catalog.versions_of(id)
        found = self.item(id, version, values)
        if found.schema != schema or found.kind == "schema":
            return None
        return found if found.name == name[-1] else replace(found, name=name[-1])  # it was renamed meanwhile

    def names(self) -> tuple[str, ...]:
        """Returns all names in use."""
        return tuple(self._catalog.state().ids)

    def item(self, id: GlobalId, version: int = 0, values: int = 0) -> Item:
        """Returns what an id stands for, or stood for before it was altered again.

        Args:
            id: The id.
            version: How often it had been altered.
            values: The number of the last change of types that it is known to have to do with.
        """
        relation = introspection.by_id(id)
        if relation is not None:
            return relation.item()
        known = self._known_since(values)
        if (id, version) not in known.items:
            row = self._catalog.object(id)
            known = self._known_since(row.values)
            if row.shapes is not None:
                found = shaped(row, version)
            elif row.kind in (*_OF_CONTENTS, "schema", "type"):
                found = Item(id, called(row), row.kind, row.relation_type, row.timeline)
            else:
                found = self.definition_of(row).item(id)
            name = last_of(row.schema, called(row))
            known.items[id, version] = replace(found, name=name, schema=row.schema, values=row.values)
        return known.items[id, version]

    def _known_since(self, values: int) -> _Known:
        """Returns what is known, without what was made before a change of types."""
        if values > self._known.values:
            self._known = _Known(values)
        return self._known

    # ---- definitions

    def forget(self, id: GlobalId) -> None:
        """Forgets what was made of an object that says by now in other words what it is."""
        known = self._known
        made: tuple[dict[GlobalId, Any], ...] = (known.bound, known.definitions)
        for one in (*made, self._temporal, self._inputs, self._sources_of):
            one.pop(id, None)
        for versions in (known.items, known.sources):
            for key in [key for key in list(versions) if key[0] == id]:  # of a copy, as other threads add to it
                versions.pop(key, None)

    def definition(self, id: GlobalId) -> Definition:
        """Returns the definition of an object, bound to the ids that its names stood for when it was created.

        Raises:
            InternalError: What was bound once does not bind any more.
        """
        known = self._known_since(self._catalog.versions_of(id)[1]).definitions.get(id)
        return self.definition_of(self._catalog.object(id)) if known is None or known.kind in _ALTERED else known

    def definition_of(self, row: ObjectRow) -> Definition:
        """Returns the definition of an object as `definition` does; of a table that was altered, that of the row."""
        bound = self.bound_definition_of(row)
        if row.version:
            return bound
        known = self._known_since(row.values).definitions
        if row.id not in known:
            known[row.id] = self._reading_as_created(row, bound) if reads_indexes(row) else bound
        return known[row.id]

    def _reading_as_created(self, row: ObjectRow, bound: Definition) -> Definition:
        if bound.plan is None:
            return bound
        ids = sorted({id for name, id in row.dependencies.items() if name.startswith("collection ")})
        indexes = [one for one in map(self._catalog.object, ids) if one.kind == "index"]

        def made(names: Resolver) -> Definition:
            (statement,) = parse(row.sql)
            assert isinstance(statement, Definable), "only definitions are ever stored"
            return self.reading(bound, statement, names, indexes)

        parts = ("reading", tuple((one.id, called(one)) for one in indexes), *self._parts(row))
        return self._kept.get(parts, self.as_created(row), made)

    def reading(
        self, definition: Definition, statement: Definable, names: Resolver, indexes: Iterable[ObjectRow]
    ) -> Definition:
        """Returns what is maintained, with a plan that reads indexes of plain views in its query.

        Args:
            definition: The definition, as it is without indexes.
            statement: What it was defined by.
            names: What the names in that stand for.
            indexes: The indexes, of several of one view the one to be read first.
        """
        kept: dict[GlobalId, Get] = {}
        for row in indexes:
            on = self.definition_of(row).on
            if on is not None and on.expansion is not None:
                kept.setdefault(on.id, contents(on, row.id, called(row)))
        if definition.plan is None or not kept:
            return definition

        def kept_in(view: GlobalId) -> Kept:
            return {id: kept[id] for id in self.views_in(view) & kept.keys()}

        return reading(definition, statement, KeptViews(names, kept_in, self.view_bound_by))

    def view_bound_by(self, view: GlobalId, over: Callable[[Resolver], Resolver]) -> Relation:
        """Returns the plan of a plain view, bound with what is made of the resolver of its own names."""
        row = self._catalog.object(view)
        relation = self._defined(row, over(self.as_created(row))).relation
        assert relation is not None, "it is a view"
        return relation

    def views_in(self, view: GlobalId) -> frozenset[GlobalId]:
        """Returns a plain view and the plain views that it reads."""
        found, left = {view}, [view]
        while left:
            for id in self.definition(left.pop()).dependencies.values():
                if id not in found and self.item(id).expansion is not None:
                    found.add(id)
                    left.append(id)
        return frozenset(found)

    def bound_definition_of(self, row: ObjectRow) -> Definition:
        """Returns the definition of an object as it is without indexes of views; see `kept_views`."""
        known = self._known_since(row.values)
        if row.version:
            if (row.id, row.version) not in known.tables:
                (altered,) = parse(row.sql)
                assert isinstance(altered, CreateTable | CreateSource)
                made = define(altered, self.as_created(row), default_timeline=str(row.timeline), name=row.created_as)
                known.tables[row.id, row.version] = made
            return known.tables[row.id, row.version]
        if row.id in known.bound and known.bound[row.id].text != row.sql:
            self.forget(row.id)
        if row.id not in known.bound:
            try:
                known.bound[row.id] = self._kept.get(
                    self._parts(row), self.as_created(row), partial(self._defined, row)
                )
            except UndefinedTable as error:
                raise CatalogDamaged(
                    f'the catalog has lost what "{row.created_as}" reads', detail=one_line(error)
                ) from error
            except ProgrammingError as error:
                raise InternalError(
                    f'the stored definition of "{row.created_as}" does not bind: {first_line(error)}',
                    detail="An earlier release took what this one refuses, or the catalog is damaged.",
                    hint=f'SHOW CREATE shows its query. Drop "{row.created_as}", then create it with one that binds.',
                ) from error
        return known.bound[row.id]

    def _defined(self, row: ObjectRow, names: Resolver) -> Definition:
        """Returns what an object's text defines, if names stand for that."""
        return define_stored(row, row.sql, names, self._project.timeline)

    def _parts(self, row: ObjectRow) -> tuple[object, ...]:
        """Returns all that an object's definition follows from but what its names stood for."""
        timeline, is_copy = row.timeline or self._project.timeline, bool(row.options.get("copy", False))
        parts: tuple[object, ...] = (
            ("catalog", row.sql, timeline, row.created_as, sorted(row.dependencies.items()))
            if row.kind in ("source", "table", "type", "connection", "secret", "sink")
            else parts_of_query(row.sql, timeline, str(row.created_as), is_copy=is_copy)
        )
        if row.options.get(BOUND_SHAPES):
            parts = (*parts, sorted(bound_shapes(row.options).items()))
        return parts

    def adopt(self, row: ObjectRow, definition: Definition, bound_with: RecordingResolver) -> None:
        """Takes what an object was created by for its definition, if it would be bound just so of its row.

        Args:
            row: The object, as it has just been created.
            definition: What it was created by, as it is without indexes of views.
            bound_with: What that was bound with.
        """
        known = self._known_since(row.values)
        if row.version or row.id in known.bound or definition.text != row.sql:
            return
        if self._kept.adopt(self._parts(row), self.as_created(row), bound_with, definition):
            known.bound[row.id] = definition

    def as_created(self, row: ObjectRow) -> Resolver:
        """Returns what resolves an object's names to what they stood for when it was created."""
        self._known_since(row.values)
        return _Frozen(self, row.dependencies, bound_shapes(row.options))

    def is_temporal(self, id: GlobalId) -> bool:
        """Returns whether a collection changes as time goes on: it, or what it is computed from, filters by time."""
        if id not in self._temporal:
            definition = self.definition(id)
            self._temporal[id] = definition.is_temporal or any(map(self.is_temporal, definition.reads))
        return self._temporal[id]

    def inputs_of(self, id: GlobalId) -> frozenset[GlobalId]:
        """Returns a collection and all that it is computed from, but for its own arrangements."""
        if id not in self._inputs:
            reads = self.definition(id).reads
            self._inputs[id] = frozenset({id}).union(*map(self.inputs_of, reads))
        return self._inputs[id]

    def sources_of(self, id: GlobalId) -> frozenset[GlobalId]:
        """Returns the sources that a collection is computed from; of a source itself."""
        if id not in self._sources_of:
            self._sources_of[id] = frozenset(one for one in self.inputs_of(id) if self.definition(one).kind == "source")
        return self._sources_of[id]

    def query_of(self, id: GlobalId) -> Relation:
        """Returns the bound query that says what a materialized view or an index contains."""
        definition = self.definition(id)
        if definition.on is not None:
            on = definition.on
            return on.expansion or Get(on.id, definition.relation_type, on.called)
        assert definition.relation is not None, "it is computed"
        return definition.relation

    def collection_of(self, row: ObjectRow) -> GlobalId:
        """Returns the id of the collection that holds an object's contents.

        Raises:
            ProgrammingError: It is a plain view, which has none.
        """
        if row.has_collection:
            return row.id
        if row.kind == "index":
            return GlobalId(next(iter(row.dependencies.values())))
        raise ProgrammingError(
            f'"{row.name}" has no contents of its own',
            detail="It is a plain view.",
            hint="Read it with a query, or create a materialized view or an index on it.",
        )

    def display_names(self) -> dict[GlobalId, str]:
        """Returns what to call each object before people: an arrangement by its owner's name and its number."""
        rows = {row.id: row for row in self._catalog.objects(dropped=True)}
        return {
            id: called(row) if row.owner is None else called_as_arrangement(called(rows[row.owner]), row)
            for id, row in rows.items()
        }

    def sort_key(self, row: CollectionRow) -> tuple[str, ...]:
        """Returns the columns by which a collection's merged batches are sorted; none to leave the choice to storage.

        The key of the index that is the collection's own order, if there is one, or that it was created with.
        """
        state = self._catalog.state()
        try:
            own = state.object(row.id) or self._catalog.object(row.id)
        except UnknownObject:
            return ()  # it was dropped meanwhile, and nothing of it is left to be sorted
        positions = order_of(own, state)
        return tuple(row.columns[position].name for position in positions)

    # ---- nodes of graphs

    def nodes(
        self, row: ObjectRow, owned: Sequence[ObjectRow], named: frozenset[GlobalId], key: tuple[int, ...]
    ) -> list[Node]:
        """Returns the nodes of an object in a graph: its own and its arrangements'.

        Args:
            row: The object.
            owned: Its arrangements.
            named: The collections that its query names.
            key: The columns by which large batches of it are laid out.

        Raises:
            Error: It cannot be stepped.
        """
        name = called(row)
        match row.kind:
            case "source":
                return self._filled(row, name, owned, key)
            case "table":
                return [TableNode(row.id, name)]
            case "sink":
                on = self.definition_of(row).on
                assert on is not None, "a sink writes something"
                return [SinkNode(row.id, name, on.id, self.sink(row), named - {on.id})]
            case "materialized view" | "index" | "check":
                return self._maintained(row, name, owned, named, key)
            case _:  # arrangements come with their owner
                return []

    def sources(self, timeline: str) -> dict[GlobalId, str]:
        """Returns the names of a timeline's sources by their ids, in order of creation, whatever is wrong with them."""
        return {row.id: called(row) for row in self._catalog.state().objects("source") if row.timeline == timeline}

    def source(self, id: GlobalId) -> Source:
        """Returns what fills a source."""
        version, values = self._catalog.versions_of(id)
        known = self._known_since(values)
        if (id, version) not in known.sources:
            source = source_of(self.definition(id), self._project)
            if isinstance(source, FileSource) and version:
                added_at = self._catalog.object(id).options[ADDED_AT]
                source = replace(source, added_at=tuple(added_at), version=version)
            known.sources[id, version] = source
        return known.sources[id, version]

    def sink(self, row: ObjectRow) -> DeltaSink:
        """Returns what a sink writes to."""
        return sink_of(self.definition_of(row), str(row.id), self._project, self._catalog.project_id())

    def _filled(self, row: ObjectRow, name: str, owned: Sequence[ObjectRow], key: tuple[int, ...]) -> list[Node]:
        """Returns a source's node, behind that of what remembers what its keys were told, if there is such."""
        source = self.source(row.id)
        nodes: list[Node] = [
            SourceNode(one.id, f"{name} (memory)", source, tuple(range(len(one.columns) - 1)), one.id, row.id)
            for one in owned
        ]
        return [*nodes, SourceNode(row.id, name, source, key, memory=nodes[0].id if nodes else None)]

    def _maintained(
        self, row: ObjectRow, name: str, owned: Sequence[ObjectRow], named: frozenset[GlobalId], key: tuple[int, ...]
    ) -> list[Node]:
        plan = self.definition_of(row).plan
        if plan is None:
            raise InternalError(f'"{name}" has a collection and no plan')
        if not is_planned_as(plan, row.options["arrangements"]):
            raise PlannedDifferently(name, row.options.get("release"), newer=_is_of_newer_release(row))
        owned = sorted(owned, key=lambda one: int(one.options["position"]))
        ids = {one.id: own.id for one, own in zip(plan.arrangements, owned, strict=True)}
        plan = plan.over(ids)
        nodes: list[Node] = [
            MaintainedNode(own.id, called_as_arrangement(name, own), one.plan, key=one.key, owner=row.id)
            for one, own in zip(plan.arrangements, owned, strict=True)
        ]
        return [*nodes, MaintainedNode(row.id, name, plan.output, named, key)]

    def is_planned_otherwise(self, row: ObjectRow) -> bool:
        """Returns whether this release cannot step an object, because an older one planned it otherwise.

        What cannot be planned at all is not: it says so for itself, and nothing is gained by making it anew.
        """
        if "arrangements" not in row.options or not row.has_collection or _is_of_newer_release(row):
            return False
        try:
            plan = self.definition_of(row).plan
        except Error:
            return False
        return plan is not None and not is_planned_as(plan, row.options["arrangements"])

    # ---- what a definition becomes in the catalog

    def new_objects(
        self,
        definition: Definition,
        before: Sequence[NewObject] = (),
        reads: Mapping[GlobalId, GlobalId | Ref] = MappingProxyType({}),
        *,
        as_of: int | None = None,
    ) -> list[NewObject]:
        """Returns the catalog rows that create an object: its arrangements, then itself.

        Args:
            definition: What to create.
            before: What is created together with it and stands before it in the list.
            reads: For an id in the definition that the catalog does not know: what it stands for there.
            as_of: From when on a view is to be readable, if its inputs are; None for now.

        Raises:
            FolderNotAllowed: It is a source of a folder outside of the project that the settings do not name.
        """
        if definition.origin is not None:
            source_of(definition, self._project)
        if definition.sink is not None:
            self._check_sink(definition)
        first = len(before)
        since, upper = self._initial_frontiers(definition, before, reads, as_of)
        plan = definition.plan
        dependencies = {name: reads.get(id, id) for name, id in definition.dependencies.items()}
        bound: dict[str, object] = {}
        if definition.shapes:
            bound[BOUND_SHAPES] = {str(reads.get(id, id)): version for id, version in definition.shapes.items()}
        options: dict[str, object] = {"key": list(definition.key), **bound}
        if definition.schema != PUBLIC:
            options[SCHEMA] = definition.schema
        created: list[NewObject] = []
        if plan is not None:
            options |= {"arrangements": plan_digest(plan), "copy": definition.kind == "index", "release": __version__}
            owner = Ref(first + len(plan.arrangements))
            refs = {one.id: Ref(first + n) for n, one in enumerate(plan.arrangements)}
            for n, one in enumerate(plan.arrangements):
                inputs = {str(id): refs.get(id) or reads.get(id, id) for id in collections_read(one.plan)}
                created.append(
                    NewObject(
                        name=None,
                        kind="arrangement",
                        sql="",
                        timeline=definition.timeline,
                        columns=one.relation_type.columns,
                        dependencies=inputs,
                        owner=owner,
                        options={"position": n, "key": list(one.key), **bound},
                        since=since,
                        upper=upper,
                    )
                )
            for id in (*collections_read(plan.output), *definition.indexes):
                dependencies.setdefault(f"collection {id}", refs.get(id) or reads.get(id, id))
            if definition.indexes:
                options[_READS_INDEXES] = True
        if definition.remembers:
            created.append(_memory(definition, dependencies, Ref(first + 1)))
        values = {read: n for id, n in definition.values.items() if not isinstance(read := reads.get(id, id), Ref)}
        has_collection = definition.kind in ("source", "table", "materialized view", "sink") or plan is not None
        created.append(
            NewObject(
                name=definition.name,
                kind=definition.kind,
                sql=definition.text,
                timeline=definition.timeline,
                columns=definition.relation_type.columns,
                keys=definition.relation_type.keys,
                monotonic=definition.relation_type.monotonic,
                dependencies=dependencies,
                options=options,
                has_collection=has_collection,
                since=since,
                upper=upper,
                retention_ms=definition.retain_history_ms,
                sequences=_generating(definition),
                values=values,
            )
        )
        return created

    def _check_sink(self, definition: Definition) -> None:
        """Raises if a new sink cannot write where it says.

        Raises:
            SinkTaken: There is something of others, or another sink writes there.
            SinkUnwritable: It cannot be told.
        """
        sink = sink_of(definition, "", self._project, self._catalog.project_id())
        sink.stands_at()
        for row in self._catalog.objects("sink"):
            if row.name != definition.name and str(self.sink(row).table) == str(sink.table):
                raise SinkTaken(f'sink "{called(row)}" writes "{sink.table}"', hint="Name another folder in URI.")

    def _initial_frontiers(
        self,
        definition: Definition,
        before: Sequence[NewObject],
        reads: Mapping[GlobalId, GlobalId | Ref],
        as_of: int | None,
    ) -> tuple[int, int]:
        """Returns since and upper of a new collection, which are equal: the time at which it will be hydrated.

        For a plan it is the latest time that is complete in all inputs, not after `as_of`, or else the first at which
        all are valid. A source or table begins at 0.
        """
        plan = definition.plan
        if plan is None and definition.sink is None:
            return (0, 0)
        inputs = {reads.get(id, id) for id in definition.reads}
        valid = 0
        uppers = []
        # What the query names and the plan spares counts, too: the catalog holds the one to the other.
        for known in inputs | self._named_by(definition, before, reads):
            if isinstance(known, Ref):
                new = before[known.position]
                since, upper = new.since, new.upper
            else:
                row = self._catalog.collection(known)
                since, upper = row.since.only, None if row.upper.is_empty else row.upper.only
            valid = max(valid, since)
            if upper is not None:
                uppers.append(upper)
        complete = min(uppers, default=0) - 1
        time = max(valid, complete if as_of is None else min(complete, as_of))
        return (time, time)

    def _named_by(
        self, definition: Definition, before: Sequence[NewObject], reads: Mapping[GlobalId, GlobalId | Ref]
    ) -> set[GlobalId | Ref]:
        """Returns the collections that a new object's query names, directly or through plain views."""
        found: set[GlobalId | Ref] = set()

        def add(known: GlobalId | Ref) -> None:
            one = before[known.position] if isinstance(known, Ref) else self._catalog.object(known)
            if one.has_collection:
                found.add(known)
            else:
                for dependency in one.dependencies.values():
                    add(dependency)

        for id in definition.dependencies.values():
            add(reads.get(id, id))
        return found


def _memory(definition: Definition, dependencies: Mapping[str, GlobalId | Ref], owner: Ref) -> NewObject:
    """Returns the collection that remembers what the keys of a source were told, to be created before it."""
    columns = definition.relation_type.columns
    return NewObject(
        name=None,
        kind="arrangement",
        sql="",
        timeline=definition.timeline,
        dependencies=dependencies,
        columns=(*(columns[position] for position in definition.key), Column("mz_place", TEXT)),
        owner=owner,
        options={"position": 0, "key": list(range(len(definition.key)))},
    )


def _generating(definition: Definition) -> frozenset[str]:
    """Returns the columns of a table that generate their values."""
    if definition.kind != "table":
        return frozenset()
    (statement,) = parse(definition.text)
    assert isinstance(statement, CreateTable)
    return frozenset(TableConstraints.of(statement).identities)


def shaped(row: ObjectRow, version: int) -> Item:
    """Returns what the name of a table or source that was altered in place stood for at one of its shapes."""
    assert row.shapes is not None
    shape = row.shapes.versions[version]
    type_ = RelationType(shape.columns, shape.keys)
    stored = None if shape.is_plain else row.shapes.stored_type(version)
    return Item(row.id, called(row), row.kind, type_, row.timeline, None, stored, shape.places, version)


def reads_indexes(row: ObjectRow) -> bool:
    """Returns whether an object's plan reads indexes of plain views."""
    return bool(row.options.get(_READS_INDEXES, False))


def called(row: ObjectRow) -> str:
    """Returns what to call an object before people."""
    name = row.name or row.created_as or str(row.id)
    return name.removesuffix(".") if row.kind == "schema" else name


def _is_of_newer_release(row: ObjectRow) -> bool:
    return is_later(str(row.options.get("release", "0")), __version__)


def called_as_arrangement(owner: str, row: ObjectRow) -> str:
    """Returns what to call an arrangement; EXPLAIN counts them from 1, too."""
    return f"{owner} (arrangement {int(row.options['position']) + 1})"


def tell_whose(error: BaseException, catalog: Catalog) -> None:
    """Has an error of a damaged collection say what people call that, as far as the catalog still knows it."""
    if not isinstance(error, DamageError | BatchIncomplete) or error.collection is None:
        return
    with suppress(Error):  # of the catalog, which may be damaged, too
        row = catalog.object(GlobalId(error.collection))
        name = called(row) if row.owner is None else called_as_arrangement(called(catalog.object(row.owner)), row)
        whose = f'"{row.id}" is the {row.kind} "{name}".'
        if whose not in (error.detail or ""):
            error.detail = f"{error.detail or ''} {whose}".lstrip()


def order_of(row: ObjectRow, state: CatalogState) -> tuple[int, ...]:
    """Returns the columns that decide the order of an object's collection, as far as it or an index names any."""
    positions = row.options.get("key", ()) if row.kind in ("index", "arrangement") else ()
    for id in state.indexes.get(row.id, ()):
        index = state.object(id)
        if index is not None and not index.has_collection:
            positions = index.options["key"]
    return tuple(positions)
