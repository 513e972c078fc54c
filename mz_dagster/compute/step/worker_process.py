"""One worker as the stepper sees it: its process, what it was sent, and how it answers. `worker` has what it does.

What is imported here is loaded with the first worker, not with each process that steps.
"""

from __future__ import annotations

import pickle
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from mz_dagster.budget import engine_setting, process_budget
from mz_dagster.catalog import Batch, BatchId, CollectionRow
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.compute.step.graph import MaintainedNode
from mz_dagster.compute.step.run import StepRun
from mz_dagster.compute.step.worker import Done, Frontiers, Work
from mz_dagster.compute.step.worker_lost import WorkerLost
from mz_dagster.formalism import GlobalId

#: A worker that says nothing for so long is taken to hang: it would say that it is alive.
_SILENT_S = 60.0
#: How often it is looked whether anybody waits for what a worker computes, in seconds.
_LOOK_EVERY_S = 0.2
#: How long the end of one that was killed is waited for, in seconds.
_LAST_S = 10.0
#: So many times more collections than a step has are known to a worker before it forgets those that are gone.
_KNOWN_TIMES = 4
_KNOWN_AT_LEAST = 1_000


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
        self._listed: dict[GlobalId, tuple[Batch, ...]] = {}
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

    def compute(self, run: StepRun, batches: Mapping[GlobalId, BatchId], check_wanted: Callable[[], None]) -> Done:
        """Returns what becomes of collections.

        Args:
            run: The step.
            batches: They, each after its inputs, with the id of the batch to make.
            check_wanted: Raises once nobody waits for it; the worker is killed then.

        Raises:
            WorkerLost: It died, or hangs.
        """
        with self._sending:
            self._send(self._work(run, batches))
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

    def _work(self, run: StepRun, batches: Mapping[GlobalId, BatchId]) -> Work:
        """Returns the work of computing collections, with what the worker does not know yet."""
        is_anew = len(self._rows) > _KNOWN_TIMES * len(run.graph.nodes) + _KNOWN_AT_LEAST
        if is_anew:
            self._nodes, self._rows, self._listed = {}, {}, {}
        nodes = [run.graph.by_id[id] for id in batches]
        plans = [one for one in nodes if isinstance(one, MaintainedNode) and self._nodes.get(one.id) is not one]
        self._nodes |= {one.id: one for one in plans}
        inputs = sorted({input for node in nodes for input in node.inputs} - batches.keys())
        ids = (*inputs, *batches)
        return Work(
            step=run.tag,
            is_anew=is_anew,
            timeline=run.graph.timeline,
            tick=run.tick,
            budget=process_budget(),
            engine=engine_setting(),
            batches=batches,
            nodes=plans,
            rows={id: self._row(run.rows[id]) for id in ids if self._rows.get(id) is not run.rows[id]},
            uppers={id: run.upper_of(id) for id in inputs},
            listed={id: news for id in ids if (news := self._news(run, id)) is not None},
        )

    def _row(self, row: CollectionRow) -> CollectionRow | Frontiers:
        """Returns what the worker has to be told of a collection."""
        known, self._rows[row.id] = self._rows.get(row.id), row
        moved = Frontiers(row.since, row.upper, row.next_due)
        return moved if known is not None and moved.of(known) == row else row

    def _news(self, run: StepRun, id: GlobalId) -> Sequence[Batch | BatchId] | None:
        """Returns a collection's list of batches, ids for what the worker knows; None if it knows the list."""
        before, now = self._listed.get(id, ()), tuple(run.batches[id])
        if before == now:
            return None
        self._listed[id] = now
        known = {one.id: one for one in before}
        return [one.id if known.get(one.id) == one else one for one in now]

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
