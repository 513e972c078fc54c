"""A process is ended in the middle of its work, by SIGKILL or SIGTERM: who comes next goes on at once.

What a machine has to do takes as long as it takes, so what is measured is for how long the next one slept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import product
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NoReturn
from urllib.request import urlopen

import pytest

from mz_dagster import cli
from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.catalog import Leadership
from mz_dagster.clock import SystemClock
from mz_dagster.storage import append
from mz_dagster.storage.spark import ServerInfo, SparkConfig, ensure_server
from tests.cli.raw_catalog import url_of
from tests.forks import forks
from tests.postgres_server import Postgres

TOLD = "terminated; what was acknowledged is durable\n"
WORKER = "dagster run 7"


def insert(root: Path) -> int:
    """Appends; stays once the batch is written, or is to be inlined, and is not sealed."""
    _stay_at(("append.written", "append.inlined"), root / "there")
    return cli.main(["--project", str(root), "sql", "-c", "INSERT INTO t VALUES (5)"])


def step_here(root: Path) -> int:
    """Reads a view that a step has to reach, in this process; stays where the step has computed it."""
    _stay_at(("append.before_reserve",), root / "there")
    return cli.main(["--project", str(root), "sql", "-c", "SELECT a FROM v"])


def step_in_spark(root: Path) -> int:
    """Makes a view of so much that Spark is at it for minutes.

    Python's workers compute it, which Spark ends with the job; what it compiles itself it may compute to the end.
    """
    os.environ["MZ_ENGINE"] = "spark"
    slow = "SELECT x.a FROM big x, big y WHERE to_char(x.a + y.a, 'RN') = 'none'"
    return cli.main(["--project", str(root), "sql", "-c", f"CREATE MATERIALIZED VIEW slow AS {slow}"])


def run_worker(root: Path) -> int:
    """Steps as a run does; stays in the last of three views, and holds what it has sealed where that one stands."""

    def work(options: Namespace) -> int:
        with Engine(Project.load(options.project), holder=WORKER) as engine:
            engine.stepper._seal_after_s = 0.0
            engine.step("default", engine.catalog.read_ts("default"))
        return 0

    _stay_at(("append.before_reserve",), root / "there", nth=3)
    cli._frontiers = work
    return cli.main(["--project", str(root), "frontiers"])


def _stay_at(points: Collection[str], there: Path, nth: int = 1) -> None:
    """Has this process stop at one of some fail points until it is ended."""
    passages = 0

    def stay(name: str) -> None:
        nonlocal passages
        passages += name in points
        if name in points and passages >= nth:
            there.touch()
            while True:
                time.sleep(0.05)

    append.fail_point = stay  # type: ignore[attr-defined]


def live(life: Callable[[Path], int], root: str, environment: dict[str, str]) -> NoReturn:
    """Is the process; it is forked by one that may have been started before its environment was set."""
    os.environ.update(environment)
    errors = os.open(Path(root, "stderr"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(errors, 2)
    sys.exit(life(Path(root)))


class SleptOn(SystemClock):
    """Is the machine's clock that remembers for how long somebody slept, and does something else at the first time."""

    def __init__(self, first: Callable[[], None]) -> None:
        self.slept: list[float] = []
        self._first = first

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 1:
            self._first()
        else:
            super().sleep(seconds)


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """A project of few rows, whose catalog is on a database, and whose batches are in files or inlined."""
    database, _, stored = request.param.partition(", ")
    settings = f"[writes]\ninline_rows = {1000 if stored == 'inlined' else 0}\n"
    if database == "postgresql":
        server: Postgres = request.getfixturevalue("postgres_server")
        settings += f"[catalog]\nurl = '{url_of(server.new_database())}'\n"
    (tmp_path / "mz.toml").write_text(settings)
    project = Project.load(tmp_path)
    with Engine(project) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE t (a integer)")
        for name in ("u", "v", "w"):
            session.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT a FROM t WHERE a > 0")
        session.execute("INSERT INTO t VALUES (1)")
        session.execute("SELECT * FROM u, v, w")
        session.execute("INSERT INTO t VALUES (2)")
    return project


@contextmanager
def living(project: Project, life: Callable[[Path], int], at_work: Callable[[], bool]) -> Iterator[ForkServerProcess]:
    """Runs a life for the length of a block, which begins once it is at work."""
    process = forks().Process(target=live, args=(life, str(project.root), dict(os.environ)))
    process.start()
    try:
        deadline = time.monotonic() + 120
        while not at_work():
            assert process.is_alive(), (project.root / "stderr").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.join(60)


