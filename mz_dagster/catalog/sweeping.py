"""Sweeping: which batches nobody will ever read or seal, and the two steps by which they go.

A batch is *sweepable* if it is `writing` and its writer has no live lease (`lease_liveness`), or `replaced` and on the
list of no live lease, or `dead` and not yet forgotten. Declaring it `dead` checks that again in the transaction that
does it; from then on no seal can make it live and no lease can list it (only live batches are listed), so
its rows can be deleted without haste, as often as it takes, and only then is it forgotten.

Writers and leases that have run out are removed once nothing refers to them. One that ends further away than anybody
gives is of a clock that was ahead, and is shortened, so that what crashed then does not keep garbage for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, or_, select, true, update

from mz_dagster.catalog.batches import batch_of
from mz_dagster.catalog.contents import contents_of
from mz_dagster.catalog.database import Transactions, in_portions
from mz_dagster.catalog.frontiers import row_lattice, summed_frontiers
from mz_dagster.catalog.lease_liveness import dead_processes, is_live
from mz_dagster.catalog.payloads import delete_payloads
from mz_dagster.catalog.rows import Batch, BatchId, BatchState
from mz_dagster.catalog.schema import (
    BATCH,
    BOUND_FILE,
    BOUND_OFFSET,
    CAPABILITY,
    COLLECTION,
    LEASE,
    LEASED_BATCH,
    OBJECT,
    TIMELINE,
    TOMBSTONE,
    WRITER,
)
from mz_dagster.catalog.tombstones import bury
from mz_dagster.formalism import GlobalId

GRACE_MS = 86_400_000
"""How long an expired lease or capability is remembered: so that its use says what became of it."""

LONGEST_MS = 86_400_000
"""The longest that a lease to read or to write batches lasts without being renewed."""


class Sweeping(Transactions):
    """The part of the catalog that lets garbage go."""

    def sweepable(self, now: int | None = None, *, only: Collection[GlobalId] | None = None) -> tuple[Batch, ...]:
        """Returns the batches that may be swept, by id.

        Args:
            now: The moment, in epoch milliseconds; by default the clock's.
            only: Of which collections, and what they cost follows from theirs; None for all.
        """
        moment = self._now_ms() if now is None else now
        with self._database.read() as connection:
            unused = _unused(moment, dead_processes(connection, moment))
            query = (
                select(BATCH, TIMELINE.c.lattice)
                .join(COLLECTION, COLLECTION.c.id == BATCH.c.collection)
                .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline)
                .where(or_(unused, BATCH.c.state == BatchState.DEAD.value))
            )
            wanted = [true()] if only is None else [BATCH.c.collection.in_(one) for one in in_portions(sorted(only))]
            rows = [row for one in wanted for row in connection.execute(query.where(one))]
            return tuple(sorted((batch_of(row, row_lattice(row)) for row in rows), key=lambda one: one.id))

    def declare_dead(self, ids: Iterable[BatchId], now: int | None = None) -> tuple[BatchId, ...]:
        """Declares those of the batches dead that are still sweepable, and returns the dead ones."""
        moment = self._now_ms() if now is None else now
        dead: list[BatchId] = []
        with self._database.write() as connection:
            unused = _unused(moment, dead_processes(connection, moment))
            for portion in in_portions(ids):
                connection.execute(
                    update(BATCH).where(BATCH.c.id.in_(portion), unused).values(state=BatchState.DEAD.value)
                )
                query = select(BATCH.c.id).where(BATCH.c.id.in_(portion), BATCH.c.state == BatchState.DEAD.value)
                dead.extend(BatchId(id) for id in connection.execute(query).scalars())
        return tuple(sorted(dead))

    def forget(self, ids: Iterable[BatchId], now: int | None = None) -> tuple[str, ...]:
        """Removes dead batches, whose rows are deleted, and the leases and writers that ran out long ago.

        With them go the bindings of sources that were dropped: their ids never denote anything else, so nobody will ask
        again what they have read; and whatever else of dropped objects nothing needs any more (`tombstones`). A writer
        stays as long as a batch of its own is `writing`, so that it can still wake up and seal it.

        Returns:
            The folders of the shards of which nothing is left in the catalog but a tombstone since now.
        """
        moment = self._now_ms() if now is None else now
        with self._database.write() as connection:
            for portion in in_portions(ids):
                dead = select(BATCH.c.id).where(BATCH.c.id.in_(portion), BATCH.c.state == BatchState.DEAD.value)
                delete_payloads(connection, connection.execute(dead).scalars())
                connection.execute(delete(BATCH).where(BATCH.c.id.in_(portion), BATCH.c.state == BatchState.DEAD.value))
            for lease in (LEASE, WRITER):
                latest = moment + LONGEST_MS
                connection.execute(update(lease).where(lease.c.until_ms > latest).values(until_ms=latest))
            over = LEASE.c.until_ms <= moment - GRACE_MS
            connection.execute(delete(LEASED_BATCH).where(LEASED_BATCH.c.lease.in_(select(LEASE.c.id).where(over))))
            connection.execute(delete(LEASE).where(over))
            writing = select(BATCH.c.writer).where(BATCH.c.state == BatchState.WRITING.value)
            connection.execute(delete(WRITER).where(WRITER.c.until_ms <= moment, WRITER.c.id.not_in(writing)))
            connection.execute(delete(CAPABILITY).where(CAPABILITY.c.until_ms <= moment - GRACE_MS))
            dropped = select(OBJECT.c.id).where(OBJECT.c.dropped.is_(True), OBJECT.c.kind == "source")
            for bound in (BOUND_FILE, BOUND_OFFSET):
                connection.execute(delete(bound).where(bound.c.source.in_(dropped)))
            buried: list[str] = []
            for portion in in_portions(bury(connection)):
                shards = select(TOMBSTONE.c.shard).where(TOMBSTONE.c.id.in_(portion), TOMBSTONE.c.shard.is_not(None))
                buried += connection.execute(shards).scalars()
            return tuple(sorted(buried))

    def buried_shards(self, shards: Iterable[str]) -> frozenset[str]:
        """Returns those of some shards' folders of whose collections only a tombstone is left."""
        living = select(COLLECTION.c.shard)
        found: set[str] = set()
        with self._database.read() as connection:
            for portion in in_portions(shards):
                query = select(TOMBSTONE.c.shard).where(
                    TOMBSTONE.c.shard.in_(portion), TOMBSTONE.c.shard.not_in(living)
                )
                found |= set(connection.execute(query).scalars())
        return frozenset(found)

    def dropped(self) -> frozenset[GlobalId]:
        """Returns the dropped objects of which anything is left but a tombstone."""
        with self._database.read() as connection:
            return frozenset(connection.execute(select(OBJECT.c.id).where(OBJECT.c.dropped.is_(True))).scalars())

    def damaged_lists(self, collections: Iterable[GlobalId] | None = None) -> frozenset[GlobalId]:
        """Returns those collections, of some or all, whose list of live batches is not the one that was written.

        What is no longer on such a list may be all there is of a batch, so nothing of theirs may be deleted.
        """
        with self._database.read() as connection:
            wanted = connection.execute(select(COLLECTION.c.id)).scalars() if collections is None else collections
            found = summed_frontiers(connection, wanted)
            rows: dict[str, list[Any]] = {}
            live = select(BATCH).where(BATCH.c.collection.in_(list(found)), BATCH.c.state == BatchState.LIVE.value)
            for row in connection.execute(live):
                rows.setdefault(row.collection, []).append(row)
        return frozenset(id for id, (_, _, said) in found.items() if contents_of(rows.get(id, ())) != said)

    def known_batches(self, collection: GlobalId) -> Collection[BatchId]:
        """Returns the ids of all batches of a collection that are not forgotten, in any state."""
        query = select(BATCH.c.id).where(BATCH.c.collection == collection)
        with self._database.read() as connection:
            return frozenset(BatchId(id) for id in connection.execute(query).scalars())


def _unused(now: int, dead: tuple[str, ...]) -> ColumnElement[bool]:
    """Returns the condition that nobody with a live lease writes or reads a batch that nobody else can need."""
    writers = select(WRITER.c.id).where(is_live(WRITER, now, dead))
    listed = (
        select(LEASED_BATCH.c.batch)
        .join(LEASE, LEASE.c.id == LEASED_BATCH.c.lease)
        .where(LEASED_BATCH.c.batch == BATCH.c.id, is_live(LEASE, now, dead))
        .correlate(BATCH)
        .exists()
    )
    return or_(
        and_(BATCH.c.state == BatchState.WRITING.value, BATCH.c.writer.not_in(writers)),
        and_(BATCH.c.state == BatchState.REPLACED.value, ~listed),
    )
