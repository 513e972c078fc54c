"""Steps of the project, measured: all views together, and each view alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.harness import Timing, round_name, say, timed
from bench.tpch.data import Kind
from bench.tpch.project import VIEWS, TpchProject

#: Rounds before the first measured one: Spark compiles, and the JVM does.
WARMUPS = 3


@dataclass(frozen=True)
class Together:
    """Is what steps of all views took.

    Attributes:
        ingest: Reading the files into the sources.
        step: Maintaining the views.
        tick: The last one.
    """

    ingest: Timing
    step: Timing
    tick: int


def together(project: TpchProject, kind: Kind, repetitions: int, *, warmups: int = WARMUPS) -> Together:
    """Measures steps of all views."""
    ingests, steps = [], []
    for number in range(warmups + repetitions):
        project.place(kind)
        ingest, tick = timed(project.ingest)
        seconds, _ = timed(project.step, tick)
        say(f"  {kind}, {round_name(number, warmups)}: step {seconds:.2f} s after {ingest:.2f} s of ingestion")
        ingests.append(ingest)
        steps.append(seconds)
    return Together(Timing(tuple(ingests[warmups:])), Timing(tuple(steps[warmups:])), tick)


@dataclass(frozen=True)
class Alone:
    """Is what steps of one view at a time took.

    Attributes:
        step: By view.
        changed: The views for which there was anything to do.
        tick: The last one.
    """

    step: dict[str, Timing]
    changed: frozenset[str]
    tick: int


def alone(
    project: TpchProject,
    place: Callable[[], int],
    repetitions: int,
    *,
    warmups: int,
    views: Sequence[str] = VIEWS,
) -> Alone:
    """Measures steps of each view alone, all of them in each round.

    Args:
        project: The project.
        place: Lets changes arrive.
        repetitions: How many rounds are counted.
        warmups: How many are not.
        views: Which.
    """
    own = {view: project.collections_of([view]) for view in views}
    found: dict[str, list[float]] = {view: [] for view in views}
    changed: set[str] = set()
    for number in range(warmups + repetitions):
        place()
        tick = project.ingest()
        for view in views:
            seconds, report = timed(project.step, tick, own[view])
            found[view].append(seconds)
            if report.had_work:
                changed.add(view)
        say(f"  each view alone, {round_name(number, warmups)}: {sum(one[-1] for one in found.values()):.2f} s in all")
    timings = {view: Timing(tuple(seconds[warmups:])) for view, seconds in found.items()}
    return Alone(timings, frozenset(changed), tick)
