"""First hydration of each view alone, against the plain query that writes the same; goal: 1.5 times, state excluded.

The time of the state is that of the view's arrangements, and all else is the view's own: its plan, its write, the seal.
Where two arrangements are written at once, what they take together is more than what the step takes for them; then the
part of the view is what it took itself.
"""

from __future__ import annotations

import statistics

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.tpch.plain import Plain
from bench.tpch.project import TIMELINE, VIEWS, TpchProject, define, opened, short


def run(bench: Bench) -> None:
    """Measures, prints and records."""
    totals: dict[str, list[float]] = {view: [] for view in VIEWS}
    states: dict[str, list[float]] = {view: [] for view in VIEWS}
    for number in range(1 + bench.full_repetitions):
        with opened(bench, hydrated=False) as project:
            for view in VIEWS:
                total, state = _hydrate(project, view)
                if number:
                    totals[view].append(total)
                    states[view].append(state)
        say(f"  hydration, {round_name(number, 1)}: done")
    with opened(bench, hydrated=False) as project:
        full = Plain(bench, project).refreshes(bench.full_repetitions)
    rows = []
    for view in VIEWS:
        whole, state = Timing(tuple(totals[view])), statistics.median(states[view])
        own = Timing(tuple(t - s for t, s in zip(totals[view], states[view], strict=True)))
        ratio = Ratio(own, full[view])
        bench.results.record(
            f"hydration.{bench.scale_key}.{short(view)}",
            {"total": whole, "state_seconds": state, "full": full[view], "without_state_over_full": ratio},
        )
        rows.append((short(view), full[view], whole, state, ratio))
    print(table(("hydration", "plain query", "all", "state s", "without state / plain"), rows))


def _hydrate(project: TpchProject, view: str) -> tuple[float, float]:
    """Defines a view and hydrates it; returns how long that took, and how long of it the state, in seconds."""
    engine = project.engine
    define(engine.project.root, [view])
    engine.apply()
    tick = engine.catalog.last_tick(TIMELINE)
    assert tick is not None, "a loaded project has a tick"
    id = engine.collection_of(view)
    seconds, report = timed(project.step, tick, project.collections_of([view]))
    (own,) = [one.spark_ms / 1000 for one in report.collections if one.id == id]
    state = sum(one.spark_ms for one in report.collections if one.owner == id) / 1000
    return seconds, min(state, seconds - own)
