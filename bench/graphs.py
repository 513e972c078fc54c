"""Shapes of graphs: a chain of ten views and a fan of twenty; goal: the sum of the views' own steps and 10 % at most.

Both stand on one source. A round changes some of its rows; its views are stepped together, and, after the same change
once more, one after another. What sealing, planning and waiting for each other cost is the difference. One write
execution and one commit for each changed shard is checked along the way, and none for one that did not change.
"""

from __future__ import annotations

import random
from pathlib import Path

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.small import SmallProject, small_project, source, spark_work, upsert
from mz_dagster.compute import StepReport

_ROWS = 20_000
_CHANGED = 200
_GROUPS = 500
_CHAIN, _FAN = 10, 20
_WARMUPS = 2


class WrongWork(Exception):
    """Reports a step that wrote more often, or less, than what changed."""


def run(bench: Bench) -> None:
    """Measures both shapes, prints and records."""
    base = source("s", "id integer NOT NULL, g integer NOT NULL, v bigint NOT NULL", key="id")
    chain = [f"CREATE MATERIALIZED VIEW v{n} AS SELECT id, g, v + 1 AS v FROM {f'v{n - 1}' if n > 1 else 's'};"
             for n in range(1, _CHAIN + 1)]  # fmt: skip
    fan = [f"CREATE MATERIALIZED VIEW v{n} AS SELECT g, sum(v * {n}) AS t, count(*) AS n FROM s GROUP BY g;"
           for n in range(1, _FAN + 1)]  # fmt: skip
    rows = []
    for name, views in (("chain", chain), ("fan", fan)):
        with small_project(bench, "\n".join([base, *views]), sources=["s"]) as project:
            together, apart, per_shard = _measure(bench, name, project, len(views))
        ratio = Ratio(together, apart)
        bench.results.record(
            f"graphs.{name}",
            {
                "together": together,
                "sum_of_views": apart,
                "together_over_sum": ratio,
                "executions_per_shard": per_shard,
            },
        )
        rows.append((f"{name} of {len(views)}", together, apart, ratio, per_shard))
    print(table(("", "together", "sum of views", "together / sum", "Spark executions per shard"), rows))


def _measure(bench: Bench, name: str, project: SmallProject, count: int) -> tuple[Timing, Timing, float]:
    dice = random.Random(1)
    project.drop("s", "0", [_row(id, dice) for id in range(_ROWS)])
    project.step(project.poll())
    views = [project.collections_of([f"v{n}"]) for n in range(1, count + 1)]
    together, apart = [], []
    per_shard = 0.0
    for number in range(_WARMUPS + bench.repetitions):
        tick = _changed(project, f"{number}-together", dice)
        commits, before = _commits(project), spark_work(bench)
        seconds, report = timed(project.step, tick)
        per_shard = (spark_work(bench) - before).executions / count
        _check_commits(project, report, commits)
        tick = _changed(project, f"{number}-apart", dice)
        total = sum(timed(project.step, tick, own)[0] for own in views)
        say(f"  {name}, {round_name(number, _WARMUPS)}: {seconds:.2f} s, one by one {total:.2f} s")
        if number >= _WARMUPS:
            together.append(seconds)
            apart.append(total)
    return Timing(tuple(together)), Timing(tuple(apart)), per_shard


def _row(id: int, dice: random.Random) -> dict[str, object]:
    return dict(upsert({"id": id, "g": id % _GROUPS, "v": dice.randrange(1_000_000)}, key="id"))


def _changed(project: SmallProject, name: str, dice: random.Random) -> int:
    """Changes some rows, brings the source there, and returns the tick."""
    project.drop("s", name, [_row(id, dice) for id in dice.sample(range(_ROWS), _CHANGED)])
    tick = project.poll()
    project.step(tick, project.collections_of(["s"]))
    return tick


def _commits(project: SmallProject) -> dict[str, int]:
    """Returns how many commits each shard's table has."""
    logs = Path(project.engine.project.state).glob("**/_delta_log")
    return {str(log.parent): len(list(log.glob("*.json"))) for log in logs}


def _check_commits(project: SmallProject, report: StepReport, before: dict[str, int]) -> None:
    """Holds that each shard with a batch of this step has one more commit, and no other has any.

    Raises:
        WrongWork: One has not.
    """
    grown = {name: count - before.get(name, 0) for name, count in _commits(project).items()}
    rows = {row.id: row for row in project.engine.catalog.collections()}
    for one in report.collections:
        (commits,) = [count for name, count in grown.items() if name.endswith(f"/{rows[one.id].shard}")] or [0]
        if commits != (one.batch is not None):
            raise WrongWork(f'"{one.name}" got {commits} commits, and wrote {one.stats.rows} updates')
