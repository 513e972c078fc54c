"""The graphs of collections that steps advance, made of the catalog's state and what is defined.

A graph is of all collections of a timeline, or of those that some are computed from: nothing else is bound or planned.
The nodes of an object follow from its definition, from what serves it and from the names of both, so they are kept
until one of these changes; a graph in which nothing changed is the one that was made before.

Each object is its own affair: one that does not bind any more, is planned differently or whose source could not be
looked at is a `FailedNode`, with the reason. Those are looked at again by each graph, as their causes may lie outside.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions, called, called_as_arrangement, order_of
from mz_dagster.adapter.checks import blocking_checks
from mz_dagster.catalog import Catalog, CatalogState, CollectionRow, ObjectRow
from mz_dagster.compute import FailedNode, Graph, Node
from mz_dagster.errors import DatabaseError, InternalError, OperationalError
from mz_dagster.formalism import GlobalId
from mz_dagster.scalars.types import smallest_key

logger = logging.getLogger("mz_dagster.definitions")


class SourceNotPolled(OperationalError):
    """Nobody knows what a source contains by now, since its last poll failed."""


class CollectionLost(InternalError):
    """The catalog does not say any more how far a collection is known."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'the catalog has no frontiers of "{name}"',
            detail="Its row among the collections is gone.",
            hint='Restore a backup, or drop it with what depends on it; "mz-dagster doctor" says what else is missing.',
        )


@dataclass(frozen=True, slots=True)
class _CachedNodes:
    """The nodes of an object, and what they were made of."""

    row: ObjectRow
    owned: tuple[ObjectRow, ...]
    named: frozenset[GlobalId]
    key: tuple[int, ...]
    nodes: tuple[Node, ...]


class Graphs:
    """Makes graphs, for one process.

    Args:
        catalog: The catalog.
        definitions: What its objects are defined as.
    """

    def __init__(self, catalog: Catalog, definitions: CatalogDefinitions) -> None:
        self._catalog = catalog
        self._definitions = definitions
        self._made: dict[GlobalId, _CachedNodes] = {}
        self._whole: dict[str, tuple[CatalogState, Graph]] = {}

    def graph(self, timeline: str, wanted: Collection[GlobalId] | None = None) -> Graph:
        """Returns the graph of a timeline's collections, as the catalog has them now, each after the ones it reads.

        One of which the catalog has no frontiers is left out, and what depends on it fails.

        Args:
            timeline: The timeline.
            wanted: The collections that there are to be, with all that they are computed from, and perhaps others; None
                for all.
        """
        state = self._catalog.state()
        if wanted is None and timeline in self._whole:
            made_of, graph = self._whole[timeline]
            if (made_of.mark, made_of.definitions) == (state.mark, state.definitions):
                return graph
        graph = _GraphBuilder(state, timeline, self._definitions, self._made).graph(wanted)
        if wanted is None:
            # A copy, as other threads add to it.
            self._made = {id: made for id, made in dict(self._made).items() if state.object(id) is not None}
            if not any(isinstance(node, FailedNode) for node in graph):
                self._whole[timeline] = state, graph
        return graph


