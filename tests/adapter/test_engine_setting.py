"""The setting `engine`: who computes, said in `mz.toml`, by the environment, in Dagster or in a session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import mz_dagster.budget as budgets
from mz_dagster.adapter import Connection, Engine, Isolation, Project, Session
from mz_dagster.adapter.setting_values import BadSettings, engine_setting_of
from mz_dagster.budget import Budget, EngineSetting, budget, engine_of
from mz_dagster.compute import LeftToSpark
from mz_dagster.compute.spark.warm_spark import WarmSpark
from mz_dagster.errors import InternalError, NotSupportedError
from mz_dagster.orchestration import MzResource
from mz_dagster.storage.spark import SparkConfig
from mz_dagster.storage.spark_shards import SparkShards
from tests.budgets import SetBudget

CITIES = "CREATE SOURCE orders (city text, amount numeric(38, 2)) FROM FILES (FOLDER 'landing') FORMAT JSON"

IN_A_STEP = "maintained, in a step in which as much changes as the newest batch of each input has:"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which Sparks were opened; none can be."""
    found: list[str] = []

    def refused(self: WarmSpark) -> tuple[object, SparkShards]:
        found.append("opened")
        raise AssertionError("Spark is started for little")

    monkeypatch.setattr(WarmSpark, "open", refused)
    return found


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    landing = tmp_path / "landing"
    landing.mkdir()
    (landing / "1.jsonl").write_text('{"city": "Rome", "amount": 1.5}\n{"city": "Rome", "amount": 2}\n{"city": 7}\n')
    with Engine(Project.load(tmp_path)) as opened:
        yield opened


def explained(session: Session, query: str) -> list[str]:
    """Returns what a query's plan says of who computes it in a step, and of the engine."""
    lines = [str(line).strip() for (line,) in session.execute(f"EXPLAIN {query}").rows]
    return [one for one in lines if one.startswith("engine: ")] + lines[lines.index(IN_A_STEP) + 1 : -1]


def test_little_starts_no_spark(engine: Engine, opened: list[str]) -> None:
    session = Session(engine)
    session.execute(CITIES)
    session.execute("CREATE TABLE t (k int, v text)")
    session.execute("INSERT INTO t VALUES (1, 'Rome'), (2, NULL)")
    session.execute(
        "CREATE MATERIALIZED VIEW sums AS SELECT o.city, count(*) AS n, sum(amount) AS s "
        "FROM orders o JOIN t ON t.v = o.city GROUP BY o.city"
    )
    poll = engine.poll("default")
    assert poll.tick is not None
    report = engine.step("default", poll.tick)
    assert not report.failures
    advanced = [one for one in report.collections if one.stats.rows]
    assert {one.engine for one in advanced} == {"this process"}
    assert session.execute("SELECT * FROM sums").rows == (("Rome", 2, 3.5),)
    session.execute("DELETE FROM t WHERE k = 1")
    assert session.execute("SELECT * FROM sums").rows == ()
    list(engine.compact())
    assert opened == []


def test_ten_times_as_much_is_read_from_the_beginning(engine: Engine, opened: list[str], set_budget: SetBudget) -> None:
    set_budget(evaluated_updates=20, first_times=10, small_rows=0, scalar_rows=0)
    session = Session(engine)
    session.execute("CREATE TABLE t (k int)")
    session.execute(f"INSERT INTO t VALUES {', '.join(f'({n % 7})' for n in range(199))}")
    session.execute("CREATE MATERIALIZED VIEW v AS SELECT k + 1 AS k, count(*) AS n FROM t GROUP BY k + 1")
    assert session.execute("SELECT sum(n) FROM v").rows == ((199,),)
    assert opened == []
    # What has a scalar without a kernel is Spark's from the twenty-first update on, and all else from the 201st.
    with pytest.raises(InternalError, match="Spark is started"):
        session.execute("SELECT regexp_replace(k::text, 'a', 'b'), count(*) FROM t GROUP BY 1")
    session.execute("INSERT INTO t VALUES (0), (1)")
    with pytest.raises(InternalError, match="Spark is started"):
        session.execute("SELECT k + 2, count(*) FROM t GROUP BY 1")


