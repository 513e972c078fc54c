"""Collections that nobody but the holders of their write capabilities writes: how they come to be and grow.

    reserve_id  -->  create_collection  -->  append_batch, as often as one likes, by any number of writers

`append_batch` is `seal` for whoever presents a token: in one transaction the token is validated, the batch becomes
live, the capability moves from the batch's lower to its upper, and the collection's upper to the meet of all live write
capabilities. So an append takes effect once, however often it is tried: the capability stands at its lower only once.
Of several writers each fills an interval in its own time, and it is readable once the last of them has: their
batches may overlap and lie beyond the upper, which a reader, who never reads beyond it, cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import select

from mz_dagster.catalog.batches import RollbackWith, make_live
from mz_dagster.catalog.capabilities import Capabilities, move, needing_write, validated
from mz_dagster.catalog.database import next_ids
from mz_dagster.catalog.errors import FrontierNotHeld, UnknownObject
from mz_dagster.catalog.frontiers import close_dropped
from mz_dagster.catalog.objects import check_new, create_rows
from mz_dagster.catalog.rows import (
    BatchId,
    BatchNotWriting,
    BatchStats,
    Capability,
    Keys,
    NewObject,
    ReadCapability,
    Seal,
    WriteCapability,
)
from mz_dagster.catalog.schema import COUNTER, OBJECT, TOMBSTONE
from mz_dagster.catalog.timelines import lattice_of
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain, GlobalId, IdAlreadyBound, UpperWentBack
from mz_dagster.scalars.types import Column


class Appends(Capabilities):
    """The part of the catalog through which holders of write capabilities make updates durable."""

    def reserve_id(self) -> GlobalId:
        """Returns a GlobalId that was never handed out before and never will be again."""
        with self._database.write() as connection:
            (number,) = next_ids(connection, "object", 1)
            return GlobalId(f"u{number}")

    def create_collection(
        self,
        id: GlobalId,
        timeline: str,
        columns: Sequence[Column],
        *,
        keys: Keys = frozenset(),
        start: int | None = None,
        retention_ms: int | None = None,
        holder: str,
        ttl_ms: int | None,
    ) -> tuple[ReadCapability, WriteCapability]:
        """Creates a collection, and returns the capabilities to read and to write it from its start on.

        Args:
            id: From `reserve_id`.
            timeline: The timeline of its times.
            columns: Its columns.
            keys: Sets of column positions, each unique at every time.
            start: Its first since and upper; None for the timeline's first time.
            retention_ms: How much history stays readable behind its upper; None for as much as read capabilities hold.
            holder: Who asks, in words that help to find it.
            ttl_ms: How long the capabilities last unless renewed, in milliseconds; None for until they are dropped.

        Raises:
            IdAlreadyBound: The id denotes a collection, or did.
            UnknownObject: The id was never handed out.
            UnknownTimeline: The timeline was not declared.
            WrongDefinition: Two columns have one name.
        """
        with self._database.write() as connection:
            last = connection.execute(select(COUNTER.c.last).where(COUNTER.c.name == "object")).scalar() or 0
            number = int(id[1:]) if id[:1] == "u" and id[1:].isdecimal() else 0
            if not 1 <= number <= last or id != f"u{number}":
                raise UnknownObject(id)
            for table in (OBJECT, TOMBSTONE):
                bound = select(table.c.id).where((table.c.id == id) | (table.c.sequence == number))
                if connection.execute(bound).first() is not None:
                    raise IdAlreadyBound(id)
            lattice = lattice_of(connection, timeline)
            first = lattice.minimum if start is None else start
            new = NewObject(
                None,
                "collection",
                "",
                timeline,
                tuple(columns),
                keys,
                since=first,
                upper=first,
                retention_ms=retention_ms,
            )
            check_new([new])
            create_rows(connection, [new], [number])
            at = Antichain.of(lattice, first)
            return self._read(connection, id, at, holder, ttl_ms), self._write(connection, id, at, holder, ttl_ms)

    def validate_write(self, token: str, lower: Antichain[int]) -> WriteCapability:
        """Returns what a token stands for, if it is a write capability at `lower`.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
            WrongRight: It grants reading.
            FrontierNotHeld: It does not stand at `lower`.
        """
        with self._database.read() as connection:
            return _checked_frontier(validated(connection, token, self._now_ms()), lower)

    def append_batch(
        self,
        token: str,
        lower: Antichain[int],
        upper: Antichain[int],
        batch: BatchId | None = None,
        stats: BatchStats | None = None,
    ) -> WriteCapability | BatchNotWriting:
        """Makes a batch live and moves a write capability from `lower` to `upper`, in one transaction.

        Args:
            token: The write capability's.
            lower: Where the capability stands.
            upper: Where it will stand; at `{}` it is over, and with the last one the collection is complete.
            batch: The batch with the updates of `[lower, upper)`; None if there are none.
            stats: The batch's stats as its append returned them.

        Returns:
            The capability where it stands now; or that the batch was swept, and then nothing has happened.

        Raises:
            UnknownCapability: The token denotes nothing.
            CapabilityExpired: Its lease ran out.
            WrongRight: It grants reading.
            FrontierNotHeld: It does not stand at `lower`.
            UpperWentBack: `upper` is before `lower`.
        """
        try:
            with self._database.write() as connection:
                now = self._now_ms()
                held = _checked_frontier(validated(connection, token, now), lower)
                if not lower <= upper:
                    raise UpperWentBack(lower, upper)
                make_live(connection, [Seal(held.collection, lower, upper, batch, stats)])
                moved = needing_write(move(connection, held, upper, now))
                close_dropped(connection, held.collection, now)  # what nobody will read
                fail_point("seal.in_transaction")
        except RollbackWith as refused:
            return cast(BatchNotWriting, refused.outcome)
        fail_point("seal.sealed")
        return moved


def _checked_frontier(capability: Capability, lower: Antichain[int]) -> WriteCapability:
    held = needing_write(capability)
    if held.frontier != lower:
        raise FrontierNotHeld(
            f'capability "{held.label}" stands at {held.frontier}, not at {lower}',
            detail="It was downgraded, or an append of it has taken effect.",
            hint=f"Append from {held.frontier} on.",
        )
    return held
