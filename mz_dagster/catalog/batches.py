"""Batches: reserve, seal, replace. The only consensus of the engine is in this file.

    reserve_batch --> writing --seal--> live --replace_batches--> replaced
                         |                                            |
                         +------------> dead <------------------------+      (see `sweeping`)

The protocol is `compare_and_append` in three parts. A writer reserves a batch id that was never used
before, appends the updates to the shard under it, and then seals: *if* the batch is still `writing` and the
upper is as expected, the batch becomes live and the upper moves, for all collections of the call or for
none. So:

- an update is readable only once its seal committed, and then for good;
- a crash or a lost race before the seal leaves a batch that no list names; the retry reserves another;
- a batch that was declared dead cannot be sealed, however late its writer wakes up;
- collections that seal together are readable together.

Nothing here depends on a clock: a writer's lease only tells the sweep when to try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, cast

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from mz_dagster.catalog.codec import frontier_of, frontier_text
from mz_dagster.catalog.database import Transactions, next_ids
from mz_dagster.catalog.errors import UnknownObject, UnknownWriter, WrongSeal
from mz_dagster.catalog.frontiers import check_inputs, frontiers, row_lattice, set_failures, set_next_dues
from mz_dagster.catalog.rows import (
    NO_ROWS,
    Batch,
    BatchId,
    BatchNotWriting,
    BatchState,
    BatchStats,
    Leadership,
    LeadershipLost,
    LostRace,
    Replaced,
    Reservation,
    Seal,
    Sealed,
    UpperMismatch,
    WriterId,
)
from mz_dagster.catalog.schema import BATCH, COLLECTION, OBJECT, TIMELINE, WRITER
from mz_dagster.catalog.timelines import advance_oracle, leads
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain, GlobalId, IntegerTimes

Refusal = UpperMismatch | BatchNotWriting | LeadershipLost | LostRace


class Refused(Exception):
    """Carries an expected outcome out of a transaction, which it rolls back."""

    def __init__(self, outcome: Refusal) -> None:
        self.outcome = outcome


def batch_of(row: Any, lattice: IntegerTimes) -> Batch:
    """Returns the batch in a row of the table `batch`."""
    return Batch(
        BatchId(row.id),
        GlobalId(row.collection),
        frontier_of(lattice, row.lower),
        frontier_of(lattice, row.upper),
        BatchState(row.state),
        BatchStats(row.rows, row.errors, row.files, row.bytes),
    )


def batch_order(batch: Batch) -> tuple[Any, ...]:
    """Returns the key that sorts batches by lower, those of one lower by age."""
    return batch.lower.elements, batch.id


def interval_of(batches: Sequence[Batch]) -> tuple[Antichain[int], Antichain[int]]:
    """Returns the least interval that holds those of all the batches; those that several writers append may overlap."""
    lowers, uppers = [one.lower for one in batches], [one.upper for one in batches]
    return reduce(Antichain.meet, lowers), reduce(Antichain.join, uppers)


class Batches(Transactions):
    """Is the part of the catalog through which updates become durable."""

    def register_writer(self, holder: str, ttl_ms: int) -> WriterId:
        """Returns a lease to write batches, good for `ttl_ms` milliseconds unless renewed."""
        with self._database.write() as connection:
            (id,) = next_ids(connection, "writer", 1)
            connection.execute(insert(WRITER).values(id=id, holder=holder, until_ms=self._now_ms() + ttl_ms))
            return WriterId(id)

    def renew_writer(self, writer: WriterId, ttl_ms: int) -> None:
        """Extends a writer's lease, even one that has run out: what was not declared dead can still be sealed.

        Raises:
            UnknownWriter: It is retired.
        """
        with self._database.write() as connection:
            found = connection.execute(
                update(WRITER).where(WRITER.c.id == writer).values(until_ms=self._now_ms() + ttl_ms)
            )
            if found.rowcount != 1:
                raise _unknown_writer(writer)

    def retire_writer(self, writer: WriterId) -> None:
        """Ends a writer's lease; what it reserved and did not seal may be swept at once."""
        with self._database.write() as connection:
            connection.execute(delete(WRITER).where(WRITER.c.id == writer))

    def reserve_batch(
        self, collection: GlobalId, writer: WriterId, lower: Antichain[int], upper: Antichain[int]
    ) -> BatchId:
        """Returns a batch id, never used before, under which to write the updates of `[lower, upper)`."""
        return self.reserve_batches([Reservation(collection, lower, upper)], writer)[0]

    def reserve_batches(self, reservations: Sequence[Reservation], writer: WriterId) -> tuple[BatchId, ...]:
        """Returns a batch id for each reservation, in one transaction.

        Raises:
            UnknownWriter: The writer is retired.
            UnknownObject: There is no such collection, or it was dropped.
        """
        for one in reservations:
            if not one.lower < one.upper:
                raise WrongSeal(f"nothing is between the lower {one.lower} and the upper {one.upper}")
        with self._database.write() as connection:
            if connection.execute(select(WRITER.c.id).where(WRITER.c.id == writer)).first() is None:
                raise _unknown_writer(writer)
            found = frontiers(connection, {one.collection for one in reservations})
            for one in reservations:
                if one.collection not in found:
                    raise UnknownObject(one.collection)
                if found[one.collection][0].is_empty:
                    raise UnknownObject(one.collection, dropped=True)
            ids = [BatchId(id) for id in next_ids(connection, "batch", len(reservations))]
            connection.execute(
                insert(BATCH),
                [
                    {
                        "id": id,
                        "collection": one.collection,
                        "lower": frontier_text(one.lower),
                        "upper": frontier_text(one.upper),
                        "state": BatchState.WRITING.value,
                        "writer": writer,
                        **_columns(NO_ROWS),
                    }
                    for id, one in zip(ids, reservations, strict=True)
                ],
            )
            return tuple(ids)

    def seal(
        self,
        seals: Sequence[Seal],
        *,
        leadership: Leadership | None = None,
        failures: Mapping[GlobalId, str | None] | None = None,
        apply: tuple[str, int] | None = None,
        dues: Mapping[GlobalId, int | None] | None = None,
    ) -> Sealed | UpperMismatch | BatchNotWriting | LeadershipLost:
        """Moves uppers and makes batches live: all of them in one transaction, or none.

        Args:
            seals: At most one for each collection. Those without updates cost no more than a row each.
            leadership: If given, the seal happens only under it.
            failures: Failures to record, or to clear, in the same transaction.
            apply: A timeline and a timestamp to apply to its oracle in the same transaction, as `apply_write` does.
            dues: When collections change next by themselves (`CollectionRow.next_due`); others keep what was recorded.

        Returns:
            `Sealed`, or the first thing that was not as expected, and then nothing has happened.

        Raises:
            WrongSeal: The seals could not be right in any state: an upper that does not advance, two seals of one
                collection, a batch of another collection or interval, a collection that is written by capabilities.
            UpperBeyondInput: An output's upper would pass an input's (constraint W).
            UnknownObject: There is no such collection.
        """
        _check(seals)
        try:
            with self._database.write() as connection:
                if leadership is not None and not leads(connection, leadership):
                    raise Refused(LeadershipLost(leadership.timeline, leadership.epoch))
                _advance_uppers(connection, seals)
                make_live(connection, seals)
                check_inputs(connection, {one.collection: one.upper for one in seals})
                set_failures(connection, failures or {})
                set_next_dues(connection, dues or {})
                if apply is not None:
                    advance_oracle(connection, *apply)
                fail_point("seal.in_transaction")
        except Refused as refused:
            return cast(UpperMismatch | BatchNotWriting | LeadershipLost, refused.outcome)
        fail_point("seal.sealed")
        return Sealed(tuple(one.collection for one in seals))

    def replace_batches(
        self, collection: GlobalId, parts: Sequence[BatchId], merged: BatchId, stats: BatchStats
    ) -> Replaced | LostRace | BatchNotWriting:
        """Puts a merged batch in the place of its parts, if they are still live neighbours and it is still `writing`.

        Args:
            collection: The collection.
            parts: Live batches with no other live batch between them.
            merged: Reserved for the parts' whole interval.
            stats: The merged batch's. With no rows it takes the place of its parts as a gap.
        """
        wanted = set(parts)
        try:
            with self._database.write() as connection:
                live = _live(connection, collection)
                positions = [position for position, batch in enumerate(live) if batch.id in wanted]
                if not parts or len(positions) != len(wanted) or positions[-1] - positions[0] + 1 != len(positions):
                    raise Refused(LostRace(tuple(parts)))
                row = _writing(connection, merged)
                lower, upper = interval_of([live[position] for position in positions])
                if (row.collection, row.lower, row.upper) != (collection, frontier_text(lower), frontier_text(upper)):
                    raise WrongSeal(f"batch {merged} was not reserved for the interval of its parts")
                _set_state(connection, parts, BatchState.LIVE, BatchState.REPLACED)
                _finish(connection, {merged: stats})
        except Refused as refused:
            return cast(LostRace | BatchNotWriting, refused.outcome)
        return Replaced(merged)

    def batches(self, collection: GlobalId, state: BatchState | None = None) -> tuple[Batch, ...]:
        """Returns the batches of a collection by lower, of one state if given. For reading, take a lease."""
        query = _batches_query().where(BATCH.c.collection == collection)
        if state is not None:
            query = query.where(BATCH.c.state == state.value)
        with self._database.read() as connection:
            found = [batch_of(row, row_lattice(row)) for row in connection.execute(query)]
        return tuple(sorted(found, key=batch_order))

    def live_batch_counts(self) -> Mapping[GlobalId, tuple[int, BatchStats]]:
        """Returns the number of live batches of each collection that has any, and the sum of their stats."""
        batch = BATCH.c
        query = (
            select(
                batch.collection,
                func.count().label("batches"),
                *(func.sum(batch[name]).label(name) for name in ("rows", "errors", "files", "bytes")),
            )
            .where(batch.state == BatchState.LIVE.value)
            .group_by(batch.collection)
        )
        with self._database.read() as connection:
            return {
                GlobalId(row.collection): (
                    int(row.batches),
                    BatchStats(int(row.rows), int(row.errors), int(row.files), int(row.bytes)),
                )
                for row in connection.execute(query)
            }


