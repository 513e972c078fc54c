"""Detached processes: their identity, and how they end.

Owns the answer to "is that process still the one we started?": a pid alone is recycled by the system, a pid
with the time its process started is not. It sends signals only to processes whose identity it has just
checked. A process that was started here is watched by a small one of its own, which writes down how it ended: by
which signal or exit code, whether the system killed it for want of memory, and what it said last.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError
from mz_dagster.liveness import state_and_start

# Runs in an interpreter of its own, since `fork` is not safe in a process with threads. The first child becomes the
# leader of a new session, so that neither Ctrl-C nor the starter's end reaches it, and is an orphan, so that the
# starter need not wait for it; it starts the command and waits for its end. The command takes back the signals that a
# background starter ignores, and makes files that are its owner's alone.
#
# Who uses the process touches a file. Once that is old, the watcher takes the lock that starters take, hides the file
# by which users find the process, and looks again a moment later: whoever found it before has touched the file since.
_DETACH = """
import fcntl, json, os, signal, sys, time
directory, output, endings, idle, *command = sys.argv[1:]
used, seconds, lock, named = json.loads(idle) or (None, 0, None, None)
hidden = str(named) + ".idle"
class Ring(Exception):
    pass
def ring(*_):
    raise Ring
def unused():
    try:
        return time.time() - os.stat(used).st_mtime > seconds
    except OSError:
        return True
def hide():
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(named, hidden)
    except OSError:
        os.close(file)
        return False
    time.sleep(1)
    if not unused():
        os.rename(hidden, named)
        os.close(file)
        return False
    return True
def stop():
    if os.path.isdir(directory) and not hide():
        return False
    os.kill(pid, signal.SIGTERM)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
    signal.alarm(20)
    return True
signals = [getattr(signal, "SIG" + name) for name in ("INT", "TERM", "HUP", "PIPE", "QUIT")]
def killed_for_memory():
    found = 0
    for path in ("/sys/fs/cgroup" + group + "/memory.events", "/sys/fs/cgroup/memory.events", "/proc/vmstat"):
        try:
            with open(path) as file:
                found += sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
        except OSError:
            pass
    return found
if os.fork():
    os._exit(0)
os.setsid()
os.umask(0o077)
try:
    with open("/proc/self/cgroup") as file:
        group = file.read().rpartition("::")[2].strip()
except OSError:
    group = ""
