"""Memory of what a step makes of joins is bounded; where Spark has too little, it says for what, and what to set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project, peeks
from mz_dagster.budget import Budget
from mz_dagster.catalog import BatchStats
from mz_dagster.compute import WarmSpark
from mz_dagster.compute.spark import warm_spark
from mz_dagster.compute.step.advance import Advance
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


@pytest.mark.deep
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


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_what_ended_the_server_of_its_heap_is_read_and_maintained_all_the_same(
    small_heap: Connection, set_budget: SetBudget
) -> None:
    """Half a gigabyte of texts, of which Spark thinks that they are few kilobytes, and which it sends to all tasks."""
    for name in "ab":
        small_heap.execute(f"CREATE TABLE {name} (k integer, s text)")
        small_heap.execute(f"INSERT INTO {name} SELECT g, repeat('{name}', 10) || g FROM generate_series(1, 40000) g")
    set_budget(Budget.spark_alone())
    query = "SELECT count(*) AS n FROM a JOIN (SELECT k, repeat(s, 1000) AS s FROM b) AS c ON a.k = c.k WHERE a.s < c.s"
    assert small_heap.execute(query).fetchall() == [(40_000,)]
    small_heap.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert small_heap.execute("SELECT * FROM v").fetchall() == [(40_000,)]


def test_who_has_too_little_memory_is_told_for_what(
    tmp_path: Path, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def refuse(self: WarmSpark, *, smaller_pieces: bool = False) -> None:
        tried.append(smaller_pieces)
        raise HeapFull("the connection to Spark was lost", detail="Its heap was full.", hint='Raise "x".')

    monkeypatch.setattr(WarmSpark, "open", refuse)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (k integer)")
        connection.execute("INSERT INTO t VALUES (1)")
        set_budget(Budget.spark_alone())
        with pytest.raises(OperationalError, match="too little memory for Accumulate by k of") as failed:
            connection.execute("CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM t GROUP BY k")
    assert "counts" in failed.value.message
    assert tried == [False, True]
    assert failed.value.sqlstate == "53200"
    assert (failed.value.detail, failed.value.hint) == ("Its heap was full.", 'Raise "x".')


def test_what_filled_the_heap_in_a_step_is_computed_once_more_in_smaller_pieces(
    sparkless: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written, tried, opened = Advance.write, list[bool](), list[bool]()

    def too_little(self: Advance, *, sends: bool) -> tuple[BatchStats, int]:
        tried.append(sends)
        if sends:
            raise HeapFull("the connection to Spark was lost", detail="Its heap was full.")
        self.spark.open("for the test")
        return written(self, sends=sends)

    def opening(config: SparkConfig) -> MagicMock:
        opened.append(config.smaller_pieces)
        return MagicMock()

    sparkless.execute("CREATE TABLE t (k integer)")
    sparkless.execute("CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM t GROUP BY k")
    sparkless.execute("INSERT INTO t VALUES (1), (1), (2)")
    monkeypatch.setattr(Advance, "write", too_little)
    monkeypatch.setattr(warm_spark, "open_session", opening)
    engine, told = sparkless.engine, list[str]()
    tick = engine.poll("default").tick
    assert tick is not None
    report = engine.step("default", tick, progress=told.append)
    assert not report.failures
    said = "Spark had too little memory for Accumulate by k, so it is computed in smaller pieces"
    assert any(said in line for line in told)
    assert f"{said} (Its heap was full.)" in caplog.text
    (first, *others) = [one for one in report.collections if one.spark_because]
    assert said in first.engine
    assert all("in smaller pieces" in one.engine for one in others)
    assert tried == [True, False, False], "what begins later is in smaller pieces at once"
    assert opened == [True, True]
    assert sorted(sparkless.execute("SELECT * FROM counts").fetchall()) == [(1, 2), (2, 1)]


def test_a_query_that_filled_the_heap_is_computed_once_more_in_smaller_pieces(
    sparkless: Connection, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def opened(self: WarmSpark, *, smaller_pieces: bool = False) -> tuple[bool, None]:
        return smaller_pieces, None

    def computed(in_smaller_pieces: bool, *_: object) -> list[tuple[int]]:
        if not in_smaller_pieces:
            raise HeapFull("Spark has too little memory for Accumulate by k of a query")
        return [(7,)]

    sparkless.execute("CREATE TABLE t (k integer)")
    sparkless.execute("INSERT INTO t VALUES (7)")
    monkeypatch.setattr(WarmSpark, "open", opened)
    monkeypatch.setattr(peeks, "peek", computed)
    set_budget(Budget.spark_alone())
    assert sparkless.execute("SELECT k FROM t GROUP BY k").fetchall() == [(7,)]
    assert "of a query, so it is computed once more, in smaller pieces" in caplog.text


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