def _check(seals: Sequence[Seal]) -> None:
    if len({one.collection for one in seals}) != len(seals):
        raise WrongSeal("two seals of one collection in one call")
    for one in seals:
        if not one.lower < one.upper:
            raise WrongSeal(
                f'the upper of "{one.collection}" would not advance', detail=f"From {one.lower} to {one.upper}."
            )
        if (one.batch is None) != (one.stats is None):
            raise WrongSeal(f'the seal of "{one.collection}" needs a batch with its stats, or neither')


def _advance_uppers(connection: Connection, seals: Sequence[Seal]) -> None:
    ids = [one.collection for one in seals]
    found = frontiers(connection, ids)
    by_capability = select(OBJECT.c.id).where(OBJECT.c.id.in_(ids), OBJECT.c.kind == "collection").limit(1)
    if (id := connection.execute(by_capability).scalar_one_or_none()) is not None:
        raise WrongSeal(f'"{id}" is written through its write capabilities only', hint="Append with one of them.")
    for one in seals:
        if one.collection not in found:
            raise UnknownObject(one.collection)
        if found[one.collection][1] != one.lower:
            raise Refused(UpperMismatch(one.collection, one.lower, found[one.collection][1]))
    if seals:
        moved = connection.execute(
            update(COLLECTION).where(
                COLLECTION.c.id == bindparam("the_id"), COLLECTION.c.upper == bindparam("expected")
            ),
            [
                {
                    "the_id": one.collection,
                    "expected": frontier_text(one.lower),
                    "upper": frontier_text(one.upper),
                }
                for one in seals
            ],
        )
        assert moved.rowcount in (-1, len(seals)), "a collection changed under the write lock"


