"""Indexes that queries read.

*Of a plain view* an index is a collection of the view's rows, maintained as a materialized view is. A query that names
the view, directly or through other plain views, reads that collection, at whatever time it is read: the two are the
same at every time. So a query takes what is kept or what has changed since, not what the view's query reads; and, as
of a materialized view, an error anywhere in the view is an error of who reads it.

*Of what is stored* the first index is the collection's own layout, and each further one a copy that is laid out by its
own key. A query that asks for some keys of a large collection reads the copy, if the key is the copy's and not the
collection's. A small collection is read itself: that takes no step.

What is maintained over an indexed view reads the index, too (`kept_views`); a plain view is defined by its query alone.
Copies are read by queries only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mz_dagster.adapter import introspection
from mz_dagster.adapter.definition import Definable, Definition
from mz_dagster.adapter.kept_views import Kept, KeptViews, contents
from mz_dagster.budget import budget
from mz_dagster.catalog import ObjectRow
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Filter, Get, Projection, Relation
from mz_dagster.plan.resolver import Resolver
from mz_dagster.plan.rewriting import bottom_up, moved, nodes_of
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.storage.lookup import Lookup

if TYPE_CHECKING:
    from mz_dagster.adapter.engine import Engine


@dataclass
class QueryIndexes:
    """The indexes that a query may read.

    Attributes:
        engine: The project.
        time: When the query reads; None for now.
        written: What the transaction block that it is in has written, whose own rows are in no copy.
    """

    engine: Engine
    time: int | None = None
    written: frozenset[GlobalId] = frozenset()

    def of_view(self, view: GlobalId) -> ObjectRow | None:
        """Returns the index that holds the rows of a plain view, if one does."""
        return next(self._readable(view, self._on([view])), None)

    def named(self, names: Resolver) -> Resolver:
        """Returns a resolver in which a view that an index keeps stands for what the index holds."""

        def kept(view: GlobalId) -> Kept:
            found = self.of_views(self.engine.definitions.views_in(view))
            items = ((id, self.engine.definitions.item(id), index) for id, index in found.items())
            return {id: contents(item, index.id, str(index.name)) for id, item, index in items}

        return KeptViews(names, kept, self.engine.definitions.view_bound_by)

    def by_key(self, relation: Relation) -> Relation:
        """Returns an optimized query, which now reads copies by the keys that it asks for of large collections."""
        asked = {get.id for one in nodes_of(relation) if (get := _asked(one)) is not None}
        indexes = self._on(asked)
        if not any(one.has_collection for one in indexes):
            return relation

        def read(one: Relation) -> Relation:
            get = _asked(one)
            if get is None:
                return one
            assert isinstance(one, Filter)
            places = one.input.positions if isinstance(one.input, Projection) else range(get.relation_type.arity)
            predicates = [moved(each, dict(enumerate(places))) for each in one.predicates]
            index = self._copy(get, predicates, indexes)
            if index is None:
                return one
            kept = Get(index.id, get.relation_type, f"{index.name} (index of {get.name})")
            return replace(one, input=replace(one.input, input=kept) if isinstance(one.input, Projection) else kept)

        return bottom_up(relation, read)

    def _copy(self, get: Get, predicates: Sequence[Scalar], indexes: Sequence[ObjectRow]) -> ObjectRow | None:
        """Returns the copy by whose key a collection is asked for rows, if the collection is large and not by it."""
        copies = [] if get.id in self.written else [*self._readable(get.id, indexes)]
        row = self.engine.catalog.collection(get.id) if copies else None
        if row is None or row.version or (asked := Lookup.of(predicates, row.columns)) is None:
            return None
        layouts = (one for one in indexes if not one.has_collection and self._is_on(one, get.id))
        if any(_asks_for(asked, one.options["key"]) for one in layouts):
            return None
        index = next((one for one in copies if _asks_for(asked, one.options["key"])), None)
        return index if index is not None and self._rows(get.id) > budget().small_rows else None

    def _rows(self, id: GlobalId) -> int:
        return sum(batch.stats.rows for batch in self.engine.catalog.listed([id])[id].batches)

    def _on(self, ids: Collection[GlobalId]) -> tuple[ObjectRow, ...]:
        """Returns indexes among which are those on some objects."""
        return self.engine.catalog.indexes_on([id for id in ids if introspection.by_id(id) is None])

    def _is_on(self, index: ObjectRow, id: GlobalId) -> bool:
        on = self.engine.definitions.definition_of(index).on
        return on is not None and on.id == id

    def of_views(self, views: Collection[GlobalId]) -> Mapping[GlobalId, ObjectRow]:
        """Returns the indexes that hold the rows of some plain views, by view."""
        indexes = self._on(views)
        found = ((id, next(self._readable(id, indexes), None)) for id in views) if indexes else ()
        return {id: index for id, index in found if index is not None}

    def over(self, definition: Definition, statement: Definable, names: Resolver) -> Definition:
        """Returns a new definition that reads the indexes there are of the plain views in its query.

        Args:
            definition: The definition, as it is without.
            statement: What it was defined by.
            names: What the names in that stand for.
        """
        definitions = self.engine.definitions
        if definition.plan is None:
            return definition
        views = [id for id in definition.dependencies.values() if definitions.item(id).expansion is not None]
        kept = self.of_views(frozenset().union(*map(definitions.views_in, views))) if views else {}
        return definitions.reading(definition, statement, names, kept.values())

    def may_serve(self, ids: Collection[GlobalId]) -> bool:
        """Returns whether an index has rows of its own on any of some objects, or on a plain view that they read."""
        state = self.engine.catalog.state()
        rows = ((id, state.object(id)) for id in ids)
        views = [self.engine.definitions.views_in(id) for id, row in rows if row is not None and row.kind == "view"]
        return any(one.has_collection for one in self._on(frozenset(ids).union(*views)))

    def _readable(self, on: GlobalId, indexes: Sequence[ObjectRow]) -> Iterator[ObjectRow]:
        """Yields those of some indexes that hold the rows of an object on their own, and can be read at the time."""
        for index in indexes:
            if index.name is None or not index.has_collection or not self._is_on(index, on):
                continue
            row = self.engine.catalog.collection(index.id)
            if not row.is_hydrated or row.failure is not None:
                continue
            if self.time is not None and not row.since.less_equal(self.time):
                continue
            if self.engine.catalog.is_read_only and (self.time is None or row.upper.less_equal(self.time)):
                continue  # nobody steps it here, and what it is on may be further
            yield index


def _asked(relation: Relation) -> Get | None:
    """Returns what is read of which only some rows are asked for."""
    match relation:
        case Filter(input=Get() as get) | Filter(input=Projection(input=Get() as get)):
            return get
        case _:
            return None


def _asks_for(asked: Lookup, key: Sequence[int]) -> bool:
    return bool(key) and asked.values.keys() >= set(key)
