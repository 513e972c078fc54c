"""Updates of dimensions: 0.01 % of customers, parts and suppliers; goal: no view slower than its full refresh."""

from __future__ import annotations

from bench.harness import Bench, Ratio, table
from bench.tpch.plain import Plain
from bench.tpch.project import VIEWS, opened, short
from bench.tpch.steps import alone


def run(bench: Bench) -> None:
    """Measures each view alone, checks all of them, prints and records."""
    with opened(bench) as project:
        steps = alone(project, lambda: project.place("dimensions"), bench.repetitions, warmups=bench.warmups)
        plain = Plain(bench, project)
        full = plain.refreshes(bench.full_repetitions)
        plain.check(steps.tick)
    ratios = {view: Ratio(full[view], steps.step[view]) for view in VIEWS}
    bench.results.record(
        f"dimensions.{bench.scale_key}",
        {short(view): {"ratio": ratios[view], "step": steps.step[view], "full": full[view]} for view in VIEWS}
        | {"least": min(one.median for one in ratios.values())},
    )
    print(table(("dimensions", "full", "step", "full / step", ""), [
        (short(view), full[view], steps.step[view], ratios[view], "" if view in steps.changed else "nothing to do")
        for view in VIEWS
    ]))  # fmt: skip
