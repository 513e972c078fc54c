"""The world fails under an engine: what is said, and that all goes on once the cause is gone.

Bad input is elsewhere (`test_bad_input`), and what single shards and catalogs do as well (`storage/test_broken_disks`,
`catalog/test_outages`); here whole statements and steps meet it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget
from mz_dagster.catalog import CatalogBusy, Leadership, LedByAnother
from mz_dagster.catalog import database as database_module
from mz_dagster.clock import SYSTEM_CLOCK, SystemClock
from mz_dagster.compute import Outcome
from mz_dagster.errors import OperationalError
from mz_dagster.storage.sink.sink import SinkUnwritable
from mz_dagster.storage.spark import SparkConfig
from tests.budgets import SetBudget
from tests.errors import says_what_to_do
from tests.storage.disks import Disk, small_disk

TIMELINE = "default"
HOUR_MS = 3_600_000


class JumpingClock(SystemClock):
    """Is the machine's clock, which somebody sets."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@contextmanager
def opened(project: Project, **options: object) -> Iterator[Connection]:
    with Connection(Engine(project, **options), Isolation.STRICT_SERIALIZABLE) as connection:  # type: ignore[arg-type]
        yield connection


def rows(connection: Connection) -> list[int]:
    return sorted(row[0] for row in connection.execute("SELECT a FROM t").fetchall())


def test_a_clock_that_jumps_loses_and_reorders_nothing(tmp_path: Path) -> None:
    clock = JumpingClock()
    with opened(Project.load(tmp_path), clock=clock) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        written: list[int] = []
        times: list[int] = []
        for ahead_ms in (0, 24 * HOUR_MS, -48 * HOUR_MS, HOUR_MS, 0):
            clock.ahead_ms = ahead_ms
            for _ in range(2):
                written.append(len(written))
                connection.execute("INSERT INTO t VALUES (?)", (written[-1],))
                times.append(connection.engine.catalog.read_ts(TIMELINE))
                assert rows(connection) == written
                assert not [one for one in connection.engine.compact() if "could not" in one]
                assert rows(connection) == written
        assert times == sorted(set(times)), "each write is after every one that was acknowledged before it"
        reason = connection.engine.poll(TIMELINE).reason
        assert "the clock is 86" in reason, reason


def test_a_leader_that_crashed_before_the_clock_was_set_back_is_waited_for_as_long_as_any(tmp_path: Path) -> None:
    project = replace(Project.load(tmp_path), lease_ms=300)
    clock = JumpingClock()
    with opened(project, clock=clock, holder="crashed") as connection:
        connection.execute("CREATE TABLE t (a integer)")
        clock.ahead_ms = 24 * HOUR_MS
        crashed = connection.engine.catalog.lead(TIMELINE, "crashed", project.lease_ms)
        assert isinstance(crashed, Leadership)
    with opened(project) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        with connection.engine.lead(TIMELINE) as led:
            assert isinstance(led, LedByAnother)
            assert led.until_ms <= SYSTEM_CLOCK.now_ms() + project.lease_ms
        started = SYSTEM_CLOCK.monotonic_ms()
        assert rows(connection) == [1]
        assert SYSTEM_CLOCK.monotonic_ms() - started < 60_000


