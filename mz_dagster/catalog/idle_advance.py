"""Passing over time in which nothing happened, for all collections of a timeline at once.

Most ticks of most collections are idle, and most polls find nothing at all. Where nothing has changed since a state in
which all collections of a timeline had one upper, each of them has nothing to do up to any later time: whatever comes
to one, or makes one due, would have changed its row, a tick, or the oracle. So they are moved together, by one
statement, in a transaction that finds that nothing has changed.
"""

from __future__ import annotations

from sqlalchemy import bindparam, select, update

from mz_dagster.catalog.codec import frontier_text
from mz_dagster.catalog.replica import CatalogState, Replica, last_change
from mz_dagster.catalog.rows import Leadership
from mz_dagster.catalog.schema import COLLECTION, OBJECT, TICK
from mz_dagster.catalog.timelines import advance_oracle, lattice_of, leads
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain

#: Built once: building a statement takes longer than running it.
_MINTED = (
    select(TICK.c.tick).where(TICK.c.timeline == bindparam("timeline"), TICK.c.tick >= bindparam("lower")).limit(1)
)
_MOVE = update(COLLECTION).where(
    COLLECTION.c.timeline == bindparam("on"),
    COLLECTION.c.upper == bindparam("before"),
    COLLECTION.c.id.in_(select(OBJECT.c.id).where(OBJECT.c.dropped.is_(False))),
)


class IdleAdvance(Replica):
    """The part of the catalog that lets time go by."""

    def pass_over(
        self, timeline: str, state: CatalogState, lower: int, time: int, leadership: Leadership
    ) -> CatalogState | None:
        """Makes a time readable in all collections of a timeline, at none of which anything has happened.

        Args:
            timeline: The timeline.
            state: In which all its collections have the upper `lower`, and none is due at or before `time`, nor written
                by capabilities, nor waiting for a source.
            lower: That upper.
            time: The time, which is applied to the oracle.
            leadership: The right to step the timeline.

        Returns:
            The state that differs from it in their uppers, `time + 1`; None if something has changed since it, and then
            nothing has happened.
        """
        with self._database.write() as connection:
            if (
                not leads(connection, leadership)
                or last_change(connection) != (state.mark, state.number)
                or connection.execute(_MINTED, {"timeline": timeline, "lower": lower}).first() is not None
            ):
                return None
            advance_oracle(connection, timeline, time)
            lattice = lattice_of(connection, timeline)
            upper = Antichain.of(lattice, time + 1)
            before = frontier_text(Antichain.of(lattice, lower))
            moved = connection.execute(_MOVE, {"on": timeline, "before": before, "upper": frontier_text(upper)})
            assert moved.rowcount == state.count(timeline), "a collection changed without a number"
            _, number = last_change(connection)
            fail_point("seal.in_transaction")
        fail_point("seal.sealed")
        after = state.advanced(timeline, upper, number)
        self._keep_newer(state, after)
        return after
