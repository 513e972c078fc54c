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

A batch whose seal brings its updates along (`Payloads`) skips the first two parts: it is stored and becomes live in one
transaction, and before that there is nothing of it.

Nothing here depends on a clock: a writer's lease only tells the sweep when to try.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from mz_dagster.catalog.codec import file_list_of, file_list_text, frontier_of, frontier_text
from mz_dagster.catalog.contents import Contents, change_contents, check_list, contents_of
from mz_dagster.catalog.database import next_ids, recalled
from mz_dagster.catalog.errors import UnknownLease, UnknownObject, UnknownWriter, WrongSeal
from mz_dagster.catalog.frontiers import (
    check_inputs,
    frontiers,
    row_lattice,
    set_failures,
    set_next_dues,
    summed_frontiers,
)
from mz_dagster.catalog.lease_liveness import end_lease, is_intact
from mz_dagster.catalog.naming import give_name
from mz_dagster.catalog.objects import alter_in_place, create_rows, drop_named, lose_names, take_over, undropped
from mz_dagster.catalog.payloads import Payloads, insert_payloads
from mz_dagster.catalog.reads import closings, first_changed, rows_of, with_inputs
from mz_dagster.catalog.references import note_references, number_of_references
from mz_dagster.catalog.rows import (
    NO_ROWS,
    Alteration,
    Batch,
    BatchId,
    BatchNotWriting,
    BatchState,
    BatchStats,
    CollectionUpperMismatch,
    Leadership,
    LeadershipLost,
    LedByAnother,
    LostRace,
    ReadChanged,
    ReadSet,
    Replaced,
    Reservation,
    Seal,
    Sealed,
    WriterId,
)
from mz_dagster.catalog.schema import BATCH, COLLECTION, LEASED_BATCH, TIMELINE, WRITER
from mz_dagster.catalog.sequences import restart_sequences
from mz_dagster.catalog.takeover import Takeover, check_as_looked
from mz_dagster.catalog.timelines import advance_oracle, give_lead_back, leads, take_lead
from mz_dagster.errors import DamageError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain, GlobalId, IntegerTimes
from mz_dagster.liveness import this_process

_FACTS = ("rows", "errors", "files", "bytes", "file_list")
"""The columns of the table `batch` that say what a batch holds."""

#: Built once: building a statement takes longer than running it.
_WRITER = select(WRITER.c.id).where(WRITER.c.id == bindparam("writer"))
_INSERT = insert(BATCH)
_LIST = insert(LEASED_BATCH)
_BATCH = select(BATCH).where(BATCH.c.id == bindparam("wanted"))
_ADVANCE = update(COLLECTION).where(COLLECTION.c.id == bindparam("the_id"), COLLECTION.c.upper == bindparam("expected"))
_FINISH = (
    update(BATCH)
    .where(BATCH.c.id == bindparam("the_id"), BATCH.c.state == BatchState.WRITING.value)
    .values(
        state=BatchState.LIVE.value,
        **{name: bindparam(f"new_{name}") for name in _FACTS},
    )
)
_FORGET = delete(BATCH).where(BATCH.c.id.in_(bindparam("wanted", expanding=True)))
_SET_STATE = (
    update(BATCH)
    .where(BATCH.c.id.in_(bindparam("wanted", expanding=True)), BATCH.c.state == bindparam("old"))
    .values(state=bindparam("new"))
)
_BATCHES = (
    select(BATCH, TIMELINE.c.lattice)
    .join(COLLECTION, COLLECTION.c.id == BATCH.c.collection)
    .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline)
    .where(BATCH.c.collection == bindparam("of"))
)
_BATCHES_OF_STATE = _BATCHES.where(BATCH.c.state == bindparam("state"))
_COUNTS = (
    select(
        BATCH.c.collection,
        func.count().label("batches"),
        *(func.sum(BATCH.c[name]).label(name) for name in ("rows", "errors", "files", "bytes")),
    )
    .where(BATCH.c.state == BatchState.LIVE.value)
    .group_by(BATCH.c.collection)
)

_NO_WRITER = 0
"""The writer of a batch that no writer had to write."""

Refusal = CollectionUpperMismatch | BatchNotWriting | LeadershipLost | LostRace | ReadChanged


