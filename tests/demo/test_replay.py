"""Days of the feed, stepped day by day: every view at every tick is what another engine answers.

The project is the repository's own; the reference reads the landing folder by itself and DuckDB runs the views' queries
from scratch. What depends on the clock is compared in the midst of the next tick, too. At the end, after compaction,
every tick is read again: history is exact, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.budget import EngineSetting
from mz_dagster.compute import Outcome
from mz_dagster.operations.doctor import examine
from mz_dagster.storage.spark import SparkConfig
from sensors.feed import SOURCES, Feed
from tests.demo.reference import Reference

ROOT = Path(__file__).resolve().parents[2]
#: How many days are replayed, and who computes.
REPLAYS = (
    pytest.param(1, EngineSetting.AUTO, marks=pytest.mark.deep),
    pytest.param(3, EngineSetting.AUTO, marks=pytest.mark.deep),
    pytest.param(1, EngineSetting.SPARK, marks=pytest.mark.deep),
    (3, EngineSetting.LOCAL),
    pytest.param(5, EngineSetting.SPARK, marks=pytest.mark.deep),
    pytest.param(20, EngineSetting.AUTO, marks=pytest.mark.deep),
)
#: Ticks after which batches are merged, so that later steps and reads go over merged ones.
COMPACTED = (1, 3, 7, 14)
#: Days on which nothing is stepped, so that the next step covers several ticks at once.
SKIPPED = (2, 8, 9)
#: How long after a tick, in milliseconds, `flights_due` is read again, when the tick after it has closed: 07:30 and a
#: half second.
LATER = (7 * 60 + 30) * 60_000 + 500

Rows = Counter[tuple[Any, ...]]


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the demo project in an empty folder."""
    root = tmp_path_factory.mktemp("demo")
    shutil.copy(ROOT / "mz.toml", root)
    shutil.copytree(ROOT / "assets", root / "assets")
    return Project.load(root)


def rows_at(session: Session, name: str, tick: int) -> Rows:
    """Returns a collection's rows at a tick, counted."""
    return counted(session.execute(f"SELECT * FROM {name} AS OF {tick}").rows)


def counted(rows: Iterable[tuple[Any, ...]]) -> Rows:
    """Returns rows, counted; averages, which are exact here and doubles in DuckDB, as they are to nine digits."""
    return Counter(
        tuple(f"{float(cell):.9g}" if isinstance(cell, float | Decimal) else cell for cell in row) for row in rows
    )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("days", "computes"), REPLAYS)
def test_every_view_is_its_query_at_every_tick(
    project: Project, compiling_spark_config: SparkConfig, days: int, computes: EngineSetting
) -> None:
    project = replace(project, engine=computes)
    feed, reference = Feed(project.root / "landing"), Reference(project.root / "landing")
    ticks: list[int] = []
    expected: list[dict[str, Rows]] = []
    due: list[tuple[int, Rows]] = []
    with Engine(project, spark=compiling_spark_config) as engine:
        engine.apply()
        session = Session(engine)
        for day in range(1, days + 1):
            feed.advance()
            reference.advance()
            poll = engine.poll("feed")
            assert poll.tick is not None, poll.reason
            ticks.append(poll.tick)
            views = reference.queries(poll.tick)
            assert views.keys() == {row.name for row in engine.catalog.objects("materialized view")}
            sources = {source: reference.rows(source) for source in SOURCES}
            expected.append({name: counted(rows) for name, rows in (views | sources).items()})
            due.append((poll.tick + LATER, counted(reference.query("flights_due", poll.tick + LATER))))
            if day in SKIPPED:
                continue
            report = engine.step("feed", poll.tick)
            assert report.failures == (), report.failures
            if computes is EngineSetting.SPARK:
                assert all(one.spark_because for one in report.collections if one.outcome is Outcome.ADVANCED)
            for name, rows in expected[-1].items():
                assert rows_at(session, name, poll.tick) == rows, f"{name} on day {day}"
            if day > 1:
                assert rows_at(session, "flights_due", due[-2][0]) == due[-2][1], f"flights_due before day {day}"
            if day in COMPACTED:
                list(engine.compact())

        departures = engine.catalog.collection(engine.collection_of("departures"))
        before = len(engine.catalog.live_batches([departures.id])[departures.id])
        list(engine.compact())
        assert len(engine.catalog.live_batches([departures.id])[departures.id]) <= before
        for tick, collections in zip(ticks, expected, strict=True):
            for name, rows in collections.items():
                assert rows_at(session, name, tick) == rows, f"{name} at {tick}, read again"

        for moment, rows in due[:-1]:
            assert rows
            assert rows_at(session, "flights_due", moment) == rows, f"flights_due at {moment}"

        again = engine.step("feed", ticks[-1])
        assert {one.outcome for one in again.collections} == {Outcome.CURRENT}
        assert sum(expected[-1]["departures"].values()) > 600 * days
        assert all(expected[-1][name] for name in expected[-1] if name != "flights_due")
    assert examine(project.root).findings == ()


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_a_run_of_five_ticks_leaves_the_doctor_nothing_to_find(project: Project) -> None:
    """As `make run TICKS=5` does it, in processes of its own."""
    for name in ("resources", "sensors"):
        shutil.copytree(ROOT / name, project.root / name)
    shutil.copy(ROOT / "definitions.py", project.root)
    home = project.state / "dagster"
    home.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": f"{project.root}{os.pathsep}{ROOT}", "DAGSTER_HOME": str(home)}
    environment |= {"DAGSTER_DISABLE_TELEMETRY": "yes", "MZ_ENGINE": "local"}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "mz_dagster.cli", *arguments]
        done = subprocess.run(
            command, cwd=project.root, env=environment, capture_output=True, text=True, timeout=1000, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    run("run", "--ticks", "5")
    assert run("doctor", "--deep").splitlines()[-1] == "healthy"
