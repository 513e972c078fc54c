"""Physical compaction: a log-structured merge of a shard's live batches.

The rule looks at the sizes of the live batches, oldest first. Let `S_i` be the sum of the sizes younger than
batch `i`. If for some `i` the young ones have grown to its size, `size_i <= S_i`, then the oldest such batch and
everything younger becomes one. Otherwise nothing happens, and a big old batch is left alone.

*Few batches.* When nothing is to do, `size_i > S_i` for all `i`: each batch is bigger than all younger ones
together, so sizes at least double from one to the next, and n updates lie in at most `log2(n) + 1` batches (and the few
young ones that `least_parts` waits for).

*Little work.* A batch in a merge of total size T was either never merged before, or T is at least twice its size:
`T >= size_i + S_i >= 2 size_i` for the oldest, and any `j` that survived an earlier merge is smaller than
`i` was (`size_i > S_i >= size_j` held then). So an update is rewritten at most `log2(n) + 1` times.

*Bounded merges.* Who merges no more than some number of rows at once applies the rule to the youngest batches alone,
those that together have no more. All of the above holds of them; those before them grow in number with the rows that
come, until somebody merges without that bound.

*Layout.* What a merge writes is laid out by key if it is large (`clustering`). A large batch that a step wrote without
layout, because it could not know how large it would be, is merged too, alone: once, since what it becomes has one.

Merging is invisible: reads at every time at or after since are unchanged. It never waits for appends, readers or
sweeps; a race that it loses costs only its own work. Two at once, or one that is killed, need no care for that.

*Overflow.* If more copies of a row add up than `mz_diff` can count, its merge fails (`MultiplicityOverflow`), and so do
reads at a time at which that is so: no number could stand for them, and a wrapped one would be wrong. The batches stay
as they are, other collections are merged, and both heal once copies are deleted and since has passed that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from mz_dagster.budget import budget
from mz_dagster.catalog import (
    Batch,
    BatchId,
    BatchNotWriting,
    Catalog,
    CollectionRow,
    ListedBatches,
    LostRace,
    Replaced,
    UnknownObject,
    interval_of,
)
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import GlobalId
from mz_dagster.scalars.types import smallest_key
from mz_dagster.storage.append import LEASE_MS, BatchWriter
from mz_dagster.storage.clustering import bucket_count
from mz_dagster.storage.read import leased
from mz_dagster.storage.shards import BatchIncomplete, Shards

Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge that took place.

    Attributes:
        collection: The collection.
        parts: The batches that gave way.
        batch: The batch in their place; a gap if nothing was left of them.
        rows_read: The updates of the parts.
        rows_written: Those of the merged batch.
    """

    collection: CollectionRow
    parts: tuple[BatchId, ...]
    batch: BatchId
    rows_read: int
    rows_written: int


def choose_merge(sizes: Sequence[int], least_parts: int | None = None, most_rows: int | None = None) -> int | None:
    """Returns the position of the oldest batch to merge with everything younger, or None to leave all as they are.

    Args:
        sizes: Rows of the live batches, oldest first.
        least_parts: The least number of batches worth a merge; by default `Budget.merged_parts`.
        most_rows: The most rows to merge: looks only at the youngest batches, those that together have no more.

    Example:
        >>> choose_merge([1000, 1, 1, 1, 1]), choose_merge([1000, 400, 300, 200, 100]), choose_merge([1, 1])
        (1, 0, None)
        >>> choose_merge([1000, 1000, 3, 1, 1, 1], most_rows=10)
        2
    """
    least = budget().merged_parts if least_parts is None else least_parts
    younger = sum(sizes)
    for position, size in enumerate(sizes):
        if len(sizes) - position < least:
            return None
        is_little = most_rows is None or younger <= most_rows
        younger -= size
        if is_little and size <= younger:
            return position
    return None


def rows_to_merge(catalog: Catalog, collections: Collection[GlobalId]) -> dict[GlobalId, int]:
    """Returns how many updates the next merge of each collection reads, as far as the sizes of batches tell."""
    found = {}
    for id, batches in catalog.live_batches(tuple(collections)).items():
        sizes = [batch.stats.rows for batch in batches]
        start = choose_merge(sizes)
        found[id] = 0 if start is None else sum(sizes[start:])
    return found


def sort_key(collection: CollectionRow) -> tuple[str, ...]:
    """Returns the columns by which a shard's merged batches are sorted: its smallest unique key, else all columns."""
    positions = smallest_key(collection.keys) or range(len(collection.columns))
    return tuple(collection.columns[position].name for position in positions)


