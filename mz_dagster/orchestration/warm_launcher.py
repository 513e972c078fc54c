"""The run launcher that is shipped: runs start in workers forked from a warm process, instead of in new interpreters.

A new interpreter takes seconds to import what a run needs, for each run the same; a tick's work is often less. So the
process that launches runs, the daemon or the webserver, keeps a warm one (`warm_process`) for each Python that code
locations use, from its first run on. Else all is as with Dagster's own launcher: each run has a process of its own,
which loads the project's definitions as they are on disk, and logs and ends by itself.

- A run tells Dagster of hundreds of things. Where that is on SQLite, its connections stay (`kept_event_log`).
- A worker that dies is noticed at once, and its run fails. If launcher or warm process died before it, run monitoring
  notices: a run bears its worker's identity in a tag.
- Any process with the same Dagster instance, on the same machine and as the same user, can terminate a run.
- What a worker is told, it is told over a socket; nothing but its descriptor is in a command line.

For code locations on this machine, under Linux.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, serialize_value
from dagster._config.config_schema import UserConfigSchema
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster._utils import get_run_crash_explanation

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError
from mz_dagster.orchestration.kept_event_log import keeping
from mz_dagster.orchestration.runs import KILLED_TAG
from mz_dagster.orchestration.warm_process import WORKER_TAG
from mz_dagster.process import ProcessIdentity

logger = logging.getLogger("mz_dagster.launcher")

_PROCESS = "mz_dagster.orchestration.warm_process"
#: For how long a warm process may import, and a worker take until it says who it is, in seconds.
_START_SECONDS, _TAG_SECONDS = 120.0, 10.0
_LOOK_SECONDS = 0.5
#: How long a warm process may take to end, in seconds.
_END_SECONDS = 5.0
#: How many warm processes to start for a run, where each finds that what it has imported is changing.
_STARTS = 3

#: Receives a run's id and how its worker ended: the exit code, minus the signal, or None if nobody knows.
Ended = Callable[[str, int | None], None]


class WarmRunLauncher(RunLauncher[DagsterInstance], ConfigurableClass):
    """Launches each run in a worker forked from a warm process; `run_launcher` of a `dagster.yaml`."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        self._lock = threading.Lock()
        self._warm: dict[str, _WarmProcess] = {}
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """What the instance's settings say of it."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        """Returns its settings: it has none."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Returns the launcher."""
        return cls(inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Starts a run's worker.

        Raises:
            OperationalError: The code location's Python is not on this machine, or lacks mz_dagster, or its
                warm process died; Dagster marks the run as failed.
        """
        run, origin = context.dagster_run, context.job_code_origin
        if origin is None:
            raise OperationalError(f"run {run.run_id} does not say where its job's code is")
        if sys.platform != "linux":
            raise OperationalError(
                "WarmRunLauncher needs Linux",
                hint="Take `run_launcher` out of dagster.yaml for Dagster's own launcher.",
            )
        arguments = serialize_value(ExecuteRunArgs(origin, run.run_id, keeping(self._instance.get_ref())))
        with self._lock:
            for _ in range(_STARTS):
                warm = self._warm.get(origin.executable_path)
                if warm is None or not warm.is_alive:
                    warm = self._warm[origin.executable_path] = _WarmProcess(origin.executable_path, self._ended)
                if warm.launch(run.run_id, arguments):
                    return
                del self._warm[origin.executable_path]
        raise OperationalError(
            "the files of installed packages are changing right now", hint="Launch the run again once they keep still."
        )

    def terminate(self, run_id: str) -> bool:
        """Interrupts a run's worker; what the run has finished is kept. Returns whether there was one to interrupt."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        until = SYSTEM_CLOCK.monotonic_ms() + 1000 * _TAG_SECONDS
        while WORKER_TAG not in run.tags and SYSTEM_CLOCK.monotonic_ms() < until:
            SYSTEM_CLOCK.sleep(_LOOK_SECONDS)
            run = self._instance.get_run_by_id(run_id)
            if run is None or run.is_finished:
                return False
        worker = _worker_of(run)
        if worker is None or not worker.is_alive:
            why = "the process that it named is gone" if worker else "it named no process of this machine"
            self._instance.report_engine_event(f"Could not interrupt the run's worker: {why}.", run, cls=type(self))
            return False
        os.kill(worker.pid, signal.SIGINT)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        """True: run monitoring can ask for it."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Returns whether a started run's worker lives. A run that names none here was not launched from here."""
        worker = _worker_of(run)
        if worker is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "it has no worker of this launcher on this machine")
        if worker.is_alive:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"its worker, process {worker.pid}, is gone")

    def dispose(self) -> None:
        """Lets the warm processes go; workers finish their runs."""
        with self._lock:
            while self._warm:
                self._warm.popitem()[1].close()

    def _ended(self, run_id: str, status: int | None) -> None:
        """Marks a run whose worker is over and did not say how it went."""
        if not self.has_instance:
            return
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return
        prefix = f"Run worker for {run_id}"
        message = f"{prefix} is gone." if status is None else get_run_crash_explanation(prefix, status)
        self._instance.report_engine_event(message, run, cls=type(self))
        if run.status == DagsterRunStatus.CANCELING:
            self._instance.report_run_canceled(run)
        else:
            if status is None or status < 0:
                self._instance.add_run_tags(run_id, {KILLED_TAG: "true"})  # first, so that none sees it over without
            self._instance.report_run_failed(run)