before = killed_for_memory()
report = os.dup(1)
null = os.open(os.devnull, os.O_RDONLY)
log = os.open(output, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
os.dup2(null, 0), os.dup2(log, 1), os.dup2(log, 2)
pid = os.fork()
if not pid:
    for one in signals:
        signal.signal(one, signal.SIG_DFL)
    os.closerange(3, 256)
    os.chdir(directory)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(command[0] + ":", error.strerror, file=sys.stderr, flush=True)
        os._exit(127)
for one in signals:
    signal.signal(one, signal.SIG_IGN)
os.write(report, str(pid).encode())
os.close(report)
period = max(1, int(min(seconds / 4, 30)))
was_idle = False
while True:
    try:
        if used is not None and not was_idle:
            signal.signal(signal.SIGALRM, ring)
            signal.alarm(period)
        _, status = os.waitpid(pid, 0)
        signal.alarm(0)
        break
    except Ring:
        was_idle = unused() and stop()
if was_idle and os.path.exists(hidden):
    os.unlink(hidden)
code = os.waitstatus_to_exitcode(status)
end = os.lseek(log, 0, os.SEEK_END)
said = os.pread(log, 4000, max(0, end - 4000)).decode(errors="replace")
line = {"pid": pid, "code": code, "for_memory": killed_for_memory() > before, "idle": was_idle, "said": said}
with open(os.open(endings, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as file:
    file.write(json.dumps(line) + "\\n")
"""

#: How many endings of processes are remembered in a file.
_ENDINGS = 20


@dataclass(frozen=True, slots=True)
class Ending:
    """Says how a process ended.

    Attributes:
        code: Its exit code, or the number of the signal that killed it with a minus sign.
        for_memory: Whether the system killed a process meanwhile because memory was short.
        said: What it wrote last to its standard streams.
        idle: Whether it was ended because nobody used it.
    """

    code: int
    for_memory: bool
    said: str
    idle: bool = False

    @property
    def cause(self) -> str:
        """What follows "it": which code or signal, and who may have sent it."""
        if self.idle:
            return "was stopped, because nobody used it any more"
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = f"signal {-self.code}"
        if -self.code != signal.SIGKILL:
            return f"was ended by {name}"
        if self.for_memory:
            return f"was killed by the system ({name}), because memory was short"
        return f"was killed ({name}), by somebody or by the system"


@dataclass(frozen=True, slots=True)
class IdleStop:
    """Says when a detached process is ended because nobody uses it.

    Attributes:
        used: A file that each user touches, before it looks for the process and while it uses it.
        seconds: How old its time must be.
        lock: A file that starters of the process hold locked (`flock`) meanwhile; so does its end.
        named: The file by which users find the process: gone before it ends.
    """

    used: Path
    seconds: float
    lock: Path
    named: Path


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
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: Path,
    output: Path,
    endings: Path,
    idle: IdleStop | None = None,
) -> ProcessIdentity:
    """Starts `command` so that it outlives this process.

    Args:
        command: The command.
        environment: Its environment, as a whole.
        directory: Where it runs.
        output: The file for its standard streams; made anew.
        endings: The file to which a line is added when it has ended; see `ending_of`.
        idle: When it is ended because nobody uses it; None: never.
    """
    stop = None if idle is None else (str(idle.used), idle.seconds, str(idle.lock), str(idle.named))
    _forget_old(endings)
    starter = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            _DETACH,
            str(directory),
            str(output),
            str(endings),
            json.dumps(stop),
            *command,
        ],
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


def ending_of(process: ProcessIdentity, endings: Path, *, seconds: float) -> Ending | None:
    """Returns how a process that `start_detached` started has ended; None if it runs, or nobody saw its end.

    Args:
        process: The process.
        endings: The file that was named when it was started.
        seconds: How long to wait for its end, and then for that being written down.
    """
    deadline = SYSTEM_CLOCK.monotonic_ms() + seconds * 1000
    while True:
        if not process.is_alive and (found := _last_of(process.pid, endings)) is not None:
            return found
        if SYSTEM_CLOCK.monotonic_ms() > deadline:
            return None
        SYSTEM_CLOCK.sleep(0.05)


def rotate(path: Path, *, generations: int) -> None:
    """Renames a file to `NAME.1`, what had that name to `NAME.2`, and so on; of so many older ones the last goes."""
    for number in range(generations, 0, -1):
        source = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        with suppress(FileNotFoundError):
            source.replace(path.with_name(f"{path.name}.{number}"))


def _last_of(pid: int, endings: Path) -> Ending | None:
    for line in reversed(_lines(endings)):
        try:
            row = json.loads(line)
            if row["pid"] == pid:
                return Ending(int(row["code"]), bool(row["for_memory"]), str(row["said"]), bool(row.get("idle")))
        except (ValueError, KeyError, TypeError):
            continue  # it is being written
    return None


def _forget_old(endings: Path) -> None:
    lines = _lines(endings)
    if len(lines) > _ENDINGS:
        draft = endings.with_name(f"{endings.name}.{os.getpid()}.new")
        draft.write_text("".join(lines[-_ENDINGS:]), encoding="utf-8")
        draft.chmod(0o600)
        draft.replace(endings)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return []


def _start_of(pid: int) -> str | None:
    """Returns when the live process `pid` started, in whatever unit the system has."""
    if not Path("/proc/self/stat").exists():
        return _start_by_ps(pid)
    found = state_and_start(pid)
    return None if found is None or found[0] in "ZX" else found[1]


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
