"""`mz_dagster.read`: a collection at a time as a DataFrame, for Spark code that knows nothing of updates."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

import pytest

import mz_dagster
from mz_dagster.adapter import Connection, NoValidTimestamp
from mz_dagster.errors import DataError, ProgrammingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_come_as_often_as_they_are_there_at_every_time(connection: Connection, spark: SparkSession) -> None:
    project = connection.engine.project.root
    connection.execute('CREATE TABLE t (a integer, "b.c" text)')
    connection.execute("INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, NULL)")
    before = connection.engine.catalog.read_ts("default")
    connection.execute("DELETE FROM t WHERE a = 1")
    now = mz_dagster.read(spark, "t", project=project)
    assert now.columns == ["a", "b.c"]
    assert [tuple(row) for row in now.collect()] == [(2, None)]
    connection.execute("CREATE CHECK few ON t BLOCKING AS SELECT count(*) AS n FROM t HAVING count(*) > 1")
    held = mz_dagster.read(spark, "t", held=True, project=project)
    assert [tuple(row) for row in held.collect()] == [(2, None)]
    then = mz_dagster.read(spark, "t", before, project=project)
    assert sorted((tuple(row) for row in then.collect()), key=repr) == [(1, "x"), (1, "x"), (2, None)]


def test_a_frame_stays_right_while_its_batches_are_merged_and_swept(
    connection: Connection, spark: SparkSession
) -> None:
    project = connection.engine.project.root
    connection.execute("CREATE TABLE t (a integer)")
    for value in range(6):
        connection.execute("INSERT INTO t VALUES (?)", (value,))
    frame = mz_dagster.read(spark, "t", project=project)
    list(connection.engine.compact())
    (row,) = connection.engine.catalog.collections()
    assert len(connection.engine.catalog.live_batches([row.id])[row.id]) == 1
    assert sorted(one[0] for one in frame.collect()) == list(range(6))
    assert not connection.engine.catalog.sweepable(), "the frame's lease did not hold"
    made_of_it = frame.where("a > 3")
    del frame
    gc.collect()
    assert not connection.engine.catalog.sweepable(), "the lease did not outlive the frame that another was made of"
    assert sorted(one[0] for one in made_of_it.collect()) == [4, 5]
    del made_of_it
    gc.collect()
    deadline = time.monotonic() + 60
    while len(connection.engine.catalog.sweepable()) < 6:  # by a thread: what ends a lease may be no finalizer
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_error_in_the_data_is_raised_and_not_shown_as_rows(connection: Connection, spark: SparkSession) -> None:
    project = connection.engine.project.root
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT 10 / a AS q FROM t")
    connection.execute("INSERT INTO t VALUES (0), (5)")
    with pytest.raises(DataError, match="division by zero"):
        connection.execute("SELECT * FROM m")
    with pytest.raises(DataError, match="division by zero"):
        mz_dagster.read(spark, "m", project=project)
    connection.execute("DELETE FROM t WHERE a = 0")
    assert connection.execute("SELECT * FROM m").fetchall() == [(2,)]
    assert [tuple(row) for row in mz_dagster.read(spark, "m", project=project).collect()] == [(2,)]


def test_what_cannot_be_read_is_refused(connection: Connection, spark: SparkSession) -> None:
    project = connection.engine.project.root
    connection.execute("CREATE TABLE t (a integer)")
    connection.execute("CREATE VIEW v AS SELECT a FROM t")
    with pytest.raises(ProgrammingError, match='relation "u" does not exist'):
        mz_dagster.read(spark, "u", project=project)
    with pytest.raises(ProgrammingError, match="plain view"):
        mz_dagster.read(spark, "v", project=project)
    with pytest.raises(NoValidTimestamp, match="not known yet"):
        mz_dagster.read(spark, "t", 10**15, project=project)
