"""The storage API: the few commands through which a collection is made, written and read, and what each promises.

    create                 a collection, with the capabilities to read and to write it
    append                 updates, by right of a write capability
    subscribe_at           its contents at a time and what comes after, by right of a read capability
    clone_capability, downgrade_capability, drop_capability, renew_capability
    acquire_capabilities   to whatever can still be read and written

The one promise: at every time between since and upper, all updates can be reproduced, whatever fails. Each command is
durable when it returns, and has taken effect as a whole or not at all.

*Capabilities* are bearer tokens with a lease (`catalog.capabilities`): whoever was handed one renews it while it works,
`renewed` does so from a thread, and one that was forgotten expires and blocks nobody.

*Who writes what.* A `collection` that was made here is written by `append` and by nothing else: its upper is the meet
of the frontiers of its live write capabilities, until the last of them is handed over to a view
(`adapter.maintain_view`). Sources, tables, views and arrangements are written by the engine, which holds their one
write capability under the leader's epoch and a compare-and-set of the upper; nobody else is given any, so that no
outsider can stop a step. Both end in the same tables of the catalog and the same shards: reads, leases, compaction and
sweep know no difference.

*Frontiers at `{}` are for good.* `append` up to `{}`, or a downgrade to it, by the last writer says that the collection
is complete: its upper is `{}`. A downgrade of the last read capability to `{}` says that nobody will read it again: its
since is `{}`, and once its writers have left, too, it is gone, and its id is never used for another. To drop a
capability says nothing of the kind, nor does a lease that runs out: `acquire_capabilities` goes on from where the
collection stands. DROP takes names and the engine's own rights; what others hold stays valid until they let it go.

What may be shown of all this, for diagnostics, is made of what these commands have left in the catalog: `statuses`, and
in SQL `mz_internal.mz_capabilities` and `mz_internal.mz_frontiers`.

It does not choose times, and knows nothing of names or SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.catalog import (
    BatchNotWriting,
    CapabilityRow,
    Catalog,
    Keys,
    ReadCapability,
    WriteCapability,
    WrongDefinition,
    shard_names,
)
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.errors import OperationalError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain, GlobalId, UpdateBeyondUpper, UpdateNotBeyondLower, UpperWentBack
from mz_dagster.scalars.types import Column
from mz_dagster.storage.append import LEASE_MS, BatchWriter
from mz_dagster.storage.arrow_schema import update_table
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shards import TIME
from mz_dagster.storage.subscribe import Subscription

Held = TypeVar("Held", bound=ReadCapability | WriteCapability)

Rows = Sequence[tuple[Sequence[Any], int, int] | tuple[Sequence[Any], int, int, str | None]]
"""Updates as `(data, time, diff)` or `(data, time, diff, error)`."""


class AppendLost(OperationalError):
    """An append whose writer was paused for so long that its batch was swept; nothing was written."""

    sqlstate = "40001"


@dataclass(frozen=True, slots=True)
class CollectionDescription:
    """Describes a collection to be created.

    Attributes:
        timeline: The timeline of its times, declared before.
        columns: Its columns.
        keys: Sets of column positions, each unique at every time.
        start: Its first since and upper; None for the timeline's first time.
        retention_ms: How much history stays readable behind its upper; None for as much as read capabilities hold.
    """

    timeline: str
    columns: tuple[Column, ...]
    keys: Keys = frozenset()
    start: int | None = None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """Where a collection stands, and what holds it there.

    Attributes:
        since: Where it starts to be readable; `{}` once dropped.
        upper: Where it is not known yet; `{}` once complete.
        capabilities: All on it, live or expired, without their tokens.
    """

    id: GlobalId
    since: Antichain[int]
    upper: Antichain[int]
    capabilities: tuple[CapabilityRow, ...]


class Storage:
    """The storage API of a project, for one holder.

    Args:
        catalog: The catalog.
        shards: The shards in this process.
        holder: Who asks and for what, in words that help to find it.
        lease_ms: How long a capability lasts unless renewed, in milliseconds; None for until it is dropped, which only
            befits who is as durable as the catalog.
        clock: Tells how long a subscription has waited.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from mz_dagster.formalism import EPOCH_MS
        >>> from mz_dagster.scalars.types import INT4
        >>> from mz_dagster.storage import Upper
        >>> folder = tempfile.TemporaryDirectory()
        >>> catalog = Catalog.open(f"sqlite:///{folder.name}/catalog.sqlite")
        >>> catalog.declare_timeline("t")
        >>> storage = Storage(catalog, LocalShards(Path(folder.name)), holder="the example")
        >>> read, write = storage.create(storage.new_id(), CollectionDescription("t", (Column("n", INT4),)))
        >>> write = storage.append(write, [((1,), 3, +1), ((1,), 5, -1), ((2,), 5, +1)], Antichain.of(EPOCH_MS, 6))
        >>> with storage.subscribe_at(read, as_of=4, up_to=6) as messages:
        ...     for message in messages:
        ...         print(message.frontier if isinstance(message, Upper) else message.frame.to_pylist())
        [{'n': 1, 'mz_timestamp': 4, 'mz_diff': 1, 'mz_error': None}]
        {5}
        [{'n': 1, 'mz_timestamp': 5, 'mz_diff': -1, 'mz_error': None}, {'n': 2, ...}]
        {6}
        >>> catalog.close(); folder.cleanup()
    """

    def __init__(
        self,
        catalog: Catalog,
        shards: LocalShards,
        *,
        holder: str,
        lease_ms: int | None = LEASE_MS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._catalog = catalog
        self._shards = shards
        self._holder = holder
        self._lease_ms = lease_ms
        self._clock = clock

    # ---- collections

    def new_id(self) -> GlobalId:
        """Returns a GlobalId that was never handed out before and never will be again."""
        return self._catalog.reserve_id()

    def create(self, id: GlobalId, description: CollectionDescription) -> tuple[ReadCapability, WriteCapability]:
        """Creates a collection, and returns the capabilities to read and to write it from its start on.

        Args:
            id: From `new_id`.
            description: What to create.

        Raises:
            IdAlreadyBound: The id denotes a collection, or did.
            UnknownObject: The id was never handed out.
            UnknownTimeline: The timeline was not declared.
            WrongDefinition: Two columns have one name, or one has a name that a shard cannot hold.
        """
        names = tuple(column.name for column in description.columns)
        if shard_names(names) != names or not all(map(_is_text, names)):
            raise WrongDefinition(
                f'"{id}" has a column whose name a shard cannot hold',
                detail=f"Its columns are {', '.join(map(repr, names))}.",
                hint="A name is text without NUL, holds no blank and none of , ; { } ( ) =, and differs from others in "
                "more than case.",
            )
        return self._catalog.create_collection(
            id,
            description.timeline,
            description.columns,
            keys=description.keys,
            start=description.start,
            retention_ms=description.retention_ms,
            holder=self._holder,
            ttl_ms=self._lease_ms,
        )

    def append(
        self, capability: WriteCapability, updates: Rows | pa.Table, new_frontier: Antichain[int]
    ) -> WriteCapability:
        """Appends updates, and moves the capability to `new_frontier`: all of it, or nothing.

        The updates are readable once no other live write capability holds the upper before them. An append whose answer
        was lost can be tried again: if it has taken effect, the capability does not stand where it stood.

        Args:
            capability: To write the collection.
            updates: At times beyond the capability's frontier and not beyond the new one; an update frame, or tuples.
            new_frontier: Beyond the capability's; `{}` if its holder will never append again.

        Returns:
            The capability where it stands now.

        Raises:
            UpdateNotBeyondLower: An update is before the capability's frontier.
            UpdateBeyondUpper: An update is beyond the new frontier.
            UpperWentBack: The new frontier is before the capability's.
            FrontierNotHeld: The capability does not stand at `capability.frontier` any more.
            UnknownCapability: It was dropped, by itself or with its collection.
            CapabilityExpired: Its lease ran out.
            WrongRight: It grants reading.
            AppendLost: This process was paused for too long.
        """
        catalog, lower = self._catalog, capability.frontier
        held = catalog.validate_write(capability.token, lower)  # what cannot be appended need not be written
        if not lower <= new_frontier:
            raise UpperWentBack(lower, new_frontier)
        row = catalog.collection(held.collection)
        frame = updates if isinstance(updates, pa.Table) else update_table(row.columns, updates)
        _check_times(frame, lower, new_frontier)
        if not frame.num_rows or row.since.is_empty:  # what nobody will ever read need not be kept
            done = catalog.append_batch(capability.token, lower, new_frontier)
        else:
            with BatchWriter(catalog, holder=self._holder, ttl_ms=self._lease_ms or LEASE_MS) as writer:
                batch, stats = writer.write(self._shards, row, lower, new_frontier, frame)
                fail_point("append.before_seal")
                done = catalog.append_batch(capability.token, lower, new_frontier, batch, stats)
        if isinstance(done, BatchNotWriting):
            raise AppendLost(
                f'the append to "{row.id}" was lost',
                detail="It was paused for longer than its lease, and what it had written was swept.",
                hint="Append again, with the same capability.",
            )
        return done

    def subscribe_at(
        self,
        capability: ReadCapability,
        as_of: int | None = None,
        *,
        snapshot: bool = True,
        up_to: int | None = None,
        columns: Sequence[str] | None = None,
        condition: pc.Expression | None = None,
        poll_s: float = 0.1,
        deadline_s: float = 60.0,
    ) -> Subscription:
        """Returns an iterator over the collection's contents at `as_of`, then its later updates, with progress in line.

        Any object can be read so, also what the engine writes. The capability has to stay live meanwhile (`renewed`),
        and where it is: the consumer downgrades it once it has what it needs for good.

        Args:
            capability: To read the collection.
            as_of: The time of the snapshot, beyond the capability's frontier; None for that frontier.
            snapshot: Whether to send the contents at `as_of`, or only what comes after it.
            up_to: The least time not wanted; None to go on for as long as the collection does.
            columns: The data columns wanted; None for all. What they do not tell apart is summed before it is sent.
            condition: Of which rows to send updates, over stored columns; updates of the error part always are.
            poll_s: How long to wait before looking again whether there is anything new, in seconds.
            deadline_s: How long one message may be waited for, in seconds.

        Raises:
            FrontierNotHeld: `as_of` is not beyond the capability's frontier.
            UnknownCapability: The capability was dropped, by itself or with its collection.
            CapabilityExpired: Its lease ran out.
            WrongRight: It grants writing.
        """
        return Subscription(
            self._catalog,
            self._shards,
            capability,
            as_of,
            snapshot=snapshot,
            up_to=up_to,
            columns=columns,
            condition=condition,
            holder=self._holder,
            poll_s=poll_s,
            deadline_s=deadline_s,
            clock=self._clock,
        )

    # ---- capabilities

    def acquire_capabilities(self, id: GlobalId) -> tuple[ReadCapability, WriteCapability]:
        """Returns capabilities to read and to write a collection at its since and upper, as far as there are any.

        One at `{}` grants nothing: the collection has ended for reading or writing, or the engine writes it.

        Raises:
            UnknownObject: There never was such a collection.
        """
        return self._catalog.acquire(id, holder=self._holder, ttl_ms=self._lease_ms)

    def clone_capability(self, capability: Held) -> Held:
        """Returns an independent capability with the same right, for this holder.

        Raises:
            UnknownCapability: It was dropped, by itself or with its collection.
            CapabilityExpired: Its lease ran out.
        """
        cloned = self._catalog.clone(capability.token, holder=self._holder, ttl_ms=self._lease_ms)
        return _same_right(capability, cloned)

    def downgrade_capability(self, capability: Held, frontier: Antichain[int]) -> Held:
        """Moves a capability to a later frontier, which since or upper may follow.

        At `{}` it says that its holder has read, or written, all that it ever will; the last one ends the collection.

        Raises:
            FrontierNotHeld: The frontier is before the one held.
            UnknownCapability: It was dropped, by itself or with its collection.
            CapabilityExpired: Its lease ran out.
        """
        return _same_right(capability, self._catalog.downgrade(capability.token, frontier))

    def drop_capability(self, capability: ReadCapability | WriteCapability) -> None:
        """Gives a capability back, also an expired one: it holds nothing back any more.

        Raises:
            UnknownCapability: It was dropped before.
        """
        if not capability.frontier.is_empty:
            self._catalog.drop(capability.token)

    def renew_capability(self, capability: Held) -> Held:
        """Extends a capability's lease by as long as it lasted when it was handed out; one without a lease has none.

        Raises:
            UnknownCapability: It was dropped, by itself or with its collection.
            CapabilityExpired: Its lease ran out: since or upper may have moved.
        """
        if self._lease_ms is None:
            return _same_right(capability, self._catalog.validate(capability.token))
        return _same_right(capability, self._catalog.renew(capability.token, self._lease_ms))

    @contextmanager
    def renewed(self, *capabilities: ReadCapability | WriteCapability) -> Iterator[None]:
        """Renews capabilities from a thread for the length of a block.

        It does not tell when one is lost: the next use of that one does.
        """
        with ExitStack() as stack:
            if (lease_ms := self._lease_ms) is not None:
                for one in capabilities:
                    renew = partial(self._catalog.renew, one.token, lease_ms)
                    stack.enter_context(Renewal(renew, every_ms=lease_ms // 3))
            yield

    # ---- diagnostics

    def statuses(self) -> tuple[CollectionStatus, ...]:
        """Returns where every collection stands that is not dropped, and what holds it there."""
        held: dict[GlobalId, list[CapabilityRow]] = {}
        for one in self._catalog.capabilities():
            held.setdefault(one.collection, []).append(one)
        return tuple(
            CollectionStatus(row.id, row.since, row.upper, tuple(held.get(row.id, ())))
            for row in self._catalog.collections()
        )


def _check_times(frame: pa.Table, lower: Antichain[int], upper: Antichain[int]) -> None:
    """Refuses updates outside of the interval before anything is written."""
    if not frame.num_rows:
        return
    times = pc.min_max(frame.column(TIME)).as_py()
    if not lower.less_equal(times["min"]):
        raise UpdateNotBeyondLower(f"at {times['min']}", lower)
    if upper.less_equal(times["max"]):
        raise UpdateBeyondUpper(f"at {times['max']}", upper)


def _same_right(capability: Held, found: ReadCapability | WriteCapability) -> Held:
    assert isinstance(found, type(capability)), "a token's right never changes"
    return found


def _is_text(name: str) -> bool:
    """Returns whether every store can hold a text: none has a NUL, nor half of a pair of surrogates."""
    return "\0" not in name and not any("\ud800" <= sign <= "\udfff" for sign in name)