class _GraphBuilder:
    def __init__(
        self, state: CatalogState, timeline: str, definitions: CatalogDefinitions, made: dict[GlobalId, _CachedNodes]
    ) -> None:
        self._state = state
        self._timeline = timeline
        self._definitions = definitions
        self._made = made
        self._named = cache(self._named_by)

    def graph(self, wanted: Collection[GlobalId] | None) -> Graph:
        """Returns the graph."""
        if wanted is None:
            ids: Iterable[GlobalId] = [row.id for row in self._state.collections(self._timeline)]
        else:
            ids = self._upstream(wanted)
        nodes: dict[GlobalId, Node] = {}
        for id in ids:
            row, collection = self._state.object(id), self._collection(id)
            if row is not None and collection is not None:
                nodes |= {node.id: node for node in self._nodes(row, collection)}
        return Graph(self._timeline, tuple(_ordered(nodes)))

    def _collection(self, id: GlobalId) -> CollectionRow | None:
        """Returns a collection if it is one of the timeline."""
        row = self._state.collection(id)
        return row if row is not None and row.timeline == self._timeline else None

    def _upstream(self, wanted: Collection[GlobalId]) -> list[GlobalId]:
        """Returns the objects that have these collections, and those that they are computed from."""
        reached: dict[GlobalId, None] = {}
        waiting = sorted(wanted, reverse=True)
        while waiting:
            row = self._state.object(waiting.pop())
            if row is None or row.id in reached:
                continue
            reached[row.id] = None
            if row.kind == "arrangement" and row.owner is not None:
                waiting.append(row.owner)
            waiting += sorted(self._named(row.id), reverse=True)
            waiting += reversed(self._owned(row.id))
        return list(reached)

    def _owned(self, id: GlobalId) -> tuple[GlobalId, ...]:
        return self._state.owned.get(id, ())

    def _named_by(self, id: GlobalId) -> frozenset[GlobalId]:
        """Returns the collections that an object's query names, directly or through plain views.

        For a sink also the checks that may hold it up.
        """
        row = self._state.object(id)
        found: set[GlobalId] = set()
        if row is not None and row.kind == "sink":
            found |= blocking_checks(self._state, id)
        for one in () if row is None else row.dependencies.values():
            on = self._state.object(one)
            if on is not None:
                found |= {one} if on.has_collection else self._named(one)
        return frozenset(found)

    def _nodes(self, row: ObjectRow, collection: CollectionRow) -> tuple[Node, ...]:
        """Returns the nodes of an object; an arrangement's come with its owner's."""
        if row.kind == "arrangement":
            return ()
        named = frozenset(id for id in self._named(row.id) if self._collection(id) is not None)
        key = order_of(row, self._state) or smallest_key(row.keys)
        serving = [one for id in self._owned(row.id) if (one := self._state.object(id)) is not None]
        owned = tuple(one for one in serving if self._collection(one.id) is not None)
        try:
            for one in (*serving, *(self._state.object(id) for id in sorted(self._named(row.id)))):
                if one is not None and self._is_lost(one):
                    raise CollectionLost(called(one))
            if collection.poll_failure is not None:
                raise not_polled(row, collection)
            made = self._made.get(row.id)
            if made is None or not _is_made_of(made, row, owned, named, key):
                made = _CachedNodes(row, owned, named, key, tuple(self._definitions.nodes(row, owned, named, key)))
                self._made[row.id] = made
            return made.nodes
        except Exception as error:  # whatever becomes of one object, the others go on
            failure = _as_failure(row, error)
            failed = [FailedNode(row.id, called(row), failure, named)]
            for one in owned:
                inputs = frozenset(id for id in self._named(one.id) if self._collection(id) is not None)
                failed.append(FailedNode(one.id, called_as_arrangement(called(row), one), failure, inputs, row.id))
            return tuple(failed)

    def _is_lost(self, row: ObjectRow) -> bool:
        """Returns whether nobody knows any more how far a collection of the timeline is known."""
        return row.has_collection and row.timeline == self._timeline and self._state.collection(row.id) is None


def _is_made_of(
    made: _CachedNodes, row: ObjectRow, owned: tuple[ObjectRow, ...], named: frozenset[GlobalId], key: tuple[int, ...]
) -> bool:
    return (made.row, made.owned, made.named, made.key) == (row, owned, named, key)


def _ordered(nodes: Mapping[GlobalId, Node]) -> Iterable[Node]:
    """Returns nodes, each after those it reads."""
    ordered: dict[GlobalId, Node] = {}

    def visit(id: GlobalId) -> None:
        if id not in ordered:
            for input in sorted(nodes[id].inputs):
                visit(input)
            ordered[id] = nodes[id]

    for id in nodes:
        visit(id)
    return ordered.values()


def _as_failure(row: ObjectRow, error: Exception) -> DatabaseError:
    """Returns why an object has no node."""
    if isinstance(error, DatabaseError):
        return error
    logger.info('"%s" cannot be planned', called(row), exc_info=error)
    return InternalError(
        f'"{called(row)}" cannot be planned: {str(error) or type(error).__name__}',
        detail="The whole error is in the log of level INFO.",
    )


def not_polled(row: ObjectRow, collection: CollectionRow) -> SourceNotPolled:
    """Returns the error of whoever wants to know what a source contains by now."""
    upper = collection.upper
    reason = collection.poll_failure or ""
    until = "" if upper.is_empty or upper.only == 0 else f"; what is known can be read AS OF {upper.only - 1}"
    return SourceNotPolled(
        f'source "{called(row)}" could not be polled',
        detail=reason[:1].upper() + reason[1:],
        hint=f"Remove the cause: every poll tries again{until}.",
    )