class RollbackWith(Exception):
    """Carries an expected outcome out of a transaction, which it rolls back."""

    def __init__(self, outcome: Refusal) -> None:
        self.outcome = outcome


def stats_of(row: Any) -> BatchStats:
    """Returns what a batch holds, of a row of the table `batch`.

    Raises:
        DamageError: The row says what no version writes.
    """
    try:
        files = None if row.file_list is None else file_list_of(row.file_list)
    except (ValueError, TypeError) as error:
        raise DamageError(
            f'the catalog\'s list of the files of batch {row.id} of "{row.collection}" is damaged',
            detail=f"It cannot be read: {error}.",
        ) from error
    return BatchStats(row.rows, row.errors, row.files, row.bytes, files)


def batch_of(row: Any, lattice: IntegerTimes) -> Batch:
    """Returns the batch in a row of the table `batch`."""
    return Batch(
        BatchId(row.id),
        GlobalId(row.collection),
        frontier_of(lattice, row.lower),
        frontier_of(lattice, row.upper),
        BatchState(row.state),
        stats_of(row),
    )


def batch_order(batch: Batch) -> tuple[Any, ...]:
    """Returns the key that sorts batches by lower, those of one lower by age."""
    return batch.lower.elements, batch.id


def interval_of(batches: Sequence[Batch]) -> tuple[Antichain[int], Antichain[int]]:
    """Returns the least interval that holds those of all the batches; those that several writers append may overlap."""
    lowers, uppers = [one.lower for one in batches], [one.upper for one in batches]
    return reduce(Antichain.meet, lowers), reduce(Antichain.join, uppers)


