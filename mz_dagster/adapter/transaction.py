"""Transaction blocks: what several statements read is of one time, and what they write takes effect at one, or not.

A block reads at one time `r`, chosen by its first statement that reads, and writes at one later time `w`, when it
commits (items 114 to 123):

    reads     all at r, of any collections of r's timeline. All of them are held readable at r until the block ends
    writes    kept in this process as update frames; nothing of them is in the catalog or a shard before the commit
    its own   a block reads its own writes: each table that it wrote has more batches, at r, which are only in memory;
              what a view that is computed from such a table contains is computed from its query
    commit    one seal of a batch for each table at w, which expects that nothing of what was read, by any statement of
              the block, has changed in (r, w]: so the block is as if it had happened at w alone
    locks     nor has what it has locked, also if it writes nothing: then w is when it ends

So there are no anomalies but that a commit may fail, with 40001, because somebody else wrote what the block has read.
What only writes, without looking, never does. A block that has done nothing for longer than its session allows
lets go of what it holds, and fails (25P03); so does one whose process is gone, once its lease runs out.

A statement that fails makes the block fail: it refuses all but ROLLBACK (25P02), or goes on from a savepoint, which
remembers how much was written. Tables, views and indexes that a block creates, renames or drops are so for others when
it commits, and types and schemas that it creates (`block_definitions`), and tables that it alters, in whose place it
makes others; what else is defined (sources, values of types) is no part of a block: others would have it before the
commit.

A block is *implicit* if nobody said BEGIN: statements of one simple query, or of a pipeline up to its Sync, are one
transaction to PostgreSQL's clients. BEGIN makes it one that lasts. What cannot be part of it commits what is before it,
and is a transaction of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from mz_dagster.adapter.activity import TransactionState
from mz_dagster.adapter.alter_in_place import index_over
from mz_dagster.adapter.block_definitions import BlockDefinitions
from mz_dagster.adapter.bound_tables import check_as_bound
from mz_dagster.adapter.deferred_constraints import DeferredConstraints
from mz_dagster.adapter.dml import PendingWrite, open_table
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.stand_ins import StandIn
from mz_dagster.adapter.timestamps import AsOfTime, Isolation, NoValidTimestamp
from mz_dagster.adapter.write_attempts import write_attempts
from mz_dagster.catalog import (
    REFERENCES,
    Alteration,
    Batch,
    BatchId,
    BatchState,
    CollectionRow,
    ListedBatches,
    NewObject,
    ReadChanged,
    ReadSet,
    Seal,
    Sealed,
    Takeover,
    TimelineHold,
    UnknownObject,
)
from mz_dagster.errors import OperationalError, ProgrammingError
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.sequence import SequenceDefinition
from mz_dagster.sql import ISOLATION_LEVELS
from mz_dagster.sql.errors import QueryOfTwoTimelines
from mz_dagster.storage.append import BatchWriter
from mz_dagster.storage.consolidation import summed
from mz_dagster.storage.read import ReadBeforeSince
from mz_dagster.storage.renewal import Renewal

logger = logging.getLogger("mz_dagster.lease")


class SerializationFailure(OperationalError):
    """A block that could not commit, since others wrote what it has read; nothing was written."""

    sqlstate = "40001"


class ReadOnlyTransaction(ProgrammingError):
    """A write in a block that only reads."""

    sqlstate = "25006"


class NoActiveTransaction(ProgrammingError):
    """A statement that has its meaning in a transaction block only."""

    sqlstate = "25P01"


class TransactionAborted(ProgrammingError):
    """A statement in a block in which one has failed."""

    sqlstate = "25P02"


class TransactionTimedOut(ProgrammingError):
    """A block that had nothing to do for too long, and has ended; nothing was written."""

    sqlstate = "25P03"


class OtherTimeline(QueryOfTwoTimelines):
    """What is of another timeline than the block; nothing of it was done."""


class UnknownSavepoint(ProgrammingError):
    """The name of a savepoint that the block does not have."""

    sqlstate = "3B001"


@dataclass(slots=True)
class _Written:
    """What a block will write to a table: update frames, in order, and whether the table's sequences begin anew."""

    row: CollectionRow
    writes: list[PendingWrite] = field(default_factory=list)
    _restarts: list[tuple[int, dict[str, int | None]]] = field(default_factory=list)

    def append(self, write: PendingWrite) -> None:
        """Adds a write behind those that there are."""
        if write.of.restarts:
            self._restarts.append((len(self.writes), {}))
        self.writes.append(write)

    def undo_behind(self, count: int) -> None:
        """Forgets all writes but the first so many."""
        del self.writes[count:]
        self._restarts = [one for one in self._restarts if one[0] < count]

    @property
    def numbers(self) -> dict[str, int | None] | None:
        """The last numbers of sequences since a write that lets them begin anew, by columns; None without one."""
        return self._restarts[-1][1] if self._restarts else None

    def frame(self, time: int) -> pa.Table:
        """Returns all updates, at a time, summed: what one write takes away and another puts back is none."""
        frames = [one.at(time) for one in self.writes]
        return frames[0] if len(frames) == 1 else summed(pa.concat_tables(frames).combine_chunks())

    @property
    def takeover(self) -> Takeover | None:
        """Whose place the table takes, if it was made for one."""
        found = [one.of.takeover for one in self.writes if isinstance(one.of.takeover, Takeover)]
        return found[0] if found else None

    def stored(self, row: CollectionRow) -> CollectionRow:
        """Returns the table's row, by which its batch is written."""
        return row


