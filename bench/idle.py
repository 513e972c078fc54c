"""Idle ticks: 100 collections at which nothing arrives; goal: under 100 ms of engine time, without Spark."""

from __future__ import annotations

from bench.harness import Bench, Timing, table, timed
from bench.small import TIMELINE, SmallProject, small_project, source, spark_work

_VIEWS = 99


def run(bench: Bench) -> None:
    """Measures ticks of which every collection is idle, and polls that find nothing; prints and records."""
    views = [f"CREATE MATERIALIZED VIEW v{n} AS SELECT id + {n} AS x FROM s;" for n in range(_VIEWS)]
    sql = "\n".join([source("s", "id integer NOT NULL", key="id"), *views])
    with small_project(bench, sql, sources=["s"]) as project:
        project.drop("s", "0", [{"key": {"id": 1}, "value": {}}])
        project.step(project.poll())
        before = spark_work(bench)
        rounds = 4 * bench.repetitions
        steps, polls = zip(*(_round(project) for _ in range(1 + rounds)), strict=True)
        jobs = (spark_work(bench) - before).jobs
    step, poll = Timing(steps[1:]), Timing(polls[1:])
    bench.results.record("idle", {"collections": 1 + _VIEWS, "step": step, "poll": poll, "spark_jobs": jobs})
    print(table(("100 idle collections", "milliseconds", "from", "to"), [
        (name, 1000 * one.median, *(1000 * bound for bound in one.spread))
        for name, one in (("a tick's step, engine time", step), ("a poll that finds nothing", poll))
    ]))  # fmt: skip
    print(f"Spark jobs in {rounds + 1} ticks: {jobs}")


def _round(project: SmallProject) -> tuple[float, float]:
    """Returns the engine time of an idle step, and the time of a poll, in seconds."""
    engine = project.engine
    catalog = engine.catalog
    tick = catalog.write_ts(TIMELINE, engine.now(TIMELINE))
    catalog.mint_tick(TIMELINE, tick, {}, catalog.last_tick(TIMELINE))
    report = project.step(tick)
    assert not report.had_work, "nothing has arrived"
    seconds, _ = timed(engine.poll, TIMELINE)
    return report.engine_ms / 1000, seconds