class Batches(Payloads):
    """The part of the catalog through which updates become durable."""

    def register_writer(self, holder: str, ttl_ms: int) -> WriterId:
        """Returns a lease to write batches, good for `ttl_ms` milliseconds unless renewed."""
        with self._database.write(until_power_cut=True) as connection:
            (id,) = next_ids(connection, "writer", 1)
            until = self._now_ms() + ttl_ms
            row = {"id": id, "holder": holder, "until_ms": until, "process": this_process()}
            connection.execute(insert(WRITER), row)
            return WriterId(id)

    def renew_writer(self, writer: WriterId, ttl_ms: int) -> None:
        """Extends a writer's lease, even one that has run out: what was not declared dead can still be sealed.

        Raises:
            UnknownWriter: It is retired.
        """
        with self._database.write(until_power_cut=True) as connection:
            found = connection.execute(
                update(WRITER).where(WRITER.c.id == writer).values(until_ms=self._now_ms() + ttl_ms)
            )
            if found.rowcount != 1:
                raise _unknown_writer(writer)

    def retire_writer(self, writer: WriterId) -> None:
        """Ends a writer's lease; what it reserved and did not seal may be swept at once."""
        with self._database.write(until_power_cut=True) as connection:
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
            if connection.execute(_WRITER, {"writer": writer}).first() is None:
                raise _unknown_writer(writer)
            found = frontiers(connection, {one.collection for one in reservations})
            for one in reservations:
                if one.collection not in found:
                    raise UnknownObject(one.collection)
                if found[one.collection][0].is_empty:
                    raise UnknownObject(one.collection, dropped=True)
            ids = [BatchId(id) for id in next_ids(connection, "batch", len(reservations))]
            connection.execute(
                _INSERT,
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
        reads: ReadSet | None = None,
        lease: int | None = None,
        releases: bool = False,
        resigns: bool = False,
        names: Mapping[GlobalId, str] = MappingProxyType({}),
        renames: Mapping[GlobalId, str] = MappingProxyType({}),
        drops: Collection[GlobalId] = (),
        restarts: Mapping[GlobalId, Mapping[str, int | None]] = MappingProxyType({}),
        takeovers: Mapping[GlobalId, Takeover | Alteration] = MappingProxyType({}),
    ) -> Sealed | CollectionUpperMismatch | BatchNotWriting | LeadershipLost | ReadChanged:
        """Moves uppers and makes batches live: all of them in one transaction, or none.

        Args:
            seals: At most one for each collection. Those without updates cost no more than a row each.
            leadership: If given, the seal happens only under it.
            failures: Failures to record, or to clear, in the same transaction.
            apply: A timeline and a timestamp to apply to its oracle in the same transaction, as `apply_write` does.
            dues: When collections change next by themselves (`CollectionRow.next_due`); others keep what was recorded.
            reads: What the updates were made of, if it must be the same at the timestamp of `apply`. Tables that
                were read are closed there, too, and so are those that views that were read are computed from.
            lease: A lease to read, which must be intact. From here on it lists the batches, too, for who goes on to
                read them.
            releases: Whether the lease ends with the seal.
            resigns: Whether the leadership is given back with it.
            takeovers: Tables that take others' places, at the timestamp of `apply`, before which they have no history;
                or that are altered in place.
            restarts: Tables whose sequences begin anew in the same transaction, with the last numbers that they have
                handed out since, by columns.
            drops: Objects that are dropped in the same transaction, before names are given.
            names: Names that objects get in the same transaction, which makes them visible as what they are sealed to.
            renames: The names that those of these objects have which have one; they lose it before any gets another.

        Returns:
            `Sealed`, or the first thing that was not as expected, and then nothing has happened.

        Raises:
            WrongSeal: The seals could not be right in any state: an upper that does not advance, two seals of one
                collection, a batch of another collection or interval, a collection that is written by capabilities.
            UpperBeyondInput: An output's upper would pass an input's (constraint W).
            UnknownLease: The lease was released, or it ran out and a batch that it lists was swept.
            UnknownObject: There is no such collection; or what is renamed was dropped, or has another name.
            NameTaken: A name denotes something already.
            StillNeeded: Something depends on a table whose place is taken, or on what is dropped.
            TableAltered: A table was altered since its alteration was made up, or what reads it has changed.
        """
        _check(seals)
        try:
            with self._database.write() as connection:
                if leadership is not None and not leads(connection, leadership):
                    raise RollbackWith(LeadershipLost(leadership.timeline, leadership.epoch))
                if lease is not None and not (end_lease if releases else is_intact)(connection, lease):
                    raise UnknownLease(lease)
                advanced = [*seals, *_expecting(connection, seals, reads, apply)]
                _advance_uppers(connection, advanced)
                make_live(connection, seals)
                live = [one.batch for one in seals if one.stats and one.stats.rows]
                if lease is not None and not releases and live:
                    connection.execute(_LIST, [{"lease": lease, "batch": id} for id in live])
                check_inputs(connection, {one.collection: one.upper for one in advanced})
                set_failures(connection, failures or {})
                set_next_dues(connection, dues or {})
                if apply is not None:
                    advance_oracle(connection, *apply)
                for id, takeover in takeovers.items():  # before any, as one may change another's foreign keys
                    if isinstance(takeover, Alteration):
                        check_as_looked(connection, undropped(connection, id), takeover)
                for id, takeover in takeovers.items():
                    assert apply is not None, "it has a time"
                    if isinstance(takeover, Takeover):
                        take_over(connection, id, takeover, apply[1], self._now_ms())
                    else:
                        alter_in_place(connection, id, takeover, self._now_ms())
                if drops:
                    drop_named(connection, drops, self._now_ms())
                if renames:
                    lose_names(connection, renames)
                for id, name in names.items():
                    give_name(connection, name, id)
                    note_references(connection, id)
                for takeover in takeovers.values():  # behind what gives up the names
                    if isinstance(takeover, Alteration) and apply is not None:
                        create_rows(connection, [one.begun_at(apply[1]) for one in takeover.indexes])
                for id, numbers in restarts.items():
                    restart_sequences(connection, id, numbers)
                if resigns and leadership is not None:
                    give_lead_back(connection, leadership)
                fail_point("seal.in_transaction")
        except RollbackWith as refused:
            return cast(CollectionUpperMismatch | BatchNotWriting | LeadershipLost | ReadChanged, refused.outcome)
        fail_point("seal.sealed")
        return Sealed(tuple(one.collection for one in seals))

    def read_changed(self, reads: ReadSet, time: int) -> ReadChanged | None:
        """Returns why a seal at a time that expects what was read would be refused now, or None."""
        with self._database.read() as connection:
            changed = first_changed(connection, with_inputs(connection, reads.collections), reads, time)
        return None if changed is None else ReadChanged(changed)

    @recalled
    def number_of_references(self) -> int:
        """Returns how often a table came to refer to rows of another, as far as others see (`ReadSet.references`)."""
        with self._database.read() as connection:
            return number_of_references(connection)

    def close_tables(self, timeline: str, time: int, collections: Collection[GlobalId]) -> frozenset[GlobalId]:
        """Makes tables readable at a time, which is applied to the oracle, and returns those that were not.

        From then on nobody can write them at or before the time; whoever was about to takes a later one. Tables are
        those among the collections, and among what they are computed from.
        """
        with self._database.write() as connection:
            closed = _closed(connection, timeline, time, collections)
        if closed:
            fail_point("seal.sealed")
        return closed

    def close_tables_and_lead(
        self, timeline: str, time: int, collections: Collection[GlobalId], holder: str, ttl_ms: int
    ) -> Leadership | LedByAnother | None:
        """Does what `close_tables` does, and then `lead`, in one transaction; None if there were tables alone."""
        with self._database.write() as connection:
            closed = _closed(connection, timeline, time, collections)
            lead = None
            if not closed.issuperset(collections):
                lead = take_lead(connection, timeline, holder, ttl_ms, self._now_ms())
        if closed:
            fail_point("seal.sealed")
        return lead

    def replace_batches(
        self,
        collection: GlobalId,
        parts: Sequence[BatchId],
        merged: BatchId,
        stats: BatchStats,
    ) -> Replaced | LostRace | BatchNotWriting:
        """Puts a merged batch in the place of its parts, if they are still live neighbours and it is still `writing`.

        Args:
            collection: The collection.
            parts: Live batches with no other live batch between them.
            merged: Reserved for the parts' whole interval, or fresh if the stats bring its updates along.
            stats: The merged batch's. With no rows it takes the place of its parts as a gap.
        """
        wanted = set(parts)
        try:
            with self._database.write() as connection:
                live = _live(connection, collection)
                positions = [position for position, (batch, _) in enumerate(live) if batch.id in wanted]
                if not parts or len(positions) != len(wanted) or positions[-1] - positions[0] + 1 != len(positions):
                    raise RollbackWith(LostRace(tuple(parts)))
                lower, upper = map(frontier_text, interval_of([live[position][0] for position in positions]))
                row: Any = _Written.of(merged, collection, lower, upper)
                if stats.payload is None:
                    row = _writing(connection, merged)
                if (row.collection, row.lower, row.upper) != (collection, lower, upper):
                    raise WrongSeal(f"batch {merged} was not reserved for the interval of its parts")
                _set_state(connection, parts, BatchState.LIVE, BatchState.REPLACED)
                gone = contents_of(live[position][1] for position in positions)
                change_contents(connection, _finish(connection, [(row, stats)]), {collection: gone})
        except RollbackWith as refused:
            return cast(LostRace | BatchNotWriting, refused.outcome)
        return Replaced(merged)

    def replace_all(
        self, collection: GlobalId, batch: BatchId, stats: BatchStats, leadership: Leadership
    ) -> Replaced | LeadershipLost | BatchNotWriting:
        """Makes a written batch all that a collection consists of, whatever is or should be on its list.

        The way back of a list or a batch that is damaged, for who can compute all of it again.

        Args:
            collection: The collection.
            batch: Reserved for all times before the collection's upper, or fresh if the stats bring its updates along.
            stats: The batch's. With no rows the collection is empty.
            leadership: Of the collection's timeline; so nobody else adds to it.

        Raises:
            WrongSeal: The batch is not of these times, or of another collection.
        """
        column = COLLECTION.c
        try:
            with self._database.write() as connection:
                if not leads(connection, leadership):
                    raise RollbackWith(LeadershipLost(leadership.timeline, leadership.epoch))
                upper = connection.execute(select(column.upper).where(column.id == collection)).scalar_one()
                row: Any = _Written.of(batch, collection, "[0]", upper)
                if stats.payload is None:
                    row = _writing(connection, batch)
                if (row.collection, row.lower, row.upper) != (collection, "[0]", upper):
                    raise WrongSeal(f"batch {batch} was not reserved for all times of {collection}")
                live = (BATCH.c.collection == collection, BATCH.c.state == BatchState.LIVE.value)
                connection.execute(update(BATCH).where(*live).values(state=BatchState.REPLACED.value))
                connection.execute(
                    update(COLLECTION).where(column.id == collection).values(live_batches=0, live_rows=0, live_digest=0)
                )
                change_contents(connection, _finish(connection, [(row, stats)]))
        except RollbackWith as refused:
            return cast(LeadershipLost | BatchNotWriting, refused.outcome)
        return Replaced(batch)

    def batches(self, collection: GlobalId, state: BatchState | None = None) -> tuple[Batch, ...]:
        """Returns the batches of a collection by lower, of one state if given. For reading, take a lease."""
        query, of_state = (_BATCHES, {}) if state is None else (_BATCHES_OF_STATE, {"state": state.value})
        with self._database.read() as connection:
            found = [
                batch_of(row, row_lattice(row)) for row in connection.execute(query, {"of": collection} | of_state)
            ]
        return tuple(sorted(found, key=batch_order))

    @recalled
    def live_batch_counts(self) -> Mapping[GlobalId, tuple[int, BatchStats]]:
        """Returns the number of live batches of each collection that has any, and the sum of their stats."""
        with self._database.read() as connection:
            return {
                GlobalId(row.collection): (
                    int(row.batches),
                    BatchStats(int(row.rows), int(row.errors), int(row.files), int(row.bytes)),
                )
                for row in connection.execute(_COUNTS)
            }


