"""Indexes that queries read.

*Of a plain view* an index is a collection of the view's rows, maintained as a materialized view is. A query that names
the view, directly or through other plain views, reads that collection, at whatever time it is read: the two are the
same at every time. So a query takes what is kept or what has changed since, not what the view's query reads; and, as
of a materialized view, an error anywhere in the view is an error of who reads it.

*Of what is stored* the first index is the collection's own layout, and each further one a copy that is laid out by its
own key. A query that asks for some keys of a large collection reads the copy, if the key is the copy's and not the
collection's. A small collection is read itself: that takes no step.

What is defined (CREATE VIEW, CREATE MATERIALIZED VIEW, CREATE INDEX) reads neither, so that an index may come and go
without another definition to be planned anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mz_dagster.adapter.catalog_definitions import order_of
from mz_dagster.adapter.definition import define
from mz_dagster.budget import budget
from mz_dagster.catalog import CatalogState, ObjectRow
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Filter, Get, Projection, Relation
from mz_dagster.plan.resolver import Item, Resolver
from mz_dagster.plan.rewriting import bottom_up, gets_of, moved
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.sql import CreateView, parse
from mz_dagster.storage.lookup import Lookup

if TYPE_CHECKING:
    from mz_dagster.adapter.engine import Engine


@dataclass
class QueryIndexes:
    """The indexes that a query may read.

    Attributes:
        engine: The project.
        time: When the query reads; None for now.
    """

    engine: Engine
    time: int | None = None

    def of_view(self, view: GlobalId) -> ObjectRow | None:
        """Returns the index that holds the rows of a plain view, if one does."""
        return self._of_views.get(view)

    def named(self, names: Resolver) -> Resolver:
        """Returns a resolver in which a view that an index keeps stands for what the index holds."""
        return _IndexedViews(self, names) if self._of_views else names

    def by_key(self, relation: Relation) -> Relation:
        """Returns an optimized query, which now reads copies by the keys that it asks for of large collections."""
        state = self._state
        if all(state.indexes.get(get.id) is None for get in gets_of(relation)):
            return relation

        def read(one: Relation) -> Relation:
            if not isinstance(one, Filter):
                return one
            match one.input:
                case Get() as get:
                    index = self._copy(get, one.predicates)
                    return one if index is None else replace(one, input=_contents(index, get))
                case Projection(input=Get() as get, positions=places):
                    asked = [moved(each, dict(enumerate(places))) for each in one.predicates]
                    index = self._copy(get, asked)
                    return one if index is None else replace(one, input=replace(one.input, input=_contents(index, get)))
                case _:
                    return one

        return bottom_up(relation, read)

    def _copy(self, get: Get, predicates: Sequence[Scalar]) -> ObjectRow | None:
        """Returns the copy by whose key a collection is asked for rows, if the collection is large and not by it."""
        id = get.id
        row, own = self._state.collection(id), self._state.object(id)
        if row is None or own is None or row.version or not (copies := [*self._readable(id)]):
            return None
        asked = Lookup.of(predicates, row.columns)
        if asked is None or _asks_for(asked, order_of(own, self._state)):
            return None
        index = next((one for one in copies if _asks_for(asked, one.options["key"])), None)
        return index if index is not None and self._rows(id) > budget().small_rows else None

    def _rows(self, id: GlobalId) -> int:
        return sum(batch.stats.rows for batch in self.engine.catalog.listed([id])[id].batches)

    @cached_property
    def _state(self) -> CatalogState:
        return self.engine.catalog.state()

    @cached_property
    def _of_views(self) -> Mapping[GlobalId, ObjectRow]:
        """The indexes that hold the rows of plain views, by view."""
        found = ((id, next(self._readable(id), None)) for id in self._state.indexes if self.is_view(id))
        return {id: index for id, index in found if index is not None}

    def is_view(self, id: GlobalId) -> bool:
        """Returns whether an object is a plain view."""
        row = self._state.object(id)
        return row is not None and row.kind == "view"

    def _readable(self, on: GlobalId) -> Iterator[ObjectRow]:
        """Yields the indexes that hold the rows of an object on their own, and can be read at the time."""
        for id in self._state.indexes.get(on, ()):
            index, row = self._state.object(id), self._state.collection(id)
            if index is None or row is None or not row.is_hydrated or row.failure is not None:
                continue
            if self.time is not None and not row.since.less_equal(self.time):
                continue
            if self.engine.catalog.is_read_only and (self.time is None or row.upper.less_equal(self.time)):
                continue  # nobody steps it here, and what it is on may be further
            yield index


@dataclass
class _IndexedViews:
    """A resolver in which a view that an index keeps stands for what the index holds."""

    indexes: QueryIndexes
    inner: Resolver

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        item = self.inner.resolve(name)
        if item is None or item.expansion is None:
            return item
        index = self.indexes.of_view(item.id)
        if index is not None:
            return replace(item, expansion=_contents(index, Get(item.id, item.relation_type, item.name)))
        return replace(item, expansion=self._bound_anew(item)) if self._reads_indexed(item.id) else item

    def names(self) -> tuple[str, ...]:
        return self.inner.names()

    def _bound_anew(self, item: Item) -> Relation:
        engine = self.indexes.engine
        row = engine.catalog.object(item.id)
        (statement,) = parse(row.sql)
        assert isinstance(statement, CreateView)
        names = _IndexedViews(self.indexes, engine.definitions.as_created(row))
        relation = define(statement, names, default_timeline=str(row.timeline), name=row.created_as).relation
        assert relation is not None, "it is a view"
        return relation

    def _reads_indexed(self, view: GlobalId) -> bool:
        """Returns whether a view reads one that an index keeps, directly or through plain views."""
        reads = self.indexes.engine.catalog.object(view).dependencies.values()
        return any(
            self.indexes.of_view(id) is not None or (self.indexes.is_view(id) and self._reads_indexed(id))
            for id in reads
        )


def _contents(index: ObjectRow, on: Get) -> Get:
    return Get(index.id, on.relation_type, f"{index.name} (index of {on.name})")


def _asks_for(asked: Lookup, key: Sequence[int]) -> bool:
    return bool(key) and asked.values.keys() >= set(key)
