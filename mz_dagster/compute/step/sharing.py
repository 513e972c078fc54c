"""What of a step workers compute, and how the step takes over what they made; `worker` has the design."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from mz_dagster.budget import EngineSetting, budget, engine_setting
from mz_dagster.catalog import Batch, BatchId, BatchState, BatchStats, Catalog
from mz_dagster.clock import Clock
from mz_dagster.compute.step.advance import Writer, frontier_at
from mz_dagster.compute.step.graph import MaintainedNode, Node
from mz_dagster.compute.step.report import CollectionStep, Outcome, Progress
from mz_dagster.compute.step.run import StepRun
from mz_dagster.compute.step.work_shares import Unit, WorkShares, units_of
from mz_dagster.compute.step.worker_lost import WorkerLost
from mz_dagster.compute.step.worker_processes import WorkerProcesses
from mz_dagster.errors import one_line
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.local_shards import LocalShards

if TYPE_CHECKING:
    from mz_dagster.compute.step.worker_process import WorkerProcess

logger = logging.getLogger("mz_dagster.workers")

#: Returns the workers that are ready by then, by number.
Workers: TypeAlias = "Callable[[], Mapping[int, WorkerProcess]]"


class Sharing:
    """Has workers compute a part of each step, and remembers which.

    Args:
        catalog: Gives batches their ids.
        local: The shards.
        processes: The workers; None for none.
        clock: Tells when a collection was begun.
    """

    def __init__(self, catalog: Catalog, local: LocalShards, processes: WorkerProcesses | None, clock: Clock) -> None:
        self._catalog = catalog
        self._local = local
        self._processes = processes
        self._clock = clock
        self._has_stepped_much = False
        self._kept: dict[GlobalId, int] = {}
        self._left: set[GlobalId] = set()

    @contextmanager
    def workers(self, run: StepRun, working: Sequence[Node]) -> Iterator[Workers | None]:
        """Gives the workers that compute with a step; None where there is little to share.

        Args:
            run: The step.
            working: The collections that have work.
        """
        if self._processes is None or not self._is_much(run, working):
            yield None
            return
        with self._processes.used() as ready:
            yield None if ready is None else lambda: {one.number: one for one in ready()}

    def _is_much(self, run: StepRun, working: Sequence[Node]) -> bool:
        """Returns whether a step is enough to do for workers: much hydrates, or this process steps much repeatedly."""
        if engine_setting() is EngineSetting.SPARK:
            return False
        maintained = [one for one in working if isinstance(one, MaintainedNode)]
        hydrated = [one for one in maintained if run.rows[one.id].is_hydrated]
        hydrates_much = len(maintained) - len(hydrated) >= budget().shared_hydrations
        steps_much = sum(one.owner is None for one in hydrated) >= budget().shared_objects
        is_enough = hydrates_much or (steps_much and self._has_stepped_much)
        self._has_stepped_much |= hydrates_much or steps_much
        return is_enough

    def shares(self, run: StepRun, working: Sequence[Node], at_once: int, *, is_shared: bool) -> WorkShares:
        """Returns what deals the collections of a step out to workers and the stepper; see `WorkShares`."""
        units = units_of(working, partial(self._may_share, run) if is_shared else lambda _: False)
        return WorkShares(units, self._kept, at_once)

    def _may_share(self, run: StepRun, node: Node) -> bool:
        if not isinstance(node, MaintainedNode) or node.id in self._left:
            return False
        return run.rows_in(node, run.rows[node.id].upper.only, run.tick + 1) <= budget().shared_updates

    def computed(
        self, run: StepRun, unit: Unit, worker: WorkerProcess, writer: Writer, progress: Progress
    ) -> Sequence[Node]:
        """Has a worker compute a unit, and takes over what it made; returns what is left to the stepper."""
        if worker.is_lost:
            return unit.nodes
        batches = {node.id: self._catalog.fresh_batch() for node in unit.nodes}
        run.started |= dict.fromkeys(batches, self._clock.monotonic_ms())
        try:
            done = worker.compute(run, batches, partial(run.check_any_wanted, unit.nodes))
        except WorkerLost as lost:
            logger.warning('"%s" is computed by the process that steps: %s', unit.nodes[-1].name, one_line(lost))
            return unit.nodes
        for id, reason in done.left.items():
            logger.info('"%s" is left by worker %d: %s', run.graph.by_id[id].name, worker.number, reason)
            self._left.add(id)
        for line in done.lines:
            progress(line)
        for one in done.steps:
            run.check_any_wanted(unit.nodes)
            if one.id in run.overtaken:
                continue
            if one.outcome is Outcome.ADVANCED:
                stats = self._taken_over(run, one, batches[one.id], writer)
                one = replace(one, stats=stats, batch=run.written.get(one.id))
                if one.id in done.dues:
                    run.dues[one.id] = done.dues[one.id]
            run.done[one.id] = one
        return [node for node in unit.nodes if node.id in done.left]

    def _taken_over(self, run: StepRun, step: CollectionStep, batch: BatchId, writer: Writer) -> BatchStats:
        """Notes the batch that a worker made; one that is too large for the catalog is written."""
        row, stats = run.rows[step.id], step.stats
        if stats.payload is None:  # nothing came of it
            return stats
        upper = frontier_at(row.upper, step.upper)
        if not self._local.is_inlined(stats):
            made = Batch(batch, row.id, row.upper, upper, BatchState.WRITING, stats)
            batch, stats = writer.write(self._local, row, row.upper, upper, self._local.read(row, [made]))
        run.note(row, upper, batch, stats)
        return stats
