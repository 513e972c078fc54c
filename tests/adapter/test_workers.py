"""Workers: what they compute is what the process that steps would have, and nothing is lost with them."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.catalog import BatchId
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.compute import Outcome, StepOverdue, StepReport
from mz_dagster.compute.step import worker_process
from mz_dagster.compute.step.run import StepRun
from mz_dagster.compute.step.worker import Done
from mz_dagster.compute.step.worker_process import WorkerProcess
from mz_dagster.formalism import GlobalId
from mz_dagster.liveness import state_and_start
from tests.budgets import SetBudget
from tests.sparkless import refused

VIEWS = {
    "joined": "SELECT u.name, t.k, t.v FROM t JOIN u ON t.k = u.k",
    "summed": "SELECT name, count(*) AS n, sum(v) AS s FROM joined GROUP BY name",
    "largest": "SELECT k, max(v) AS most, min(v) AS least FROM t GROUP BY k",
    "newest": "SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v DESC",
    "ranked": "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS place FROM t",
    "left_over": "SELECT k, v FROM t LEFT JOIN u USING (k) WHERE u.name IS NULL",
    "above": "SELECT k, v FROM t WHERE v > (SELECT avg(v) FROM t)",
    "failing": "SELECT k, 100 / (v - 7) AS q FROM t",
    "all_of_it": "SELECT count(*) AS n FROM t",
    "recent": "SELECT k, v FROM t WHERE mz_now() <= 10000000000000 + v",
    "over_two": "SELECT l.k, s.n FROM largest l JOIN joined j ON l.k = j.k JOIN summed s ON s.name = j.name",
}


@contextmanager
def opened(
    root: Path, workers: int, settings: str = "", *, starts: bool = True, hydrates: bool = True
) -> Iterator[Connection]:
    """Opens a project in which so many workers are ready, if they are to be started; makes tables and views.

    The views are hydrated one by one, or by the next step.
    """
    root.mkdir()
    (root / "mz.toml").write_text(f"[project]\nworkers = {workers}\n{settings}")
    with Engine(Project.load(root), session=refused) as engine:
        assert engine.workers is not None
        assert not starts or engine.workers.start(deadline_s=120)
        with Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection:
            connection.execute("CREATE TABLE t (k integer, v integer)")
            connection.execute("CREATE TABLE u (k integer, name text)")
            connection.execute("INSERT INTO u SELECT k, chr(97 + k % 5) FROM generate_series(0, 19) AS s (k)")
            connection.execute("INSERT INTO t SELECT n % 25, n + 8 FROM generate_series(1, 200) AS s (n)")
            for name, query in VIEWS.items():
                connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}{'' if hydrates else ' WITH NO DATA'}")
            connection.execute("INSERT INTO t VALUES (1, 1)")
            if hydrates:
                stepped(connection)
            yield connection


def stepped(connection: Connection, until_ms: float | None = None) -> StepReport:
    """Steps all to now."""
    engine = connection.engine
    tick = engine.poll("default").tick or engine.catalog.read_ts("default")
    if until_ms is None:
        return engine.step("default", tick)
    return engine.stepper.run(engine.graph("default"), tick, until_ms=until_ms)


def change(connection: Connection, dice: random.Random) -> None:
    """Deletes, updates and inserts, with a row that fails now and then, and many at once."""
    connection.execute(f"DELETE FROM t WHERE k = {dice.randrange(25)}")
    connection.execute(f"UPDATE t SET v = v + 1 WHERE k = {dice.randrange(25)}")
    connection.execute(f"INSERT INTO t VALUES ({dice.randrange(25)}, {dice.choice((7, dice.randrange(8, 999)))})")
    connection.execute(f"INSERT INTO t SELECT {dice.randrange(25)}, n + 8 FROM generate_series(1, 30) AS s (n)")
    connection.execute("DELETE FROM t WHERE v = 7") if dice.random() < 0.5 else None


def contents(connection: Connection, *, by_query: bool = False) -> dict[str, object]:
    """Returns what each view holds, or the error that reading it is."""
    found = dict[str, object]()
    for name, query in VIEWS.items():
        try:
            rows = connection.execute(query if by_query else f"SELECT * FROM {name}").fetchall()
            found[name] = sorted(rows)
        except Exception as error:
            found[name] = str(error)
    return found


@pytest.mark.parametrize("steps", [2, pytest.param(4, marks=pytest.mark.deep)])
def test_workers_compute_what_the_queries_say(tmp_path: Path, set_budget: SetBudget, steps: int) -> None:
    """What is little and what is too much for the catalog, and is written to the shards; each object in one place."""
    set_budget(shared_objects=1)
    dice = random.Random(3)
    with opened(tmp_path / "project", 2, "[writes]\ninline_rows = 20\n") as connection:
        is_written = set[bool]()
        for _ in range(steps):
            change(connection, dice)
            report = stepped(connection)
            advanced = [one for one in report.collections if one.outcome is Outcome.ADVANCED]
            assert {1, 2} & {one.worker for one in advanced}
            is_written |= {one.stats.inlined is None for one in advanced if one.worker and one.stats.rows}
            for one in advanced:
                of_object = report.of_object(one.id if one.owner is None else one.owner)
                assert of_object.outcome is not Outcome.ADVANCED or of_object.worker == one.worker
            assert not report.failures
            assert contents(connection) == contents(connection, by_query=True)
        assert is_written == {True, False}


@pytest.mark.deep
def test_workers_hydrate_too_in_a_process_that_has_not_stepped(tmp_path: Path, set_budget: SetBudget) -> None:
    """What is little and what is too much for the catalog; and what they hydrated, they step."""
    dice, is_written = random.Random(4), set[bool]()
    # What of it is left to the worker depends on who is faster.
    for folder in (tmp_path / f"project {number}" for number in range(5)):
        set_budget(shared_hydrations=1)
        with opened(folder, 1, "[writes]\ninline_rows = 20\n", hydrates=False) as connection:
            report = stepped(connection)
            of_worker = {one.id: one for one in report.collections if one.worker}
            is_written |= {one.stats.inlined is None for one in of_worker.values() if one.stats.rows}
            assert not report.failures
            assert contents(connection) == contents(connection, by_query=True)
            set_budget(shared_objects=1)
            for _ in range(3):
                change(connection, dice)
                report = stepped(connection)
                assert not report.failures
                assert any(one.worker and one.id in of_worker for one in report.collections)
                assert contents(connection) == contents(connection, by_query=True)
        if is_written == {True, False}:
            break
    assert is_written == {True, False}


@pytest.mark.deep
def test_a_worker_joins_the_step_that_started_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as it is ready, and not before."""
    with opened(tmp_path / "project", 1, starts=False) as connection:
        workers = connection.engine.workers
        assert workers is not None
        is_ready, may_be = WorkerProcess.is_ready, False
        monkeypatch.setattr(WorkerProcess, "is_ready", lambda self: may_be and is_ready(self))
        with workers.used() as ready:
            assert ready is not None
            assert workers.count == 1
            assert not ready()
            may_be = True
            until = SYSTEM_CLOCK.monotonic_ms() + 120_000
            while not ready() and SYSTEM_CLOCK.monotonic_ms() < until:
                SYSTEM_CLOCK.sleep(0.05)
            assert [one.number for one in ready()] == [1]
            with workers.used() as others:
                assert others is None