def _expecting(
    connection: Connection, seals: Sequence[Seal], reads: ReadSet | None, apply: tuple[str, int] | None
) -> list[Seal]:
    """Returns what closes the tables that were read, unless something that was read has changed."""
    if reads is None:
        return []
    assert apply is not None, "a write that has read takes effect at one time"
    _, time = apply
    rows = with_inputs(connection, reads.collections)
    changed = first_changed(connection, rows, reads, time)
    if changed is not None:
        raise RollbackWith(ReadChanged(changed))
    written = {one.collection for one in seals}
    return [one for one in closings(rows, time) if one.collection not in written]


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


def _closed(connection: Connection, timeline: str, time: int, collections: Collection[GlobalId]) -> frozenset[GlobalId]:
    """Does in a transaction what `Batches.close_tables` does."""
    advance_oracle(connection, timeline, time)
    closed = closings(with_inputs(connection, collections), time)
    _advance_uppers(connection, closed)
    if closed:
        fail_point("seal.in_transaction")
    return frozenset(one.collection for one in closed)


def _advance_uppers(connection: Connection, seals: Sequence[Seal]) -> None:
    if not seals:
        return
    rows = rows_of(connection, [one.collection for one in seals])
    for row in rows.values():
        if row.kind == "collection":
            raise WrongSeal(
                f'"{row.id}" is written through its write capabilities only', hint="Append with one of them."
            )
    for one in seals:
        upper = _writable_upper(connection, one.collection, rows.get(one.collection))
        if upper != one.lower:
            raise RollbackWith(CollectionUpperMismatch(one.collection, one.lower, upper))
    moved = connection.execute(
        _ADVANCE,
        [
            {"the_id": one.collection, "expected": frontier_text(one.lower), "upper": frontier_text(one.upper)}
            for one in seals
        ],
    )
    assert moved.rowcount in (-1, len(seals)), "a collection changed under the write lock"


