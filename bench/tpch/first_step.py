"""Steps of all views in processes of their own, as each run of Dagster's is.

`python -m bench.tpch.first_step ROOT TICK` steps a project to a tick, and prints how long that takes, in seconds.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.harness import REPOSITORY, Timing, round_name, say, timed
from bench.open_project import check
from bench.tpch.project import TIMELINE, TpchProject
from mz_dagster.adapter import Engine, Project

#: The first process leaves what it has decoded to the others.
_WARMUPS = 2
_SECONDS = 1_200


def first_steps(project: TpchProject, repetitions: int) -> Timing:
    """Measures the first steps of processes, each from when its engine is open."""
    seconds = []
    for number in range(_WARMUPS + repetitions):
        project.place("random")
        tick = project.ingest()
        command = [sys.executable, "-m", __spec__.name, str(project.engine.project.root), str(tick)]
        run = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=_SECONDS)
        seconds.append(float(run.stdout))
        say(f"  a new process, {round_name(number, _WARMUPS)}: step {seconds[-1]:.2f} s")
    return Timing(tuple(seconds[_WARMUPS:]))


if __name__ == "__main__":
    with Engine(Project.load(Path(sys.argv[1]))) as engine:
        taken, report = timed(engine.step, TIMELINE, int(sys.argv[2]))
        check(report)
    print(taken)
