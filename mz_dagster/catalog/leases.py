"""Read leases: which batches somebody is reading, so that the sweep leaves them alone.

A lease lists the live batches of several collections in one transaction, so its lists are of one common
state. A batch on the list of a live lease is never declared dead. When a lease runs out its batches may be
swept; its reader then finds rows missing, or on release that the lease was not intact, and must not use what it read.
A reader that would notice each missing row may do with the lists alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from mz_dagster.catalog.batches import batch_of, batch_order
from mz_dagster.catalog.capabilities import needing_read, validated
from mz_dagster.catalog.contents import Contents, check_list
from mz_dagster.catalog.database import BatchLists, RowsOf, Transactions, next_ids, recalled
from mz_dagster.catalog.errors import UnknownLease, UnknownObject, WrongRight
from mz_dagster.catalog.frontiers import summed_frontiers
from mz_dagster.catalog.lease_liveness import end_lease, is_intact
from mz_dagster.catalog.rows import Batch, BatchState, Lease, ListedBatches
from mz_dagster.catalog.schema import BATCH, LEASE, LEASED_BATCH
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.liveness import this_process

#: Built once: building a statement takes longer than running it.
_LEASE = insert(LEASE)
_LIST = insert(LEASED_BATCH)
_LIVE = RowsOf(select(BATCH).where(BATCH.c.state == BatchState.LIVE.value), BATCH.c.collection)


class Leases(Transactions):
    """The part of the catalog that lets reads be exact while shards are compacted and swept."""

    def lease(
        self, collections: Sequence[GlobalId], holder: str, ttl_ms: int, *, capability: str | None = None
    ) -> Lease:
        """Lists the live batches of collections and keeps them from being swept.

        Args:
            collections: What will be read.
            holder: Who reads, in words that help to find it.
            ttl_ms: How long the lease lasts unless renewed, in milliseconds.
            capability: The token by whose right they are read, if it is to be validated.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
            WrongRight: It grants writing, or is on another collection.
            UnknownObject: A collection does not exist. A dropped one has empty frontiers and no batches.
        """
        with self._database.write(until_power_cut=True) as connection:
            if capability is not None:
                held = needing_read(validated(connection, capability, self._now_ms()))
                if set(collections) != {held.collection}:
                    raise WrongRight(held.label, needed="read")
            listed = listed_now(connection, collections, self._database.lists)
            (lease,) = next_ids(connection, "lease", 1)
            until = self._now_ms() + ttl_ms
            row = {"id": lease, "holder": holder, "until_ms": until, "process": this_process()}
            connection.execute(_LEASE, row)
            rows = [{"lease": lease, "batch": batch.id} for one in listed.values() for batch in one.batches]
            if rows:
                connection.execute(_LIST, rows)
        return Lease(lease, listed)

    def listed(self, collections: Sequence[GlobalId]) -> Mapping[GlobalId, ListedBatches]:
        """Lists the live batches of collections, of one common state, without keeping them from being swept.

        For readers that find out by themselves if one was swept before they had read it.

        Raises:
            ListDamaged: A list is not the one that was written.
            UnknownObject: A collection does not exist. A dropped one has empty frontiers and no batches.
        """
        return self._listed(tuple(collections))

    @recalled
    def _listed(self, collections: tuple[GlobalId, ...]) -> Mapping[GlobalId, ListedBatches]:
        with self._database.read() as connection:
            return listed_now(connection, collections, self._database.lists)

    def renew_lease(self, lease: int, ttl_ms: int) -> None:
        """Extends a lease, even one that has run out but whose batches were not swept.

        Raises:
            UnknownLease: It was released, or it ran out and was swept.
        """
        with self._database.write(until_power_cut=True) as connection:
            found = connection.execute(
                update(LEASE).where(LEASE.c.id == lease).values(until_ms=self._now_ms() + ttl_ms)
            )
            if found.rowcount != 1 or not is_intact(connection, lease):
                raise UnknownLease(lease)

    def release_lease(self, lease: int) -> bool:
        """Ends a lease, and returns whether it was intact to the end; ending it again returns False.

        None of its batches was swept then, so that whatever was read of them was all of it. This is a fact of the
        catalog, not of a clock: a lease that ran out while nobody swept is intact.
        """
        with self._database.write(until_power_cut=True) as connection:
            return end_lease(connection, lease)


def listed_now(
    connection: Connection, collections: Sequence[GlobalId], known: BatchLists
) -> dict[GlobalId, ListedBatches]:
    """Returns the live batches of collections in a transaction; raises as `Leases.listed`."""
    found = summed_frontiers(connection, collections)
    for id in collections:
        if id not in found:
            raise UnknownObject(id)
    listed = live_lists(connection, found, known)
    return {id: ListedBatches(found[id][0], found[id][1], listed[id]) for id in collections}


def live_lists(
    connection: Connection,
    found: Mapping[GlobalId, tuple[Antichain[int], Antichain[int], Contents]],
    known: BatchLists,
) -> dict[GlobalId, tuple[Batch, ...]]:
    """Returns the live batches of collections, by lower, each list compared with what its collection's row says.

    Args:
        connection: The transaction.
        found: What their rows say, of the same transaction.
        known: The lists that were read before; those that are read here come to them.

    Raises:
        ListDamaged: A list is not the one that was written.
    """
    # What is kept is looked at once: a thread whose transaction sees an older state may put its list there at any time.
    kept = {id: known.get(id) for id in found}
    listed = {id: one[1] for id, one in kept.items() if one is not None and one[0] == found[id][2]}
    rows: dict[GlobalId, list[Any]] = {id: [] for id in found if id not in listed}
    for row in _LIVE.rows(connection, rows):
        rows[GlobalId(row.collection)].append(row)
    for id, of_one in rows.items():
        since, _, said = found[id]
        check_list(id, said, of_one)
        batches = (batch_of(row, since.lattice) for row in of_one)  # type: ignore[arg-type]
        listed[id] = tuple(sorted(batches, key=batch_order))
        known[id] = said, listed[id]
    return listed
