"""The stepper's side of workers: their processes, what each was sent, and what is made of its answers.

A process is started once there is enough to share, and not waited for: it takes a second or two, and computes from the
first step on that finds it ready. One that dies, hangs, or is in the way of what was given up is killed; another takes
its place at the next step, a few times. `worker` has what it does.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from mz_dagster.budget import engine_setting, process_budget
from mz_dagster.catalog import Batch, BatchId, CollectionRow
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.compute.step.graph import MaintainedNode
from mz_dagster.compute.step.run import StepRun
from mz_dagster.compute.step.worker import Done, Frontiers, Work
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import GlobalId
from mz_dagster.process_exit import before_exit

logger = logging.getLogger("mz_dagster.workers")

#: A worker that says nothing for so long is taken to hang: it would say that it is alive.
_SILENT_S = 60.0
#: How often it is looked whether anybody waits for what a worker computes, in seconds.
_LOOK_EVERY_S = 0.2
#: How long the end of one that was killed is waited for, in seconds.
_LAST_S = 10.0
#: After so many that were lost one after the other, no other is started.
_MOST_LOST = 3
#: So many times more collections than a step has are known to a worker before it forgets those that are gone.
_KNOWN_TIMES = 4
_KNOWN_AT_LEAST = 1_000


class WorkerLost(OperationalError):
    """A worker died, hung or was killed before it answered; nothing is lost but its work."""

    sqlstate = "58000"


class WorkerProcess:
    """One worker, as the stepper sees it.

    Several threads may have it compute: it is sent what is next while it computes, and answers in that order.

    Args:
        number: Which it is, from 1, for people.
        module: The module whose `main` is run; it is given a socket's number, and receives its own and `setup` there.
        setup: What it opens.

    Attributes:
        number: Its number.
        has_answered: Whether it has ever computed anything.
    """

    def __init__(self, number: int, module: str, setup: object) -> None:
        self.number = number
        self.has_answered = False
        self._is_ready = False
        self._is_killed = False
        self._nodes: dict[GlobalId, MaintainedNode] = {}
        self._rows: dict[GlobalId, CollectionRow] = {}
        self._listed: dict[GlobalId, Sequence[Batch]] = {}
        self._looked_at: dict[GlobalId, tuple[list[Batch], int]] = {}
        self._step = ""
        self._sending = threading.Lock()
        self._last = threading.Event()
        self._last.set()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for waits in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):  # one may be stopped within a message
                ours.setsockopt(socket.SOL_SOCKET, waits, struct.pack("ll", int(_SILENT_S), 0))
            # The same modules as here, wherever they were found.
            program = f"import sys; sys.path[:] = {sys.path}; from {module} import main; main({theirs.fileno()})"
            command = [sys.executable, "-c", program]
            # Of its own session, so that Ctrl-C ends the stepper, and that this one.
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )
            self._connection = Connection(ours.detach())
        try:
            self._send((number, setup))
        except WorkerLost:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def is_ready(self) -> bool:
        """Returns whether it has started, without waiting.

        Raises:
            WorkerLost: It has died.
        """
        if not self._is_ready and self._connection.poll(0):
            self._receive()
            self._is_ready = True
        return self._is_ready

    def compute(self, run: StepRun, work: Work, check_wanted: Callable[[], None]) -> Done:
        """Returns what becomes of the work.

        Args:
            run: The step.
            work: The collections, without what the worker knows already.
            check_wanted: Raises once nobody waits for it; the worker is killed then.

        Raises:
            WorkerLost: It died, or hangs.
        """
        with self._sending:
            self._send(self._with_news(run, work))
            before, mine = self._last, threading.Event()
            self._last = mine
        try:
            return self._answer(before, check_wanted)
        finally:
            mine.set()

    def _answer(self, before: threading.Event, check_wanted: Callable[[], None]) -> Done:
        heard_at = SYSTEM_CLOCK.monotonic_ms()
        while True:
            is_next = before.wait(_LOOK_EVERY_S)
            if not is_next:
                heard_at = SYSTEM_CLOCK.monotonic_ms()  # who is before looks whether it hangs
            elif self._connection.poll(_LOOK_EVERY_S):
                answer = self._receive()
                if isinstance(answer, Done):
                    self.has_answered = True
                    return answer
                heard_at = SYSTEM_CLOCK.monotonic_ms()
            try:
                check_wanted()
            except BaseException:
                self.kill()
                raise
            if SYSTEM_CLOCK.monotonic_ms() > heard_at + _SILENT_S * 1000:
                raise self._lost(f"it has said nothing for {_SILENT_S:.0f} s")

    def _with_news(self, run: StepRun, work: Work) -> Work:
        """Returns the work with the definitions and lists of batches that are others than the worker has."""
        most = _KNOWN_TIMES * len(run.graph.nodes) + _KNOWN_AT_LEAST
        is_anew = len(self._rows) > most
        if is_anew:
            self._nodes, self._rows, self._listed = {}, {}, {}
        if self._step != work.step or is_anew:
            self._step, self._looked_at = work.step, {}
        nodes = [run.graph.by_id[id] for id in work.batches]
        plans = [one for one in nodes if isinstance(one, MaintainedNode) and self._nodes.get(one.id) is not one]
        self._nodes |= {one.id: one for one in plans}
        ids = (*work.uppers, *work.batches)
        listed = {id: news for id in ids if (news := self._news(run, id)) is not None}
        rows = {id: self._row(run.rows[id]) for id in ids if self._rows.get(id) is not run.rows[id]}
        return replace(work, is_anew=is_anew, nodes=plans, rows=rows, listed=listed)

    def _row(self, row: CollectionRow) -> CollectionRow | Frontiers:
        """Returns what the worker has to be told of a collection."""
        known, self._rows[row.id] = self._rows.get(row.id), row
        moved = Frontiers(row.since, row.upper, row.next_due)
        return moved if known is not None and moved.of(known) == row else row

    def _news(self, run: StepRun, id: GlobalId) -> Sequence[Batch | BatchId] | None:
        """Returns a collection's list of batches, ids for what the worker knows; None if it knows the list."""
        batches = run.batches[id]
        looked_at = self._looked_at.get(id)
        if looked_at is not None and looked_at[0] is batches and looked_at[1] == len(batches):
            return None
        self._looked_at[id] = batches, len(batches)
        before = self._listed.get(id, ())
        if len(before) == len(batches) and all(map(_is_same, before, batches)):
            return None
        known = {one.id: one for one in before}
        self._listed[id] = tuple(batches)
        return [one.id if one.id in known and _is_same(known[one.id], one) else one for one in batches]

    def _send(self, message: object) -> None:
        try:
            self._connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        except OSError as error:
            raise self._lost("it does not listen") from error
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise self._lost(f"what it is to compute cannot be sent: {error}") from error

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost("it ended") from error

    def _lost(self, reason: str) -> WorkerLost:
        self.kill()
        return WorkerLost(f"worker {self.number} (process {self.pid}) is lost: {reason}")

    def kill(self) -> None:
        """Ends the process at once; safe in any thread, and more than once."""
        self._is_killed = True
        self._process.kill()

    def close(self) -> None:
        """Ends the process, and waits until it is gone."""
        self._process.kill()  # it has nothing to lose
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_S)
        with suppress(OSError):
            self._connection.close()

    @property
    def is_lost(self) -> bool:
        """Whether it is of no use any more."""
        return self._is_killed or self._process.poll() is not None


