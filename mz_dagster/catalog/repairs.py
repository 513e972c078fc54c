"""Repairs of a catalog: the few that are safe whoever uses it meanwhile, each of them one transaction.

None removes or adds an update, moves a frontier back, or makes an id denote another thing.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import delete, select, update

from mz_dagster.catalog.database import Transactions
from mz_dagster.catalog.rows import BatchId, BatchState, BatchStats
from mz_dagster.catalog.schema import (
    BATCH,
    CAPABILITY,
    COUNTER,
    HOLD,
    LEASE,
    LEASED_BATCH,
    NAME,
    OBJECT,
    TIMELINE,
    WRITER,
)


class Repairs(Transactions):
    """Is the part of the catalog that mends what a broken clock, disk or hand left in it."""

    def end_leases_beyond(self, leaders_ms: int, others_ms: int) -> int:
        """Ends leases that run beyond a moment, and returns how many; one moment for leaders, one for all others.

        Who holds one loses work at most: a leader's next seal fails, a batch may be swept, a read has to be repeated.
        """
        now = self._now_ms()
        with self._database.write() as connection:
            led = connection.execute(
                update(TIMELINE).where(TIMELINE.c.until_ms > leaders_ms).values(holder=None, until_ms=None)
            )
            ended = led.rowcount
            for table in (WRITER, LEASE):
                over = connection.execute(update(table).where(table.c.until_ms > others_ms).values(until_ms=now))
                ended += over.rowcount
            return ended

    def raise_counters(self, least: Mapping[str, int]) -> None:
        """Makes every id handed out from now on greater than those given, by kind of id."""
        with self._database.write() as connection:
            for name, last in least.items():
                connection.execute(
                    update(COUNTER).where(COUNTER.c.name == name, COUNTER.c.last < last).values(last=last)
                )

    def remove_strays(self) -> int:
        """Removes names, holds and capabilities of what was dropped, and entries of leases that are gone."""
        dropped = select(OBJECT.c.id).where(OBJECT.c.dropped.is_(True))
        strays = (
            delete(NAME).where(NAME.c.object.in_(dropped)),
            delete(HOLD).where(HOLD.c.output.in_(dropped)),
            delete(CAPABILITY).where(CAPABILITY.c.collection.in_(dropped)),
            delete(LEASED_BATCH).where(LEASED_BATCH.c.lease.not_in(select(LEASE.c.id))),
        )
        with self._database.write() as connection:
            return sum(connection.execute(one).rowcount for one in strays)

    def correct_stats(self, batch: BatchId, stats: BatchStats) -> None:
        """Sets what a live batch holds beside its rows, whose number must be as it is."""
        with self._database.write() as connection:
            connection.execute(
                update(BATCH)
                .where(BATCH.c.id == batch, BATCH.c.state == BatchState.LIVE.value, BATCH.c.rows == stats.rows)
                .values(errors=stats.errors, files=stats.files, bytes=stats.bytes)
            )

    def has_live_writer(self) -> bool:
        """Returns whether anybody may be writing a batch."""
        with self._database.read() as connection:
            query = select(WRITER.c.id).where(WRITER.c.until_ms > self._now_ms()).limit(1)
            return connection.execute(query).first() is not None
