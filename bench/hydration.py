"""First hydration against the plain queries that write the same: of all views in one step, state included, and of each.

Goals: 1.2 times for all of them, 1.5 for each without its state. The time of the state is that of the view's
arrangements, and all else is the view's own: its plan, its write, the seal. Where two arrangements are written at once,
what they take together is more than what the step takes for them; then the part of the view is what it took itself.
"""

from __future__ import annotations

import statistics

from bench.harness import Bench, Ratio, Timing, round_name, say, table, timed
from bench.tpch.plain import Plain, total
from bench.tpch.project import TIMELINE, VIEWS, TpchProject, define, opened, short


def run(bench: Bench) -> None:
    """Measures, prints and records."""
    together = Timing(tuple(_hydrate_all(bench) for _ in range(1 + bench.full_repetitions))[1:])
    totals: dict[str, list[float]] = {view: [] for view in VIEWS}
    states: dict[str, list[float]] = {view: [] for view in VIEWS}
    for number in range(1 + bench.full_repetitions):
        with opened(bench, views=()) as project:
            for view in VIEWS:
                seconds, state = _hydrate(project, view)
                if number:
                    totals[view].append(seconds)
                    states[view].append(state)
        say(f"  hydration, {round_name(number, 1)}: done")
    with opened(bench, views=()) as project:
        full = Plain(bench, project).refreshes(bench.full_repetitions)
    whole = total(full)
    ratio = Ratio(together, whole)
    bench.results.record(
        f"hydration.{bench.scale_key}.together", {"total": together, "full": whole, "total_over_full": ratio}
    )
    print(table(("hydration", "plain queries", "all", "all / plain"), [("together", whole, together, ratio)]))
    rows = []
    for view in VIEWS:
        whole, state = Timing(tuple(totals[view])), statistics.median(states[view])
        ratio = Ratio(Timing(tuple(t - s for t, s in zip(totals[view], states[view], strict=True))), full[view])
        bench.results.record(
            f"hydration.{bench.scale_key}.{short(view)}",
            {"total": whole, "state_seconds": state, "full": full[view], "without_state_over_full": ratio},
        )
        rows.append((short(view), full[view], whole, state, ratio))
    print(table(("hydration", "plain query", "all", "state s", "without state / plain"), rows))


def _hydrate_all(bench: Bench) -> float:
    """Defines all views and hydrates them in one step; returns how long that took, in seconds."""
    with opened(bench, views=()) as project:
        define(project.engine.project.root, VIEWS)
        project.engine.apply()
        tick = project.engine.catalog.last_tick(TIMELINE)
        assert tick is not None, "a loaded project has a tick"
        seconds, _ = timed(project.step, tick)
    say(f"  hydration of all views in one step: {seconds:.1f} s")
    return seconds


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