def _writable_upper(connection: Connection, id: GlobalId, row: Any) -> Antichain[int]:
    """Returns the upper of a collection with a row of `rows_of`; `{}` of one that was dropped, maybe without a row."""
    if row is not None:  # others may read on what was dropped; nobody writes it any more
        return Antichain.empty(row_lattice(row)) if row.dropped else frontier_of(row_lattice(row), row.upper)
    found = frontiers(connection, [id])
    if not found:
        raise UnknownObject(id)
    return found[id][1]


def make_live(connection: Connection, seals: Sequence[Seal]) -> None:
    """Makes the seals' batches live."""
    batches: list[tuple[Any, BatchStats]] = []
    for one in seals:
        if one.batch is None or one.stats is None:
            continue
        wanted = one.collection, frontier_text(one.lower), frontier_text(one.upper)
        row: Any = _Written.of(one.batch, *wanted)
        if one.stats.payload is None:
            row = _writing(connection, one.batch)
        if (row.collection, row.lower, row.upper) != wanted:
            raise WrongSeal(
                f'batch {one.batch} was not reserved for this seal of "{one.collection}"',
                detail=f'It is reserved for "{row.collection}" from {row.lower} to {row.upper}.',
            )
        batches.append((row, one.stats))
    change_contents(connection, _finish(connection, batches))


