"""The sweep: deletes what nobody can read or seal any more.

    sweepable  ->  declare_dead  ->  delete rows and files  ->  forget

A batch is first declared dead, by compare-and-set; only then are its rows deleted, and only then is it
forgotten. Every step can be repeated, so a crash between two of them only leaves work for the next sweep.

A writer that was paused may still commit rows under a batch that was swept, and a crashed one leaves files that no
commit names. Both lie under batch ids that the catalog does not know (any more), and `scavenge` deletes what
lies under such ids: it lists the shard first and asks the catalog second, so whatever was reserved meanwhile is
known.

Clocks decide only which leases count as over. If one is wrong, a writer loses its work or a reader gets an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mz_dagster.catalog import BatchId, Catalog, CollectionRow
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.shards import Shards

Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class Swept:
    """Is what a sweep did.

    Attributes:
        batches: Batches declared dead, deleted and forgotten, by collection.
        strays: Batches that the catalog did not know, deleted.
    """

    batches: Mapping[GlobalId, tuple[BatchId, ...]]
    strays: Mapping[GlobalId, tuple[BatchId, ...]]


def sweep(
    catalog: Catalog,
    shards: Shards[Frame],
    *,
    only: Collection[GlobalId] | None = None,
    thorough: bool = False,
) -> Swept:
    """Deletes every batch that may be swept now.

    Args:
        catalog: The catalog.
        shards: Where the batches are.
        only: Of which collections; None for all.
        thorough: Whether to look for strays in every shard too, and to clean its log.

    Raises:
        ShardUnavailable: A shard cannot be written. What was declared dead stays so, and the next sweep goes on.
    """
    fail_point("sweep.before_dead")
    sweepable = catalog.sweepable()
    candidates = {batch.id: batch.collection for batch in sweepable if only is None or batch.collection in only}
    swept: dict[GlobalId, list[BatchId]] = {}
    if candidates:
        for id in catalog.declare_dead(candidates):
            swept.setdefault(candidates[id], []).append(id)
        fail_point("sweep.dead")
    rows = {row.id: row for row in catalog.collections(dropped=True)} if swept or thorough else {}
    for collection, ids in swept.items():
        shards.delete(rows[collection], ids)
    if swept:
        fail_point("sweep.deleted")
    # Even with nothing dead: leases and writers that ran out are forgotten too.
    catalog.forget([id for ids in swept.values() for id in ids])
    fail_point("sweep.forgotten")
    strays = {}
    for row in rows.values() if thorough else ():
        if only is not None and row.id not in only:
            continue
        if found := scavenge(catalog, shards, row):
            strays[row.id] = found
    return Swept({id: tuple(ids) for id, ids in swept.items()}, strays)


def scavenge(catalog: Catalog, shards: Shards[Frame], collection: CollectionRow) -> tuple[BatchId, ...]:
    """Deletes what a shard holds under ids that the catalog does not know, and cleans its log; returns the ids.

    A dropped collection of which nothing is left in the catalog loses its folder, whatever is in it.
    """
    if collection.since.is_empty and not catalog.known_batches(collection.id):
        shards.destroy(collection)
        return ()
    stored = shards.stored_batches(collection)  # before the catalog is asked: what is new by then is known there
    strays = tuple(sorted(stored - frozenset(catalog.known_batches(collection.id))))
    shards.delete(collection, strays)
    shards.vacuum(collection)
    return strays
