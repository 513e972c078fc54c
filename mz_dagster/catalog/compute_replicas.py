"""Which replicas compute beside the leaders: processes that hydrate and step what the catalog defines, by their names.

A row is there for whoever looks: what a replica may seal is decided by the collections' uppers alone, so one whose
lease ran out does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update

from mz_dagster.catalog.database import Transactions
from mz_dagster.catalog.rows import ComputeReplica
from mz_dagster.catalog.schema import COMPUTE_REPLICA
from mz_dagster.liveness import is_dead, this_process


class ComputeReplicas(Transactions):
    """The part of the catalog that knows the replicas."""

    def register_replica(self, name: str, holder: str, engine: str, ttl_ms: int) -> ComputeReplica:
        """Returns the live replica of that name, which is the caller's from now on if there was none.

        Args:
            name: What it is called.
            holder: Who it is, in words that help to find it.
            engine: Who computes in it, for people.
            ttl_ms: How long it counts as live unless renewed, in milliseconds.
        """
        now = self._now_ms()
        with self._database.write() as connection:
            found = connection.execute(select(COMPUTE_REPLICA).where(COMPUTE_REPLICA.c.name == name)).first()
            if found is not None and _is_live(found, now):
                return _replica_of(found)
            connection.execute(delete(COMPUTE_REPLICA).where(COMPUTE_REPLICA.c.name == name))
            made = ComputeReplica(name, holder, engine, now, now + ttl_ms)
            connection.execute(
                insert(COMPUTE_REPLICA).values(
                    name=name,
                    holder=holder,
                    engine=engine,
                    started_ms=now,
                    until_ms=made.until_ms,
                    process=this_process(),
                )
            )
        return made

    def renew_replica(self, replica: ComputeReplica, ttl_ms: int) -> bool:
        """Has a replica count as live for longer; returns whether it is registered still."""
        with self._database.write(until_power_cut=True) as connection:
            found = connection.execute(
                update(COMPUTE_REPLICA)
                .where(COMPUTE_REPLICA.c.name == replica.name, COMPUTE_REPLICA.c.started_ms == replica.started_ms)
                .values(until_ms=self._now_ms() + ttl_ms)
            )
            return found.rowcount == 1

    def remove_replica(self, replica: ComputeReplica) -> None:
        """Forgets a replica; does nothing if another has its name by now."""
        with self._database.write() as connection:
            connection.execute(
                delete(COMPUTE_REPLICA).where(
                    COMPUTE_REPLICA.c.name == replica.name, COMPUTE_REPLICA.c.started_ms == replica.started_ms
                )
            )

    def replicas(self) -> Sequence[ComputeReplica]:
        """Returns the live replicas, by name."""
        now = self._now_ms()
        with self._database.read() as connection:
            rows = connection.execute(select(COMPUTE_REPLICA).order_by(COMPUTE_REPLICA.c.name)).all()
        return tuple(_replica_of(row) for row in rows if _is_live(row, now))


def _is_live(row: Any, now: int) -> bool:
    return bool(row.until_ms > now) and not is_dead(row.process)


def _replica_of(row: Any) -> ComputeReplica:
    return ComputeReplica(row.name, row.holder, row.engine, row.started_ms, row.until_ms)
