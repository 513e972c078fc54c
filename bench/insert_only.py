"""Streams that only insert, against the general path; goal: at least twice as fast where the query is monotonic.

The same rows arrive in a source that only ever gains rows (`ENVELOPE NONE`) and in one that may retract (`UPSERT`); the
same views stand on both. Only the views' step is compared: the envelopes differ in what they read of their own.
"""

from __future__ import annotations

from bench.harness import Bench, Ratio, Timing, say, table, timed
from bench.small import SmallProject, small_project, source, upsert

_FIRST, _ROUND = 500_000, 10_000
_GROUPS = 20_000
_COLUMNS = "id integer NOT NULL, g integer NOT NULL, v bigint NOT NULL"
_VIEWS = {
    "most": "SELECT g, max(v) AS v FROM s GROUP BY g",
    "once": "SELECT DISTINCT g FROM s",
    "top_row": "SELECT DISTINCT ON (g) g, id, v FROM s ORDER BY g, v DESC",
}
_WARMUPS = 2


def run(bench: Bench) -> None:
    """Measures both, prints and records."""
    views = [f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in _VIEWS.items()]
    found = {}
    for key in (None, "id"):
        sql = "\n".join([source("s", _COLUMNS, key=key), *views])
        with small_project(bench, sql, sources=["s"]) as project:
            found[key] = _measure(project, key, int(_FIRST * min(1.0, bench.scale)), bench.repetitions)
    rows = []
    for name in _VIEWS:
        only, general = found[None][name], found["id"][name]
        ratio = Ratio(general, only)
        bench.results.record(f"insert_only.{name}", {"general": general, "insert_only": only, "ratio": ratio})
        rows.append((name, general, only, ratio))
    print(table(("view", "general", "insert-only", "general / insert-only"), rows))


def _measure(project: SmallProject, key: str | None, first: int, repetitions: int) -> dict[str, Timing]:
    seconds: dict[str, list[float]] = {name: [] for name in _VIEWS}
    own = {name: project.collections_of([name]) for name in ("s", *_VIEWS)}
    next_id = 0
    for number in range(1 + _WARMUPS + repetitions):
        count = _ROUND if number else first
        rows = [{"id": id, "g": id * 7919 % _GROUPS, "v": id * 104_729 % 1_000_003} for id in
                range(next_id, next_id + count)]  # fmt: skip
        next_id += count
        project.drop("s", f"{number:03}", rows if key is None else (upsert(row, key=key) for row in rows))
        tick = project.poll()
        project.step(tick, own["s"])
        for name in _VIEWS:
            seconds[name].append(timed(project.step, tick, own[name])[0])
        say(f"  {'general' if key else 'insert-only'}: " + ", ".join(f"{n} {s[-1]:.2f} s" for n, s in seconds.items()))
    return {name: Timing(tuple(one[1 + _WARMUPS :])) for name, one in seconds.items()}
