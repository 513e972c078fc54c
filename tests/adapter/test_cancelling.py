"""Statements that are cancelled: what reaches them too late ends nothing, and the interpreter is as it was before."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
from typing import Never

import pytest

from mz_dagster.adapter.cancelling import Cancellation, StatementCancelled
from mz_dagster.garbage import without_collections

#: What a statement ends by, and how a process counts calls afterwards, as profilers and debuggers do.
WATCHED = """
    import sys, threading
    from mz_dagster.adapter.cancelling import Cancellation, StatementCancelled

    def work():
        threading.Thread(target=cancellation.cancel).start()
        while True:
            pass

    cancellation = Cancellation()
    cancellation.execute(int, 60_000)
    try:
        cancellation.execute(work)
    except StatementCancelled:
        pass
    calls = []
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    for _ in range(1_000):
        (lambda: None)()
    sys.setprofile(None)
    print(calls.count("call"))
"""


@pytest.mark.deep
def test_a_process_can_be_profiled_after_statements_that_could_be_cancelled() -> None:
    """An exception that is taken back has it look for one at each call, for ever under a profiler."""
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WATCHED)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr) == ("1000\n", "")


def test_a_statement_ends_once_however_often_it_is_asked_to() -> None:
    cancellation = Cancellation()
    for _ in range(50):
        begun = threading.Event()

        def work(begun: threading.Event = begun) -> Never:
            begun.set()
            while True:
                pass

        def cancel(begun: threading.Event = begun) -> None:
            begun.wait(10)
            for _ in range(20):
                cancellation.cancel("enough")

        asking = threading.Thread(target=cancel)
        asking.start()
        with pytest.raises(StatementCancelled, match="enough"):
            cancellation.execute(work)
        asking.join()


def test_who_waits_again_and_again_is_cancelled() -> None:
    never = threading.Event()

    def work() -> None:
        while not never.wait(0.01):
            pass

    cancellation = Cancellation()
    with pytest.raises(StatementCancelled, match="timeout"):
        cancellation.execute(work, 100)


def test_whoever_asks_at_any_time_ends_a_statement_or_nothing() -> None:
    cancellation = Cancellation()
    over = threading.Event()

    def cancel() -> None:
        while not over.is_set():
            cancellation.cancel()

    def work() -> int:
        return sum(range(200))

    asking = threading.Thread(target=cancel)
    asking.start()
    done = cancelled = 0
    try:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            try:
                done += cancellation.execute(work) == 19_900
            except StatementCancelled:
                cancelled += 1
        for _ in range(100):
            time.sleep(0)  # nothing is on its way any more
    finally:
        over.set()
        asking.join()
    assert done + cancelled


def test_python_looks_for_cycles_again_wherever_a_statement_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    disable = gc.disable

    def ended() -> None:
        disable()
        raise KeyboardInterrupt

    monkeypatch.setattr(gc, "disable", ended)
    try:
        with pytest.raises(KeyboardInterrupt), without_collections():
            pass
        assert gc.isenabled()
    finally:
        gc.enable()
