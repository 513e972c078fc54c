"""Listings over many collections at once, each in one transaction and without a lease: what a step looks at first.

They answer what there is, not what may be read: whoever reads batches takes a lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import func, select

from mz_dagster.catalog.batches import batch_of, batch_order
from mz_dagster.catalog.database import Transactions
from mz_dagster.catalog.frontiers import frontiers
from mz_dagster.catalog.rows import Batch, BatchState
from mz_dagster.catalog.schema import BATCH, BOUND_FILE, COLLECTION
from mz_dagster.formalism import GlobalId


class Listings(Transactions):
    """Is the part of the catalog that answers for whole graphs."""

    def live_batches(self, collections: Sequence[GlobalId]) -> Mapping[GlobalId, tuple[Batch, ...]]:
        """Returns the live batches of each collection, by lower."""
        listed: dict[GlobalId, list[Batch]] = {id: [] for id in collections}
        with self._database.read() as connection:
            found = frontiers(connection, collections)
            query = select(BATCH).where(BATCH.c.collection.in_(listed), BATCH.c.state == BatchState.LIVE.value)
            for row in connection.execute(query):
                id = GlobalId(row.collection)
                listed[id].append(batch_of(row, found[id][0].lattice))  # type: ignore[arg-type]
        return {id: tuple(sorted(batches, key=batch_order)) for id, batches in listed.items()}

    def newest_bindings(self, timeline: str, upper: int) -> Mapping[GlobalId, int]:
        """Returns, for each source of a timeline that has files bound before `upper`, the newest such tick."""
        query = (
            select(BOUND_FILE.c.source, func.max(BOUND_FILE.c.tick).label("tick"))
            .join(COLLECTION, COLLECTION.c.id == BOUND_FILE.c.source)
            .where(COLLECTION.c.timeline == timeline, BOUND_FILE.c.tick < upper)
            .group_by(BOUND_FILE.c.source)
        )
        with self._database.read() as connection:
            return {GlobalId(row.source): int(row.tick) for row in connection.execute(query)}
