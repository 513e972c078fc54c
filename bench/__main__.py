"""Runs benchmarks: `python -m bench [NAME ...] [--sf N]`; `--help` lists them."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from bench.harness import REPOSITORY, running, say, timed


@dataclass(frozen=True)
class Entry:
    """Is a benchmark.

    Attributes:
        module: Which has `run`.
        scale: TPC-H's scale factor by default; of benchmarks with data of their own, the part of its whole size.
        full: The scale factors of the long run.
        warm: Whether Spark is up before it begins; else it is only started by what needs it.
    """

    module: str
    scale: float = 1
    full: tuple[float, ...] = ()
    warm: bool = True


#: By name, in the order in which they are run.
BENCHMARKS = {
    "tpch": Entry("bench.tpch_views", full=(10,)),
    "tpch_spark": Entry("bench.tpch_spark", full=(10,)),
    "dimensions": Entry("bench.dimensions", full=(10,)),
    "hydration": Entry("bench.hydration", full=(10,)),
    "state": Entry("bench.state", full=(10,)),
    "growth": Entry("bench.growth", full=(10,)),
    "graphs": Entry("bench.graphs"),
    "idle": Entry("bench.idle"),
    "objects": Entry("bench.objects"),
    "catch_up": Entry("bench.catch_up"),
    "insert_only": Entry("bench.insert_only"),
    "lookup": Entry("bench.lookup"),
    "writes": Entry("bench.writes"),
    "columns": Entry("bench.columns", warm=False),
    "wire": Entry("bench.wire", warm=False),
    "dagster": Entry("bench.dagster_tick"),
    "freshness": Entry("bench.freshness", warm=False),
    "tpcds": Entry("bench.tpcds", scale=0.01, full=(0.1,), warm=False),
    "lakehouse": Entry("bench.lakehouse", full=(10,)),
    "medallion": Entry("bench.medallion", scale=0.02, full=(1,), warm=False),
}
#: Those for who works at it, run when named only.
TOOLS = {"step": Entry("bench.step"), "some_views": Entry("bench.some_views")}
_ALL = BENCHMARKS | TOOLS


def main(arguments: Sequence[str]) -> int:
    """Returns 0 if all that was asked for was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures what is promised.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(_ALL)}; default: all but {', '.join(TOOLS)}"
    )
    parser.add_argument("--sf", type=float, help="TPC-H's scale factor")
    parser.add_argument("--repetitions", type=int, default=5, help="rounds that are counted (%(default)s)")
    parser.add_argument(
        "--views",
        nargs="*",
        default=(),
        choices=[f"q{number}" for number in range(1, 23)],
        metavar="q1",
        help="which views some_views measures (all)",
    )
    parser.add_argument("--full", action="store_true", help="the long ones")
    parser.add_argument("--rebuild", action="store_true", help="make the kept projects anew")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / ".make" / "bench", help="where to keep data")
    parser.add_argument("--results", type=Path, default=REPOSITORY / "bench" / "results.json", help="where to")
    parser.add_argument("--spark-state", type=Path, help="a Spark server's folder to use and leave running")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - _ALL.keys():
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    for name, scale in _chosen(options.names, options.sf, full=options.full):
        say(f"== {name}, scale factor {scale:g}")
        with running(
            options.folder.absolute(),
            options.results,
            scale=scale,
            repetitions=options.repetitions,
            rebuild=options.rebuild,
            spark_state=options.spark_state,
            views=tuple(options.views),
            warm=_ALL[name].warm,
        ) as bench:
            bench.results.record("machine", _machine())
            seconds, _ = timed(importlib.import_module(_ALL[name].module).run, bench)
        say(f"== {name} took {seconds:.0f} s")
    return 0


def _machine() -> dict[str, object]:
    """Returns what the numbers depend on beside the code."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 2**30, 1),
        "python": platform.python_version(),
        "spark": metadata.version("pyspark"),
        "delta": metadata.version("delta-spark"),
        "duckdb": metadata.version("duckdb"),
    }


def _chosen(names: Sequence[str], scale: float | None, *, full: bool) -> list[tuple[str, float]]:
    """Returns which benchmarks to run, each with its scale factor."""
    chosen = []
    for name in names or BENCHMARKS:
        entry = _ALL[name]
        scales = (scale,) if scale is not None else entry.full if full else (entry.scale,)
        chosen += [(name, one) for one in scales]
    return chosen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
