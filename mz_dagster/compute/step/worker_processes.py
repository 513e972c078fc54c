"""The workers of a process that steps: started, given to one step at a time, replaced, and ended with it.

A process is started once there is enough to share, and not waited for: it takes a second or two, and computes from then
on, also in the step that started it. One that dies, hangs, or is in the way of what was given up is killed; another
takes its place at the next step, a few times.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.compute.step.worker_lost import WorkerLost
from mz_dagster.process_exit import before_exit

if TYPE_CHECKING:
    from mz_dagster.compute.step.worker_process import WorkerProcess

logger = logging.getLogger("mz_dagster.workers")

#: After so many that were lost one after the other, no other is started.
_MOST_LOST = 3
#: How often `start` looks whether all are ready, in seconds.
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """How workers are started.

    Attributes:
        processes: How many there are at most.
        module: The module whose `main` each runs (`WorkerProcess`).
        opens: What it opens; it can be pickled.
    """

    processes: int
    module: str
    opens: object


class WorkerProcesses:
    """The workers of one process, of which one step at a time has the use.

    Args:
        setup: How they are started.
    """

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._using = threading.Lock()
        self._pid = os.getpid()
        self._processes: list[WorkerProcess] = []
        self._count_lost = 0
        self._is_closed = False

    @property
    def count(self) -> int:
        """How many have been started and are there."""
        return len(self._processes)

    def start(self, deadline_s: float) -> bool:
        """Starts all that are missing, and returns whether all were ready within a deadline, in seconds."""
        until = SYSTEM_CLOCK.monotonic_ms() + deadline_s * 1000
        while SYSTEM_CLOCK.monotonic_ms() < until:
            with self.ready() as ready:
                if len(ready) == self._setup.processes:
                    return True
            SYSTEM_CLOCK.sleep(_LOOK_EVERY_S)
        return False

    @contextmanager
    def used(self) -> Iterator[Callable[[], Sequence[WorkerProcess]] | None]:
        """Gives what returns the workers that are ready by then, for the length of a block; missing ones are started.

        None is given if another step has them, or in a process that was forked from the one that started them.
        """
        if os.getpid() != self._pid or not self._using.acquire(blocking=False):
            yield None
            return
        try:
            self._replace_lost()
            yield lambda: tuple(one for one in self._processes if self._is_ready(one))
        finally:
            self._using.release()

    @contextmanager
    def ready(self) -> Iterator[Sequence[WorkerProcess]]:
        """Gives the workers that are ready at its beginning, for the length of a block; see `used`."""
        with self.used() as ready:
            yield () if ready is None else ready()

    def _replace_lost(self) -> None:
        for one in [one for one in self._processes if one.is_lost]:
            self._processes.remove(one)
            one.close()
            self._count_lost = 1 if one.has_answered else self._count_lost + 1
            logger.warning("worker %d (process %d) ended before its time", one.number, one.pid)
        numbers = set(range(1, self._setup.processes + 1)) - {one.number for one in self._processes}
        if self._is_closed or self._count_lost >= _MOST_LOST:
            return
        if not self._processes and not self._count_lost:
            before_exit(self.close)
        from mz_dagster.compute.step.worker_process import WorkerProcess  # not before it is needed

        for number in sorted(numbers):
            try:
                self._processes.append(WorkerProcess(number, self._setup.module, self._setup.opens))
            except (OSError, WorkerLost) as error:
                self._count_lost += 1
                logger.warning("worker %d does not start: %s", number, error)

    def _is_ready(self, process: WorkerProcess) -> bool:
        try:
            return process.is_ready()
        except WorkerLost:
            return False

    def close(self) -> None:
        """Ends all of them; none are started any more."""
        self._is_closed = True
        if os.getpid() == self._pid:
            while self._processes:
                self._processes.pop().close()