def compact(
    catalog: Catalog,
    shards: Shards[Frame],
    collection: CollectionRow,
    *,
    holder: str,
    key: Sequence[str] = (),
    least_parts: int | None = None,
    most_rows: int | None = None,
    ttl_ms: int = LEASE_MS,
) -> Merge | LostRace | BatchNotWriting | None:
    """Merges some of a collection's live batches, if there is anything to gain.

    Args:
        catalog: The catalog.
        shards: Where the batches are.
        collection: The collection.
        holder: Who compacts.
        key: The columns by which to sort and to lay out; by default those of `sort_key`, which lay nothing out unless
            they are a unique key.
        least_parts: The least number of batches worth a merge, by default `Budget.merged_parts`; 1 rewrites even a lone
            batch as of since.
        most_rows: The most updates to merge; None for any number.
        ttl_ms: How long its leases outlive it if it vanishes, in milliseconds.

    Returns:
        The merge, None if there was nothing to do, or what it lost a race to; then nothing has changed.
    """
    positions = _positions(collection, key) or smallest_key(collection.keys)
    sizes = [batch.stats.rows for batch in catalog.live_batches([collection.id])[collection.id]]
    may_lay_out = bool(positions) and shards.clusters and any(bucket_count(size) > 1 for size in sizes)
    if choose_merge(sizes, least_parts, most_rows) is None and not may_lay_out and not (least_parts == 1 and sizes):
        return None
    sorted_by = tuple(key) or sort_key(collection)

    def merged(listed: ListedBatches, *, only_inlined: bool) -> Merge | LostRace | BatchNotWriting | None:
        parts = _chosen(shards, collection, listed.batches, least_parts, most_rows, positions)
        if not parts or listed.since.is_empty or (only_inlined and any(one.stats.inlined is None for one in parts)):
            return None
        # A collection gains columns, with a batch that has them: as it was before the list, they would be lost.
        newest = catalog.collection(collection.id)
        if newest.since.is_empty:  # it was dropped meanwhile, and has none
            return LostRace(tuple(part.id for part in parts))
        with BatchWriter(catalog, holder=holder, ttl_ms=ttl_ms) as writer:
            try:
                return _merge(catalog, shards, newest, parts, listed.since.only, sorted_by, positions, writer)
            except UnknownObject:
                return LostRace(tuple(part.id for part in parts))  # it was dropped meanwhile

    # What is in the catalog is read whole or not at all, so that it needs no lease.
    with suppress(BatchIncomplete):
        done = merged(catalog.listed([collection.id])[collection.id], only_inlined=True)
        if done is not None:
            return done
    with leased(catalog, [collection.id], holder=holder, ttl_ms=ttl_ms) as lease:
        return merged(lease.snapshots[collection.id], only_inlined=False)


def _positions(collection: CollectionRow, names: Sequence[str]) -> tuple[int, ...]:
    by_name = {column.name: position for position, column in enumerate(collection.columns)}
    return tuple(by_name[name] for name in names)


def _chosen(
    shards: Shards[Frame],
    collection: CollectionRow,
    batches: Sequence[Batch],
    least_parts: int | None,
    most_rows: int | None,
    key: tuple[int, ...],
) -> tuple[Batch, ...]:
    """Returns the batches to merge, oldest first; none if there is nothing to gain."""
    start = choose_merge([batch.stats.rows for batch in batches], least_parts, most_rows)
    if start is None and least_parts == 1:
        start = 0
    if start is not None:
        return tuple(batches[start:])
    if not (key and shards.clusters):
        return ()
    large = [batch for batch in batches if bucket_count(batch.stats.rows) > 1]
    return next(((one,) for one in large if all(file.bucket is None for file in shards.files(collection, [one]))), ())


def _merge(
    catalog: Catalog,
    shards: Shards[Frame],
    collection: CollectionRow,
    parts: tuple[Batch, ...],
    since: int,
    sorted_by: tuple[str, ...],
    key: tuple[int, ...],
    writer: BatchWriter,
) -> Merge | LostRace | BatchNotWriting:
    fail_point("compact.before_reserve")
    stats = shards.inline_merge(collection, parts, since, sorted_by)
    if stats is not None:
        batch = catalog.fresh_batch()
        fail_point("compact.inlined")
    else:
        batch = catalog.reserve_batch(collection.id, writer.id, *interval_of(parts))
        fail_point("compact.reserved")
        stats = shards.merge(collection, parts, since, batch, sorted_by, key=key)
        fail_point("compact.written")
    ids = tuple(part.id for part in parts)
    replaced = catalog.replace_batches(collection.id, ids, batch, stats)
    if not isinstance(replaced, Replaced):
        return replaced
    fail_point("compact.replaced")
    return Merge(collection, ids, batch, sum(part.stats.rows for part in parts), stats.rows)
