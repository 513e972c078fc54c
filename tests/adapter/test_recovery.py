"""Everything but the durable state is lost, Spark and the engine: what is read to go on is the compacted history.

A table of few keys is overwritten many times, and a view is maintained over it. Then all is compacted, and all compute
is gone. The next step reads what is stored, which is the key space, and not what was once ingested.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.adapter.dml import Autocommit, DecidedWrite, read_and_append
from mz_dagster.compute import StepReport
from mz_dagster.storage import compact, sweep
from mz_dagster.storage.spark import SparkConfig, close_sessions, ensure_server, server_status, stop_server

TIMELINE = "default"
KEYS, OVERWRITES = 20, 30


def opened(folder: Path, spark: SparkConfig) -> Connection:
    project = replace(Project.load(folder), retention_ms=0)
    return Connection(Engine(project, spark=spark), Isolation.STRICT_SERIALIZABLE)


def overwrite(engine: Engine, keys: range, old: int | None, new: int) -> None:
    rows: list[tuple[tuple[Any, ...], int]] = [((key, new), 1) for key in keys]
    if old is not None:
        rows += [((key, old), -1) for key in keys]
    read_and_append(Autocommit(engine), engine.collection_of("t"), lambda _: DecidedWrite(rows))


def step(engine: Engine) -> StepReport:
    tick = engine.poll(TIMELINE).tick
    assert tick is not None
    report = engine.step(TIMELINE, tick)
    assert not report.failures, report.failures
    return report


def ingest(folder: Path, spark: SparkConfig) -> None:
    """Leaves a project that has ingested much and stores little."""
    with opened(folder, spark) as connection:
        engine = connection.engine
        connection.execute("CREATE TABLE t (k integer NOT NULL, v integer NOT NULL)")
        connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS s, count(*) AS n FROM t GROUP BY k")
        overwrite(engine, range(KEYS), None, 0)
        step(engine)
        for value in range(1, OVERWRITES):
            overwrite(engine, range(KEYS), value - 1, value)
        step(engine)
        history = stored(engine)
        assert history["t"] == KEYS * (2 * OVERWRITES - 1)
        engine.catalog.allow_compaction(TIMELINE, retention_ms=0)
        for row in engine.catalog.collections(TIMELINE):
            for _ in range(2):  # the young batches, and then what is left
                compact(engine.catalog, engine.shards, row, holder="test", least_parts=1)
        sweep(engine.catalog, engine.shards, thorough=True)
        assert set(stored(engine).values()) == {KEYS}


def stored(engine: Engine) -> dict[str, int]:
    names, counts = engine.names(), engine.catalog.live_batch_counts()
    return {names[id]: stats.rows for id, (_, stats) in counts.items()}


def goes_on(folder: Path, spark: SparkConfig) -> None:
    with opened(folder, spark) as connection:
        engine = connection.engine
        before = stored(engine)
        overwrite(engine, range(1), OVERWRITES - 1, 1000)
        report = step(engine)
        read = {one.name: one.rows_read for one in report.collections if one.rows_read}
        assert read, "the step had work"
        # The two new updates, and of what is stored each row at most once for each collection that is computed.
        assert sum(read.values()) <= len(read) * (sum(before.values()) + 2), read
        assert sum(read.values()) < KEYS * OVERWRITES, read
        expected = [(0, 1000, 1), *((key, OVERWRITES - 1, 1) for key in range(1, KEYS))]
        assert sorted(connection.execute("SELECT * FROM sums").fetchall()) == expected


@pytest.mark.timeout(300)
def test_an_engine_that_is_lost_goes_on_from_the_compacted_history(tmp_path: Path, spark_config: SparkConfig) -> None:
    ingest(tmp_path, spark_config)
    close_sessions()
    goes_on(tmp_path, spark_config)


@pytest.fixture
def own_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkConfig]:
    """A Spark that a test may kill."""
    config = SparkConfig(state_dir=tmp_path_factory.mktemp("own-spark"), driver_memory="1g")
    yield config
    stop_server(config.state_dir)


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_all_compute_that_is_lost_goes_on_from_the_compacted_history(tmp_path: Path, own_spark: SparkConfig) -> None:
    ingest(tmp_path, own_spark)
    close_sessions()
    server = ensure_server(own_spark)
    os.kill(server.pid, signal.SIGKILL)
    goes_on(tmp_path, own_spark)
    second = server_status(own_spark.state_dir)
    assert second is not None
    assert second.pid != server.pid
