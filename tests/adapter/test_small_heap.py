"""Memory of what a step makes of joins is bounded; where Spark has too little, it says for what, and what to set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.compute import WarmSpark
from mz_dagster.errors import OperationalError
from mz_dagster.storage.foreign import as_error
from mz_dagster.storage.spark import SparkConfig, stop_server
from mz_dagster.storage.spark.deadline import HeapFull
from tests.budgets import SetBudget

JOINED = """
SELECT aj, count(*) AS n FROM a, b, c, d WHERE aj = bk AND bj = ck AND cj = dk AND at <> bt AND at <> ct GROUP BY aj
"""


def _create(connection: Connection, rows: int, fan_out: int) -> None:
    """Makes a view over a join in which each of so many rows meets `fan_out` rows, of which each meets as many."""
    for name in "abcd":
        connection.execute(f"CREATE TABLE {name} ({name}k integer, {name}j integer, {name}t text)")
    insert = "INSERT INTO {} SELECT {}, i % 10, repeat('{}', 100) || i FROM generate_series(1, {}) g(i)"
    connection.execute(insert.format("a", "i", "a", rows))
    for name in "bc":
        connection.execute(insert.format(name, "i % 10", name, 10 * fan_out))
    connection.execute(insert.format("d", "i % 10", "d", 10))
    connection.execute(f"CREATE MATERIALIZED VIEW v AS {JOINED}")
    connection.execute("DELETE FROM a WHERE ak > 10")


def _step(connection: Connection, fan_out: int) -> None:
    found = connection.execute("SELECT * FROM v").fetchall()
    assert sorted(found) == [(j, fan_out * fan_out) for j in range(10)]


@pytest.mark.timeout(300)
def test_more_than_is_sent_to_tasks_is_shuffled(
    connection: Connection, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    monkeypatch.setattr("mz_dagster.compute.step.stepper.replan_while_running", lambda _, wanted: told.append(wanted))
    set_budget(Budget.spark_alone(), sent_rows=100)
    _create(connection, 30, 3)
    told.clear()
    _step(connection, 3)
    assert True in told, "it was computed anew"


@pytest.fixture
def small_heap(tmp_path: Path) -> Iterator[Connection]:
    """A connection with a Spark server of its own, which has little memory."""
    state = tmp_path / "spark"
    config = SparkConfig(state_dir=state, driver_memory="1g")
    try:
        engine = Engine(Project.load(tmp_path / "project"), spark=config)
        with Connection(engine, Isolation.STRICT_SERIALIZABLE) as opened:
            yield opened
    finally:
        stop_server(state, seconds=60)


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_a_step_of_ten_million_joined_rows_needs_a_small_heap(small_heap: Connection) -> None:
    """Sent to all tasks, as they were, they ended the server."""
    _create(small_heap, 6_000, 40)
    _step(small_heap, 40)


def test_who_has_too_little_memory_is_told_for_what(
    tmp_path: Path, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: WarmSpark) -> None:
        raise HeapFull("the connection to Spark was lost", detail="Its heap was full.", hint='Raise "x".')

    monkeypatch.setattr(WarmSpark, "open", refuse)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (k integer)")
        connection.execute("INSERT INTO t VALUES (1)")
        set_budget(Budget.spark_alone())
        with pytest.raises(OperationalError, match="too little memory for Accumulate by k of") as failed:
            connection.execute("CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM t GROUP BY k")
    assert "counts" in failed.value.message
    assert failed.value.sqlstate == "53200"
    assert (failed.value.detail, failed.value.hint) == ("Its heap was full.", 'Raise "x".')


@pytest.mark.parametrize(
    "said",
    [
        "Job aborted\nCaused by: java.lang.OutOfMemoryError: Java heap space",
        "[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory",
        "Total size of serialized results is bigger than spark.driver.maxResultSize",
    ],
)
def test_a_task_without_memory_is_told_with_what_to_set(said: str) -> None:
    error = as_error(RuntimeError(said))
    assert isinstance(error, HeapFull)
    assert "spark.driver.memory" in (error.hint or "")