def test_few_views_are_stepped_without_workers(tmp_path: Path) -> None:
    with opened(tmp_path / "project", 1, starts=False) as connection:
        workers = connection.engine.workers
        assert workers is not None
        for n in range(3):
            connection.execute(f"INSERT INTO t VALUES (1, {n})")
            assert not any(one.worker for one in stepped(connection).collections)
        assert not workers.count


@pytest.mark.parametrize(
    ("number", "goes_on"),
    [
        (signal.SIGKILL, True),
        *(pytest.param(signal.SIGSTOP, goes_on, marks=pytest.mark.deep) for goes_on in (False, True)),
    ],
)
def test_a_worker_that_is_lost_costs_nothing_but_its_work(
    tmp_path: Path,
    set_budget: SetBudget,
    number: signal.Signals,
    goes_on: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Killed while it is to compute, or stopped, so that it says nothing; the next step has another."""
    set_budget(shared_objects=1)
    dice = random.Random(5)
    with opened(tmp_path / "project", 1) as connection:
        change(connection, dice)
        stepped(connection)
        workers = connection.engine.workers
        assert workers is not None
        with workers.ready() as (worker,):
            before = worker.pid
        monkeypatch.setattr(worker_process, "_SILENT_S", 1.0)
        os.kill(before, signal.SIGSTOP)  # so that it answers nothing before it is killed
        send = WorkerProcess._send

        def sent(self: WorkerProcess, message: object) -> None:
            send(self, message)
            if self.pid == before:
                os.kill(before, number)

        monkeypatch.setattr(WorkerProcess, "_send", sent)
        change(connection, dice)
        with caplog.at_level(logging.WARNING, "mz_dagster.workers"):
            report = stepped(connection)
        assert not report.failures
        assert any("is computed by the process that steps" in one.message for one in caplog.records)
        assert contents(connection) == contents(connection, by_query=True)
        if goes_on:
            assert workers.start(deadline_s=120)
            with workers.ready() as (worker,):
                assert worker.pid != before
            change(connection, dice)
            assert any(one.worker for one in stepped(connection).collections)
            assert contents(connection) == contents(connection, by_query=True)
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_what_a_worker_cannot_compute_is_left_to_the_stepper(
    tmp_path: Path, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What would be Spark's in a worker is computed by the process that steps, then and from then on."""
    set_budget(shared_objects=1)
    sent: list[set[str]] = []
    with opened(tmp_path / "project", 1) as connection:
        computed = WorkerProcess.compute

        def compute(
            self: WorkerProcess, run: StepRun, batches: Mapping[GlobalId, BatchId], check_wanted: Callable[[], None]
        ) -> Done:
            sent.append({str(run.graph.by_id[id].name) for id in batches})
            return computed(self, run, batches, check_wanted)

        monkeypatch.setattr(WorkerProcess, "compute", compute)
        monkeypatch.setattr(worker_process, "process_budget", lambda: Budget(evaluated_updates=0))  # the worker's
        dice = random.Random(1)
        for _ in range(3):
            change(connection, dice)
            with caplog.at_level(logging.INFO, "mz_dagster.workers"):
                report = stepped(connection)
            assert not report.failures
            assert contents(connection) == contents(connection, by_query=True)
        left = {
            one.message.split('"')[1]
            for one in caplog.records
            if "is left by worker 1: Spark computes it" in one.message
        }
        assert left
        assert all(sum(name in some for some in sent) == 1 for name in left)


def test_a_step_that_is_given_up_leaves_no_worker_behind(tmp_path: Path, set_budget: SetBudget) -> None:
    set_budget(shared_objects=1)
    with opened(tmp_path / "project", 1) as connection:
        connection.execute("INSERT INTO t VALUES (1, 1)")
        stepped(connection)
        workers = connection.engine.workers
        assert workers is not None
        with workers.ready() as (worker,):
            os.kill(worker.pid, signal.SIGSTOP)
            before = worker.pid
        connection.execute("INSERT INTO t VALUES (2, 2)")
        with pytest.raises(StepOverdue):
            stepped(connection, until_ms=connection.engine.clock.monotonic_ms() + 500)
        stepped(connection)
        assert contents(connection) == contents(connection, by_query=True)
        wait_for_the_end_of(before)  # the thread that had it compute finds a moment later that nobody waits


_HAS_WORKERS = """
import sys, time
from pathlib import Path
from mz_dagster.adapter import Engine, Project

engine = Engine(Project.load(Path(sys.argv[1])))
assert engine.workers.start(deadline_s=120)
with engine.workers.ready() as workers:
    print(*(one.pid for one in workers), flush=True)
time.sleep(600)
"""


def test_workers_end_with_the_process_that_has_them(tmp_path: Path) -> None:
    """However it ends: nothing it could do has to be done."""
    (tmp_path / "mz.toml").write_text("[project]\nworkers = 2\n")
    command = [sys.executable, "-c", _HAS_WORKERS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(one) for one in process.stdout.readline().split()]
        process.kill()
    assert len(pids) == 2
    wait_for_the_end_of(*pids)


def wait_for_the_end_of(*pids: int) -> None:
    """Returns once processes have ended, each by itself or killed."""
    until = SYSTEM_CLOCK.monotonic_ms() + 30_000
    while not all(map(has_ended, pids)):
        assert SYSTEM_CLOCK.monotonic_ms() < until, "a worker goes on for nobody"
        SYSTEM_CLOCK.sleep(0.05)


def has_ended(pid: int) -> bool:
    """Returns whether a process has ended, though nobody may have asked how."""
    found = state_and_start(pid)
    return found is None or found[0] == "Z"
