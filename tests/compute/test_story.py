"""What a step says of itself: its log as a story, its failures by view and operator, what went in and came out."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget, budget_of
from mz_dagster.catalog import NO_ROWS
from mz_dagster.compute import CollectionStep, Outcome, Stepper, StepReport
from mz_dagster.errors import OperationalError

TIMELINE = "default"


SQL = """
CREATE TABLE sales (shop text, amount integer);
CREATE TABLE other (a integer);
CREATE VIEW big AS SELECT * FROM sales WHERE amount > 1;
CREATE MATERIALIZED VIEW per_shop AS SELECT shop, count(*) AS n FROM big GROUP BY shop;
CREATE MATERIALIZED VIEW best AS SELECT max(n) AS n FROM per_shop;
CREATE MATERIALIZED VIEW copied AS SELECT a + 1 AS b FROM other;
"""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A project of tables and of views that nobody has stepped yet, so that no Spark is needed to make it."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "sales.sql").write_text(SQL)
    (tmp_path / "mz.toml").write_text("")
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        opened.engine.apply()
        opened.execute("INSERT INTO sales VALUES ('a', 1), ('a', 2), ('b', 3)")
        yield opened


def step(connection: Connection, spark: Any, lines: list[str], **options: Any) -> StepReport:
    """Steps the project as if it were not little, so that Spark has to compute it."""
    engine = connection.engine
    tick = engine.poll(TIMELINE).tick
    assert tick is not None
    stepper = Stepper(engine.catalog, spark, holder="a test", local=engine.shards, **options)
    with budget_of(Budget(evaluated_updates=0)):
        return stepper.run(engine.graph(TIMELINE), tick, progress=lines.append)


def test_a_failure_names_the_view_the_operator_and_who_stays_behind(connection: Connection) -> None:
    def no_spark() -> Any:
        raise OperationalError("there is no Spark today", hint="Come again tomorrow.")

    lines: list[str] = []
    report = step(connection, no_spark, lines)
    (failed,) = report.failures
    assert failed.name == "per_shop (arrangement 1)"
    assert failed.operators == "Accumulate by shop"
    assert failed.owner == connection.engine.collection_of("per_shop")
    assert failed.error is not None
    assert failed.error.hint == "Come again tomorrow."
    behind = {one.name: one.reason for one in report.collections if one.outcome is Outcome.BLOCKED}
    assert behind["per_shop"] == 'waits for "per_shop (arrangement 1)"'
    assert '"best"' not in behind["best (arrangement 1)"]
    assert re.fullmatch(r"step to tick \d+, from \d+: 4 of 7 collections have work, 1 idle, 2 current", lines[0])
    assert any(
        line.startswith('"per_shop (arrangement 1)" [') and "failed in Accumulate by shop: there is no Spark" in line
        for line in lines
    )
    assert lines[-1] == "sealed 1 collections"


def test_a_long_step_says_what_it_is_working_on_and_for_how_long(connection: Connection) -> None:
    lines: list[str] = []
    told = threading.Event()

    class Lines(list[str]):
        def append(self, line: str) -> None:
            super().append(line)
            if line.startswith("still working"):
                told.set()

    def slow_spark() -> Any:
        assert told.wait(30), "nothing was said while the step worked"
        raise OperationalError("and then it broke")

    lines = Lines()
    report = step(connection, slow_spark, lines, still_working_s=0.05)
    assert report.failures
    still = [line for line in lines if line.startswith("still working")]
    assert re.fullmatch(r'still working: "per_shop \(arrangement 1\)" 0 s; 0 of 4 collections done', still[0])


def test_an_owner_counts_the_work_of_its_arrangements() -> None:
    def one(id: Any, spark_ms: float, owner: Any = None) -> CollectionStep:
        return CollectionStep(id, str(id), Outcome.ADVANCED, 0, 1, NO_ROWS, spark_ms=spark_ms, owner=owner)

    report = StepReport(TIMELINE, 0, (one("u1", 1.0), one("u2", 20.0, "u3"), one("u3", 300.0)), 0.0)
    assert report.of_object("u3").spark_ms == 320.0  # type: ignore[arg-type]
    assert report.of_object("u1").spark_ms == 1.0  # type: ignore[arg-type]


def test_frontiers_call_an_arrangement_by_its_owner(connection: Connection) -> None:
    names = connection.engine.definitions.display_names()
    assert "per_shop (arrangement 1)" in names.values()
    explained = [row[0] for row in connection.execute("EXPLAIN per_shop").fetchall()]
    assert any(line.startswith("arrangement:1") for line in explained), "EXPLAIN counts from 1, too"
