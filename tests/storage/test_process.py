"""Detached processes: how they ended is known to whoever asks, whoever started them."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from pathlib import Path

import pytest
from filelock import FileLock

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.process import Ending, IdleStop, ProcessIdentity, ending_of, rotate, start_detached
from mz_dagster.storage.spark.ending import WatchedServer, why_not_started


def start(folder: Path, *command: str) -> ProcessIdentity:
    return start_detached(
        command, environment=os.environ, directory=folder, output=folder / "out", endings=folder / "ended"
    )


def test_an_exit_code_and_the_last_words_are_told(tmp_path: Path) -> None:
    process = start(tmp_path, "sh", "-c", "echo started; sleep 0.3; echo the last words >&2; exit 3")
    ending = ending_of(process, tmp_path / "ended", seconds=30)
    assert ending is not None
    assert (ending.code, ending.said, ending.cause) == (3, "started\nthe last words\n", "ended with exit code 3")
    for name in ("out", "ended"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_is_told(number: signal.Signals, tmp_path: Path) -> None:
    process = start(tmp_path, "sleep", "60")
    assert ending_of(process, tmp_path / "ended", seconds=0) is None
    os.kill(process.pid, number)
    ending = ending_of(process, tmp_path / "ended", seconds=30)
    assert ending is not None
    assert ending.code == -number
    assert number.name in ending.cause


def idle(folder: Path, seconds: float) -> IdleStop:
    for name in ("used", "named"):
        (folder / name).touch()
    return IdleStop(folder / "used", seconds, folder / "lock", folder / "named")


def start_idle(folder: Path, seconds: float, *command: str) -> ProcessIdentity:
    return start_detached(
        command,
        environment=os.environ,
        directory=folder,
        output=folder / "out",
        endings=folder / "ended",
        idle=idle(folder, seconds),
    )


def test_a_process_that_nobody_uses_is_ended_and_found_no_more(tmp_path: Path) -> None:
    process = start_idle(tmp_path, 1.0, "sleep", "60")
    ending = ending_of(process, tmp_path / "ended", seconds=30)
    assert ending is not None
    assert ending.idle
    assert "nobody used it" in ending.cause
    assert not (tmp_path / "named").exists()
    assert not (tmp_path / "named.idle").exists()


def test_a_process_that_is_used_or_being_started_anew_goes_on(tmp_path: Path) -> None:
    """It is hidden for a moment, in which whoever had found it touches its file; or a starter holds the lock."""
    with FileLock(tmp_path / "lock"):
        process = start_idle(tmp_path, 0.1, "sleep", "60")
        assert not process.await_end(seconds=2.5)
        assert (tmp_path / "named").exists()
    deadline = SYSTEM_CLOCK.monotonic_ms() + 30_000
    while not (tmp_path / "named.idle").exists():
        assert SYSTEM_CLOCK.monotonic_ms() < deadline
        SYSTEM_CLOCK.sleep(0.01)
    os.utime(tmp_path / "used", (2**32, 2**32))
    assert not process.await_end(seconds=2.5)
    assert (tmp_path / "named").exists()
    os.kill(process.pid, signal.SIGKILL)
    ending = ending_of(process, tmp_path / "ended", seconds=30)
    assert ending is not None
    assert not ending.idle


def test_a_process_whose_folder_is_gone_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    process = start_idle(folder, 0.5, "sleep", "60")
    shutil.rmtree(folder)
    assert process.await_end(seconds=30)


def test_the_endings_of_many_are_told_apart_and_old_ones_forgotten(tmp_path: Path) -> None:
    (tmp_path / "ended").write_text("no JSON\n" * 50)
    processes = [start(tmp_path, "sh", "-c", f"sleep 0.2; exit {code}") for code in (4, 5)]
    endings = [ending_of(one, tmp_path / "ended", seconds=30) for one in processes]
    assert [one.code for one in endings if one is not None] == [4, 5]
    assert len((tmp_path / "ended").read_text().splitlines()) < 30


def test_files_are_rotated(tmp_path: Path) -> None:
    for number in range(5):
        rotate(tmp_path / "out", generations=2)
        (tmp_path / "out").write_text(str(number))
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"out": "4", "out.1": "3", "out.2": "2"}


OUT_OF_HEAP = "Terminating due to java.lang.OutOfMemoryError: Java heap space\n"


@pytest.mark.parametrize(
    ("ending", "why", "what_to_do"),
    [
        (Ending(3, False, f"WARN x\n{OUT_OF_HEAP}"), "heap of 4g was full: Terminating due", "raise"),
        (Ending(3, False, ""), "heap of 4g was full", "raise"),
        (Ending(-9, True, ""), "killed by the system (SIGKILL), because memory was short", "lower"),
        (Ending(-9, False, ""), "killed (SIGKILL), by somebody or by the system", "server.out"),
        (Ending(1, False, "OpenJDK: There is insufficient memory for x\n"), "insufficient memory", "lower"),
        (Ending(-6, False, "#"), "SIGABRT", "server.out"),
        (Ending(143, False, ""), "exit code 143", "server.out"),
    ],
)
def test_why_a_server_ended_is_told_with_what_to_set(
    ending: Ending, why: str, what_to_do: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mz_dagster.storage.spark.ending.ending_of", lambda *_, **__: ending)
    told = WatchedServer(ProcessIdentity(1, "x"), Path("/state"), "4g").why_ended()
    assert told is not None
    assert why in told[0]
    assert what_to_do in told[1]
    assert ("spark.driver.memory" in told[1]) == (what_to_do != "server.out")


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Caused by: java.io.IOException: No space left on device", "no space for Spark's jars"),
        ("java.io.FileNotFoundException: /root/.ivy2.5.2/x (Read-only file system)", "cannot write where its jars"),
        ("::          UNRESOLVED DEPENDENCIES         ::", "cannot be fetched"),
        ("Error: Invalid value", "ended while it started"),
    ],
)
def test_why_a_server_did_not_start_is_a_line_that_says_what_to_do(said: str, what: str) -> None:
    told, hint = why_not_started(said)
    assert what in told
    assert bool(hint) == ("ended" not in what)
