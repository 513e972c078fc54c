"""Catching up: a range of 100 ticks in one step, against one tick with the same updates; goal: at most twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.small import SmallProject, small_project, source, upsert

_TICKS = 100
_ROWS_PER_TICK = 20
_ROWS = 20_000
_SQL = "\n".join([
    source("s", "id integer NOT NULL, g integer NOT NULL, v bigint NOT NULL", key="id"),
    source("d", "g integer NOT NULL, name text NOT NULL", key="g"),
    "CREATE MATERIALIZED VIEW joined AS SELECT s.id, s.v, d.name FROM s JOIN d ON d.g = s.g;",
    "CREATE MATERIALIZED VIEW sums AS SELECT d.name, sum(s.v) AS t FROM s JOIN d ON d.g = s.g GROUP BY d.name;",
    "CREATE MATERIALIZED VIEW most AS SELECT g, max(v) AS v FROM s GROUP BY g;",
])  # fmt: skip
_GROUPS = 500
_WARMUPS = 1


def run(bench: Bench) -> None:
    """Measures both, prints and records."""
    with small_project(bench, _SQL, sources=["s", "d"]) as project:
        project.drop("d", "0", [upsert({"g": g, "name": f"group {g}"}, key="g") for g in range(_GROUPS)])
        project.drop("s", "0", [_record(id, 0) for id in range(_ROWS)])
        project.step(project.poll())
        one, many = [], []
        for number in range(_WARMUPS + bench.repetitions):
            once = _step(project, number, "one", 1)
            spread = _step(project, number, "many", _TICKS)
            say(f"  {round_name(number, _WARMUPS)}: one tick {once:.2f} s, {_TICKS} ticks {spread:.2f} s")
            one.append(once)
            many.append(spread)
    single, range_ = Timing(tuple(one[_WARMUPS:])), Timing(tuple(many[_WARMUPS:]))
    ratio = Ratio(range_, single)
    bench.results.record("catch_up", {"ticks": _TICKS, "one_tick": single, "range": range_, "range_over_one": ratio})
    print(table(("same updates", "step"), [("in one tick", single), (f"in {_TICKS} ticks", range_), ("ratio", ratio)]))


def _step(project: SmallProject, number: int, label: str, ticks: int) -> float:
    """Lets the same updates arrive in so many ticks, and returns how long the one step to the last of them takes."""
    total = _TICKS * _ROWS_PER_TICK
    tick = 0
    for n in range(ticks):
        ids = range(n * total // ticks, (n + 1) * total // ticks)
        project.drop("s", f"{number}-{label}-{n:03}", [_record(id, 1 + 2 * number + (ticks > 1)) for id in ids])
        tick = project.poll()
    seconds, _ = timed(project.step, tick)
    return seconds


def _record(id: int, generation: int) -> Mapping[str, Any]:
    return upsert({"id": id, "g": id % _GROUPS, "v": id * 7919 % 10_007 + generation}, key="id")