def _writing(connection: Connection, batch: BatchId) -> Any:
    row = connection.execute(_BATCH, {"wanted": batch}).one_or_none()
    if row is None or row.state != BatchState.WRITING.value:
        raise RollbackWith(BatchNotWriting(batch, None if row is None else BatchState(row.state)))
    return row


class _Written(NamedTuple):
    """A row of the table `batch` as it will be, as far as it has a digest."""

    id: BatchId
    collection: GlobalId
    lower: str
    upper: str
    rows: int
    errors: int
    files: int
    bytes: int
    file_list: str | None

    @classmethod
    def of(cls, id: BatchId, collection: GlobalId, lower: str, upper: str, stats: BatchStats = NO_ROWS) -> _Written:
        """Returns the row of a batch."""
        return cls(id, collection, lower, upper, **_columns(stats))


def _finish(connection: Connection, batches: Sequence[tuple[Any, BatchStats]]) -> dict[GlobalId, Contents]:
    """Makes batches live, given their rows as they were reserved, or would have been; returns what that adds.

    Those without rows never were in their shard, and are forgotten at once. Under the ids of those that bring their
    updates along nothing was reserved.
    """
    full = [_Written.of(row.id, row.collection, row.lower, row.upper, stats) for row, stats in batches if stats.rows]
    payloads = {row.id: stats.payload for row, stats in batches if stats.rows and stats.payload is not None}
    empty = [row.id for row, stats in batches if not stats.rows and stats.payload is None]
    if reserved := [{"the_id": row.id, **_facts(row)} for row in full if row.id not in payloads]:
        found = connection.execute(_FINISH, reserved)
        assert found.rowcount in (-1, len(reserved)), "a batch changed under the write lock"
    if payloads:
        state = {"state": BatchState.LIVE.value, "writer": _NO_WRITER}
        connection.execute(_INSERT, [row._asdict() | state for row in full if row.id in payloads])
        insert_payloads(connection, payloads)
    if empty:
        connection.execute(_FORGET, {"wanted": empty})
    return {id: contents_of(rows) for id, rows in groupby(sorted(full, key=_its_collection), _its_collection)}


def _facts(row: _Written) -> dict[str, Any]:
    """Returns what a row says of what a batch holds."""
    return {f"new_{name}": getattr(row, name) for name in _FACTS}


def _its_collection(row: _Written) -> GlobalId:
    return row.collection


def _set_state(connection: Connection, batches: Sequence[BatchId], old: BatchState, new: BatchState) -> None:
    found = connection.execute(_SET_STATE, {"wanted": list(batches), "old": old.value, "new": new.value})
    assert found.rowcount == len(set(batches)), "a batch changed under the write lock"


def _live(connection: Connection, collection: GlobalId) -> list[tuple[Batch, Any]]:
    """Returns the live batches of a collection, by lower, with their rows."""
    rows = connection.execute(_BATCHES_OF_STATE, {"of": collection, "state": BatchState.LIVE.value}).all()
    check_list(collection, summed_frontiers(connection, [collection])[collection][2], rows)
    return sorted(((batch_of(row, row_lattice(row)), row) for row in rows), key=lambda one: batch_order(one[0]))


def _columns(stats: BatchStats) -> dict[str, Any]:
    return {
        "rows": stats.rows,
        "errors": stats.errors,
        "files": stats.files,
        "bytes": stats.bytes,
        "file_list": None if stats.file_list is None else file_list_text(stats.file_list),
    }


def _unknown_writer(writer: WriterId) -> UnknownWriter:
    return UnknownWriter(f"writer {writer} is retired", hint="Register again before reserving batches.")
