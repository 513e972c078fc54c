"""Dagster's own daemon, with the settings that are shipped, drives a project whose run worker is killed once.

Everything is a process of its own, as in production: the daemon, the code server, a worker per run, Spark.
"""

import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from mz_dagster import Project
from mz_dagster.adapter import Engine, Session
from mz_dagster.orchestration import partition_key
from mz_dagster.orchestration.drive import dagster_home, instance_of
from mz_dagster.orchestration.runs import LIVE
from mz_dagster.orchestration.warm_process import WORKER_TAG
from mz_dagster.storage.spark import SparkConfig, ensure_server

DROP_EVERY_S = 2.0
#: Which tick's run is killed, counted from the first.
KILLED_AT = 1

SQL = """
CREATE SOURCE payments (id integer NOT NULL, shop integer, amount integer, PRIMARY KEY (id))
FROM FILES (FOLDER 'landing', PATTERN '*.jsonl') FORMAT JSON ENVELOPE UPSERT;
CREATE MATERIALIZED VIEW takings AS SELECT shop, sum(amount) AS taken FROM payments GROUP BY shop;
"""
DEFINITIONS = """
from pathlib import Path

import dagster as dg

from mz_dagster import MzResource, Project, build_frontier_sensor, build_retention_sensor, mz_assets

PROJECT = Project.load(Path(__file__).parent)


@mz_assets(project=PROJECT)
def payments(context: dg.AssetExecutionContext, mz: MzResource):
    yield from mz.step(context)


step = dg.define_asset_job("step", selection=[payments], executor_def=dg.in_process_executor)
defs = dg.Definitions(
    assets=[payments],
    jobs=[step],
    sensors=[build_frontier_sensor(PROJECT, step), build_retention_sensor(PROJECT)],
    resources={"mz": MzResource(project_dir=str(PROJECT.root))},
)
"""
ASSETS = ("payments", "takings")


