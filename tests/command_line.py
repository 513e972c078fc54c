"""The command line in a process of its own that has its imports already: a new interpreter takes seconds for them.

That a new interpreter does the same is shown by `tests/cli/test_cli.py`, once.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

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
    return _ran(_script, (text, *arguments), folder, "", environment)


def _script(arguments: Sequence[str]) -> None:
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
        first, *others = (Path(streams, name) for name in _STREAMS)
        first.write_text(stdin)
        given = {**os.environ, **(environment or {})}
        process = forks().Process(target=_command, args=(program, arguments, folder, streams, given))
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
    folder: Path,
    streams: str,
    environment: Mapping[str, str],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, name in enumerate(_STREAMS):
        os.dup2(os.open(Path(streams, name), os.O_RDWR | os.O_CREAT), number)
    with open(0) as sys.stdin, open(1, "w") as sys.stdout, open(2, "w") as sys.stderr:
        warnings.simplefilter("default")
        try:
            sys.exit(program(arguments))
        except Exception:  # what started the process would write it where it came from, to files that are closed then
            traceback.print_exc()
            sys.exit(1)
