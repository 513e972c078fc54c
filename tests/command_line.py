"""The command line in a process of its own that has its imports already: a new interpreter takes seconds for them.

That a new interpreter does the same is shown by `tests/cli/test_cli.py`, once.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Self

from mz_dagster.cli import main
from tests.forks import forks

_STREAMS = ("in", "out", "err")


def mz_dagster(
    arguments: Sequence[str], folder: Path, *, stdin: str = "", environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Runs `mz-dagster` in a folder, with its environment beside this process's; returns its exit code and output."""
    return _ran(main, arguments, folder, stdin, environment)


def dagster(
    arguments: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Runs `dagster` likewise."""
    return _ran(_dagster, arguments, folder, "", environment)


def python(
    text: str, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Runs a script of Python likewise, with arguments; warnings are errors."""
    return _ran(script, (text, *arguments), folder, "", environment)


class Started:
    """Is a process at work, by its streams and signals: what `subprocess.Popen` is of a new interpreter.

    Its parent is the server that forks it, which waits for it at once: it never is a zombie for long.
    """

    def __init__(
        self,
        program: Callable[[Sequence[str]], int | None],
        *arguments: str,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        context = forks()
        ends = [context.Pipe(duplex=False) for _ in _STREAMS]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = ends
        given = {**os.environ, **(environment or {})}
        streams = (theirs_in, theirs_out, theirs_err)
        self.arguments = arguments
        self._process = context.Process(target=_command, args=(program, arguments, folder, streams, given))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.stdin = os.fdopen(os.dup(ours_in.fileno()), "w", buffering=1)
        self.stdout, self.stderr = (os.fdopen(os.dup(one.fileno())) for one in (ours_out, ours_err))
        for one in (*ends[0], *ends[1], *ends[2]):
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        self.wait(60)
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()

    def poll(self) -> int | None:
        """Returns how it ended, as `subprocess` does; None if it has not."""
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        """Waits for its end, and returns how it was."""
        self._process.join(seconds)
        code = self.poll()
        assert code is not None, f"{self.arguments!r} has not ended in {seconds} s"
        return code

    def communicate(self, seconds: float) -> tuple[str, str]:
        """Says nothing more, waits for its end, and returns what it wrote."""
        self.stdin.close()
        with ThreadPoolExecutor(2) as readers:
            both = [readers.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(seconds)
            finally:
                self.kill()
        out, err = (one.result() for one in both)
        self.stdout.close()
        self.stderr.close()
        return out, err

    def send_signal(self, number: signal.Signals) -> None:
        """Sends it a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it, if it has not ended."""
        self.send_signal(signal.SIGKILL)

    def state(self) -> str:
        """Returns the letter by which the system tells what it does; "X" if it is gone."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return "X"


def script(arguments: Sequence[str]) -> None:
    """Runs a script of Python, the first of the arguments; warnings are errors."""
    text, *sys.argv[1:] = arguments
    sys.path.insert(0, "")
    warnings.simplefilter("error")
    exec(compile(text, "<script>", "exec", dont_inherit=True), {"__name__": "__main__"})


def _dagster(arguments: Sequence[str]) -> None:
    (command,) = entry_points(group="console_scripts", name="dagster")
    sys.argv = ["dagster", *arguments]
    command.load()()


def _ran(
    program: Callable[[Sequence[str]], int | None],
    arguments: Sequence[str],
    folder: Path,
    stdin: str,
    environment: Mapping[str, str] | None,
) -> CompletedProcess[str]:
    with TemporaryDirectory() as streams:
        files = [Path(streams, name) for name in _STREAMS]
        first, *others = files
        first.write_text(stdin)
        given = {**os.environ, **(environment or {})}
        process = forks().Process(target=_command, args=(program, arguments, folder, files, given))
        process.start()
        process.join(240)
        process.kill()
        process.join()
        assert process.exitcode is not None
        out, err = (one.read_text() for one in others)
    return CompletedProcess(arguments, process.exitcode, out, err)


def _command(
    program: Callable[[Sequence[str]], int | None],
    arguments: Sequence[str],
    folder: Path | None,
    streams: Sequence[Path | Connection],
    environment: Mapping[str, str],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    for number, stream in enumerate(streams):
        if isinstance(stream, Connection):
            os.dup2(stream.fileno(), number)
            stream.close()
        else:
            os.dup2(os.open(stream, os.O_RDWR | os.O_CREAT), number)
    with open(0) as sys.stdin, open(1, "w") as sys.stdout, open(2, "w") as sys.stderr:
        warnings.simplefilter("default")
        try:
            sys.exit(program(arguments))
        except Exception:  # what started the process would write it where it came from, to files that are closed then
            traceback.print_exc()
            sys.exit(1)
