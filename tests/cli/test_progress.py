"""Long work says how far it is: to a person as a bar, to logs and Dagster as lines."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest
from rich.console import Console

import mz_dagster.progress
from mz_dagster import connect
from mz_dagster.adapter import Engine, Project
from mz_dagster.clock import SYSTEM_CLOCK, ManualClock
from mz_dagster.operations.backup import backup, restore
from mz_dagster.operations.doctor import examine
from mz_dagster.orchestration.compaction import build_compaction_job
from mz_dagster.orchestration.resource import MzResource
from mz_dagster.progress import Bars, Lines, Task, advance, reported_to, task
from mz_dagster.storage.spark.task_progress import tell_tasks
from tests.budgets import SetBudget
from tests.cli.small_project import make_project, write

ROOT = Path(__file__).resolve().parents[2]

Seen = dict[str, tuple[int, int, str]]


class Recorder:
    """Remembers what was shown of each task, and the last of it."""

    def __init__(self) -> None:
        self.last: Seen = {}
        self.done: dict[str, list[int]] = {}
        self.open: set[Task] = set()
        self._lock = threading.Lock()

    def show(self, task: Task) -> None:
        with self._lock:
            if not task.is_over:
                self.last[task.name] = task.done, task.total, task.unit
                self.done.setdefault(task.name, []).append(task.done)
                self.open.add(task)

    def end(self, task: Task) -> None:
        with self._lock:
            self.open.discard(task)


def wait_until(holds: Callable[[], bool]) -> None:
    end = SYSTEM_CLOCK.monotonic_ms() + 30_000
    while not holds():
        assert SYSTEM_CLOCK.monotonic_ms() < end
        threading.Event().wait(0.01)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Hears of all that the test does."""
    recorder = Recorder()
    with reported_to(recorder):
        yield recorder
    assert not recorder.open


def test_rate_and_time_left_follow_from_what_is_done() -> None:
    clock = ManualClock()
    of_rows, of_collections = Task("v", 1_200_000, "rows", clock), Task("step", 4, "collections", clock)
    assert str(of_rows) == "0 of 1,200,000 rows"
    clock.advance(100_000)
    of_rows.advance(200_000)
    of_collections.advance(1)
    assert str(of_rows) == "200,000 of 1,200,000 rows, 2,000 rows/s, 8 min left"
    assert str(of_collections) == "1 of 4 collections, 5 min left"


def test_more_than_there_is_cannot_be_done() -> None:
    of = Task("v", 10, "rows")
    of.advance(25)
    assert of.done == 10


def test_lines_tell_each_task_every_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = ManualClock(), list[str]()
    with reported_to(Lines(told.append)):
        one, other = Task("one", 100, "rows", clock), Task("other", 100, "rows", clock)
        for _ in range(25):
            clock.advance(1000)
            one.advance(1)
        other.advance(50)
    assert [line.partition(" rows")[0] for line in told] == ["one: 10 of 100", "one: 20 of 100", "other: 50 of 100"]


def test_a_task_that_nobody_advances_is_shown(monkeypatch: pytest.MonkeyPatch, recorder: Recorder) -> None:
    monkeypatch.setattr(mz_dagster.progress, "_LOOK_S", 0.01)
    with task("v", 10, "rows"):
        wait_until(lambda: "v" in recorder.last)
    assert recorder.last == {"v": (0, 10, "rows")}


def test_a_reporter_that_fails_keeps_no_other_task_from_being_shown(
    monkeypatch: pytest.MonkeyPatch, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Recorder):
        def show(self, task: Task) -> None:
            raise OSError("the terminal is gone")

    monkeypatch.setattr(mz_dagster.progress, "_LOOK_S", 0.01)
    with task("v", 10, "rows"), reported_to(Broken()), task("broken", 10, "rows"):
        wait_until(lambda: "cannot show how far broken is" in caplog.text)
        recorder.last.clear()
        wait_until(lambda: "v" in recorder.last)


FORKED = """
import os, sys
from mz_dagster import progress
with progress.task("parent", 1, "rows"), progress._open._lock:
    if not os.fork():
        with progress.task("child", 1, "rows"):
            os._exit(0 if progress._open._thread.is_alive() else 1)
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_fork_shows_its_own_tasks() -> None:
    forked = subprocess.run([sys.executable, "-c", FORKED], cwd=ROOT, timeout=60, check=False)
    assert forked.returncode == 0


def test_threads_with_a_copy_of_the_context_advance_the_task_and_only_in_its_unit(recorder: Recorder) -> None:
    with task("v", 10, "rows"):
        thread = threading.Thread(target=copy_context().run, args=(advance, 4, "rows"))
        thread.start()
        thread.join()
        advance(1000, "bytes")
    advance(3, "rows")
    assert recorder.last == {"v": (4, 10, "rows")}


def test_tasks_of_spark_are_shares_of_what_is_to_be_done(recorder: Recorder) -> None:
    def stages(*counts: tuple[int, int]) -> Any:
        return [SimpleNamespace(num_completed_tasks=done, num_tasks=of) for done, of in counts]

    with task("v", 1000, "rows"):
        tell_tasks(stages((2, 4), (0, 4)), 2, "a", False)
        assert recorder.last["v"][0] == 250
        tell_tasks(stages((4, 4), (4, 4)), 0, "a", True)
        tell_tasks(stages((4, 32)), 2, "b", False)
        assert recorder.last["v"][0] == 300
        tell_tasks(None, 0, "c", True)
    tell_tasks(stages((1, 2)), 1, "d", False)
    assert recorder.last["v"][0] == 300


def test_a_bar_is_drawn_on_a_terminal_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda file: Console(file=file, force_terminal=True, width=100))
    with reported_to(Bars(terminal, after_s=0)), task('hydrating "v [x]"', 2000, "rows") as of, task("s", 9, "bytes"):
        of.advance(1000)
        advance(3, "bytes")
    drawn = terminal.getvalue()
    assert 'hydrating "v [x]"' in drawn
    assert "1,000 of 2,000 rows" in drawn
    assert "3 bytes of 9 bytes" in drawn
    assert drawn.rpartition("\x1b[2K")[2].strip() == "\x1b[?25h", "the bars are gone, and the cursor is back"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project of whose collections all but `late` are hydrated; `late` reads the twelve rows of `t`."""
    project = make_project(tmp_path / "project", '[retention]\nkeep = "all"\n')
    with Engine(project) as engine:
        for number in range(3, 6):
            write(engine, number)
    (project.root / "assets" / "late.sql").write_text("CREATE MATERIALIZED VIEW late AS SELECT b FROM t WHERE a >= 0;")
    return project


