"""Which leases to read and to write batches still count: those that have not run out, of processes that are not dead.

A process of this machine that is certainly dead (`mz_dagster.liveness`) renews and seals nothing, so that what it has
left is swept at once. Of a process elsewhere nobody knows, and its lease is waited for. Clocks and processes decide
when to sweep, never what is safe: a batch is declared dead before anything of it is deleted. Whether what was read
under a lease was all there is told by the batches that it lists, not by clocks.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, or_, select, union

from mz_dagster.catalog.rows import BatchState
from mz_dagster.catalog.schema import BATCH, LEASE, LEASED_BATCH, WRITER
from mz_dagster.liveness import is_dead

#: Built once: every read asks these, and building a statement takes longer than running it.
_THERE = select(LEASE.c.id).where(LEASE.c.id == bindparam("lease"))
_SWEPT = (
    select(LEASED_BATCH.c.batch)
    .outerjoin(BATCH, BATCH.c.id == LEASED_BATCH.c.batch)
    .where(
        LEASED_BATCH.c.lease == bindparam("lease"),
        or_(BATCH.c.id.is_(None), BATCH.c.state.not_in((BatchState.LIVE.value, BatchState.REPLACED.value))),
    )
    .limit(1)
)
_END_LIST = delete(LEASED_BATCH).where(LEASED_BATCH.c.lease == bindparam("lease"))
_END = delete(LEASE).where(LEASE.c.id == bindparam("lease"))
_HELD = union(*(select(one.c.process).where(one.c.until_ms > bindparam("now")) for one in (LEASE, WRITER)))


def dead_processes(connection: Connection, now: int) -> tuple[str, ...]:
    """Returns the processes of this machine that are dead and hold leases which have not run out at `now`."""
    return tuple(one for one in connection.execute(_HELD, {"now": now}).scalars() if is_dead(one))


def is_live(lease: Table) -> ColumnElement[bool]:
    """Returns the condition that a row of LEASE or WRITER is a lease that counts; its parameters are of `moment_of`."""
    of_dead = lease.c.process.in_(bindparam("dead", expanding=True))
    return and_(lease.c.until_ms > bindparam("now"), or_(lease.c.process.is_(None), ~of_dead))


def moment_of(connection: Connection, now: int) -> dict[str, Any]:
    """Returns the parameters of `is_live`: the clock's time, and the `dead_processes`."""
    return {"now": now, "dead": dead_processes(connection, now)}


def is_intact(connection: Connection, lease: int) -> bool:
    """Returns whether none of the batches of a lease to read was swept, and nobody has ended it."""
    return connection.execute(_THERE, {"lease": lease}).first() is not None and _lists_what_is_there(connection, lease)


def end_lease(connection: Connection, lease: int) -> bool:
    """Ends a lease to read, and returns whether it was intact to the end; ending it again returns False."""
    intact = _lists_what_is_there(connection, lease)
    connection.execute(_END_LIST, {"lease": lease})
    return bool(connection.execute(_END, {"lease": lease}).rowcount) and intact


def _lists_what_is_there(connection: Connection, lease: int) -> bool:
    """Returns whether none of the batches that a lease to read lists was swept."""
    return connection.execute(_SWEPT, {"lease": lease}).first() is None
