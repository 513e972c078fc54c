"""Warm steps of all 22 views, with the time of each collection of the last one."""

from __future__ import annotations

from bench.harness import Bench, say, timed
from bench.tpch.project import opened, told


def run(bench: Bench) -> None:
    """Steps a copy of the hydrated project through some rounds, and prints what the last one did."""
    with opened(bench) as project:
        for number in range(1 + bench.repetitions):
            rows = project.place("random")
            ingest, tick = timed(project.ingest)
            seconds, report = timed(project.step, tick)
            say(f"round {number}: {rows} rows changed; ingest {ingest:.2f} s, step {seconds:.2f} s")
        print(told(report))
