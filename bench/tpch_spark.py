"""TPC-H's 22 views under `engine = "spark"`: a step of all of them against the full refresh, both by Spark.

The change is that of `tpch_views`. Goals: at least 8 times faster at scale factor 1, and 12 at 10.
"""

from __future__ import annotations

import os

from bench.harness import Bench, Ratio, table
from bench.tpch.plain import Plain, total
from bench.tpch.project import opened
from bench.tpch.steps import WARMUPS, together


def run(bench: Bench) -> None:
    """Measures, checks every view against its query, prints and records."""
    os.environ["MZ_ENGINE"] = "spark"
    try:
        with opened(bench) as project:
            stepped = together(project, "random", bench.full_repetitions, warmups=WARMUPS)
            plain = Plain(bench, project)
            full = total(plain.refreshes(bench.full_repetitions))
            plain.check(stepped.tick)
    finally:
        del os.environ["MZ_ENGINE"]
    ratio = Ratio(full, stepped.step)
    bench.results.record(f"tpch_spark.{bench.scale_key}", {"ratio": ratio, "step": stepped.step, "full": full})
    print(table(("by Spark", "full", "step", "full / step"), [("random deletes", full, stepped.step, ratio)]))
