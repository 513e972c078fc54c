"""Subscriptions: a collection's contents at a time, then every later update, with progress in line (items 75 and 76).

    Updates(contents at as_of)  Upper({as_of + 1})  Updates(in [as_of + 1, u))  Upper({u})  Upper({v})  ...

`Upper(f)` says that all updates not beyond `f` have been sent: what follows is beyond it. So the messages up to an
`Upper` are exactly the collection between `as_of` and there, whatever crashed, merged or was swept meanwhile.

A subscription reads by right of a read capability, which it validates whenever it looks and in the transaction that
lists what it reads. It leaves the capability where it is: only who receives knows what has arrived for good, and may
downgrade it then, after `Upper({u})` to `u - 1`, from which on the next updates can be told. Both ends can cancel: the
consumer closes; or the capability is dropped or expires or the collection goes, and the next message is the error that
says so.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.catalog import Catalog, CollectionRow, FrontierNotHeld, ReadCapability, UnknownObject
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.formalism import Antichain
from mz_dagster.storage.append import LEASE_MS
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.read import LeaseLost, ReadBeforeSince, leased, overlapping
from mz_dagster.storage.shards import BatchIncomplete

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Updates:
    """Some updates, consolidated.

    Attributes:
        frame: An update frame: the columns asked for, `mz_timestamp`, `mz_diff` and `mz_error`.
    """

    frame: pa.Table


@dataclass(frozen=True, slots=True)
class Upper:
    """Says that all updates not beyond the frontier have been sent."""

    frontier: Antichain[int]


Message = Updates | Upper


class SubscribeDeadline(OperationalError):
    """Nothing new came within the deadline; the subscription goes on where it was."""

    sqlstate = "57014"


class Subscription:
    """An iterator over a collection's messages; a context manager that closes it at the end.

    It ends once the consumer closes it, `up_to` is reached, or the collection is complete. One thread may iterate while
    another closes it.

    Args:
        catalog: The catalog.
        shards: Where from.
        capability: To read the collection.
        as_of: The time of the snapshot, beyond the capability's frontier; None for that frontier.
        snapshot: Whether to send the contents at `as_of`, or only what comes after it.
        up_to: The least time not wanted; None to go on for as long as the collection does.
        columns: The data columns wanted; None for all. What they do not tell apart is summed before it is sent.
        condition: Of which rows to send updates, over stored columns; updates of the error part always are.
        holder: Who reads, in words that help to find it.
        poll_s: How long to wait before looking again whether there is anything new, in seconds.
        deadline_s: How long one message may be waited for, in seconds.
        ttl_ms: How long a lease on what is being read outlives a reader that vanished, in milliseconds.

    Raises:
        FrontierNotHeld: `as_of` is not beyond the capability's frontier.
        UnknownCapability: The capability was dropped.
        CapabilityExpired: Its lease ran out.
        WrongRight: It grants writing.
    """

    def __init__(
        self,
        catalog: Catalog,
        shards: LocalShards,
        capability: ReadCapability,
        as_of: int | None = None,
        *,
        snapshot: bool = True,
        up_to: int | None = None,
        columns: Sequence[str] | None = None,
        condition: pc.Expression | None = None,
        holder: str,
        poll_s: float = 0.1,
        deadline_s: float = 60.0,
        ttl_ms: int = LEASE_MS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._catalog = catalog
        self._shards = shards
        self._token = capability.token
        valid = catalog.validate_read(capability.token)
        held = valid.frontier
        self._collection = catalog.collection(valid.collection)
        _check_columns(self._collection, columns)
        self.as_of = held.only if as_of is None else as_of
        if not held.less_equal(self.as_of):
            raise _not_held(capability.label, held, self.as_of)
        self._from: int | None = None if snapshot else self.as_of + 1
        self._sent = self._at(self.as_of if snapshot else self.as_of + 1)
        self._up_to = up_to
        self._columns = columns
        self._condition = condition
        self._holder = holder
        self._poll_s = poll_s
        self._deadline_s = deadline_s
        self._ttl_ms = ttl_ms
        self._clock = clock
        self._ready: deque[Message] = deque()
        self._over = False
        self._closed = threading.Event()

    def close(self) -> None:
        """Ends the subscription, also while another thread waits for its next message; the capability stays."""
        self._closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        """Returns the next message, as soon as there is one.

        Raises:
            StopIteration: The subscription was closed, or there is nothing more to come.
            SubscribeDeadline: Nothing new came; it can be called again.
            UnknownCapability: The capability was dropped, or its collection was.
            CapabilityExpired: Its lease ran out.
            FrontierNotHeld: It was downgraded beyond what was sent.
            UnknownObject: All that there was before the collection was dropped has been sent.
            BatchIncomplete: The shard is damaged.
        """
        until = self._clock.monotonic_ms() + self._deadline_s * 1000
        while not self._closed.is_set():
            if not self._ready and not self._over:
                self._look()
            if self._ready:
                return self._ready.popleft()
            if self._over:
                break
            if self._clock.monotonic_ms() >= until:
                raise SubscribeDeadline(
                    f'nothing new in "{self._collection.id}" within {self._deadline_s} s',
                    detail=f"All updates not beyond {self._sent} have been sent.",
                    hint="Ask for the next message again, or close the subscription.",
                )
            self._closed.wait(self._poll_s)
        raise StopIteration

    def _look(self) -> None:
        """Gets ready what is new: the updates from what was sent up to the upper, if that has moved."""
        held = self._catalog.validate_read(self._token)
        needed = self.as_of if self._from is None else self._from - 1
        if not held.frontier.less_equal(needed):
            raise _not_held(held.label, held.frontier, needed)
        upper = self._catalog.collection(self._collection.id).upper
        if self._up_to is not None:
            upper = upper.meet(self._at(self._up_to))
        if not self._sent < upper:
            self._over = self._up_to is not None and self._at(self._up_to) <= self._sent
            if not self._over:
                self._check_goes_on()
            return
        if self._from is None:
            upper = self._at(self.as_of + 1)
            contents = self._read(None, self.as_of + 1)
            frame = self._shards.consolidate(self._collection, contents, self.as_of)
        else:
            frame = self._read(self._from, None if upper.is_empty else upper.only)
        if frame.num_rows:
            self._ready.append(Updates(frame))
        self._ready.append(Upper(upper))
        self._sent = upper
        self._over = upper.is_empty
        self._from = None if upper.is_empty else upper.only

    def _check_goes_on(self) -> None:
        """Refuses to wait for what was computed or ingested until it was dropped; how it would go on nobody knows.

        Raises:
            UnknownObject: It was dropped.
        """
        row = self._catalog.object(self._collection.id)
        if row.dropped and row.kind != "collection":
            raise UnknownObject(row.id, dropped=True)

    def _read(self, lower: int | None, upper: int | None) -> pa.Table:
        """Returns the updates in `[lower, upper)`; takes a fresh list if the first was lost to a pause."""
        row = self._collection
        for attempt in range(1, _TRIES + 1):
            try:
                with leased(
                    self._catalog, [row.id], holder=self._holder, ttl_ms=self._ttl_ms, capability=self._token
                ) as lease:
                    listed = lease.snapshots[row.id]
                    needed = self.as_of if lower is None else lower - 1
                    if not listed.since.less_equal(needed):
                        raise ReadBeforeSince(row.id, needed, listed.since, listed.upper)
                    batches = overlapping(listed.batches, lower, upper)
                    found = self._shards.read(
                        row, batches, lower=lower, upper=upper, columns=self._columns, condition=self._condition
                    )
                return summed(found)
            except (BatchIncomplete, LeaseLost):
                if attempt == _TRIES:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _at(self, time: int) -> Antichain[int]:
        return Antichain.of(self._collection.since.lattice, time)


def _check_columns(collection: CollectionRow, columns: Sequence[str] | None) -> None:
    known = [column.name for column in collection.columns]
    for name in columns or ():
        if name not in known:
            raise ProgrammingError(
                f'"{collection.id}" has no column "{name}"', hint=f"Its columns are {', '.join(known) or 'none'}."
            )


def _not_held(label: str, held: Antichain[int], needed: int) -> FrontierNotHeld:
    return FrontierNotHeld(
        f'capability "{label}" stands at {held}, which does not hold what is needed from {needed} on',
        detail="Contents at earlier times may be forgotten.",
        hint=f"Subscribe at or beyond {held}.",
    )
