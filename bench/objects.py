"""What statements and polls cost among many objects, against the same among ten; goal: at most 1.2 times, 1.5 at first.

Of each size of project: the first SELECT of an engine that was just opened, an INSERT, the SELECT that steps a view to
what was written, and polls that find nothing. Nothing of it needs Spark.
"""

from __future__ import annotations

from bench.harness import Bench, Ratio, Timing, table, timed
from bench.small import TIMELINE, SmallProject, small_project
from mz_dagster.adapter import Engine, Session

_FEW, _MANY = 10, 2000
_GOAL = {"first select": "1.5", "insert": "1.2", "step": "1.2", "idle poll": "50 ms"}


def run(bench: Bench) -> None:
    """Measures both sizes, prints and records."""
    many = max(2 * _FEW, round(_MANY * bench.scale))
    found = {objects: _measured(bench, objects) for objects in (_FEW, many)}
    for objects, timings in found.items():
        bench.results.record(f"objects.of_{objects}", timings)
    ratios = {what: Ratio(found[many][what], found[_FEW][what]) for what in _GOAL}
    bench.results.record("objects.ratio", ratios)
    head = ("milliseconds", f"{_FEW} objects", f"{many} objects", "ratio", "goal")
    print(table(head, [
        (what, 1000 * found[_FEW][what].median, 1000 * found[many][what].median, ratios[what], goal)
        for what, goal in _GOAL.items()
    ]))  # fmt: skip


def _measured(bench: Bench, objects: int) -> dict[str, Timing]:
    others = [f"CREATE MATERIALIZED VIEW v{n} AS SELECT a + {n} AS a FROM other;" for n in range(objects - 3)]
    sql = "\n".join([
        "CREATE TABLE t (a integer, b integer);",
        "CREATE TABLE other (a integer);",
        "CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a;",
        *others,
    ])  # fmt: skip
    with small_project(bench, sql, sources=()) as project:
        project.step(project.poll())
        rounds = [_round(bench, project, number) for number in range(1 + 4 * bench.repetitions)]
    return {what: Timing(tuple(one[what] for one in rounds[1:])) for what in _GOAL}


def _round(bench: Bench, project: SmallProject, number: int) -> dict[str, float]:
    with Engine(project.engine.project, spark=bench.spark) as opened:
        first, _ = timed(Session(opened).execute, "SELECT * FROM v")
    session = Session(project.engine)
    insert, _ = timed(session.execute, f"INSERT INTO t VALUES ({number % 7}, {number})")
    step, _ = timed(session.execute, "SELECT * FROM v")
    while (tick := project.engine.poll(TIMELINE).tick) is not None:
        project.step(tick)
    project.engine.poll(TIMELINE)
    idle, _ = timed(project.engine.poll, TIMELINE)
    return {"first select": first, "insert": insert, "step": step, "idle poll": idle}
