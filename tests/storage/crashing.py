"""A crash inside this process, for tests that run thousands of them: it ends a call as a kill ends a process.

At an armed fail point `Crash` is raised, which no `except Exception` catches; and from then on every transaction of the
catalog that is still tried on the way out raises it too, before its commit. So whatever a killed process would not have
made durable is not. A test forgets the objects that were in use, and opens the catalog anew. Threads that renew leases
pass no fail point: they run whenever the machine lets them, so that a passage of theirs is none that a test can name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest import mock

from mz_dagster import fail_point

Spot = tuple[str, int]
"""A fail point, and at which of its passages."""


class Crash(BaseException):
    """Stands for the death of the process."""


class _Machine:
    """Stands for `os` in `fail_point`: there the environment is armed, and a kill is a `Crash`."""

    def __init__(self, spot: Spot) -> None:
        name, nth = spot
        self._armed = {fail_point.VARIABLE: f"{name}:{nth}"}
        self.crashed = False

    @property
    def environ(self) -> Mapping[str, str]:
        return {} if threading.current_thread().name == "mz-renewal" else self._armed

    def getpid(self) -> int:
        return 0

    def kill(self, pid: int, signal: int) -> None:
        self.crashed = True
        self._armed[fail_point.VARIABLE] = "catalog.before_commit"
        raise Crash


@contextmanager
def crashing(spot: Spot | None) -> Iterator[_Machine]:
    """Arms a fail point for the length of a block; swallows the `Crash`, which the yielded object tells of."""
    machine = _Machine(("none", 1) if spot is None else spot)
    with mock.patch.object(fail_point, "os", machine), mock.patch.dict(fail_point._passages, clear=True):
        try:
            yield machine
        except Crash:
            assert machine.crashed
