"""Append: reserve a batch, write it, seal it; in three durable steps of which only the last can be seen.

    BatchWriter.write     reserves a fresh batch id and writes the updates under it
    Catalog.seal          makes batches live and moves uppers, all of a step's in one transaction
    compare_and_append    both, for one collection

Few updates are not written before their seal, which stores them itself (`inlined`): then nothing is reserved, and no
writer is registered.

A crash or an error after the reservation leaves a batch that no list names; whoever retries gets another id, so
no retry can double an update. The seal compares the upper, so no two writers can both append to an interval.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TypeVar

from mz_dagster.catalog import (
    Alteration,
    BatchId,
    BatchNotWriting,
    BatchStats,
    Catalog,
    CollectionRow,
    CollectionUpperMismatch,
    LeadershipLost,
    ReadChanged,
    ReadSet,
    Seal,
    Sealed,
    Takeover,
    UnknownWriter,
    WriterId,
)
from mz_dagster.errors import OperationalError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shards import Shards

logger = logging.getLogger("mz_dagster.lease")

Frame = TypeVar("Frame")

LEASE_MS = 60_000
"""How long a lease lasts unless renewed, in milliseconds, where the caller does not say."""


class BatchWriter:
    """A writer, registered once it has to reserve anything; its lease is renewed for the length of a block.

    May be used by several threads. One that comes late, after the block, is refused and writes nothing.

    Args:
        catalog: The catalog.
        holder: Who writes, in words that help to find it.
        ttl_ms: How long the lease outlives a writer that vanished, in milliseconds.
    """

    def __init__(self, catalog: Catalog, *, holder: str, ttl_ms: int = LEASE_MS) -> None:
        self._catalog = catalog
        self._holder = holder
        self._ttl_ms = ttl_ms
        self._registering = threading.Lock()
        self._registered: WriterId | None = None
        self._is_retired = False
        self._renewed = ExitStack()

    @property
    def id(self) -> WriterId:
        """The writer's id; it is registered when it is first asked for."""
        with self._registering:
            if self._is_retired:
                raise UnknownWriter("the writer is retired", hint="Nobody waits for what it writes.")
            if self._registered is None:
                id = self._registered = self._catalog.register_writer(self._holder, self._ttl_ms)
                renewal = Renewal(lambda: self._catalog.renew_writer(id, self._ttl_ms), every_ms=self._ttl_ms // 3)
                self._renewed.enter_context(renewal)
            return self._registered

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._registering:
            self._is_retired = True
        self._renewed.__exit__(kind, error, trace)
        if self._registered is None:
            return
        try:
            self._catalog.retire_writer(self._registered)
        except OperationalError as failure:
            # What was sealed is sealed: whoever is told that it failed would do it again. The lease runs out by itself.
            logger.warning("could not retire writer %s: %s", self._registered, failure)

    def write(
        self,
        shards: Shards[Frame],
        collection: CollectionRow,
        lower: Antichain[int],
        upper: Antichain[int],
        frame: Frame,
        *,
        key: Sequence[int] = (),
        rows: int | None = None,
    ) -> tuple[BatchId, BatchStats]:
        """Writes the updates of `[lower, upper)` under a fresh batch id; nobody sees them until they are sealed.

        Args:
            shards: Where to.
            collection: The collection.
            lower: The upper that the collection is expected to have when this is sealed.
            upper: The upper that it will get; all updates' times are beyond `lower` and not beyond `upper`.
            frame: An update frame.
            key: The columns by which it may be laid out, if it is large.
            rows: About how many updates there are at most, if that is known.

        Returns:
            The batch and its stats, for a `Seal`; few updates are in the stats, and nothing was written yet. Without
            rows nothing was written either, which the seal will see.

        Raises:
            UpdateNotBeyondLower: An update is before the interval; nobody will ever see any of them.
            UpdateBeyondUpper: An update is after it.
        """
        fail_point("append.before_reserve")
        inlined = shards.inline(collection, frame, (lower, upper))
        if inlined is not None:
            batch = self._catalog.fresh_batch()
            fail_point("append.inlined")
            return batch, inlined
        batch = self._catalog.reserve_batch(collection.id, self.id, lower, upper)
        fail_point("append.reserved")
        stats = shards.append(collection, batch, frame, (lower, upper), key=key, rows=rows)
        fail_point("append.written")
        return batch, stats


def compare_and_append(
    catalog: Catalog,
    shards: Shards[Frame],
    collection: CollectionRow,
    lower: Antichain[int],
    upper: Antichain[int],
    frame: Frame,
    *,
    holder: str,
    apply: tuple[str, int] | None = None,
    reads: ReadSet | None = None,
    ttl_ms: int = LEASE_MS,
    name: str | None = None,
    restarts: bool = False,
    takeover: Takeover | Alteration | None = None,
) -> Sealed | CollectionUpperMismatch | BatchNotWriting | LeadershipLost | ReadChanged:
    """Appends the updates of `[lower, upper)` to a collection, if its upper is `lower`; all of them or none.

    Args:
        catalog: The catalog.
        shards: Where to.
        collection: The collection.
        lower: Its expected upper.
        upper: Its new upper.
        frame: An update frame whose times are beyond `lower` and not beyond `upper`.
        holder: Who writes, in words that help to find it.
        apply: A timeline and a timestamp to apply to its oracle with the seal.
        reads: What the updates were made of, if it must be the same at that timestamp (`Catalog.seal`).
        ttl_ms: How long the writer's lease outlives it if it vanishes, in milliseconds.
        name: A name that the collection gets with the seal.
        restarts: Whether its sequences begin anew with the seal.
        takeover: Whose place it takes with the seal, or how it is altered by it.

    Returns:
        `Sealed`; or what was not as expected, and then no reader will ever see any of the updates.

    Raises:
        NameTaken: The name denotes something already; no reader will ever see any of the updates.
    """
    found = catalog.collection(collection.id).upper
    if found != lower:
        return CollectionUpperMismatch(collection.id, lower, found)  # what cannot be sealed need not be written
    with BatchWriter(catalog, holder=holder, ttl_ms=ttl_ms) as writer:
        batch, stats = writer.write(shards, collection, lower, upper, frame)
        fail_point("append.before_seal")
        names = {} if name is None else {collection.id: name}
        restarted: dict[GlobalId, Mapping[str, int | None]] = {collection.id: {}} if restarts else {}
        seal = Seal(collection.id, lower, upper, batch, stats)
        taken = {} if takeover is None else {collection.id: takeover}
        return catalog.seal([seal], apply=apply, reads=reads, names=names, restarts=restarted, takeovers=taken)
