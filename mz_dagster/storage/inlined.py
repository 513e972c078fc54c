"""Inlined batches: few updates are stored in the catalog itself, in the transaction that seals them.

A Parquet file, an entry of a log and the folders above them, all forced to disk, cost a hundred times what a handful of
updates is worth, for each collection that a step changes. So a batch of up to `Inlining.rows` updates and
`Inlining.bytes` bytes has no file. Its updates, in the form in which files store them (`numerics`), are one Arrow IPC
stream, its *payload*, in a row of the catalog's table `inlined`; all that a write or a step changes is one transaction.

*Writing.* `Shards.inline` makes the payload, and hands it on in the batch's stats, up to the seal. Its id is fresh, but
nothing is reserved under it and no writer is registered: until the seal there is nothing that a sweep would have to
find, and after it the batch is whole. A writer that dies before, or loses a race, leaves nothing at all. What the rest
of a step reads of it comes with the batch (`BatchStats.payload`).

*What the catalog says of it.* It is a batch as any other, with an interval, a state and a place on lists and leases. It
has no files, and its `file_list` is one entry, `INLINED`, with rows, errors, bytes, times and the payload's hash. So
the digest of its collection's list (`catalog.contents`) covers the payload, too.

*Reading.* A payload is compared with size and hash when it comes from the catalog, and kept in memory, as a table, of
up to `Budget.inlined_memory` bytes in all: it never changes, and is found again by its hash on the batch list. A
payload that is gone is `BatchIncomplete`, as is a file that is gone: the batch was swept. One that is another is
`PayloadDamaged`. Spark is handed the rows.

*Growing.* A merge writes its result the same way: inlined while it is small, and as a Delta batch once it has grown.
Its parts go with the sweep, whose `forget` deletes row and payload together.

Memory: a frame is as large as its payloads.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from mz_dagster.budget import budget
from mz_dagster.catalog import INLINED, Batch, BatchFile, BatchId, BatchStats
from mz_dagster.errors import DamageError
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.batch_stats import check_times
from mz_dagster.storage.shards import ERROR, TIME, BatchIncomplete, Interval

NOTHING = BatchStats(0, 0, 0, 0, (), payload=b"")
"""The stats of a write without updates."""


class PayloadDamaged(DamageError):
    """An inlined batch whose payload is not the one that was written.

    Attributes:
        collection: The collection's id.
        batch: The batch.
    """

    def __init__(self, collection: str, batch: int, detail: str) -> None:
        super().__init__(f'batch {batch} of "{collection}" in the catalog is damaged', detail=f"{detail}.")
        self.collection = collection
        self.batch = batch


@dataclass(frozen=True, slots=True)
class Inlining:
    """Says which batches are inlined: those with no more than so many updates and bytes of payload."""

    rows: int
    bytes: int


class PayloadStore(Protocol):
    """Holds the payloads of sealed batches: the catalog."""

    def payloads(self, batches: Collection[BatchId]) -> Mapping[BatchId, bytes]:
        """Returns the payloads of those of the batches that have one."""
        ...


def payload_of(stored: pa.Table) -> bytes:
    """Returns the payload of updates in stored form."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, stored.schema) as stream:
        stream.write_table(stored.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def hash_payload(payload: bytes) -> str:
    """Returns the hash of a payload, as `BatchFile.hash`."""
    return xxhash.xxh3_128_hexdigest(payload)


def inlined_stats(stored: pa.Table, payload: bytes, interval: Interval | None) -> BatchStats:
    """Returns the stats of a batch that is to be inlined.

    Args:
        stored: Its updates, as they are stored.
        payload: The same.
        interval: What all times must be in, if given.

    Raises:
        UpdateNotBeyondLower: An update is before the interval, or has no time.
        UpdateBeyondUpper: An update is after it.
    """
    times = stored.column(TIME)
    bounds = None if times.null_count else pc.min_max(times).as_py()
    errors = stored.num_rows - stored.column(ERROR).null_count
    found = BatchFile(
        INLINED,
        stored.num_rows,
        errors,
        len(payload),
        hash_payload(payload),
        None if bounds is None else (bounds["min"], bounds["max"]),
    )
    if interval is not None:
        check_times([found], *interval)
    return BatchStats(stored.num_rows, errors, 0, len(payload), (found,), payload)


class InlinedFrames:
    """Reads inlined batches, and keeps in memory what was read or written. Safe for use from several threads.

    Args:
        payloads: Where they are; None if nothing is inlined.
    """

    def __init__(self, payloads: PayloadStore | None) -> None:
        self._payloads = payloads
        self._lock = threading.Lock()
        #: Stored forms, by collection and hash; those least lately read first.
        self._known: dict[tuple[GlobalId, str], pa.Table] = {}
        self._bytes = 0

    def keep(self, collection: GlobalId, stats: BatchStats, stored: pa.Table) -> None:
        """Keeps the stored form of a batch that was just made."""
        if stats.inlined is not None:
            self._put((collection, stats.inlined.hash), stored)

    def of(self, batches: Sequence[Batch]) -> list[pa.Table]:
        """Returns the stored forms of inlined batches.

        Raises:
            BatchIncomplete: A payload is gone.
            PayloadDamaged: One is another than was written.
        """
        keys = [(batch.collection, _entry(batch).hash) for batch in batches]
        with self._lock:
            found = {key: self._known.pop(key) for key in dict.fromkeys(keys) if key in self._known}
            self._known.update(found)
        missing = [batch for key, batch in zip(keys, batches, strict=True) if key not in found]
        asked = [batch.id for batch in missing if batch.stats.payload is None]
        payloads = self._payloads.payloads(asked) if asked and self._payloads is not None else {}
        for batch in missing:
            key = batch.collection, _entry(batch).hash
            payload = payloads.get(batch.id) if batch.stats.payload is None else batch.stats.payload
            found[key] = checked(batch, payload)
            self._put(key, found[key])
        return [found[key] for key in keys]

    def _put(self, key: tuple[GlobalId, str], stored: pa.Table) -> None:
        with self._lock:
            if key in self._known:
                return
            self._known[key] = stored
            self._bytes += stored.nbytes
            while self._bytes > budget().inlined_memory and self._known:
                self._bytes -= self._known.pop(next(iter(self._known))).nbytes


def checked(batch: Batch, payload: bytes | None) -> pa.Table:
    """Returns the stored form of an inlined batch, of its payload.

    Raises:
        BatchIncomplete: There is none.
        PayloadDamaged: It is not the one that was written.
    """
    written = _entry(batch)
    if payload is None:
        raise BatchIncomplete(batch.collection, batch.id, batch.stats.rows, 0)
    if len(payload) != written.bytes:
        raise PayloadDamaged(batch.collection, batch.id, f"It has {len(payload)} bytes, and had {written.bytes}")
    if hash_payload(payload) != written.hash:
        raise PayloadDamaged(batch.collection, batch.id, "Its content is not what was written")
    return pa.ipc.open_stream(payload).read_all()


def _entry(batch: Batch) -> BatchFile:
    entry = batch.stats.inlined
    assert entry is not None, "the batch is inlined"
    return entry
