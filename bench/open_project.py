"""A project that a benchmark has open: what arrives is bound to ticks, collections are stepped, failures are raised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mz_dagster.adapter import Engine
from mz_dagster.compute import StepReport
from mz_dagster.formalism import GlobalId


class StepFailed(Exception):
    """Reports a step in which a collection failed, or that nothing was there to step to."""


@dataclass
class OpenProject:
    """Is a project, open.

    Attributes:
        engine: Of the project.
        timeline: Of all its collections.
    """

    engine: Engine
    timeline: str

    def poll(self) -> int:
        """Binds what has arrived to a tick, and returns it.

        Raises:
            StepFailed: Nothing has arrived.
        """
        poll = self.engine.poll(self.timeline)
        if poll.tick is None:
            raise StepFailed(poll.reason)
        return poll.tick

    def step(self, tick: int, only: frozenset[GlobalId] | None = None) -> StepReport:
        """Brings all collections, or only some, to a tick.

        Raises:
            StepFailed: A collection failed.
        """
        report = self.engine.step(self.timeline, tick, only=only)
        check(report)
        return report

    def collections_of(self, names: Iterable[str]) -> frozenset[GlobalId]:
        """Returns the collections of objects, and their arrangements."""
        ids = {self.engine.collection_of(name) for name in names}
        nodes = self.engine.graph(self.timeline)
        return frozenset(node.id for node in nodes if not ids.isdisjoint((node.id, getattr(node, "owner", None))))


def check(report: StepReport) -> None:
    """Raises what failed in a step.

    Raises:
        StepFailed: A collection did.
    """
    if report.failures:
        told = ", ".join(f'"{one.name}": {one.reason}' for one in report.failures)
        raise StepFailed(f"step to {report.tick}: {told}")
