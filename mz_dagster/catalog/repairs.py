"""Repairs of a catalog: the few that are safe whoever uses it meanwhile, each of them one transaction.

None removes or adds an update, moves a frontier back, or makes an id denote another thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, insert, select, update

from mz_dagster.catalog.contents import ListDamaged, check_list
from mz_dagster.catalog.database import Transactions
from mz_dagster.catalog.frontiers import summed_frontiers
from mz_dagster.catalog.lease_liveness import is_live, moment_of
from mz_dagster.catalog.naming import take_names
from mz_dagster.catalog.rows import BatchState
from mz_dagster.catalog.schema import (
    BATCH,
    CAPABILITY,
    COLLECTION,
    COUNTER,
    HOLD,
    LEASE,
    LEASED_BATCH,
    OBJECT,
    TICK,
    TIMELINE,
    TOMBSTONE,
    WRITER,
)
from mz_dagster.catalog.timelines import NOBODY
from mz_dagster.catalog.tombstones import bury
from mz_dagster.formalism import GlobalId


class Repairs(Transactions):
    """The part of the catalog that mends what a broken clock, disk or hand left in it."""

    def end_leases_beyond(self, leaders_ms: int, others_ms: int) -> int:
        """Ends leases that run beyond a moment, and returns how many; one moment for leaders, one for all others.

        Who holds one loses work at most: a leader's next seal fails, a batch may be swept, a read has to be repeated.
        """
        now = self._now_ms()
        with self._database.write() as connection:
            led = connection.execute(update(TIMELINE).where(TIMELINE.c.until_ms > leaders_ms).values(**NOBODY))
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

    def restore_tick(self, timeline: str, tick: int) -> None:
        """Puts a tick back that bindings tell of, if it is not there."""
        there = TICK.c.timeline == timeline, TICK.c.tick == tick
        with self._database.write() as connection:
            if connection.execute(select(TICK.c.tick).where(*there)).first() is None:
                connection.execute(insert(TICK).values(timeline=timeline, tick=tick))

    def remove_strays(self) -> int:
        """Removes what contradicts what is there; returns how many rows.

        Names, holds and capabilities of what was dropped, entries of leases that are gone, tombstones of what is there,
        batches of dropped collections whose own rows are lost; and what then is left of dropped objects.
        """
        dropped = select(OBJECT.c.id).where(OBJECT.c.dropped.is_(True))
        ended = select(COLLECTION.c.id).where(
            COLLECTION.c.id.in_(dropped), COLLECTION.c.since == "[]", COLLECTION.c.upper == "[]"
        )
        strays = (
            delete(HOLD).where(HOLD.c.output.in_(dropped)),
            delete(CAPABILITY).where(CAPABILITY.c.collection.in_(ended)),
            delete(LEASED_BATCH).where(LEASED_BATCH.c.lease.not_in(select(LEASE.c.id))),
            delete(TOMBSTONE).where(TOMBSTONE.c.id.in_(select(OBJECT.c.id))),
            delete(BATCH).where(BATCH.c.collection.in_(dropped), BATCH.c.collection.not_in(select(COLLECTION.c.id))),
        )
        with self._database.write() as connection:
            named = take_names(connection, [GlobalId(id) for id in connection.execute(dropped).scalars()])
            removed = named + sum(connection.execute(one).rowcount for one in strays)
            return removed + len(bury(connection))

    def relist(self, batch: Mapping[str, Any]) -> bool:
        """Puts a batch on its collection's list as it was, if with it the list is the one that was written.

        Args:
            batch: What its row of the table `batch` was.

        Returns:
            Whether it was put there; if not, nothing has changed.
        """
        row = {name: batch[name] for name in (column.name for column in BATCH.c) if name in batch}
        row |= {"state": BatchState.LIVE.value, "writer": batch.get("writer", 0)}
        id = GlobalId(row["collection"])
        try:
            with self._database.write() as connection:
                connection.execute(delete(BATCH).where(BATCH.c.id == row["id"]))
                connection.execute(insert(BATCH).values(row))
                live = select(BATCH).where(BATCH.c.collection == id, BATCH.c.state == BatchState.LIVE.value)
                check_list(id, summed_frontiers(connection, [id])[id][2], connection.execute(live).all())
        except ListDamaged:
            return False
        return True

    def has_live_writer(self) -> bool:
        """Returns whether anybody may be writing a batch."""
        with self._database.read() as connection:
            live = select(WRITER.c.id).where(is_live(WRITER)).limit(1)
            return connection.execute(live, moment_of(connection, self._now_ms())).first() is not None
