"""The error by which a step learns that a worker is gone; it is known without loading what a worker needs."""

from __future__ import annotations

from mz_dagster.errors import OperationalError


class WorkerLost(OperationalError):
    """A worker died, hung or was killed before it answered; nothing is lost but its work."""

    sqlstate = "58000"
