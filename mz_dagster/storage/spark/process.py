"""A detached process and its identity.

Owns the answer to "is that process still the one we started?": a pid alone is recycled by the system, a pid
with the time its process started is not. It sends signals only to processes whose identity it has just
checked. It knows nothing of Spark.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError

# Runs in an interpreter of its own, since `fork` is not safe in a process with threads. The child becomes the
# leader of a new session, so that neither Ctrl-C nor the starter's end reaches it; takes back the signals that
# a background starter ignores; and is an orphan, so that the starter need not wait for it.
_DETACH = """
import os, signal, sys
directory, output, *command = sys.argv[1:]
pid = os.fork()
if pid:
    print(pid, flush=True)
    os._exit(0)
os.setsid()
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGQUIT"):
    signal.signal(getattr(signal, name), signal.SIG_DFL)
null = os.open(os.devnull, os.O_RDONLY)
log = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
os.dup2(null, 0), os.dup2(log, 1), os.dup2(log, 2)
os.closerange(3, 256)
os.chdir(directory)
os.execvp(command[0], command)
"""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Names one process for good.

    Attributes:
        pid: Its number, which another process may get after its end.
        started: An opaque token for the moment it started.
    """

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Returns the identity of the process that has `pid` now, or None if none has."""
        started = _start_of(pid)
        return None if started is None else cls(pid, started)

    @property
    def is_alive(self) -> bool:
        """True while that very process runs; a zombie does not."""
        return _start_of(self.pid) == self.started

    def end(self, *, seconds: float) -> bool:
        """Ends the process, first politely, after `seconds` by force; returns False if it was gone already."""
        if not self.is_alive:
            return False
        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5.0)):
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return True
            if self.await_end(seconds=patience):
                return True
        raise OperationalError(f"process {self.pid} did not end")

    def await_end(self, *, seconds: float) -> bool:
        """Waits until the process is gone, at most `seconds`; returns whether it is."""
        deadline = SYSTEM_CLOCK.monotonic_ms() + seconds * 1000
        while self.is_alive:
            if SYSTEM_CLOCK.monotonic_ms() > deadline:
                return False
            SYSTEM_CLOCK.sleep(0.05)
        return True


def start_detached(
    command: Sequence[str], *, environment: Mapping[str, str], directory: Path, output: Path
) -> ProcessIdentity:
    """Starts `command` so that it outlives this process; its standard streams go to the file `output`."""
    starter = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _DETACH, str(directory), str(output), *command],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        check=True,
    )
    pid = int(starter.stdout)
    identity = ProcessIdentity.of(pid)
    if identity is None:
        raise OperationalError(f'process "{command[0]}" ended at once', detail=f"Its output is in {output}.")
    return identity


def _start_of(pid: int) -> str | None:
    """Returns when the live process `pid` started, in whatever unit the system has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _start_by_ps(pid)
    fields = stat[stat.rindex(")") + 2 :].split()  # the name before it may hold spaces and parentheses
    return None if fields[0] in "ZX" else fields[19]


def _start_by_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
        env={"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)},
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()
