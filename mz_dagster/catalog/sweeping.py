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

from sqlalchemy import and_, bindparam, delete, or_, select, update

from mz_dagster.catalog.batches import batch_of
from mz_dagster.catalog.contents import contents_of
from mz_dagster.catalog.database import Transactions, in_portions
from mz_dagster.catalog.frontiers import row_lattice, summed_frontiers
from mz_dagster.catalog.lease_liveness import is_live, moment_of
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


_WANTED, _DEAD = BATCH.c.id.in_(bindparam("wanted", expanding=True)), BATCH.c.state == BatchState.DEAD.value
_UNUSED = or_(
    and_(
        BATCH.c.state == BatchState.WRITING.value,
        BATCH.c.writer.not_in(select(WRITER.c.id).where(is_live(WRITER))),
    ),
    and_(
        BATCH.c.state == BatchState.REPLACED.value,
        ~select(LEASED_BATCH.c.batch)
        .join(LEASE, LEASE.c.id == LEASED_BATCH.c.lease)
        .where(LEASED_BATCH.c.batch == BATCH.c.id, is_live(LEASE))
        .correlate(BATCH)
        .exists(),
    ),
)
"""The condition that nobody with a live lease writes or reads a batch that nobody else can need; its parameters are of
`moment_of`."""

#: Built once: building a statement takes longer than running it.
_SWEEPABLE = (
    select(BATCH, TIMELINE.c.lattice)
    .join(COLLECTION, COLLECTION.c.id == BATCH.c.collection)
    .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline)
    .where(or_(_UNUSED, _DEAD))
)
_SWEEPABLE_OF = _SWEEPABLE.where(BATCH.c.collection.in_(bindparam("of", expanding=True)))
_DECLARE = update(BATCH).where(_WANTED, _UNUSED).values(state=BatchState.DEAD.value)
_DECLARED = select(BATCH.c.id).where(_WANTED, _DEAD)
_FORGET = delete(BATCH).where(_WANTED, _DEAD)
_SHORTEN = tuple(
    update(one).where(one.c.until_ms > bindparam("latest")).values(until_ms=bindparam("latest"))
    for one in (LEASE, WRITER)
)
_OVER = LEASE.c.until_ms <= bindparam("long_ago")
_FORGET_OVER = (
    delete(LEASED_BATCH).where(LEASED_BATCH.c.lease.in_(select(LEASE.c.id).where(_OVER))),
    delete(LEASE).where(_OVER),
    delete(WRITER).where(
        WRITER.c.until_ms <= bindparam("now"),
        WRITER.c.id.not_in(select(BATCH.c.writer).where(BATCH.c.state == BatchState.WRITING.value)),
    ),
    delete(CAPABILITY).where(CAPABILITY.c.until_ms <= bindparam("long_ago")),
    *(
        delete(column.table).where(
            column.in_(select(OBJECT.c.id).where(OBJECT.c.dropped.is_(True), OBJECT.c.kind == "source"))
        )
        for column in (BOUND_FILE.c.source, BOUND_OFFSET.c.source)
    ),
)
_BATCHES = select(BATCH.c.id).where(BATCH.c.collection == bindparam("of"))


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
            at = moment_of(connection, moment)
            if only is None:
                rows = list(connection.execute(_SWEEPABLE, at))
            else:
                portions = in_portions(sorted(only))
                rows = [row for one in portions for row in connection.execute(_SWEEPABLE_OF, {**at, "of": one})]
            return tuple(sorted((batch_of(row, row_lattice(row)) for row in rows), key=lambda one: one.id))

    def declare_dead(self, ids: Iterable[BatchId], now: int | None = None) -> tuple[BatchId, ...]:
        """Declares those of the batches dead that are still sweepable, and returns the dead ones."""
        moment = self._now_ms() if now is None else now
        dead: list[BatchId] = []
        with self._database.write() as connection:
            at = moment_of(connection, moment)
            for portion in in_portions(ids):
                connection.execute(_DECLARE, {**at, "wanted": portion})
                dead.extend(BatchId(id) for id in connection.execute(_DECLARED, {"wanted": portion}).scalars())
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
                delete_payloads(connection, connection.execute(_DECLARED, {"wanted": portion}).scalars())
                connection.execute(_FORGET, {"wanted": portion})
            for shorten in _SHORTEN:
                connection.execute(shorten, {"latest": moment + LONGEST_MS})
            for forget in _FORGET_OVER:
                connection.execute(forget, {"now": moment, "long_ago": moment - GRACE_MS})
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
        with self._database.read() as connection:
            return frozenset(BatchId(id) for id in connection.execute(_BATCHES, {"of": collection}).scalars())
