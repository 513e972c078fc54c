"""Point lookups by key on an index over ten million rows; goal: a median under 20 ms, without a Spark job."""

from __future__ import annotations

import random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.harness import Bench, Timing, say, table, timed
from bench.loading import load
from bench.small import TIMELINE, small_project, source, spark_work
from mz_dagster.adapter import Session

ROWS = 10_000_000
_LOOKUPS = 10


def run(bench: Bench) -> None:
    """Measures lookups by the source's own key and by an index's, prints and records."""
    rows = int(ROWS * min(1.0, bench.scale))
    sql = f"""
        {source("big", "id bigint NOT NULL, g bigint NOT NULL, name text NOT NULL", key="id")}
        CREATE INDEX big_by_id ON big (id);
    """
    with small_project(bench, sql, sources=["big"]) as project:
        seconds, tick = timed(load, project.engine, TIMELINE, lambda spark, _: _rows(spark, rows))
        project.step(tick)
        say(f"  {rows} rows in {seconds:.0f} s")
        session = Session(project.engine)
        dice = random.Random(1)
        found = []
        before = spark_work(bench)
        for number in range(1 + _LOOKUPS * bench.repetitions):
            id = dice.randrange(rows)
            seconds, result = timed(session.execute, f"SELECT g, name FROM big WHERE id = {id}")
            assert [tuple(row) for row in result.rows] == [(id % 1000, f"row {id}")], f"row {id} is there once"
            if number:
                found.append(seconds)
        jobs = (spark_work(bench) - before).jobs
    timing = Timing(tuple(found))
    bench.results.record("lookup", {"rows": rows, "lookup": timing, "spark_jobs_per_lookup": jobs / (1 + len(found))})
    low, high = timing.spread
    print(table(("lookups", "median ms", "from", "to", "Spark jobs each"), [
        (f"{len(found)} of {rows} rows", 1000 * timing.median, 1000 * low, 1000 * high, jobs / (1 + len(found)))
    ]))  # fmt: skip


def _rows(session: SparkSession, rows: int) -> tuple[DataFrame, int]:
    id = F.col("id")
    name = F.concat(F.lit("row "), id.cast("string"))
    return session.range(rows).select(id, (id % 1000).alias("g"), name.alias("name")), rows
