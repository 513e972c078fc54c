"""What processes hold and have written, as introspection shows it: leaders, leases, batches, bindings.

Each is one look at the catalog as it is. Nothing is decided by it, and nobody may read a batch by right of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import func, literal, select

from mz_dagster.catalog.batches import batch_of
from mz_dagster.catalog.database import Transactions
from mz_dagster.catalog.frontiers import row_lattice
from mz_dagster.catalog.rows import Batch
from mz_dagster.catalog.schema import BATCH, BOUND, COLLECTION, LEASE, LEASED_BATCH, TIMELINE, WRITER
from mz_dagster.formalism import GlobalId
from mz_dagster.liveness import is_dead


@dataclass(frozen=True, slots=True)
class LeaderRow:
    """Who leads a timeline, by a lease that has not run out.

    Attributes:
        timeline: The timeline.
        epoch: How often it was led so far.
        holder: Who leads, in words.
        until_ms: When the lease ends unless renewed.
    """

    timeline: str
    epoch: int
    holder: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease to read batches or to write some.

    Attributes:
        id: Its number among those of its kind.
        kind: What it allows.
        holder: Who has it, in words.
        until_ms: When it ends unless renewed.
        is_live: Whether it counts: it has not run out, and its process is not known to be dead.
        batches: How many batches it lists, or has in writing.
    """

    id: int
    kind: Literal["read", "write"]
    holder: str
    until_ms: int
    is_live: bool
    batches: int


@dataclass(frozen=True, slots=True)
class BoundCounts:
    """What is bound to a source.

    Attributes:
        bound: How many files or offsets.
        sealed: How many of them it contains.
        newest: The newest tick at which anything is; None if nothing is.
    """

    bound: int
    sealed: int
    newest: int | None


class Overview(Transactions):
    """The part of the catalog that shows what others hold and have written."""

    def leaders(self) -> tuple[LeaderRow, ...]:
        """Returns who leads timelines, by timeline; those that nobody leads are left out."""
        timeline, now = TIMELINE.c, self._now_ms()
        query = select(TIMELINE).where(timeline.holder.is_not(None), timeline.until_ms > now).order_by(timeline.name)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return tuple(
            LeaderRow(row.name, row.epoch, row.holder, row.until_ms) for row in rows if not is_dead(row.process)
        )

    def leases(self) -> tuple[LeaseRow, ...]:
        """Returns all leases to read and to write batches, also those that have run out and were not swept."""
        now = self._now_ms()
        listed = select(func.count()).where(LEASED_BATCH.c.lease == LEASE.c.id).scalar_subquery()
        written = select(func.count()).where(BATCH.c.writer == WRITER.c.id).scalar_subquery()
        queries = [
            select(literal(kind).label("kind"), table, count.label("batches")).order_by(table.c.id)
            for kind, table, count in (("read", LEASE, listed), ("write", WRITER, written))
        ]
        with self._database.read() as connection:
            rows = [row for query in queries for row in connection.execute(query)]
        return tuple(
            LeaseRow(
                row.id, row.kind, row.holder, row.until_ms, row.until_ms > now and not is_dead(row.process), row.batches
            )
            for row in rows
        )

    def all_batches(self) -> tuple[Batch, ...]:
        """Returns the batches of all collections and states, by id. For reading, take a lease."""
        query = (
            select(BATCH, TIMELINE.c.lattice)
            .join(COLLECTION, COLLECTION.c.id == BATCH.c.collection)
            .outerjoin(TIMELINE, TIMELINE.c.name == COLLECTION.c.timeline)
            .order_by(BATCH.c.id)
        )
        with self._database.read() as connection:
            return tuple(batch_of(row, row_lattice(row)) for row in connection.execute(query))

    def bound_counts(self, source: GlobalId, upper: int | None) -> BoundCounts:
        """Returns how much is bound to a source, and how much of that at ticks before `upper`; None for all."""
        bound, tick = BOUND.c.source == source, BOUND.c.tick
        query = select(func.count(), func.max(tick)).where(bound)
        with self._database.read() as connection:
            count, newest = connection.execute(query).one()
            of_it = query if upper is None else query.where(tick < upper)
            sealed = connection.execute(of_it).one()[0]
        return BoundCounts(count, sealed, newest)