def test_hydration_and_ingestion_say_how_far_they_are(project: Project, recorder: Recorder) -> None:
    file = project.root / "landing" / "new.jsonl"
    file.write_text('{"a": 9, "b": "x"}\n' * 100)
    with Engine(project) as engine:
        engine.apply()
        tick = engine.poll("default").tick
        assert tick is not None
        engine.step("default", tick)
    assert recorder.last['hydrating "late"'] == (12, 12, "rows")
    assert recorder.last['maintaining "p"'] == (100, 100, "rows")
    assert recorder.last['reading "s"'] == (file.stat().st_size, file.stat().st_size, "bytes")
    done, total, unit = recorder.last[f"step to {tick}"]
    assert (done, unit) == (total, "collections")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT a, b FROM t JOIN (SELECT 1 AS one) o ON a > one", "v"),
        ("SELECT b, count(*) FROM t GROUP BY b", "v (arrangement 1)"),
    ],
)
def test_what_hydrates_in_portions_has_done_what_is_computed(
    tmp_path: Path, recorder: Recorder, set_budget: SetBudget, query: str, name: str
) -> None:
    set_budget(portion_rows=1000, least_portion_rows=1000)
    with connect(tmp_path) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (a integer, b integer)")
        cursor.execute("INSERT INTO t SELECT g, g % 7 FROM generate_series(1, 5000) g")
        cursor.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        cursor.execute("SELECT count(*) FROM v")
    done = recorder.done[f'hydrating "{name}"']
    assert {1000, 2000, 3000, 4000} <= set(done)
    assert done == sorted(done)
    assert done[-1] == recorder.last[f'hydrating "{name}"'][1]


def test_a_collection_that_is_read_twice_counts_once(tmp_path: Path, recorder: Recorder, set_budget: SetBudget) -> None:
    set_budget(portion_rows=1000, least_portion_rows=1000)
    with connect(tmp_path) as connection:
        cursor = connection.cursor()
        for name in ("t", "u"):
            cursor.execute(f"CREATE TABLE {name} (a integer, b integer)")
            cursor.execute(f"INSERT INTO {name} SELECT g, g % 7 FROM generate_series(1, 5000) g")
        union = "SELECT a, b FROM t UNION ALL SELECT b, a FROM t UNION ALL SELECT a, b FROM u"
        cursor.execute(f"CREATE MATERIALIZED VIEW v AS {union}")
        cursor.execute("SELECT count(*) FROM v")
    done = recorder.done['hydrating "v"']
    assert recorder.last['hydrating "v"'][1] == 10_000
    assert done.count(10_000) < 5, "of the last portion, the end, and what is shown meanwhile"


def test_compaction_backup_and_doctor_say_how_far_they_are(
    project: Project, recorder: Recorder, tmp_path: Path
) -> None:
    with Engine(project) as engine:
        stored = [batch for row in engine.catalog.collections() for batch in engine.catalog.batches(row.id)]
        rows = sum(batch.stats.rows for batch in stored)
        assert rows > 10
        assert examine(project.root, deep=True).healthy
        assert recorder.last["looking at shards"] == (rows, rows, "rows")
        backup(project, tmp_path / "backup")
        size = sum(batch.stats.bytes for batch in stored)
        assert recorder.last["copying the state"] == (size, size, "bytes")
        restore(tmp_path / "backup", tmp_path / "again")
        done, total, _ = recorder.last["checking the backup"]
        assert done == total > size
        lines = list(engine.compact())
    assert any(line.startswith('"t": merged 6 batches') for line in lines)
    assert recorder.last['merging "t"'] == (12, 12, "rows")
    done, total, unit = recorder.last["compaction"]
    assert done == total > 12
    assert unit == "rows"


def test_dagsters_events_hold_the_lines(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mz_dagster.progress, "LINE_S", 0.0)
    resource = MzResource(project_dir=str(project.root))
    with dg.DagsterInstance.ephemeral() as instance:
        job = build_compaction_job(project)
        done = job.execute_in_process(instance=instance, resources={"mz": resource})
        logged = [cast(Any, one).user_message for one in instance.all_logs(done.run_id)]
    assert any(line.startswith('merging "t": 12 of 12 rows') for line in logged)
