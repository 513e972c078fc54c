"""TPC-DS's 99 queries as views: a step after a thousandth changed, against DuckDB recomputing all of them; goal: 1.0x.

Tables as DuckDB's extension generates them, scale 0.01 by default: 75,000 rows of facts. The views are files of a
project, which is applied, and hydrated in one step; goal: 4x. In each round a thousandth of each table of facts is
deleted, updated and inserted, in one transaction; the step brings all views there. DuckDB holds the tables in its
memory and makes tables of the same queries, with as many threads as there are cores.
"""

from __future__ import annotations

import shutil
from contextlib import closing

import duckdb

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.open_project import OpenProject
from mz_dagster.adapter import Connection, Engine, Isolation, Project, apply_project
from mz_dagster.storage.spark import server_status
from tests.tpcds import feed, texts

_WARMUPS = 2


def run(bench: Bench) -> None:
    """Measures, prints and records; that the views hold what DuckDB says, `tests/tpcds` tells."""
    root = bench.new_path("tpcds")
    assets = root / "project" / "assets"
    assets.mkdir(parents=True)
    queries = {name: feed.query(name) for name in texts.queries()}
    steps, refreshes = list[float](), list[float]()
    try:
        with (
            closing(feed.generated(bench.scale)) as duck,
            Engine(Project.load(root / "project"), spark=bench.spark) as engine,
            Connection(engine, Isolation.STRICT_SERIALIZABLE) as connection,
        ):
            for name, statement in texts.tables().items():
                (assets / f"{name}.sql").write_text(f"{statement};\n")
            apply_project(engine)
            feed.fill(duck, connection, root)
            for name, query in queries.items():
                (assets / f"{name}.sql").write_text(f"CREATE MATERIALIZED VIEW {name} AS {query};\n")
            project = OpenProject(engine, engine.project.timeline)
            definition, collections = timed(_applied, engine, project.timeline)
            hydration, _ = timed(project.step, project.poll())
            say(
                f"{len(queries)} views of {collections} collections applied in {definition:.1f} s and hydrated in "
                f"{hydration:.1f} s"
            )
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
            "definition_seconds": definition,
            "hydration_seconds": hydration,
            "step": stepped,
            "duckdb": refreshed,
            "step_over_duckdb": over,
            "spark_started": has_spark,
        },
    )
    spark = "started" if has_spark else "not started"
    print(table(("views", "collections", "applied", "hydration", "step", "DuckDB", "step / DuckDB", "Spark"), [
        (len(queries), collections, definition, hydration, stepped, refreshed, over, spark),
    ]))  # fmt: skip


def _applied(engine: Engine, timeline: str) -> int:
    """Applies a project's files, and returns of how many collections its graph is."""
    apply_project(engine)
    return len(list(engine.graph(timeline)))


def _refreshed(duck: duckdb.DuckDBPyConnection, queries: dict[str, str]) -> float:
    """Returns the seconds that all queries take anew."""
    return sum(timed(duck.execute, f"CREATE OR REPLACE TABLE {name} AS {query}")[0] for name, query in queries.items())