def test_a_catalog_that_another_process_locks_is_waited_for_then_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "WAIT_MS", 500)
    with opened(Project.load(tmp_path)) as connection:
        connection.execute("CREATE TABLE t (a integer)")
        with closing(sqlite3.connect(tmp_path / ".mz" / "catalog.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for statement in ("INSERT INTO t VALUES (1)", "SELECT * FROM t", "CREATE TABLE u (a integer)"):
                with pytest.raises(CatalogBusy) as caught:
                    connection.execute(statement)
                says_what_to_do(caught.value, "nothing was changed", "stuck process")
                assert not caught.value.may_have_taken_effect
            other.execute("ROLLBACK")
        assert rows(connection) == []
        monkeypatch.setattr(database_module, "WAIT_MS", 30_000)
    with opened(Project.load(tmp_path)) as connection:
        with closing(sqlite3.connect(tmp_path / ".mz" / "catalog.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            inserting = threading.Thread(target=connection.execute, args=("INSERT INTO t VALUES (2)",))
            inserting.start()
            inserting.join(0.5)
            assert inserting.is_alive()
            other.execute("ROLLBACK")
            inserting.join(30)
        assert rows(connection) == [2]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.mark.timeout(300)
def test_a_disk_that_is_full_in_a_step_stops_what_it_writes_and_nothing_else(
    disk: Disk, tmp_path: Path, spark_config: SparkConfig, set_budget: SetBudget
) -> None:
    """One view is small, so this process writes it; the other is large, so Spark does. The catalog is elsewhere."""
    set_budget(Budget(inlined_rows=0, evaluated_updates=20_000))
    (disk.root / "mz.toml").write_text(f"[catalog]\nurl = 'sqlite:///{tmp_path}/catalog.sqlite'\n")
    with opened(Project.load(disk.root), spark=spark_config) as connection:
        engine = connection.engine
        connection.execute("CREATE TABLE t (a integer)")
        connection.execute("CREATE TABLE few (n integer)")
        connection.execute("CREATE MATERIALIZED VIEW small AS SELECT a + 1 AS a FROM t")
        connection.execute("CREATE MATERIALIZED VIEW large AS SELECT a, l.n FROM t, few l, few r")
        for name, count in (("t", 40), ("few", 64)):
            numbers = ", ".join(f"({number})" for number in range(count))
            connection.execute(f"INSERT INTO {name} VALUES {numbers}")
        tick = engine.poll(TIMELINE).tick
        assert tick is not None
        with disk.full():
            with pytest.raises(OperationalError) as caught:
                connection.execute("INSERT INTO t VALUES (-1)")
            says_what_to_do(caught.value, "free space")
            report = engine.step(TIMELINE, tick)
            failed = {one.name: one for one in report.failures}
            assert failed.keys() == ({"small", "large"} if disk.is_mounted else {"small"})
            for one in failed.values():
                assert one.error is not None
                says_what_to_do(one.error, "No space left" if disk.is_mounted else "too large", "ree space")
        again = engine.step(TIMELINE, tick)
        assert {one.outcome for one in again.collections if one.name in failed} == {Outcome.ADVANCED}
        assert rows(connection) == list(range(40))
        assert connection.execute("SELECT count(*), sum(a) FROM small").fetchall() == [(40, sum(range(1, 41)))]
        assert connection.execute("SELECT count(*), count(DISTINCT n) FROM large").fetchall() == [(40 * 64 * 64, 64)]
        for _ in engine.compact():
            pass
        assert engine.catalog.sweepable() == ()


def test_a_sink_whose_disk_is_full_writes_all_once_there_is_room(disk: Disk, tmp_path: Path) -> None:
    (root := tmp_path / "p").mkdir()
    (root / "mz.toml").write_text(f"[outputs]\nfolders = ['{disk.root}']\n")
    with opened(Project.load(root)) as connection:
        connection.execute("CREATE TABLE t (a bigint)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        connection.execute(f"CREATE SINK s FROM v INTO DELTA (URI 'file://{disk.root}/out') ENVELOPE UPSERT")
        connection.execute("INSERT INTO t VALUES (1)")
        engine, failed = connection.engine, 0
        for number in range(2, 6):
            connection.execute(f"INSERT INTO t VALUES ({number})")
            tick = engine.poll(TIMELINE).tick
            assert tick is not None
            with disk.full(free_pages=number - 2):
                for one in engine.step(TIMELINE, tick).failures:
                    failed += 1
                    assert isinstance(one.error, SinkUnwritable)
                    says_what_to_do(one.error, "space")
            assert not engine.step(TIMELINE, tick).failures
            assert sorted(DeltaTable(disk.root / "out").to_pyarrow_table()["a"].to_pylist()) == [*range(1, number + 1)]
        assert failed
