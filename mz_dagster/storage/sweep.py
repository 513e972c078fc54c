"""The sweep: deletes what nobody can read or seal any more.

    sweepable  ->  declare_dead  ->  delete rows and files  ->  forget  ->  destroy the folders of what is buried by it

A batch is first declared dead, by compare-and-set; only then are its rows deleted, and only then is it
forgotten. With the last one of a dropped collection goes the collection, and then the folder of its shard, whatever is
in it. Every step can be repeated, so a crash between two of them only leaves work for the next sweep.

A writer that was paused may still commit rows under a batch that was swept, and a crashed one leaves files that no
commit names. Both lie under batch ids that the catalog does not know (any more), and `delete_strays` deletes what
lies under such ids: it lists the shard first and asks the catalog second, so whatever was reserved meanwhile is
known.

Clocks decide only which leases count as over. If one is wrong, a writer loses its work or a reader gets an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mz_dagster.catalog import BatchId, Catalog, CollectionRow
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.shards import Shards

Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did.

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
    aside: Path | None = None,
) -> Swept:
    """Deletes every batch that may be swept now.

    Args:
        catalog: The catalog.
        shards: Where the batches are.
        only: Of which collections; None for all.
        thorough: Whether to look for strays in every shard too, and to clean its log.
        aside: A folder to which strays are moved, instead of being deleted.

    Raises:
        ShardUnavailable: A shard cannot be written. What was declared dead stays so, and the next sweep goes on.
    """
    fail_point("sweep.before_dead")
    if only is None:
        catalog.drop_unneeded()
    sweepable = catalog.sweepable(only=only)
    candidates = {batch.id: batch.collection for batch in sweepable}
    swept: dict[GlobalId, list[BatchId]] = {}
    # Whoever took a batch off its list without the list's digest was no merge: it may be all there is of its updates.
    damaged = catalog.damaged_lists(None if thorough else set(candidates.values())) if candidates or thorough else ()
    candidates = {id: collection for id, collection in candidates.items() if collection not in damaged}
    if candidates:
        for id in catalog.declare_dead(candidates):
            swept.setdefault(candidates[id], []).append(id)
        fail_point("sweep.dead")
    # Of what is inlined there is nothing in the shards, and its payload goes when it is forgotten.
    stored = {batch.id for batch in sweepable if batch.stats.inlined is None}
    for collection, ids in swept.items():
        if kept := [id for id in ids if id in stored]:
            shards.delete(catalog.collection(collection), kept)
    if swept:
        fail_point("sweep.deleted")
    # Even with nothing dead: leases and writers that ran out are forgotten, and what was dropped is buried, too.
    for shard in catalog.forget([id for ids in swept.values() for id in ids]):
        shards.destroy(shard)
    fail_point("sweep.forgotten")
    strays = {}
    for row in catalog.collections(dropped=True) if thorough else ():
        if row.id in damaged or (only is not None and row.id not in only):
            continue
        if found := delete_strays(catalog, shards, row, aside=aside):
            strays[row.id] = found
    # What a crash has left of those, and what a writer that was paused has made again.
    for shard in catalog.buried_shards(shards.folders()) if thorough else ():
        shards.destroy(shard)
    return Swept({id: tuple(ids) for id, ids in swept.items()}, strays)


def delete_strays(
    catalog: Catalog, shards: Shards[Frame], collection: CollectionRow, *, aside: Path | None = None
) -> tuple[BatchId, ...]:
    """Deletes what a shard holds under ids that the catalog does not know, and cleans its log; returns the ids.

    The collection's list of batches is as it was written. With `aside`, the files are moved there.
    """
    stored = shards.stored_batches(collection)  # before the catalog is asked: what is new by then is known there
    strays = tuple(sorted(stored - frozenset(catalog.known_batches(collection.id))))
    shards.delete(collection, strays, aside=aside)
    shards.vacuum(collection)
    return strays