@pytest.fixture
def project(
    tmp_path: Path, spark_config: SparkConfig, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Project:
    """A project of one source and one view; its parameter says whether runs are warm."""
    server = ensure_server(spark_config)
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", server.token)
    warm = str(request.param).lower()
    (tmp_path / "mz.toml").write_text(
        f"[project]\nname = 'shop'\n[spark]\nremote = '{server.url}'\n[dagster]\nwarm_runs = {warm}\n"
    )
    (tmp_path / "definitions.py").write_text(DEFINITIONS)
    for folder in ("assets", "landing"):
        (tmp_path / folder).mkdir()
    (tmp_path / "assets" / "all.sql").write_text(SQL)
    return Project.load(tmp_path)


@contextmanager
def deployment(project: Project) -> Iterator[Path]:
    """Runs a code server and the daemon, in process groups that are killed at the end; yields their log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = ["dagster", "api", "grpc", "-f", "definitions.py", "-h", "127.0.0.1", "-p", port]
    daemon = ["dagster-daemon", "run", "--grpc-host", "127.0.0.1", "--grpc-port", port]
    log = project.root / "log"
    started: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("wb") as output:
            for program, *arguments in (server, daemon):
                started.append(
                    subprocess.Popen(
                        [str(Path(sys.executable).with_name(program)), *arguments],
                        cwd=project.root,
                        env={
                            **os.environ,
                            "DAGSTER_HOME": str(dagster_home(project)),
                            "DAGSTER_DISABLE_TELEMETRY": "1",
                        },
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
                await_listener(int(port), 60)
        yield log
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def await_listener(port: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, f"nothing listens on port {port} after {seconds} s"
        time.sleep(0.2)


class Dropper(threading.Thread):
    """Drops a file every two seconds until it is stopped; remembers what and when."""

    def __init__(self, landing: Path) -> None:
        super().__init__(daemon=True)
        self.landing = landing
        self.stopped = threading.Event()
        self.at: dict[str, float] = {}
        self.rows: dict[str, tuple[int, int, int]] = {}

    def run(self) -> None:
        number = 0
        while not self.stopped.is_set():
            number += 1
            name, row = f"{number:04}.jsonl", (number % 7, number % 3, number)
            value = f'{{"shop": {row[1]}, "amount": {row[2]}}}'
            (self.landing / ".new").write_text(f'{{"key": {{"id": {row[0]}}}, "value": {value}}}\n')
            self.rows[name] = row
            (self.landing / ".new").rename(self.landing / name)
            self.at[name] = time.monotonic()
            self.stopped.wait(DROP_EVERY_S)


class Watch:
    """Follows the catalog: which file is bound to which tick, and when that became readable in the view."""

    def __init__(self, engine: Engine, dropper: Dropper) -> None:
        self.engine, self.dropper = engine, dropper
        self.waits: dict[str, float] = {}

    @property
    def ticks(self) -> tuple[int, ...]:
        return self.engine.catalog.ticks("default")

    @property
    def upper(self) -> int:
        return self.engine.catalog.collection(self.engine.collection_of("takings")).upper.only

    @property
    def bound(self) -> dict[str, int]:
        source = self.engine.collection_of("payments")
        return {file.path: one.tick for one in self.engine.catalog.bindings(source) for file in one.files}

    def look(self) -> None:
        upper, now = self.upper, time.monotonic()
        for name, tick in self.bound.items():
            if name not in self.waits and name in self.dropper.at and tick < upper:
                self.waits[name] = now - self.dropper.at[name]

    def until(self, done: Callable[[], bool], seconds: float, log: Path) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            self.look()
            assert time.monotonic() < deadline, f"not in {seconds} s: {log.read_text()[-6000:]}"
            time.sleep(0.05)


def worker_of(instance: dg.DagsterInstance, run_id: str) -> int:
    """Returns the process id of a run's worker, which it logs when it starts."""
    for record in instance.all_logs(run_id):
        if found := re.search(r"\(pid: (\d+)\)", record.user_message or record.message or ""):
            return int(found.group(1))
    raise AssertionError(f"run {run_id} names no process")


def kill_worker_at_work(engine: Engine, instance: dg.DagsterInstance) -> str | None:
    """Kills the worker of a run that is stepping right now; returns its run's id, or None if none is."""
    leader = engine.catalog.leader("default", engine.project.lease_ms)
    if leader is None or not leader.holder.startswith("dagster run "):
        return None
    run_id = leader.holder.removeprefix("dagster run ")
    os.kill(worker_of(instance, run_id), signal.SIGKILL)
    return run_id


def takings(watch: Watch, tick: int) -> list[tuple[Any, ...]]:
    """Returns what the view must hold at a tick: the newest payment of each id, summed by shop."""
    payments = {
        watch.dropper.rows[name][0]: watch.dropper.rows[name][1:]
        for name, bound in sorted(watch.bound.items())
        if bound <= tick
    }
    total: Counter[int] = Counter()
    for shop, amount in payments.values():
        total[shop] += amount
    return sorted(total.items())


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("project", "ticks"),
    [(False, KILLED_AT + 1), pytest.param(True, 20, marks=pytest.mark.deep)],
    indirect=["project"],
)
def test_the_daemon_drives_ticks_and_a_killed_worker_loses_and_repeats_nothing(
    project: Project, spark: SparkSession, capsys: pytest.CaptureFixture[str], ticks: int
) -> None:
    dropper = Dropper(project.root / "landing")
    with Engine(project) as engine, instance_of(project) as instance:
        engine.apply()
        watch = Watch(engine, dropper)
        with deployment(project) as log:
            dropper.start()
            watch.until(lambda: len(watch.ticks) >= KILLED_AT, 120, log)
            killed: list[str] = []

            def kill() -> bool:
                killed.extend(filter(None, [kill_worker_at_work(engine, instance)]))
                return bool(killed)

            watch.until(kill, 60, log)
            died = time.monotonic()
            before = watch.ticks[-1]
            watch.until(lambda: watch.upper > before, 180, log)
            recovered = time.monotonic() - died
            watch.until(lambda: len(watch.ticks) >= ticks, 180, log)
            dropper.stopped.set()
            dropper.join(10)

            def is_recorded() -> bool:
                # In this order: a tick is minted with what it binds, its events come before its partition and, all of
                # them, before its run is over.
                if set(watch.bound) != set(dropper.at):
                    return False
                keys = {partition_key(tick) for tick in watch.ticks}
                shown = [instance.get_materialized_partitions(dg.AssetKey(name)) for name in ASSETS]
                shown.append(set(instance.get_dynamic_partitions("mz_ticks_shop.default")))
                return all(keys <= one for one in shown) and not instance.get_runs_count(dg.RunsFilter(statuses=LIVE))

            watch.until(is_recorded, 180, log)
        waits = sorted(watch.waits.values())
        with capsys.disabled():
            print(
                f"\n{len(watch.ticks)} ticks, {len(waits)} files: from arrival to a readable view "
                f"median {statistics.median(waits):.1f} s, max {waits[-1]:.1f} s; "
                f"recovered {recovered:.1f} s after the worker was killed"
            )

        # Each tick is a partition of each asset, told exactly once, the killed run's ticks not excepted: what it had
        # not told is told by the next run, or, if it had sealed already, by the sensor.
        keys = [partition_key(tick) for tick in watch.ticks]
        assert instance.get_dynamic_partitions("mz_ticks_shop.default") == keys
        for name in ASSETS:
            told = instance.fetch_materializations(dg.AssetKey(name), limit=1000).records
            assert Counter(one.partition_key for one in told) == Counter(keys), name

        # Runs: only the killed one failed, and none began before the one before had ended.
        runs = sorted(instance.get_run_records(), key=lambda one: one.create_timestamp)
        assert [one.dagster_run.run_id for one in runs if not one.dagster_run.is_success] == killed
        assert all((WORKER_TAG in one.dagster_run.tags) == project.warm_runs for one in runs)
        for earlier, later in pairwise(runs):
            assert earlier.end_time is not None
            assert later.create_timestamp.timestamp() >= earlier.end_time

        # No time was computed twice: the batches of a collection follow each other.
        batches = engine.catalog.live_batches([row.id for row in engine.catalog.collections()])
        for of_one in batches.values():
            for left, right in pairwise(of_one):
                assert left.upper.only <= right.lower.only
        # No file was lost or bound twice, and every tick that is looked at says what it should.
        assert set(watch.bound) == set(dropper.rows)
        session = Session(engine)
        for tick in (*watch.ticks[::6], watch.ticks[KILLED_AT], watch.ticks[-1]):
            found = session.execute(f"SELECT shop, taken FROM takings AS OF {tick}").rows
            assert sorted(found) == takings(watch, tick), tick
