"""A timeline that is idle: all of its collections are known up to one time, and nothing has happened since.

A poll that finds nothing moves the frontiers of all collections. To find out of each that it has nothing to do is what
that costs; but once all have one upper, all go on having nothing to do until the catalog's state changes or one is due.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mz_dagster.catalog import Catalog, CatalogState, Leadership
from mz_dagster.compute import FailedNode, Graph


class IdleTimelines:
    """Keeps the timelines that are idle, for one process.

    Args:
        catalog: The catalog.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, IdleTimeline] = {}

    def lasting(self, graph: Graph, state: CatalogState, now: int, read_ts: int) -> IdleTimeline | None:
        """Returns the timeline of a graph if it is idle in a state, and nothing in it changes by itself until now.

        Args:
            graph: All of its collections.
            state: The catalog's newest.
            now: Beyond what it is known up to.
            read_ts: Its oracle's; a time that was given and is not known yet needs a step.
        """
        idle = self._known.get(graph.timeline)
        if idle is None or graph is not idle.graph or state.number != idle.state.number:
            return None
        return idle if read_ts < idle.upper <= now and (idle.due is None or now < idle.due) else None

    def pass_over(self, idle: IdleTimeline, now: int, leadership: Leadership) -> bool:
        """Makes `now` readable in all collections; returns False, and does nothing, if the timeline is idle no more."""
        state = self._catalog.pass_over(idle.graph.timeline, idle.state, idle.upper, now, leadership)
        if state is not None:
            self._known[idle.graph.timeline] = replace(idle, state=state, upper=now + 1)
        return state is not None

    def note(self, graph: Graph, state: CatalogState) -> None:
        """Keeps the timeline of a graph if it is idle in a state."""
        if (idle := IdleTimeline.of(graph, state)) is not None:
            self._known[graph.timeline] = idle


@dataclass(frozen=True, slots=True)
class IdleTimeline:
    """A timeline in which all collections have the same upper.

    Attributes:
        graph: Of all its collections.
        state: In which that is so.
        upper: Of each collection.
        due: The least time at which one changes by itself, None if none does.
    """

    graph: Graph
    state: CatalogState
    upper: int
    due: int | None

    @classmethod
    def of(cls, graph: Graph, state: CatalogState) -> IdleTimeline | None:
        """Returns the timeline of a graph as it is in a state, None if it is not idle."""
        rows = state.collections(graph.timeline)
        uppers = {row.upper for row in rows}
        if len(uppers) != 1 or state.objects("collection") or {row.id for row in rows} != graph.by_id.keys():
            return None
        (upper,) = uppers
        if upper.is_empty or any(isinstance(node, FailedNode) for node in graph):
            return None
        if any(row.reason is not None or not row.is_hydrated for row in rows):
            return None
        dues = [row.next_due for row in rows if row.next_due is not None]
        return cls(graph, state, upper.only, min(dues, default=None))
