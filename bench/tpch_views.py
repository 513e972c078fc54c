"""TPC-H's 22 views: a step against the full refresh, all together and each alone; and against DuckDB.

Change: 0.1 % new orders with their lineitems, 0.1 % old ones deleted with theirs. A step begins with the change in the
sources' collections and ends when all views are sealed; what bringing it there costs is measured apart (`ingest`), as
plain tables are brought up to date by somebody else, too.

Goals, against Spark's full refresh: at least 20 times faster at SF 1 and 10 (25 with clustered deletes), each view
alone at least 2 times, in the geometric mean 8 at SF 1 and 12 at SF 10; against DuckDB's 3 times, and 1.3 at SF 1 in a
process that has just begun.
"""

from __future__ import annotations

import math

from bench.harness import Bench, Ratio, table
from bench.tpch.first_step import first_steps
from bench.tpch.plain import Plain, total
from bench.tpch.project import VIEWS, opened, short
from bench.tpch.steps import WARMUPS, alone, together


def run(bench: Bench) -> None:
    """Measures, checks every view against its query, prints and records."""
    with opened(bench) as project:
        random = together(project, "random", bench.repetitions, warmups=WARMUPS)
        clustered = together(project, "clustered", bench.repetitions, warmups=1)
        first = first_steps(project, bench.full_repetitions)
        single = alone(project, lambda: project.place("random"), bench.repetitions, warmups=bench.warmups)
        plain = Plain(bench, project)
        full = plain.refreshes(bench.full_repetitions)
        plain.check(single.tick)
        duckdb = total(plain.duckdb_refreshes(bench.full_repetitions))
    key = f"tpch.{bench.scale_key}"
    whole = total(full)
    ratio, ratio_clustered = Ratio(whole, random.step), Ratio(whole, clustered.step)
    ratio_first = Ratio(whole, first)
    bench.results.record(
        f"{key}.together",
        {
            "ratio": ratio,
            "step": random.step,
            "ingest": random.ingest,
            "full": whole,
            "first_of_a_process": {"ratio": ratio_first, "step": first, "step_over_duckdb": Ratio(first, duckdb)},
            "clustered": {"ratio": ratio_clustered, "step": clustered.step, "ingest": clustered.ingest},
        },
    )
    bench.results.record(f"{key}.duckdb", {"step_over_duckdb": Ratio(random.step, duckdb), "full": duckdb})
    ratios = {view: Ratio(full[view], single.step[view]) for view in VIEWS}
    bench.results.record(
        f"{key}.views",
        {short(view): {"ratio": ratios[view], "step": single.step[view], "full": full[view]} for view in VIEWS}
        | {
            "geometric_mean": geometric_mean([one.median for one in ratios.values()]),
            "geometric_mean_of_changed": geometric_mean([ratios[view].median for view in sorted(single.changed)]),
            "least": min(one.median for one in ratios.values()),
        },
    )
    print(table(("together", "full", "step", "full / step", "ingest"), [
        ("random deletes", whole, random.step, ratio, random.ingest),
        ("clustered deletes", whole, clustered.step, ratio_clustered, clustered.ingest),
        ("a new process", whole, first, ratio_first, ""),
        ("DuckDB", duckdb, random.step, Ratio(duckdb, random.step), ""),
    ]))  # fmt: skip
    print(table(("alone", "full", "step", "full / step", ""), [
        (short(view), full[view], single.step[view], ratios[view], "" if view in single.changed else "nothing to do")
        for view in VIEWS
    ]))  # fmt: skip


def geometric_mean(values: list[float]) -> float:
    """Returns the geometric mean.

    Example:
        >>> geometric_mean([1.0, 4.0])
        2.0
    """
    return math.exp(sum(map(math.log, values)) / len(values))