def _is_same(one: Batch, other: Batch) -> bool:
    return one is other or one == other


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
            SYSTEM_CLOCK.sleep(_LOOK_EVERY_S / 10)
        return False

    @contextmanager
    def ready(self) -> Iterator[Sequence[WorkerProcess]]:
        """Gives the workers that are ready, for the length of a block; those that are missing are started.

        None are given if another step has them, or in a process that was forked from the one that started them.
        """
        if os.getpid() != self._pid or not self._using.acquire(blocking=False):
            yield ()
            return
        try:
            self._replace_lost()
            yield tuple(one for one in self._processes if self._is_ready(one))
        finally:
            self._using.release()

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


def work_of(run: StepRun, nodes: Sequence[MaintainedNode], batches: Mapping[GlobalId, BatchId]) -> Work:
    """Returns the work of computing some collections in a step, each after its inputs, without what may be known."""
    own = {node.id for node in nodes}
    inputs = sorted({input for node in nodes for input in node.inputs} - own)
    return Work(
        step=run.tag,
        is_anew=False,
        timeline=run.graph.timeline,
        tick=run.tick,
        budget=process_budget(),
        engine=engine_setting(),
        batches={node.id: batches[node.id] for node in nodes},
        nodes=(),
        rows={},
        uppers={id: run.upper_of(id) for id in inputs},
        listed={},
    )