@dataclass(frozen=True, slots=True)
class _Altered:
    """What a block will write to a table that it has altered, which another stands in for."""

    stands: StandIn
    own: _Written | None
    holds: _Written | None

    def frame(self, time: int) -> pa.Table:
        """Returns all updates, at a time, summed."""
        own, holds = (None if one is None or not one.writes else one.frame(time) for one in (self.own, self.holds))
        return self.stands.updates(own, holds, time)

    @property
    def numbers(self) -> None:
        """Its sequences go on behind those of what stands in for it."""

    @property
    def takeover(self) -> Alteration:
        """How the table is altered."""
        return self.stands.alteration

    def stored(self, row: CollectionRow) -> CollectionRow:
        """Returns the table's row, by which its batch is written."""
        return replace(row, columns=self.stands.stored)


@dataclass(frozen=True, slots=True)
class _OwnBatch:
    """So many writes to a table, behind those of the batches before, as a batch in memory; None if they are nothing."""

    count: int
    frame: pa.Table
    batch: Batch | None


@dataclass(frozen=True, slots=True)
class _Savepoint:
    name: str
    written: Mapping[GlobalId, int]
    defined: BlockDefinitions
    constraints: DeferredConstraints


class Transaction:
    """A transaction block of a session.

    Args:
        engine: The project.
        level: The isolation level by its name, one of `ISOLATION_LEVELS`.
        read_only: Whether it may not write.
        began_ms: When it began, which is what `now()` says in it, in milliseconds since 1970.
        idle_timeout_ms: After how long without a statement it ends, in milliseconds; None for never.
        is_implicit: Whether nobody has said BEGIN.
    """

    def __init__(
        self,
        engine: Engine,
        level: str,
        *,
        read_only: bool = False,
        began_ms: int,
        idle_timeout_ms: int | None,
        is_implicit: bool = False,
    ) -> None:
        self.engine = engine
        self.is_implicit = is_implicit
        self.level = level
        self.read_only = read_only
        self.began_ms = began_ms
        self.is_failed = False
        self.has_queried = False
        self._timeline: str | None = None
        self._time: int | None = None
        self._read: set[GlobalId] = set()
        self._locked: set[GlobalId] = set()
        self._written: dict[GlobalId, _Written] = {}
        self.defined = BlockDefinitions()
        self._savepoints: list[_Savepoint] = []
        self.constraints = DeferredConstraints()
        self._references: int | None = None
        self._idle_timeout_ms = idle_timeout_ms
        self._used_ms = engine.clock.monotonic_ms()
        self._held = ExitStack()
        self._in_memory: dict[GlobalId, list[_OwnBatch]] = {}
        self._last_batch = 0

    @property
    def isolation(self) -> Isolation:
        """What its time may miss."""
        return Isolation(ISOLATION_LEVELS[self.level])

    def state(self) -> TransactionState:
        """Returns how it is now."""
        return TransactionState(
            self.level,
            self.read_only,
            self.is_failed,
            self.began_ms,
            self._timeline,
            self._time,
            len(self.written),
        )

    # ---- its statements

    def begin_statement(self, *, queries: bool = True) -> None:
        """Returns if the block can execute a statement other than ROLLBACK.

        Args:
            queries: Whether it reads or writes.

        Raises:
            TransactionAborted: One has failed.
            TransactionTimedOut: It had nothing to do for too long.
        """
        if not self.is_failed and self._is_overdue():
            self.fail()
            timeout = (self._idle_timeout_ms or 0) / 1000
            raise TransactionTimedOut(
                "terminating transaction due to idle-in-transaction timeout",
                detail=f"It had nothing to do for more than {timeout:g} s, and held history readable.",
                hint="Nothing was written. ROLLBACK, and begin again; or give it longer: idle_timeout in "
                "[transactions] of mz.toml.",
            )
        if self.is_failed:
            raise TransactionAborted(
                "current transaction is aborted, commands ignored until end of transaction block",
                hint="ROLLBACK, or ROLLBACK TO a savepoint.",
            )
        self.has_queried = self.has_queried or queries

    def end_statement(self) -> None:
        """Notes that a statement has ended, from when on the block is idle."""
        self._used_ms = self.engine.clock.monotonic_ms()

    def fail(self) -> None:
        """Has the block refuse all that follows until it is rolled back, at least to a savepoint."""
        self.is_failed = True

    def _is_overdue(self) -> bool:
        idle_ms = self.engine.clock.monotonic_ms() - self._used_ms
        return self._idle_timeout_ms is not None and idle_ms > self._idle_timeout_ms

    # ---- reading

    @property
    def as_of(self) -> AsOfTime | None:
        """The time at which it reads; None before it has read."""
        return None if self._time is None else AsOfTime(self._time)

    def check_as_of(self, asked: AsOfTime) -> None:
        """Returns if the block reads at a time that a statement asks for, or can still choose it.

        Raises:
            NoValidTimestamp: It reads at another.
        """
        if self._time is None or asked.time == self._time or (asked.at_least and asked.time < self._time):
            return
        raise NoValidTimestamp(
            f"the transaction reads at {self._time}, and not at {asked.time}",
            detail="All statements of a transaction read at one time, which the first of them chose.",
            hint="Read it in a transaction of its own.",
        )

    def check_timeline(self, timeline: str) -> None:
        """Returns if the block reads and writes on a timeline, or has not chosen one.

        Raises:
            OtherTimeline: It has chosen another.
        """
        if self._timeline not in (None, timeline):
            raise OtherTimeline(
                f'the transaction is on timeline "{self._timeline}", and not on "{timeline}"',
                detail="All that it reads and writes is of one time, and times of different timelines never compare.",
                hint="Use a transaction for each timeline.",
            )

    def read_at(self, timeline: str, time: int, rows: Iterable[CollectionRow]) -> None:
        """Chooses the time at which it reads, and holds everything on the timeline readable there.

        Raises:
            ReadBeforeSince: Some of what is to be read is not readable at that time any more; nothing was chosen.
        """
        if self._time is not None:
            return
        engine, ttl_ms = self.engine, self.engine.project.lease_ms
        if not engine.catalog.is_read_only:
            hold = engine.catalog.hold_timeline(timeline, time, holder=f"transaction of {engine.holder}", ttl_ms=ttl_ms)
            held = ExitStack()
            held.callback(engine.catalog.drop_timeline_hold, hold)
            for row in rows:
                if row.timeline is not None and row.id not in hold.collections:
                    held.close()
                    now = engine.catalog.collection(row.id)
                    raise ReadBeforeSince(row.id, time, now.since, now.upper)
            held.enter_context(Renewal(lambda: self._renew(hold, ttl_ms), every_ms=ttl_ms // 3))
            self._held.push(held)
        self._timeline, self._time = timeline, time

    def _renew(self, hold: TimelineHold, ttl_ms: int) -> None:
        if self._is_overdue():
            self.engine.catalog.drop_timeline_hold(hold)
            raise TransactionTimedOut("a transaction had nothing to do for too long, and holds nothing any more")
        self.engine.catalog.renew_timeline_hold(hold, ttl_ms)

    def note_read(self, collections: Iterable[GlobalId]) -> None:
        """Notes what a statement has read, which the commit will expect unchanged."""
        self._read.update(collections)

    def lock(self, tables: Collection[GlobalId], *, shared: bool, anyway: bool) -> GlobalId | None:
        """Has the commit expect that nobody has written tables since they were read, whatever the block writes.

        Args:
            tables: The tables.
            shared: Whether other blocks may lock them in this way, too.
            anyway: Whether to lock them whatever others have locked.

        Returns:
            A table that another block of this server has locked, and then nothing was done; None if there is none.

        Raises:
            SerializationFailure: One was written since the block has read.
        """
        locks = self.engine.activity.row_locks
        if not self._locked:
            self._held.callback(locks.give_back, self)
        other = locks.take(self, tables, shared=shared, anyway=anyway)
        if other is not None:
            return other
        self._locked.update(tables)
        if self._time is not None and self._timeline is not None:
            locked = ReadSet(self._time, frozenset(tables))
            changed = self.engine.catalog.read_changed(locked, self.engine.catalog.read_ts(self._timeline))
            if changed is not None:
                raise self._changed(changed.collection)
        return None

    @property
    def written(self) -> frozenset[GlobalId]:
        """The tables to which it will write updates, those that it alters among them."""
        return frozenset([*self._writing, *(one.table.id for one in self.defined.stand_ins.values())])

    @property
    def _writing(self) -> dict[GlobalId, _Written]:
        """What it will write to tables as they are for it, without what was undone."""
        return {id: one for id, one in self._written.items() if one.writes}

    def with_own_writes(self, listed: Mapping[GlobalId, ListedBatches]) -> Mapping[GlobalId, ListedBatches]:
        """Returns lists of batches with those that the block has made of its own writes."""
        own: dict[GlobalId, tuple[Batch, ...]] = {}
        for id in self._writing.keys() & listed.keys():
            self._check_unaltered(self.engine.catalog.collection(id))
            own[id] = self._batches(id)
        return {id: replace(one, batches=(*one.batches, *own.get(id, ()))) for id, one in listed.items()}

    def _batches(self, id: GlobalId) -> tuple[Batch, ...]:
        """Returns batches in memory, at the time at which the block reads, of what it will write to a table.

        A write is merged with those before it that are as few, so that each is so O(log n) times of n that are read
        one by one.
        """
        assert self._time is not None, "it reads"
        written, made = self._written[id], self._in_memory.setdefault(id, [])
        fresh = written.writes[sum(one.count for one in made) :]
        if fresh:
            count, frames = len(fresh), [one.at(self._time) for one in fresh]
            while made and made[-1].count <= count:
                merged = made.pop()
                count += merged.count
                frames.insert(0, merged.frame)
            frame = frames[0] if len(frames) == 1 else summed(pa.concat_tables(frames).combine_chunks())
            made.append(_OwnBatch(count, frame, self._batch(written.row, frame, self._time)))
        return tuple(one.batch for one in made if one.batch is not None)

    def _batch(self, row: CollectionRow, frame: pa.Table, time: int) -> Batch | None:
        if not len(frame):
            return None
        self._last_batch -= 1  # an id that no batch of the catalog has
        lattice = row.upper.lattice
        interval = Antichain.of(lattice, time), Antichain.of(lattice, time + 1)
        stats = self.engine.shards.in_memory(row, frame, interval)
        return Batch(BatchId(self._last_batch), row.id, *interval, BatchState.LIVE, stats)

    # ---- writing

    def append(self, table: GlobalId, decide: Callable[[CollectionRow], PendingWrite | None]) -> int | None:
        """Keeps what a statement decides to append to a table until the commit; see `dml.Appender`.

        Raises:
            ReadOnlyTransaction: The block only reads.
            SerializationFailure: Somebody has written what it is based on.
        """
        row = open_table(self.engine, table)
        check_as_bound(row)
        self._check_unaltered(row)
        assert row.timeline is not None
        self.check_timeline(row.timeline)
        try:
            found = decide(row)
        except ReadBeforeSince as error:
            raise self._changed(table) from error
        self._timeline = row.timeline
        if found is None:
            return None
        written = self._written.setdefault(table, _Written(row))
        written.append(found)
        if self._references is None and found.of.reads is not None:
            self._references = found.of.reads.references
        return self._time

    def claim_numbers(
        self, table: GlobalId, column: str, definition: SequenceDefinition, count: int, name: str
    ) -> tuple[int, ...]:
        """Returns the next numbers of a column's sequence; see `Catalog.claim_numbers`.

        Those that the block has let begin anew go on from there for it, and for all others once it commits.
        """
        own = self._numbers(table)
        if own is None:
            return self.engine.catalog.claim_numbers(table, column, definition, count, name)
        found = definition.following(own.get(column), count, name)
        if found:
            own[column] = found[-1]
        return found

    def restart_numbers(self, table: GlobalId, column: str, last: int | None) -> None:
        """Lets a column's sequence go on behind a number, or begin anew; see `claim_numbers`."""
        own = self._numbers(table)
        if own is None:
            self.engine.catalog.restart_numbers(table, column, last)
        else:
            own[column] = last

    def continue_numbers(self, old: GlobalId, new: GlobalId, columns: Mapping[str, str]) -> Mapping[str, int | None]:
        """Lets columns of a table that the block has made go on where those of another stand for it.

        Returns:
            Where all of the other's stand for all others.
        """
        catalog, own = self.engine.catalog, self._numbers(old)
        numbers = catalog.continue_numbers(old, new, columns)
        if own is not None:
            generating = catalog.numbers(new)  # a column that was kept may generate nothing any more
            for column in numbers:
                if columns.get(column) in generating:
                    catalog.restart_numbers(new, columns[column], own.get(column))
        return numbers

    def _numbers(self, table: GlobalId) -> dict[str, int | None] | None:
        written = self._written.get(table)
        return None if written is None else written.numbers

    def _check_unaltered(self, row: CollectionRow) -> None:
        """Returns if a table still has the columns that it had when the block wrote it first.

        Raises:
            SerializationFailure: It was altered since.
        """
        written = self._written.get(row.id)
        if written is not None and written.row.version != row.version:
            raise self._changed(row.id)

    def _changed(self, collection: GlobalId) -> SerializationFailure:
        name = self.engine.names().get(collection, collection)
        return SerializationFailure(
            "could not serialize access due to concurrent update",
            detail=f'"{name}" was written since the transaction read it.',
            hint="Nothing was written. Execute the transaction again.",
        )

    def commit(self) -> None:
        """Seals all writes at one time, and ends the block.

        Raises:
            SerializationFailure: Something that it has read was written since; nothing was written.
            WriteContended: Others were faster, until the deadline; nothing was written.
        """
        touched = {one.table.id for one in self.defined.stand_ins.values()}
        touched = touched or {*self._written, *self.defined.dropped, *self.defined.named.values()}
        try:
            altered = dict(map(self._altered, [*self.defined.stand_ins]))
            kept = {id: one for id, one in self._writing.items() if not self.defined.is_gone(id)}
            tables = {**kept, **altered}
            gone = self.defined.drop_gone(self.engine.catalog)
            self._read -= gone
            self._locked -= gone
            locks = self._time is not None and bool(self._locked)
            if tables or locks:
                self._seal(tables)
            elif self.defined:
                self.engine.catalog.seal([], **self._definitions({}))
            self.defined.commit()
        except UnknownObject as error:
            raise self._changed(min(touched)) from error
        finally:
            self.end()

    def _altered(self, new: GlobalId) -> tuple[GlobalId, _Written | _Altered]:
        """Returns a table that the block has altered, and what it will write to it; see `stand_ins`."""
        catalog, stands = self.engine.catalog, self.defined.stand_ins[new]
        row, numbers, holds = catalog.object(new), catalog.numbers(new), self._written.get(new)
        anew, vain = None if holds is None else holds.numbers, self.defined.was_made_in_vain
        alteration = replace(
            stands.alteration,
            readers=frozenset(one for one in stands.alteration.readers if not vain(one)),
            dropped=frozenset(one for one in stands.alteration.dropped if not vain(one)),
            comments=row.comments,
            references=row.options.get(REFERENCES, ()),
            claimed=numbers if anew is None else {**dict.fromkeys(numbers), **anew},
            numbers=stands.numbers,
        )
        alteration = replace(alteration, indexes=self._indexes(new, alteration))
        self.defined.alter(new)
        id = stands.table.id
        return id, _Altered(replace(stands, alteration=alteration), self._written.get(id), holds)

    def _indexes(self, stand_in: GlobalId, alteration: Alteration) -> tuple[NewObject, ...]:
        """Returns what creates, over an altered table, the indexes that the block has made over its stand-in."""
        catalog, defined, table = self.engine.catalog, self.defined, alteration.looked.id
        rows = catalog.objects("index")
        has_order = any(
            table in one.dependencies.values() and not one.has_collection and not defined.is_gone(one.id)
            for one in rows
            if one.id not in alteration.dropped
        )
        found = []
        for key, id in [*defined.named.items()]:
            index = catalog.object(id)
            if index.kind == "index" and stand_in in index.dependencies.values():
                found.append(index_over(self.engine, index, key, stand_in, alteration, is_copy=has_order))
                defined.drop(id)
                has_order = True
        return tuple(found)

    def takeover_of(self, id: GlobalId) -> Takeover | None:
        """Returns whose place a table that the block has made takes, if it was made for one."""
        written = self._written.get(id)
        return None if written is None else written.takeover

    def _definitions(self, takeovers: Mapping[GlobalId, Takeover | Alteration]) -> dict[str, Any]:
        """Returns what a seal takes of what the block has created, renamed, dropped and replaced."""
        defined = self.defined
        names = {id: key for key, id in defined.named.items()}
        places = [one for one in takeovers.values() if isinstance(one, Takeover)]
        replaced = {one.old for one in places}
        replaced.update(id for one in places if one.looked is not None for id in one.looked.readers)
        replaced.update(id for one in takeovers.values() if isinstance(one, Alteration) for id in one.dropped)
        drops = defined.dropped - replaced
        return {"names": names, "renames": dict(defined.renamed), "drops": drops, "takeovers": takeovers}

    def _seal(self, tables: Mapping[GlobalId, _Written | _Altered]) -> None:
        engine, timeline = self.engine, self._timeline
        assert timeline is not None
        catalog, ttl_ms = engine.catalog, engine.project.lease_ms
        reads = None
        if self._time is not None and self._read | self._locked:
            expected = self._read | self._locked if tables or self.defined else self._locked
            reads = ReadSet(self._time, frozenset(expected), self._references)
        restarts = {id: one.numbers for id, one in tables.items() if one.numbers is not None}
        takeovers = {id: one.takeover for id, one in tables.items() if one.takeover is not None}
        for _ in write_attempts(engine.project, engine.clock):
            rows = {id: open_table(engine, id) for id in tables}
            for row in rows.values():
                self._check_unaltered(row)
            time = catalog.write_ts(timeline, engine.now(timeline))
            if all(row.upper.less_equal(time) for row in rows.values()):
                with BatchWriter(catalog, holder=engine.holder, ttl_ms=ttl_ms) as writer:
                    seals = []
                    for id, row in rows.items():
                        upper = Antichain.of(row.upper.lattice, time + 1)
                        stored = tables[id].stored(row)
                        written = writer.write(engine.shards, stored, row.upper, upper, tables[id].frame(time))
                        seals.append(Seal(id, row.upper, upper, *written))
                    outcome = catalog.seal(
                        seals,
                        apply=(timeline, time),
                        reads=reads,
                        restarts=restarts,
                        **self._definitions(takeovers),
                    )
                if isinstance(outcome, Sealed):
                    for id in tables:
                        engine.wrote(id)
                    return
                if isinstance(outcome, ReadChanged):
                    raise self._changed(outcome.collection)
            changed = None if reads is None else catalog.read_changed(reads, time)
            if changed is not None:
                raise self._changed(changed.collection)

    # ---- savepoints and the end

    def save(self, name: str) -> None:
        """Sets a savepoint; one of the same name that is there already is hidden by it."""
        written = {id: len(one.writes) for id, one in self._written.items()}
        self._savepoints.append(_Savepoint(name, written, self.defined.saved(), self.constraints.saved()))

    def release(self, name: str) -> None:
        """Forgets a savepoint and those after it; raises `UnknownSavepoint` if there is none."""
        del self._savepoints[self._place(name) :]

    def roll_back_to(self, name: str) -> None:
        """Undoes all since a savepoint, which stays; raises `UnknownSavepoint` if there is none."""
        place = self._place(name)
        saved = self._savepoints[place]
        del self._savepoints[place + 1 :]
        for id, one in self._written.items():
            one.undo_behind(saved.written.get(id, 0))
            self._in_memory.pop(id, None)
        self.defined.restore(saved.defined)
        self.constraints = saved.constraints.saved()
        self.is_failed = False

    def _place(self, name: str) -> int:
        for place in reversed(range(len(self._savepoints))):
            if self._savepoints[place].name == name:
                return place
        raise UnknownSavepoint(f'savepoint "{name}" does not exist')

    def end(self) -> None:
        """Lets go of all that the block holds; what it has not committed is forgotten."""
        self._written.clear()
        self._in_memory.clear()
        self.defined.end(self.engine.catalog)
        try:
            self._held.close()
        except OperationalError as failure:
            logger.warning("could not let go of what a transaction held, until its lease runs out: %s", failure)