def test_what_this_process_does_not_hold_is_refused_by_name(
    engine: Engine, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(engine)
    session.execute("CREATE TABLE t (k int, f float8)")
    session.execute("INSERT INTO t VALUES (1, 2.0), (2, 3.0)")
    session.execute("SET engine = local")
    monkeypatch.setattr(budgets, "_engines", {EngineSetting.LOCAL: replace(Budget.here_alone(), joined_rows=1)})
    with pytest.raises(LeftToSpark) as refused:
        session.execute("SELECT a.k FROM t AS a, t AS b")
    assert isinstance(refused.value, NotSupportedError)
    assert refused.value.sqlstate == "0A000"
    assert "too many rows are joined" in refused.value.message
    assert '"engine" is "local"' in str(refused.value.detail)
    assert "SET engine" in str(refused.value.hint)
    assert session.execute("SELECT a.k FROM t AS a, t AS b WHERE a.k = 1 AND b.k = 1").rows == ((1,),)
    assert opened == []


def test_a_session_says_who_computes(engine: Engine) -> None:
    session = Session(engine)
    assert session.execute("SHOW engine").rows == (("auto",),)
    for text, shown in (("SET engine TO 'SPARK'", "spark"), ("SET SESSION engine = local", "local"),
                        ("SET engine = DEFAULT", "auto")):  # fmt: skip
        assert session.execute(text).tag == "SET"
        assert session.execute("SHOW engine").rows == ((shown,),)
        assert session.execute("SELECT 1").rows == ((1,),)
        assert budget() == Budget(), "a session's choice is its own"
    with pytest.raises(BadSettings, match=r'invalid value for setting "engine": "duckdb"'):
        session.execute("SET engine = duckdb")


def test_what_is_set_holds_for_all_cursors_of_a_connection_and_no_other(engine: Engine) -> None:
    connection = Connection(engine, Isolation.STRICT_SERIALIZABLE)
    connection.execute("SET engine = spark")
    assert connection.cursor().execute("SHOW engine").fetchall() == [("spark",)]
    other = Connection(engine, Isolation.STRICT_SERIALIZABLE)
    assert other.execute("SHOW engine").fetchall() == [("auto",)]


def test_the_plan_says_who_computes_it(engine: Engine) -> None:
    session = Session(engine)
    session.execute("CREATE TABLE t (k int, f float8)")
    session.execute("INSERT INTO t VALUES (1, 2.0), (2, 3.0)")
    query, powers = "SELECT k, f + 1 FROM t", "SELECT exp(f) FROM t"
    at_most = "Linear over t: this process, since 2 updates changed, at most"
    left = "exp_float8(#1{f}) is not evaluated in this process"
    assert explained(session, query) == [
        "engine: auto",
        f"output, {at_most} 1000000 (evaluated_updates * step_times)",
    ]
    assert explained(session, powers) == [
        "engine: auto",
        f"output, {at_most} 200000 (evaluated_updates)",
        f"of it, Linear: Spark, a handover, since {left}",
    ]
    session.execute("SET engine = spark")
    shown = 'output, Linear over t: {}, since the setting "engine" is "{}"'
    assert explained(session, query) == ["engine: spark, for all that it has", shown.format("Spark", "spark")]
    session.execute("SET engine = local")
    expected = ["engine: local, for all that it has", shown.format("this process", "local")]
    assert explained(session, query) == explained(session, powers) == expected


def test_the_project_says_who_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MZ_ENGINE", raising=False)
    assert Project.load(tmp_path).engine is EngineSetting.AUTO
    for name in ("auto", "spark", "local"):
        (tmp_path / "mz.toml").write_text(f"[project]\nengine = {json.dumps(name)}\n")
        assert Project.load(tmp_path).engine is EngineSetting(name)
    monkeypatch.setenv("MZ_ENGINE", "spark")
    assert Project.load(tmp_path).engine is EngineSetting.SPARK
    monkeypatch.delenv("MZ_ENGINE")
    (tmp_path / "mz.toml").write_text('[project]\nengine = "fast"\n')
    with pytest.raises(BadSettings, match='"fast"') as caught:
        Project.load(tmp_path)
    assert "local" in str(caught.value.hint)
    assert engine_setting_of("LOCAL") is EngineSetting.LOCAL


def test_the_resource_says_who_computes_instead_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text('[project]\nengine = "spark"\n')
    assert MzResource(project_dir=str(tmp_path)).project().engine is EngineSetting.SPARK
    local = MzResource(project_dir=str(tmp_path), engine_setting="local")
    assert local.project().engine is EngineSetting.LOCAL
    with pytest.raises(BadSettings, match='"fast"'):
        MzResource(project_dir=str(tmp_path), engine_setting="fast").project()


def test_a_choice_around_another_stays() -> None:
    with engine_of(EngineSetting.LOCAL):
        with engine_of(EngineSetting.SPARK, unless_chosen=True):
            assert budget() == Budget.here_alone()
        with engine_of(EngineSetting.SPARK):
            assert budget() == Budget.spark_alone()
    assert budget() == Budget()


def test_spark_computes_what_it_is_told_to(engine: Engine, spark_config: SparkConfig) -> None:
    project = replace(engine.project, engine=EngineSetting.SPARK)
    with Engine(project, spark=spark_config) as spark:
        session = Session(spark)
        session.execute(CITIES)
        session.execute("CREATE MATERIALIZED VIEW sums AS SELECT city, sum(amount) AS s FROM orders GROUP BY city")
        poll = spark.poll("default")
        assert poll.tick is not None
        report = spark.step("default", poll.tick)
        advanced = [one for one in report.collections if one.stats.rows]
        assert {one.engine for one in advanced} == {'Spark: the setting "engine" is "spark"'}
        assert sorted(session.execute("SELECT * FROM sums").rows) == [("7", None), ("Rome", 3.5)]
    with Engine(replace(project, engine=EngineSetting.LOCAL)) as local:
        session = Session(local)
        assert sorted(session.execute("SELECT * FROM sums").rows) == [("7", None), ("Rome", 3.5)]


@pytest.mark.parametrize("types", ["some", pytest.param("all", marks=pytest.mark.deep)])
def test_many_rows_of_spark_are_those_of_this_process(tmp_path: Path, spark_config: SparkConfig, types: str) -> None:
    values = (
        "g, 'x' || g::text AS t, g::numeric(12, 2) / 4 AS n, '2020-01-01'::timestamptz + g * interval '1 hour' AS z",
        "CASE g % 3 WHEN 0 THEN 'infinity'::date WHEN 1 THEN '1960-01-01'::date END AS d, ROW(g, now())",
        "ARRAY['-infinity'::timestamp] AS a",
        "g * interval '1 day' AS i, g % 2 = 0 AS b, '12:30'::time AS c, sqrt(g) AS f, g::numeric / 8 AS u",
    )
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (g integer)")
        connection.execute("INSERT INTO t SELECT g FROM generate_series(1, 3000) g")
        connection.execute("INSERT INTO t SELECT g FROM t WHERE g % 100 = 0")
        connection.execute("BEGIN")
        query = f"SELECT {', '.join(values if types == 'all' else values[:1])} FROM t ORDER BY g DESC"
        here = connection.execute(query).fetchall()
        connection.execute("SET engine = spark")
        there = connection.execute(query)
        assert there.fetchmany(5) + there.fetchall() == here
        assert len(here) == 3030
