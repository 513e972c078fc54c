"""Some of TPC-H's views, each alone, against their full refresh: as `tpch`, for those who improve one of them."""

from __future__ import annotations

from bench.harness import Bench, Ratio, table
from bench.tpch.plain import Plain
from bench.tpch.project import VIEWS, opened, short
from bench.tpch.steps import alone


def run(bench: Bench) -> None:
    """Measures the views that the run names, checks them against their queries, prints and records."""
    views = [view for view in VIEWS if short(view) in bench.views or not bench.views]
    with opened(bench, views=views) as project:
        single = alone(project, lambda: project.place("random"), bench.repetitions, warmups=bench.warmups, views=views)
        plain = Plain(bench, project)
        full = plain.refreshes(bench.full_repetitions, views)
        plain.check(single.tick, views)
    rows = []
    for view in views:
        ratio = Ratio(full[view], single.step[view])
        result = {"ratio": ratio, "step": single.step[view], "full": full[view]}
        bench.results.record(f"some_views.{bench.scale_key}.{short(view)}", result)
        rows.append((short(view), full[view], single.step[view], ratio))
    print(table(("alone", "full", "step", "full / step"), rows))
