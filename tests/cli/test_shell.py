"""The shell at a terminal: statements over several lines, their history, completion of keywords and names."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from mz_dagster.cli.shell import SqlCompleter, read_statements

NAMES = ("orders", "order", "Odd name", "total", "round")


@pytest.mark.parametrize(
    ("begun", "completed"),
    [
        ("SELECT * FROM orde", ["orders", '"order"', "order"]),
        ('SELECT * FROM "od', ['"Odd name"']),
        ("MATER", ["MATERIALIZED"]),
        ("mater", ["materialized"]),
        ("SELECT rou", ["round"]),
        ("SELECT ", []),
        ("SELECT 'x' || tot", ["total"]),
    ],
)
def test_keywords_and_names_are_completed(begun: str, completed: list[str]) -> None:
    found = SqlCompleter(lambda: NAMES).get_completions(Document(begun), CompleteEvent())
    assert {one.text for one in found} == set(completed)


def entered(keys: str, history: Path) -> list[str]:
    """Returns the statements that keys at a terminal make."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys + "\x04")
        return list(read_statements(history, lambda: NAMES))


def test_enter_ends_a_statement_with_a_semicolon_and_else_begins_a_line(tmp_path: Path) -> None:
    history = tmp_path / "history"
    assert entered("SELECT 1\r  + 1;\r\rSELECT 2; \r", history) == ["SELECT 1\n  + 1;", "SELECT 2; "]
    assert history.stat().st_mode & 0o777 == 0o600


def test_a_semicolon_in_quotes_or_comments_ends_nothing_and_a_command_is_a_line(tmp_path: Path) -> None:
    keys = "SELECT ';\r' -- ;\r; -- over\r\\x\rSELECT $$;\r$$;\r"
    assert entered(keys, tmp_path / "history") == ["SELECT ';\n' -- ;\n; -- over", "\\x", "SELECT $$;\n$$;"]


def test_what_was_entered_before_is_there_again(tmp_path: Path) -> None:
    history = tmp_path / "history"
    entered("SELECT 1\r  + 1;\r", history)
    assert entered("\x1b[A\r", history) == ["SELECT 1\n  + 1;"]


def test_ctrl_c_gives_up_what_was_typed(tmp_path: Path) -> None:
    assert entered("SELECT wrong\x03SELECT 1;\r", tmp_path / "history") == ["SELECT 1;"]


def test_a_history_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    assert entered("SELECT 1;\r", tmp_path / "missing" / "history") == ["SELECT 1;"]


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], number: int) -> None:
        self.process = process
        self._number = number
        self.shown = ""

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._number)

    def types(self, keys: str) -> None:
        os.write(self._number, keys.encode())

    def shows(self, text: str, seconds: float = 120) -> None:
        """Waits until the process has shown a text."""
        until = time.monotonic() + seconds
        while text not in self.shown:
            ready, _, _ = select.select([self._number], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"no {text!r} in {self.shown!r}"
            try:
                self.shown += os.read(self._number, 65536).decode(errors="replace")
            except OSError:  # it is over
                assert text in self.shown, self.shown
        self.shown = self.shown.partition(text)[2]


@contextmanager
def shell(folder: Path) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    root = Path(__file__).resolve().parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "MZ_ENGINE": "local",
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    command = [sys.executable, "-m", "mz_dagster.cli", "sql"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    with closing(Terminal(process, ours)) as terminal:
        yield terminal


def test_at_a_terminal(tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        terminal.shows("mz>")
        terminal.types("CREATE TABLE weathers (a integer);\r")
        terminal.shows("CREATE TABLE")
        terminal.shows("mz>")
        terminal.types("SELECT count(*) * 0 + 4711 AS n FROM weat\t")
        terminal.shows("hers")
        terminal.types(";\r")
        terminal.shows("4711\r\n")
        terminal.types("\\x\r")
        terminal.shows("Expanded display is on.")
        terminal.types("\\timing\rSELECT 4712 AS n;\r")
        terminal.shows("-[ 1 ]-")
        terminal.shows("n  4712")
        terminal.shows("Time: ")
        terminal.types("SELECT nonsense;\r")
        terminal.shows("nonsense")
        terminal.shows("mz>")
        terminal.process.send_signal(signal.SIGTERM)
        terminal.shows("terminated")
        assert terminal.process.wait(timeout=60) == 128 + signal.SIGTERM
