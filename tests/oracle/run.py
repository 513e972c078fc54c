"""Runs any number of random worlds: `python -m tests.oracle.run --seed S --cases N`.

A failing seed prints the world's whole story, as SQL.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import traceback
from pathlib import Path

from mz_dagster.storage.spark import SparkConfig, close_sessions, stop_server
from tests.oracle.world import Tally, World
from tests.postgres_server import running_postgres


def main() -> int:
    """Runs worlds of consecutive seeds; returns how many disagreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first world's")
    parser.add_argument("--cases", type=int, default=100, help="queries to make, at least")
    parser.add_argument("--views", type=int, default=12, help="views of a world")
    parser.add_argument("--writes", type=int, default=14, help="writes of a world")
    parser.add_argument("--workers", type=int, default=0, help="processes beside the one that steps")
    parser.add_argument("--verbose", action="store_true", help="print every statement")
    chosen = parser.parse_args()
    total, failed, seed = Tally(), 0, chosen.seed
    with tempfile.TemporaryDirectory() as folder, running_postgres() as server:
        spark = SparkConfig(state_dir=Path(folder) / "spark", driver_memory="2g")
        try:
            while total.queries < chosen.cases:
                story: list[str] = []
                world = World(seed, Path(folder) / f"world{seed}", spark, server, views=chosen.views,
                              writes=chosen.writes, workers=chosen.workers,
                              say=print if chosen.verbose else story.append)  # fmt: skip
                start = time.monotonic()
                try:
                    world.run()
                except Exception:
                    failed += 1
                    print("\n".join(story))
                    traceback.print_exc()
                print(f"seed {seed}: {time.monotonic() - start:.1f} s: {world.tally}", flush=True)
                total.add(world.tally)
                total.accepted += not world.tally.queries  # a world that failed at once still counts, so that it ends
                seed += 1
        finally:
            close_sessions()
            stop_server(spark.state_dir, seconds=60)
    print(f"seeds {chosen.seed} to {seed - 1}, {failed} failed: {total}")
    if not failed:
        total.check()
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