def end(process: ForkServerProcess, number: signal.Signals) -> None:
    """Ends a process, and returns when it is gone."""
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == (-9 if number == signal.SIGKILL else 143)


def running_jobs(server: ServerInfo, session: str) -> set[int]:
    """Returns which of a server's running jobs are of a session."""
    with urlopen(f"{server.ui_url}/api/v1/applications", timeout=30) as answer:
        (application,) = json.load(answer)
    url = f"{server.ui_url}/api/v1/applications/{application['id']}/jobs?status=running"
    with urlopen(url, timeout=30) as answer:
        return {job["jobId"] for job in json.load(answer) if any(session in tag for tag in job["jobTags"])}


#: Two ways to die in every run; all others in the deep ones.
OFTEN = [
    (insert, "sqlite, in files", signal.SIGTERM),
    (run_worker, "sqlite, inlined", signal.SIGKILL),
]
ALL = product(
    (insert, step_here, run_worker),
    ("sqlite, in files", "sqlite, inlined", "postgresql, in files", "postgresql, inlined"),
    (signal.SIGKILL, signal.SIGTERM),
)


@pytest.mark.parametrize(
    ("life", "project", "number"),
    [*OFTEN, *(pytest.param(*one, marks=pytest.mark.deep) for one in ALL if one not in OFTEN)],
    indirect=["project"],
)
def test_who_comes_after_a_process_that_was_ended_goes_on_at_once(
    project: Project, life: Callable[[Path], int], number: signal.Signals
) -> None:
    with Engine(project) as looking:

        def held() -> list[str]:
            return [one.holder for one in looking.catalog.capabilities() if one.holder == WORKER]

        def at_work() -> bool:
            return (project.root / "there").exists() and (life is not run_worker or len(held()) == 2)

        with living(project, life, at_work) as process:
            clock = SleptOn(lambda: end(process, number))
            with Engine(project, clock=clock) as engine:
                waits = looking.catalog.leader("default", project.lease_ms) is not None
                assert waits == (life is not insert)
                if not waits:
                    end(process, number)
                session = Session(engine)
                for name in ("u", "v", "w"):
                    assert sorted(session.execute(f"SELECT a FROM {name}").rows) == [(1,), (2,)]
                session.execute("INSERT INTO t VALUES (3)")
                assert sorted(session.execute("SELECT a FROM v").rows) == [(1,), (2,), (3,)]
                with engine.lead("default") as lead:
                    assert isinstance(lead, Leadership)
        assert clock.slept == ([0.1] if waits else []), "after the end of the other one it slept no more"
        told = (project.root / "stderr").read_text()
        if number == signal.SIGTERM:
            assert told == TOLD
            records = looking.catalog.records()
            assert not any(records[table] for table in ("lease", "writer", "capability")), "it gave all of it back"
        else:
            assert told == ""


@pytest.mark.deep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("project", ["sqlite, in files", "postgresql, in files"], indirect=True)
def test_spark_computes_nothing_for_a_process_that_was_ended(
    project: Project, spark_config: SparkConfig, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ensure_server(spark_config)
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    settings = project.root / "mz.toml"
    settings.write_text(f"{settings.read_text()}[spark]\nremote = '{server.url}'\n")
    project = Project.load(project.root)
    with Engine(project) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE big (a integer)")
        session.execute("INSERT INTO big SELECT g FROM generate_series(1, 3000) g")
    noted = project.state / "spark" / "sessions"

    found: set[tuple[str, int]] = set()

    def at_work() -> bool:
        before = {(one.name, job) for one in noted.glob("*") for job in running_jobs(server, one.name)}
        time.sleep(1)  # so that it is none of the short ones
        found.update(one for one in before if one[1] in running_jobs(server, one[0]))
        return bool(found)

    with living(project, step_in_spark, at_work) as process:
        end(process, number)
    ((theirs, _),) = found
    told = (project.root / "stderr").read_text()
    assert "failed" not in told
    assert told.endswith(TOLD) == (number == signal.SIGTERM)
    monkeypatch.setenv("MZ_ENGINE", "spark")
    clock = SleptOn(lambda: None)
    with Engine(Project.load(project.root), clock=clock) as engine:
        assert sorted(Session(engine).execute("SELECT a FROM v").rows) == [(1,), (2,)]
    assert clock.slept == []
    assert not (noted / theirs).exists()
    deadline = time.monotonic() + 60
    while running_jobs(server, theirs):
        assert time.monotonic() < deadline, "Spark goes on"
        time.sleep(0.2)
