"""Both engines make the same updates of the same changes, to the bit: of views and of their arrangements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import EngineSetting
from mz_dagster.clock import ManualClock
from mz_dagster.storage.spark import SparkConfig
from tests.adapter.all_updates import Updates, all_updates
from tests.tpch.feed import Feed
from tests.tpch.test_tpch import PROJECT

ENGINES = (EngineSetting.LOCAL, EngineSetting.SPARK)
TABLES = (
    "CREATE TABLE t (k integer, n numeric(12, 2), f double precision, s text, d date)",
    "CREATE TABLE u (k integer, name text)",
)
VIEWS = {
    "joined": "SELECT t.k, name, count(*) AS n, sum(t.n) AS s, avg(t.n) AS a, sum(f) AS f, max(s) AS m"
    " FROM t JOIN u USING (k) GROUP BY t.k, name",
    "outer_joined": "SELECT u.k, name, t.n, 100 / t.n AS q FROM u LEFT JOIN t ON t.k = u.k AND t.n <> 7",
    "ranked": "SELECT k, n, s, rank() OVER w AS r, sum(n) OVER w AS running, lag(f) OVER w AS before FROM t"
    " WINDOW w AS (PARTITION BY k ORDER BY n DESC, s)",
    "newest": "SELECT DISTINCT ON (k) k, d, s FROM t ORDER BY k, d DESC, s",
    "few": "SELECT s, n FROM t ORDER BY n DESC, s LIMIT 3",
    "distinct_counts": "SELECT d, count(DISTINCT k) AS k, array_agg(s ORDER BY s) AS all_s FROM t GROUP BY d",
    "without": "SELECT k FROM t EXCEPT SELECT k FROM u",
    "above": "SELECT k, n FROM t WHERE n > (SELECT avg(n) FROM t o WHERE o.k = t.k) OR k IN (SELECT k FROM u)",
    "failing": "SELECT k, 1 / (k - 2) AS q, sum(n) AS s FROM t GROUP BY k",
}  # fmt: skip
#: What is there when the views are created, and what each step changes.
FIRST = (
    "INSERT INTO t VALUES (1, 1.50, 0.1, 'a', '2024-01-01'), (1, 1.50, 0.1, 'a', '2024-01-01'),"
    " (2, -3.25, -0.0, 'b', NULL), (3, NULL, 'NaN', NULL, '2024-02-29'), (NULL, 7, 1e300, 'é', '2024-01-02')",
    "INSERT INTO u VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (5, NULL)",
)
STEPS = (
    (
        "UPDATE t SET n = n + 1, f = f * 3 WHERE k = 1",
        "DELETE FROM t WHERE k = 2",
        "INSERT INTO t SELECT g % 7, g % 5, g / 3.0, chr(97 + g % 4), date '2024-01-01' + g"
        " FROM generate_series(1, 40) g",
    ),
    ("DELETE FROM u WHERE name = 'zwei'", "INSERT INTO t VALUES (2, 0, 'Infinity', 'z', '2024-01-01')"),
)


def made_by(engine: EngineSetting, root: Path, spark: SparkConfig) -> dict[str, Updates]:
    """Returns what a project holds after all steps; the first one hydrates its views."""
    root.mkdir()
    clock = ManualClock(1_700_000_000_000)
    project = replace(Project.load(root), engine=engine)
    with Engine(project, clock=clock, spark=spark) as opened, Connection(opened, Isolation.STRICT_SERIALIZABLE) as made:
        for statement in TABLES:
            made.execute(statement)
        for statement in FIRST:
            made.execute(statement)
        for name, query in VIEWS.items():
            made.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for statements in STEPS:
            for statement in statements:
                clock.advance(1000)
                made.execute(statement)
            tick = opened.poll("default").tick
            assert tick is not None
            report = opened.step("default", tick)
            assert not report.failures
            computed = {one.engine for one in report.collections if one.operators and one.stats.rows}
            assert computed
            assert all(("Spark" in one) == (engine is EngineSetting.SPARK) for one in computed), computed
        return all_updates(opened)


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_both_engines_make_the_same_updates(tmp_path: Path, spark_config: SparkConfig) -> None:
    local, spark = (made_by(engine, tmp_path / engine.value, spark_config) for engine in ENGINES)
    assert local.keys() == spark.keys()
    assert len(local) >= 2 * len(VIEWS)
    assert all(local[name] for name in local if not name.startswith("arrangement"))
    for name, updates in local.items():
        assert updates == spark[name], name


def loaded_by(engine: EngineSetting, root: Path, data: Path, spark: SparkConfig) -> dict[str, Updates]:
    """Returns what TPC-H's views hold after a load and two refreshes."""
    (root / "assets").parent.mkdir()
    for one in PROJECT.rglob("*"):
        if one.is_file():
            target = root / one.relative_to(PROJECT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(one.read_bytes())
    feed = Feed(root / "landing", data, 0.01, 2)
    project = replace(Project.load(root), engine=engine)
    with Engine(project, clock=ManualClock(1_700_000_000_000), spark=spark) as opened:
        opened.apply()
        for number in range(3):
            _ = feed.refresh() if number else feed.load()
            tick = opened.poll("tpch").tick
            assert tick is not None
            assert not opened.step("tpch", tick).failures
        return all_updates(opened)


@pytest.mark.deep
@pytest.mark.timeout(3000)
def test_both_engines_make_the_same_updates_of_tpch(tmp_path: Path, compiling_spark_config: SparkConfig) -> None:
    local, spark = (
        loaded_by(engine, tmp_path / engine.value, tmp_path / "data", compiling_spark_config) for engine in ENGINES
    )
    assert local.keys() == spark.keys()
    assert len(local) > 22 + 8
    for name, updates in local.items():
        assert updates == spark[name], name