def make_live(connection: Connection, seals: Sequence[Seal]) -> None:
    """Makes the seals' batches live."""
    stats: dict[BatchId, BatchStats] = {}
    for one in seals:
        if one.batch is None or one.stats is None:
            continue
        row = _writing(connection, one.batch)
        if (row.collection, row.lower, row.upper) != (
            one.collection,
            frontier_text(one.lower),
            frontier_text(one.upper),
        ):
            raise WrongSeal(
                f'batch {one.batch} was not reserved for this seal of "{one.collection}"',
                detail=f'It is reserved for "{row.collection}" from {row.lower} to {row.upper}.',
            )
        stats[one.batch] = one.stats
    _finish(connection, stats)


def _writing(connection: Connection, batch: BatchId) -> Any:
    row = connection.execute(select(BATCH).where(BATCH.c.id == batch)).one_or_none()
    if row is None or row.state != BatchState.WRITING.value:
        raise Refused(BatchNotWriting(batch, None if row is None else BatchState(row.state)))
    return row


def _finish(connection: Connection, batches: Mapping[BatchId, BatchStats]) -> None:
    """Makes written batches live; those without rows never were in their shard, and are forgotten at once."""
    full = [{"the_id": id, **_columns(stats)} for id, stats in batches.items() if stats.rows]
    empty = [id for id, stats in batches.items() if not stats.rows]
    if full:
        found = connection.execute(
            update(BATCH)
            .where(BATCH.c.id == bindparam("the_id"), BATCH.c.state == BatchState.WRITING.value)
            .values(state=BatchState.LIVE.value),
            full,
        )
        assert found.rowcount in (-1, len(full)), "a batch changed under the write lock"
    if empty:
        connection.execute(delete(BATCH).where(BATCH.c.id.in_(empty)))


def _set_state(connection: Connection, batches: Sequence[BatchId], old: BatchState, new: BatchState) -> None:
    found = connection.execute(
        update(BATCH).where(BATCH.c.id.in_(batches), BATCH.c.state == old.value).values(state=new.value)
    )
    assert found.rowcount == len(set(batches)), "a batch changed under the write lock"


def _live(connection: Connection, collection: GlobalId) -> list[Batch]:
    query = _batches_query().where(BATCH.c.collection == collection, BATCH.c.state == BatchState.LIVE.value)
    return sorted((batch_of(row, row_lattice(row)) for row in connection.execute(query)), key=batch_order)


def _batches_query() -> Any:
    return (
        select(BATCH, TIMELINE.c.lattice)
        .join(COLLECTION, COLLECTION.c.id == BATCH.c.collection)
        .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline)
    )


def _columns(stats: BatchStats) -> dict[str, int]:
    return {"rows": stats.rows, "errors": stats.errors, "files": stats.files, "bytes": stats.bytes}


def _unknown_writer(writer: WriterId) -> UnknownWriter:
    return UnknownWriter(f"writer {writer} is retired", hint="Register again before reserving batches.")
