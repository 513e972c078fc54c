"""Leased reads: the exact contents of collections between since and upper, while others append, merge and sweep.

A read takes a lease, which lists the live batches of all its collections in one transaction, and reads those batches
and nothing else. Gaps between batches are known to be empty. No frame outlives its lease: the reads here are context
managers, their frames are good inside the block, and what was made of them is right once the block has ended without an
error: on leaving it the lease is checked, so a frame that is evaluated late never passes for whole if it was not.

What one call of `LocalShards` reads as a whole needs no lease to be exact: of a batch that is swept it has all rows or
fails. A reader who is that quick may go by the lists alone, and take a lease when that has failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from mz_dagster.catalog import Batch, Catalog, CollectionRow, ListedBatches
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.storage.append import LEASE_MS
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shards import BatchIncomplete, Shards

Frame = TypeVar("Frame")

_TRIES = 5


class ReadBeforeSince(ProgrammingError):
    """A read at a time whose history is forgotten, or of a dropped collection.

    Attributes:
        collection: The collection's id.
        since: Where it starts to be readable; `{}` once dropped.
    """

    sqlstate = "22023"

    def __init__(self, collection: GlobalId, time: int, since: Antichain[int], upper: Antichain[int]) -> None:
        if since.is_empty:
            super().__init__(f'"{collection}" cannot be read any more', detail="It was dropped.")
        else:
            super().__init__(
                f'"{collection}" cannot be read at {time}',
                detail=f"It is readable from its since {since} until before its upper {upper}.",
                hint=f"Read at {since.only} or later; retention decides how much history is kept.",
            )
        self.collection = collection
        self.since = since


class ReadBeyondUpper(OperationalError):
    """A read at a time that is not complete yet.

    Attributes:
        collection: The collection's id.
        upper: Where it is not known yet.
    """

    sqlstate = "55000"

    def __init__(self, collection: GlobalId, time: int, since: Antichain[int], upper: Antichain[int]) -> None:
        super().__init__(
            f'"{collection}" is not complete at {time}',
            detail=f"It is readable from its since {since} until before its upper {upper}.",
            hint="Read at an earlier time, or wait until a step has closed this one.",
        )
        self.collection = collection
        self.upper = upper


class LeaseLost(OperationalError):
    """Batches were swept while they were read, because their reader was paused for too long.

    Whatever was read under the lease may lack rows and must not be used.
    """

    sqlstate = "55000"

    def __init__(self, lease: int) -> None:
        super().__init__(
            f"read lease {lease} was lost while it was used",
            detail="It was not renewed in time, and batches that it lists were swept.",
            hint="Read again.",
        )


@dataclass(slots=True)
class HeldLease:
    """A lease while it is held.

    Attributes:
        id: The lease's id.
        snapshots: The batches that it lists, of each collection.
        is_over: Whether a seal has ended it, which only an intact one lets through.
    """

    id: int
    snapshots: Mapping[GlobalId, ListedBatches]
    is_over: bool = False


@contextmanager
def leased(
    catalog: Catalog,
    collections: Sequence[GlobalId],
    *,
    holder: str,
    ttl_ms: int = LEASE_MS,
    capability: str | None = None,
) -> Iterator[HeldLease]:
    """Holds a lease on the live batches of collections, renewed, for the length of a block.

    Args:
        catalog: The catalog.
        collections: What will be read.
        holder: Who reads, in words that help to find it.
        ttl_ms: How long the lease outlives a reader that vanished, in milliseconds.
        capability: The token by whose right they are read, if it is to be validated.

    Raises:
        LeaseLost: At the end of the block: a batch was swept meanwhile, so what was read may lack rows.
    """
    if catalog.is_read_only and capability is None:
        # Who cannot write cannot lease. If others sweep what is read meanwhile, files are missing, which is an error.
        yield HeldLease(0, catalog.listed(collections))
        return
    taken = catalog.lease(collections, holder, ttl_ms, capability=capability)
    lease = HeldLease(taken.id, taken.snapshots)
    try:
        with Renewal(lambda: catalog.renew_lease(lease.id, ttl_ms), every_ms=ttl_ms // 3):
            yield lease
    except BaseException:
        catalog.release_lease(lease.id)
        raise
    if not lease.is_over and not catalog.release_lease(lease.id):
        raise LeaseLost(lease.id)


def check_readable(collection: GlobalId, listed: ListedBatches, time: int) -> None:
    """Refuses a time at which a collection cannot be read exactly.

    Raises:
        ReadBeforeSince: Its history is forgotten.
        ReadBeyondUpper: It is not complete yet.
    """
    if not listed.since.less_equal(time):
        raise ReadBeforeSince(collection, time, listed.since, listed.upper)
    if listed.upper.less_equal(time):
        raise ReadBeyondUpper(collection, time, listed.since, listed.upper)


def overlapping(batches: Sequence[Batch], lower: int | None, upper: int | None) -> tuple[Batch, ...]:
    """Returns the batches that can hold updates with `lower <= time < upper`, on a total order.

    A merge moves times before since to since, even beyond the batch's own upper. Such updates are older than any
    `lower` that can be asked for, since that is greater than since; so intervals stay the right thing to choose by.
    """
    return tuple(
        batch
        for batch in batches
        if (upper is None or batch.lower.is_empty or batch.lower.only < upper)
        and (lower is None or batch.upper.is_empty or batch.upper.only > lower)
    )


@contextmanager
def read_updates(
    catalog: Catalog,
    shards: Shards[Frame],
    collection: CollectionRow,
    *,
    lower: int | None = None,
    upper: int | None = None,
    columns: Sequence[str] | None = None,
    holder: str,
    ttl_ms: int = LEASE_MS,
) -> Iterator[Frame]:
    """Yields the updates of a collection with `lower <= time < upper`, good for the length of the block.

    Compaction moves times before since to since, where they cannot be told from updates at since; so a `lower` must be
    greater than since.

    Args:
        catalog: The catalog.
        shards: Where from.
        collection: The collection.
        lower: The least time wanted; None for the whole history, as it is at since and after.
        upper: The least time not wanted; None for the collection's upper.
        columns: The data columns wanted; None for all.
        holder: Who reads.
        ttl_ms: How long the lease outlives a reader that vanished, in milliseconds.

    Raises:
        ReadBeforeSince: `lower - 1` or `upper - 1` is before since.
        ReadBeyondUpper: `upper` is beyond the collection's upper.
        BatchIncomplete: The shard is damaged.
    """
    with _leased_frame(catalog, shards, collection, lower, upper, columns, holder, ttl_ms) as frame:
        yield frame


@contextmanager
def read_at(
    catalog: Catalog,
    shards: Shards[Frame],
    collection: CollectionRow,
    as_of: int,
    *,
    columns: Sequence[str] | None = None,
    holder: str,
    ttl_ms: int = LEASE_MS,
) -> Iterator[Frame]:
    """Yields a collection's contents at `as_of`, consolidated, good for the length of the block.

    Rows of the error part are among them, with `mz_error`; whoever shows rows to a user raises those first.

    Args:
        catalog: The catalog.
        shards: Where from.
        collection: The collection.
        as_of: The time.
        columns: The data columns wanted; None for all.
        holder: Who reads.
        ttl_ms: How long the lease outlives a reader that vanished, in milliseconds.

    Raises:
        ReadBeforeSince: `as_of` is before since.
        ReadBeyondUpper: `as_of` is not complete yet.
        BatchIncomplete: The shard is damaged.
    """
    with _leased_frame(catalog, shards, collection, None, as_of + 1, columns, holder, ttl_ms) as frame:
        yield shards.consolidate(collection, frame, as_of, columns=columns)


@contextmanager
def _leased_frame(
    catalog: Catalog,
    shards: Shards[Frame],
    collection: CollectionRow,
    lower: int | None,
    upper: int | None,
    columns: Sequence[str] | None,
    holder: str,
    ttl_ms: int,
) -> Iterator[Frame]:
    """Yields the updates in `[lower, upper)` under a lease; takes a fresh one if the first was too slow."""
    for attempt in range(1, _TRIES + 1):
        in_use = False
        try:
            with leased(catalog, [collection.id], holder=holder, ttl_ms=ttl_ms) as lease:
                listed = lease.snapshots[collection.id]
                if lower and not listed.since.less_equal(lower - 1):
                    raise ReadBeforeSince(collection.id, lower - 1, listed.since, listed.upper)
                if upper is not None:
                    check_readable(collection.id, listed, upper - 1)
                elif listed.since.is_empty:
                    raise ReadBeforeSince(collection.id, 0, listed.since, listed.upper)
                # Beyond its upper a collection with several writers may have updates of some of them.
                end = listed.upper.only if upper is None and not listed.upper.is_empty else upper
                batches = overlapping(listed.batches, lower, end)
                frame = shards.read(collection, batches, lower=lower, upper=end, columns=columns)
                in_use = True
                yield frame
            return
        except BatchIncomplete:
            # Only after a pause longer than the lease, or damage: a live lease's batches are never swept.
            if in_use or attempt == _TRIES:
                raise
