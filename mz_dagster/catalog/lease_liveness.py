"""Which leases to read and to write batches still count: those that have not run out, of processes that are not dead.

A process of this machine that is certainly dead (`mz_dagster.liveness`) renews and seals nothing, so that what it has
left is swept at once. Of a process elsewhere nobody knows, and its lease is waited for. Clocks and processes decide
when to sweep, never what is safe: a batch is declared dead before anything of it is deleted. Whether what was read
under a lease was all there is told by the batches that it lists, not by clocks.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, or_, select, union

from mz_dagster.catalog.rows import BatchState
from mz_dagster.catalog.schema import BATCH, LEASE, LEASED_BATCH, WRITER
from mz_dagster.liveness import is_dead


def dead_processes(connection: Connection, now: int) -> tuple[str, ...]:
    """Returns the processes of this machine that are dead and hold leases which have not run out at `now`."""
    held = union(*(select(one.c.process).where(one.c.until_ms > now) for one in (LEASE, WRITER)))
    return tuple(one for one in connection.execute(held).scalars() if is_dead(one))


def is_live(lease: Table, now: int, dead: tuple[str, ...]) -> ColumnElement[bool]:
    """Returns the condition that a row of LEASE or WRITER is a lease that counts, given the `dead_processes`."""
    return and_(lease.c.until_ms > now, or_(lease.c.process.is_(None), lease.c.process.not_in(dead)))


def is_intact(connection: Connection, lease: int) -> bool:
    """Returns whether none of the batches of a lease to read was swept, and nobody has ended it."""
    if connection.execute(select(LEASE.c.id).where(LEASE.c.id == lease)).first() is None:
        return False
    readable = (BatchState.LIVE.value, BatchState.REPLACED.value)
    swept = (
        select(LEASED_BATCH.c.batch)
        .outerjoin(BATCH, BATCH.c.id == LEASED_BATCH.c.batch)
        .where(LEASED_BATCH.c.lease == lease, or_(BATCH.c.id.is_(None), BATCH.c.state.not_in(readable)))
    )
    return connection.execute(swept.limit(1)).first() is None


def end_lease(connection: Connection, lease: int) -> bool:
    """Ends a lease to read, and returns whether it was intact to the end; ending it again returns False."""
    intact = is_intact(connection, lease)
    connection.execute(delete(LEASED_BATCH).where(LEASED_BATCH.c.lease == lease))
    connection.execute(delete(LEASE).where(LEASE.c.id == lease))
    return intact
