"""The warm process: it has imported what runs need, and forks a worker for each, which is then at work at once.

    python -P -m mz_dagster.orchestration.warm_process DESCRIPTOR STARTED

It is started by `WarmRunLauncher`, at a time in milliseconds since the epoch, which speaks with it over a socket, one
JSON object a line:

    to it      {"run": RUN ID, "arguments": as of `dagster api execute_run`}
    from it    {"launched": RUN ID, "pid": its worker, "started": when} or {"stale": FILE} in answer, and
               {"ended": RUN ID, "status": exit code, or minus the signal} once a worker is over

A worker is what `dagster api execute_run` is: it loads the project's definitions itself, so it has them as they are on
disk. Of what was imported before, nothing may have changed either: the process looks at its modules' files before each
fork, and if one differs it says so, forks no more, and ends after its last worker.

The invariant: before a fork there is one thread, no connection to Spark and no Dagster instance, so a worker shares
nothing with its siblings but memory that is never written. It ends with its launcher; its workers do not.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from dagster import DagsterInstance, deserialize_value
from dagster._cli.api import execute_run_command
from dagster._grpc.types import ExecuteRunArgs

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.process import ProcessIdentity
from mz_dagster.process_exit import exit_process

#: The tag of a run that names its worker: host, process, and when that started.
WORKER_TAG = "mz/worker"

#: What a run imports once it is at work: nothing of a project, and nothing that makes a thread or a connection.
_PRELOADED = (
    "mz_dagster",
    "mz_dagster.orchestration",
    "mz_dagster.storage.spark.channel",
    "pyspark.sql.connect.session",
    "pyspark.sql.functions",
    "sqlalchemy.dialects.sqlite",
)

#: How coarse the times of files may be, and a little more.
_COARSE_MS = 1000


def main() -> None:
    """Serves the launcher on the socket whose descriptor is the argument, until that is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a terminal's Ctrl-C the launcher ends, and so does this
    link = socket.socket(fileno=int(sys.argv[1]))
    for name in _PRELOADED:
        importlib.import_module(name)
    if threading.active_count() > 1:
        raise RuntimeError(f"imports have started threads, so forking is not safe: {threading.enumerate()}")
    gc.collect()
    gc.freeze()  # a collection in a worker would write to, and so copy, what it shares
    _Forks(link, int(sys.argv[2])).serve()


class _Forks:
    """Forks workers and tells of their ends."""

    def __init__(self, link: socket.socket, started_ms: int) -> None:
        self._link = link
        self._requests = link.makefile("rb")
        paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        self._files = {path: _state_of(path) for path in paths if path is not None}
        # What was written since this process was started may have been imported before that: it is out of date already.
        self._torn = _written(self._files, started_ms - _COARSE_MS, SYSTEM_CLOCK.now_ms())
        self._workers: dict[int, tuple[int, str]] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(link, selectors.EVENT_READ)
        self._stale = False

    def serve(self) -> None:
        while not self._stale or self._workers:
            for key, _ in self._selector.select():
                if key.fileobj is not self._link:
                    self._reap(key.fd)
                elif not (line := self._requests.readline()):
                    return
                else:
                    request = json.loads(line)
                    self._launch(request["run"], request["arguments"])

    def _launch(self, run_id: str, arguments: str) -> None:
        changed = self._torn or next((path for path, state in self._files.items() if _state_of(path) != state), None)
        if changed is not None:
            self._stale = True
            self._selector.unregister(self._link)
            self._say(stale=changed)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._leave()
            _work(arguments)
        identity = ProcessIdentity.of(pid)  # until it is reaped the number is nobody else's
        descriptor = os.pidfd_open(pid)
        self._workers[descriptor] = pid, run_id
        self._selector.register(descriptor, selectors.EVENT_READ)
        self._say(launched=run_id, pid=pid, started="" if identity is None else identity.started)

    def _reap(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        pid, run_id = self._workers.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        self._say(ended=run_id, status=os.waitstatus_to_exitcode(status))

    def _say(self, **message: object) -> None:
        try:
            self._link.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            sys.exit(0)  # the launcher is gone; workers go on without either

    def _leave(self) -> None:
        """Closes in a worker what belongs to its parent."""
        self._selector.close()
        self._requests.close()
        self._link.close()
        for descriptor in self._workers:
            os.close(descriptor)


def _work(arguments: str) -> NoReturn:
    """Carries out a run, as `dagster api execute_run` does, and ends the process."""
    for number in (signal.SIGINT, signal.SIGTERM):  # either ends the run in order, so that it gives its lease back
        signal.signal(number, signal.default_int_handler)
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()  # Python's own generator is seeded anew by itself
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)  # as `python -m dagster` has it
    args = deserialize_value(arguments, ExecuteRunArgs)
    itself = ProcessIdentity.of(os.getpid())
    assert args.instance_ref is not None
    assert itself is not None
    worker = {"host": socket.gethostname(), "pid": itself.pid, "started": itself.started}
    with DagsterInstance.from_ref(args.instance_ref) as instance:
        instance.add_run_tags(args.run_id, {WORKER_TAG: json.dumps(worker)})
    execute = execute_run_command.callback
    assert execute is not None
    try:
        execute(arguments, None)
    finally:
        exit_process(0)  # an interrupted run has said so in Dagster's record
    sys.exit(0)


def _state_of(path: str) -> tuple[int, int, int] | None:
    """Returns what differs if a file is written or replaced; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _written(paths: Iterable[str], lower_ms: int, upper_ms: int) -> str | None:
    """Returns a file that was written or put in place between two times, if there is one."""
    for path in paths:
        with suppress(OSError):
            if lower_ms <= os.stat(path).st_ctime_ns // 1_000_000 <= upper_ms:
                return path
    return None


if __name__ == "__main__":
    main()
