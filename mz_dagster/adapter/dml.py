"""Appends to tables.

A write is `compare_and_append` at a timestamp of the oracle, strictly greater than any that a read was given.
INSERT of given rows asks nothing of the table: it loses a race only to take a later timestamp, and is sealed together
with others where several come at once (`group_commit`). What reads before it writes reads all at one time, and its seal
expects that none of it has changed by the time at which it takes effect (`catalog.reads`): so writes that read are as
if each had happened alone, in the order of their times. One that lost such a race reads again, until its deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.adapter.bound_tables import check_as_bound, noted_tables
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.group_commit import QueuedWrite
from mz_dagster.adapter.write_attempts import write_attempts
from mz_dagster.catalog import Alteration, CollectionRow, ReadSet, Sealed, Takeover, UnknownObject, in_shard
from mz_dagster.compute import Found, StoredRows
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.scalars.scalar import Value
from mz_dagster.scalars.types import Column
from mz_dagster.sql.errors import NullNotAllowed
from mz_dagster.storage.append import compare_and_append
from mz_dagster.storage.arrow_schema import arrow_type, update_table
from mz_dagster.storage.read import ReadBeforeSince

#: Writes of more rows are sealed alone: what they take is in their rows.
_FEW = 1_000
_NULL_HINT = "Give a value, or create the column without NOT NULL."

Row = tuple[Value, ...]
#: A row with its diff.
RowUpdate = tuple[Row, int]


@dataclass(frozen=True, slots=True)
class ColumnUpdates:
    """Updates in columns: rows that are added, and rows that go."""

    added: StoredRows | None = None
    removed: StoredRows | None = None

    def __len__(self) -> int:
        return len(self.added or ()) + len(self.removed or ())


Updates = Sequence[RowUpdate] | ColumnUpdates


def added(rows: Found) -> Updates:
    """Returns the updates by which rows are added."""
    return ColumnUpdates(rows) if isinstance(rows, StoredRows) else [(row, 1) for row in rows]


def removed(rows: Found) -> Updates:
    """Returns the updates by which rows go."""
    return ColumnUpdates(removed=rows) if isinstance(rows, StoredRows) else [(row, -1) for row in rows]


def in_columns(rows: Sequence[Row], columns: Sequence[Column]) -> Sequence[Row]:
    """Returns many rows in columns, and few as they are."""
    is_made = len(rows) > _FEW and not isinstance(rows, StoredRows)
    return StoredRows.of_rows(rows, columns) if is_made else rows


@dataclass(frozen=True, slots=True)
class DecidedWrite:
    """What a write has decided to append, and what else becomes of its table in the same transaction.

    Attributes:
        updates: The updates. None of them, nor anything else, and there is nothing
            to seal: what was read is right where it was read.
        reads: What they were made of, which must be the same when they take effect; None if they were given.
        write_at: A timestamp that the oracle has handed out for them; None for any.
        name: A name that the table gets by it.
        restarts: Whether its sequences begin anew.
        takeover: Whose place it takes, or how it is altered; then the updates are of rows as they are stored.
    """

    updates: Updates
    reads: ReadSet | None = None
    write_at: int | None = None
    name: str | None = None
    restarts: bool = False
    takeover: Takeover | Alteration | None = None


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A `DecidedWrite` whose updates are an update frame, once their time is known."""

    at: Callable[[int], pa.Table]
    of: DecidedWrite

    @property
    def is_blind(self) -> bool:
        """Whether it appends few rows, and nothing but its table's shape has to be as it was: others may be with it."""
        one = self.of
        return 0 < len(one.updates) <= _FEW and one == DecidedWrite(one.updates)


class Appender(Protocol):
    """Takes what statements decide to append: at once, or at the end of a transaction block."""

    def append(self, table: GlobalId, decide: Callable[[CollectionRow], PendingWrite | None]) -> int | None:
        """Appends what `decide` makes of what it reads, given the table's row; see `read_and_append`."""
        ...


def read_and_append(appender: Appender, table: GlobalId, decide: Callable[[CollectionRow], DecidedWrite]) -> int | None:
    """Appends what `decide` makes of what it reads; returns the timestamp, or None if there is none (yet).

    Args:
        appender: Takes it.
        table: The table.
        decide: Given the table's row, returns what to append. Called again whenever what it has read has changed.

    Raises:
        WriteContended: Others were faster, until the deadline; nothing was written.
        UnknownObject: The table was dropped.
        NameTaken: The name denotes something already.
    """

    def decided(row: CollectionRow) -> PendingWrite | None:
        one = decide(row)
        if not one.updates and one.name is None and not one.restarts and one.takeover is None:
            return None
        if isinstance(one.updates, ColumnUpdates):
            changes = one.updates
            return PendingWrite(lambda time: _frame(changes, row, time), one)
        if isinstance(one.takeover, Alteration):  # of rows as they are stored from then on
            columns, updates = in_shard(one.takeover.shapes.stored), list(one.updates)
        else:
            columns, updates = row.columns, [(row.stored(data), diff) for data, diff in one.updates]
        return PendingWrite(lambda time: update_table(columns, [(data, time, diff) for data, diff in updates]), one)

    return appender.append(table, decided)