class _WarmProcess:
    """A warm process, as its launcher sees it.

    Args:
        executable: The Python that it runs.
        ended: Is called, in a thread, once for each worker that is over.
    """

    def __init__(self, executable: str, ended: Ended) -> None:
        self._executable = executable
        self._ended = ended
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._workers: dict[str, ProcessIdentity] = {}
        self._link, theirs = socket.socketpair()
        with theirs:
            command = [executable, "-P", "-m", _PROCESS, str(theirs.fileno()), str(SYSTEM_CLOCK.now_ms())]
            try:
                self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            except OSError as error:
                self._link.close()
                raise OperationalError(
                    f'"{executable}", the Python of the code location, cannot be run here: {error.strerror}',
                    hint="WarmRunLauncher serves code locations of its own machine; for others, take `run_launcher` "
                    "out of dagster.yaml.",
                ) from error
        self._lines = self._link.makefile("rb")  # keeps the socket for the thread, whoever closes it before
        threading.Thread(target=self._listen, name="mz-warm-process", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def launch(self, run_id: str, arguments: str) -> bool:
        """Starts a worker; returns False if the process is out of date and starts none any more."""
        try:
            self._link.sendall(json.dumps({"run": run_id, "arguments": arguments}).encode() + b"\n")
            answer = self._answers.get(timeout=_START_SECONDS)
        except (OSError, queue.Empty):
            answer = None
        if answer is None:
            self.close()
            raise OperationalError(
                f'the warm process of "{self._executable}" started no worker',
                hint="What it printed says why; mz_dagster must be installed there.",
            )
        if "stale" in answer:
            logger.info("%s has changed: starting a new warm process", answer["stale"])
            return False
        return True

    def close(self) -> None:
        """Ends it, not its workers; returns when it is over."""
        with self._link, contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it is still importing, or stopped
            self._process.kill()
            self._process.wait(_END_SECONDS)

    def _listen(self) -> None:
        """Passes on what the process says, and after its end watches the workers that it left."""
        with self._link, self._lines as lines:
            for line in _until_its_end(lines):
                if not line.endswith(b"\n"):
                    break  # it was killed while it spoke
                message = json.loads(line)
                if "ended" in message:
                    self._workers.pop(message["ended"], None)
                    self._tell(message["ended"], message["status"])
                    continue
                if "launched" in message:
                    self._workers[message["launched"]] = ProcessIdentity(message["pid"], message["started"])
                self._answers.put(message)
        self._answers.put(None)
        self._process.wait()
        while self._workers:
            for run_id, worker in list(self._workers.items()):
                if not worker.is_alive:
                    del self._workers[run_id]
                    self._tell(run_id, None)
            SYSTEM_CLOCK.sleep(_LOOK_SECONDS)

    def _tell(self, run_id: str, status: int | None) -> None:
        try:
            self._ended(run_id, status)
        except Exception:  # the storage is busy, say: run monitoring will find out
            logger.exception("run %s: could not say that its worker is over", run_id)


def _until_its_end(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields what a process says, also if it ends before it has read all that it was told."""
    with contextlib.suppress(ConnectionResetError):
        yield from lines


def _worker_of(run: DagsterRun) -> ProcessIdentity | None:
    """Returns the process of this machine that a run names as its worker, if it does."""
    named = json.loads(run.tags.get(WORKER_TAG, "null"))
    if named is None or named["host"] != socket.gethostname():
        return None
    return ProcessIdentity(named["pid"], named["started"])
