"""What would be too large a plan for Spark is refused before it is sent, and says what it is and what to set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.adapter.apply import NotAllApplied
from mz_dagster.budget import Budget
from mz_dagster.errors import DatabaseError
from mz_dagster.plan.plan_size import PlanTooLarge
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget


def chain(tables: int) -> str:
    """Returns a join of so many tables, each with the one before: so many terms, of as many lookups."""
    return "SELECT t0.a FROM t AS t0 " + " ".join(f"JOIN t AS t{i} ON t{i}.a = t{i - 1}.b" for i in range(1, tables))


def opened(root: Path, settings: str = "", spark: SparkConfig | None = None) -> Connection:
    (root / "mz.toml").write_text(settings, encoding="utf-8")
    return Connection(Engine(Project.load(root), spark=spark), Isolation.STRICT_SERIALIZABLE)


def test_a_view_that_spark_could_not_plan_is_not_created(tmp_path: Path) -> None:
    with opened(tmp_path, "[spark]\nplan_operators = 300") as connection:
        connection.execute("CREATE TABLE t (a integer, b integer)")
        connection.execute(f"CREATE MATERIALIZED VIEW few AS {chain(12)}")
        with pytest.raises(PlanTooLarge, match=r'the plan of "many" is too large for Spark: DeltaJoin of 13') as found:
            connection.execute(f"CREATE MATERIALIZED VIEW many AS {chain(13)}")
        assert found.value.sqlstate == "54001"
        assert "plan 339 operators at once, and the limit is 300" in (found.value.detail or "")
        assert '"spark.plan_operators" in mz.toml' in (found.value.hint or "")
        connection.execute("CREATE MATERIALIZED VIEW part AS SELECT x.a, y.b FROM t AS x JOIN t AS y ON y.a = x.b")
        connection.execute(f"CREATE MATERIALIZED VIEW many AS {chain(7).replace('JOIN t AS', 'JOIN part AS')}")
    # What is there goes on when the limit is lowered.
    with opened(tmp_path, "[spark]\nplan_operators = 10") as connection:
        connection.execute("INSERT INTO t VALUES (1, 1)")
        assert connection.execute("SELECT * FROM few").fetchall() == [(1,)]
        assert connection.execute("SELECT * FROM many").fetchall() == [(1,)]


def test_the_limit_is_raised_or_is_none_where_spark_computes_nothing(tmp_path: Path) -> None:
    for number, settings in enumerate(("[spark]\nplan_operators = 400", '[project]\nengine = "local"')):
        root = tmp_path / str(number)
        root.mkdir()
        with opened(root, settings) as connection:
            connection.execute("CREATE TABLE t (a integer, b integer)")
            connection.execute(f"CREATE MATERIALIZED VIEW many AS {chain(13)}")
            connection.execute("INSERT INTO t VALUES (1, 1)")
            assert connection.execute("SELECT * FROM many").fetchall() == [(1,)]


def test_a_file_with_such_a_view_holds_back_nothing_else(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "t.sql").write_text("CREATE TABLE t (a integer, b integer);", encoding="utf-8")
    (assets / "many.sql").write_text(f"CREATE MATERIALIZED VIEW many AS {chain(13)};", encoding="utf-8")
    with opened(tmp_path, "[spark]\nplan_operators = 300") as connection:
        with pytest.raises(
            NotAllApplied, match=r'many\.sql: the plan of "many" is too large for Spark: DeltaJoin of 13'
        ):
            connection.engine.apply()
        assert connection.execute("SELECT * FROM t").fetchall() == []
    with opened(tmp_path) as connection:
        assert connection.engine.apply().created == ("many",)
    with opened(tmp_path, "[spark]\nplan_operators = 300") as connection:
        assert not connection.engine.apply().faults


def test_a_plan_of_too_many_bytes_is_not_sent(tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget) -> None:
    wide = "SELECT " + ", ".join(f"a + {i} AS c{i}" for i in range(200)) + " FROM t"
    with opened(tmp_path, spark=replace(spark_config, plan_bytes=20_000)) as connection:
        connection.execute("CREATE TABLE t (a integer, b integer)")
        connection.execute("INSERT INTO t VALUES (1, 2)")
        set_budget(Budget.spark_alone())
        assert connection.execute("SELECT sum(a) FROM t").fetchall() == [(1,)]
        for statement in (f"CREATE MATERIALIZED VIEW wide AS {wide}", wide):
            with pytest.raises(DatabaseError, match=r"the plan is too large for Spark: (Read|Linear)") as found:
                connection.execute(statement).fetchall()
            assert "the limit is 20000. Nothing was sent" in str(found.value.detail)
            assert '"spark.plan_bytes" in mz.toml' in str(found.value.hint)
        set_budget(Budget())
        assert connection.execute("SELECT c199 FROM wide").fetchall() == [(200,)]