def _frame(updates: ColumnUpdates, row: CollectionRow, time: int) -> pa.Table:
    """Returns the update frame by which a table loses and gets rows of the columns that SQL sees, at a time."""
    parts = [(updates.removed, -1), (updates.added, 1)]
    return pa.concat_tables([_part(rows, row, time, diff) for rows, diff in parts if rows is not None])


def _part(rows: StoredRows, row: CollectionRow, time: int, diff: int) -> pa.Table:
    own = dict(zip(row.places or range(len(row.columns)), rows.table.columns, strict=True))
    columns = [
        own[place] if place in own else pa.nulls(len(rows), arrow_type(one.type))
        for place, one in enumerate(row.columns)
    ]
    return StoredRows.of(columns, row.columns).updates(row.columns, time, diff)


@dataclass(frozen=True, slots=True)
class Autocommit:
    """Appends each write at once, as a transaction of its own.

    Attributes:
        engine: The project.
        queue: Where what need not be sealed alone goes instead, for whoever waits until it is durable.
    """

    engine: Engine
    queue: list[QueuedWrite] | None = None

    def append(self, table: GlobalId, decide: Callable[[CollectionRow], PendingWrite | None]) -> int | None:
        """Appends what `decide` makes of what it reads; returns the timestamp, None if there is none (yet).

        Args:
            table: The table.
            decide: Given the table's row, returns what to append. Called again whenever what it has read has changed.

        Raises:
            WriteContended: Others were faster, until the deadline; nothing was written.
            UnknownObject: The table was dropped.
            NameTaken: The name denotes something already.
            TableAltered: The table is no longer what it was bound to.
        """
        engine, catalog = self.engine, self.engine.catalog
        decided: PendingWrite | None = None
        for _ in write_attempts(engine.project, engine.clock):
            row = open_table(engine, table)
            check_as_bound(row)
            if decided is None:
                try:
                    decided = decide(row)
                except ReadBeforeSince:
                    continue  # what it builds on is forgotten, so somebody else has written
                if decided is None:
                    return None
                if decided.of.reads is not None:
                    row = open_table(engine, table)  # to read it may have closed it
                    check_as_bound(row)
            assert row.timeline is not None
            if decided.is_blind and self.queue is not None:
                self.queue.append(engine.group_commit.queue(table, noted_tables().get(table), decided.at))
                return None
            if decided.is_blind and not engine.group_commit.is_idle:
                return engine.group_commit.append(table, noted_tables().get(table), decided.at)
            time = decided.of.write_at
            if time is None:
                time = catalog.write_ts(row.timeline, engine.now(row.timeline))
            takeover = decided.of.takeover
            written = row
            if isinstance(takeover, Alteration):
                written = replace(row, columns=in_shard(takeover.shapes.stored))
            outcome = None
            if row.upper.less_equal(time):
                with engine.group_commit.sealing():
                    outcome = compare_and_append(
                        catalog,
                        engine.shards,
                        written,
                        row.upper,
                        Antichain.of(row.upper.lattice, time + 1),
                        decided.at(time),
                        holder=engine.holder,
                        apply=(row.timeline, time),
                        reads=decided.of.reads,
                        ttl_ms=engine.project.lease_ms,
                        name=decided.of.name,
                        restarts=decided.of.restarts,
                        takeover=takeover,
                    )
            if isinstance(outcome, Sealed):
                engine.wrote(table)
                return time
            # Only the time was taken, perhaps, by a step or a reader: then what was read is still right.
            reads = decided.of.reads
            is_stale = reads is not None and catalog.read_changed(reads, time) is not None
            decided = None if is_stale else replace(decided, of=replace(decided.of, write_at=None))
        raise AssertionError("attempts end with a return or an error")


def open_table(engine: Engine, table: GlobalId) -> CollectionRow:
    """Returns a table's row.

    Raises:
        UnknownObject: It was dropped.
    """
    row = engine.catalog.collection(table)
    if row.upper.is_empty:
        raise UnknownObject(table, dropped=True)
    return row


def check_not_null(columns: Sequence[Column], name: str, rows: Sequence[Row]) -> None:
    """Refuses a NULL in a column that was declared NOT NULL.

    Raises:
        NullNotAllowed: There is one.
    """
    found: list[tuple[int, int]] = []
    for position, column in enumerate(columns):
        if column.nullable:
            continue
        if isinstance(rows, StoredRows):
            cells = rows.table.column(position)
            first = pc.index(cells.is_null(), pa.scalar(True)).as_py() if cells.null_count else None
        else:
            first = next((place for place, one in enumerate(rows) if one[position] is None), None)
        if first is not None:
            found.append((first, position))
    if found:
        first, position = min(found)
        raise NullNotAllowed.of(columns[position].name, name, hint=_NULL_HINT).of_row(first)
