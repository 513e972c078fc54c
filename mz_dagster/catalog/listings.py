"""Listings over many collections at once, each in one transaction and without a lease: what a step looks at first.

They answer what there is, not what may be read: whoever reads batches takes a lease.

A list that a process has read it keeps for as long as the collection's row says that it is the same (`contents`), so a
step asks for the lists of those collections only to which something has come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, func, select

from mz_dagster.catalog.database import Database, recalled
from mz_dagster.catalog.frontiers import summed_frontiers
from mz_dagster.catalog.leases import listed_now, live_lists
from mz_dagster.catalog.replica import CatalogState, Replica, checked_read_ts
from mz_dagster.catalog.rows import Batch, ListedBatches
from mz_dagster.catalog.schema import BOUND
from mz_dagster.formalism import GlobalId

_NEWEST = (
    select(BOUND.c.source, func.max(BOUND.c.tick).label("tick"))
    .where(BOUND.c.source.in_(bindparam("wanted", expanding=True)), BOUND.c.tick < bindparam("upper"))
    .group_by(BOUND.c.source)
)


@dataclass(frozen=True, slots=True)
class Moment:
    """What a read of some collections asks of the catalog, of one committed state.

    Attributes:
        state: All objects and collections.
        read_ts: The time of the timeline at which a read sees every write applied so far.
        listed: The live batches of the collections.
        kept: What those who ask have made of it, for those who get the same one.
    """

    state: CatalogState
    read_ts: int
    listed: Mapping[GlobalId, ListedBatches]
    kept: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)


class Listings(Replica):
    """The part of the catalog that answers for whole graphs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._kept_of = 0  # the state of definitions in which there was all that lists are kept of

    def live_batches(self, collections: Sequence[GlobalId]) -> Mapping[GlobalId, tuple[Batch, ...]]:
        """Returns the live batches of each collection, by lower; none of one that does not exist.

        Raises:
            ListDamaged: A list that this process does not know yet is not the one that was written.
        """
        known = self._database.lists
        if self._state is None:
            with self._database.read() as connection:
                listed = live_lists(connection, summed_frontiers(connection, collections), known)
            return {id: listed.get(id, ()) for id in collections}
        with self._caught_up() as (connection, state):
            said = {id: state.contents(id) for id in collections}
            kept = {id: known.get(id) for id in collections}
            found = {id: one[1] for id, one in kept.items() if one is not None and one[0] == said[id]}
            changed = [id for id in collections if id not in found]
            listed = live_lists(connection, summed_frontiers(connection, changed), known) if changed else {}
            found |= {id: listed.get(id, ()) for id in changed}
            if self._kept_of != state.definitions:
                self._kept_of = state.definitions
                for id in [one for one in list(known) if state.contents(one) is None]:
                    known.pop(id, None)
        return found

    @recalled
    def moment(self, timeline: str, collections: tuple[GlobalId, ...]) -> Moment:
        """Returns what is so now of some collections of a timeline, without keeping their batches from being swept.

        Raises:
            ListDamaged: A list is not the one that was written.
            OracleBehind: The oracle is not as late as what is readable.
            UnknownObject: A collection does not exist.
        """
        with self._caught_up() as (connection, state):
            read_ts = checked_read_ts(connection, timeline, state.closed(timeline))
            return Moment(state, read_ts, listed_now(connection, collections, self._database.lists))

    def newest_bindings(self, sources: Sequence[GlobalId], upper: int) -> Mapping[GlobalId, int]:
        """Returns, for each of these sources that has anything bound before `upper`, the newest such tick."""
        if not sources:
            return {}
        with self._database.read() as connection:
            rows = connection.execute(_NEWEST, {"wanted": list(sources), "upper": upper})
            return {GlobalId(row.source): int(row.tick) for row in rows}
