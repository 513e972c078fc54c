"""TPC-DS's 99 queries as views: a step after a thousandth changed, against DuckDB recomputing all of them; goal: 1.0x.

Tables as DuckDB's extension generates them, scale 0.01 by default: 75,000 rows of facts. In each round a thousandth of
each table of facts is deleted, updated and inserted, in one transaction; the step brings all views there. DuckDB holds
the tables in its memory and makes tables of the same queries, with as many threads as there are cores.
"""

from __future__ import annotations

import shutil
from contextlib import closing

import duckdb

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.open_project import OpenProject
from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.storage.spark import server_status
from tests.tpcds import feed, texts

_WARMUPS = 2


def run(bench: Bench) -> None:
    """Measures, prints and records; that the views hold what DuckDB says, `tests/tpcds` tells."""
    root = bench.new_path("tpcds")
    root.mkdir(parents=True)
    queries = {name: feed.query(name) for name in texts.queries()}
    steps, refreshes = list[float](), list[float]()
    try:
        with (
            closing(feed.generated(bench.scale)) as duck,
            Engine(Project.load(root / "project"), spark=bench.spark) as engine,
            Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection,
        ):
            feed.load(duck, connection, root)
            hydration = sum(
                timed(connection.execute, f"CREATE MATERIALIZED VIEW {name} AS {query}")[0]
                for name, query in queries.items()
            )
            project = OpenProject(engine, engine.project.timeline)
            collections = len(list(engine.graph(project.timeline)))
            say(f"{len(queries)} views of {collections} collections hydrated in {hydration:.1f} s")
            for number in range(_WARMUPS + bench.repetitions):
                connection.execute("BEGIN")
                feed.change(connection, duck, root)
                connection.execute("COMMIT")
                tick = project.poll()
                step, report = timed(project.step, tick)
                refresh = _refreshed(duck, queries)
                changed = sum(1 for one in report.collections if one.stats.rows)
                say(f"{round_name(number, _WARMUPS)}: {changed} changed, step {step:.2f} s, DuckDB {refresh:.2f} s")
                if number >= _WARMUPS:
                    steps.append(step)
                    refreshes.append(refresh)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    stepped, refreshed = Timing(tuple(steps)), Timing(tuple(refreshes))
    over = Ratio(stepped, refreshed)
    has_spark = server_status(bench.spark.state_dir) is not None
    bench.results.record(
        f"tpcds.{bench.scale_key}",
        {
            "collections": collections,
            "hydration_seconds": hydration,
            "step": stepped,
            "duckdb": refreshed,
            "step_over_duckdb": over,
            "spark_started": has_spark,
        },
    )
    print(table(("views", "collections", "hydration", "step", "DuckDB", "step / DuckDB", "Spark"), [
        (len(queries), collections, hydration, stepped, refreshed, over, "started" if has_spark else "not started"),
    ]))  # fmt: skip


def _refreshed(duck: duckdb.DuckDBPyConnection, queries: dict[str, str]) -> float:
    """Returns the seconds that all queries take anew."""
    return sum(timed(duck.execute, f"CREATE OR REPLACE TABLE {name} AS {query}")[0] for name, query in queries.items())
