"""A replica: one more process that computes what a project's collections need, beside whoever leads.

A project with one runner waits for it: for the hydration of a large view, and for the seconds until another takes over
from one that is gone. A replica computes the same at the same time, perhaps with another engine, and whoever is done
first seals. So a larger one may be added until a heavy view is hydrated, and be removed again.

*Nothing is agreed on.* What is in a collection at a time follows from its inputs, so it is the same whoever computes
it, and a seal need only find the collection where its work began: the second of two seals finds it further, and its
step leaves it (`compute.step.stepper`). A replica needs no lead and holds nobody up; one that is paused, killed, or
wrong about who leads can seal nothing that is not so.

*What it is told, and what it tells*, as commands and responses are between Materialize's controller and its replicas,
are rows of the catalog, the only consensus there is (`docs/adr/0002`):

    create a dataflow     an object and its arrangements, with the plans of their definitions
    allow compaction      a since that has risen
    initialized           nothing: what an earlier process of its name has sealed is what it goes on from
    frontiers             its seals
    peek, cancel a peek   nothing: who asks reads what was sealed, in a process of its own, and ends that itself

*What it computes*: views, indexes and their arrangements, each as far as what it reads is sealed. It polls no source,
mints no tick, closes no table and writes no sink; whoever leads does. So it has most to do where a view is new, where a
step takes so long that its first parts are sealed before the rest, and where a leader died. That a collection fails in
it, or is planned otherwise by its release, is told to its own log alone. It ends if the catalog is damaged, and waits
for one that is away.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import Batch, CatalogState, CollectionRow, ComputeReplica
from mz_dagster.compute import FailedNode, MaintainedNode, StepLost, StepReport
from mz_dagster.errors import OperationalError, one_line
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.read import overlapping
from mz_dagster.storage.renewal import Renewal

logger = logging.getLogger("mz_dagster.replica")

_LOOK_EVERY_S = 0.2
"""How often it looks whether there is something to compute, in seconds."""

_TRY_AGAIN_MS = 30_000
"""After how long what failed is tried again though nothing has changed, in milliseconds."""


_ANOTHER_NAME = "Give this one another name, or end that one."


class ReplicaRunning(OperationalError):
    """A replica of that name is running already."""

    sqlstate = "55006"


class Replica:
    """Computes beside the leaders of a project.

    Args:
        engine: The project, opened by this process.
        name: What others see it by.
        progress: Receives lines that read as the story of what it does.
    """

    def __init__(self, engine: Engine, name: str, progress: Callable[[str], None] = logger.info) -> None:
        self._engine = engine
        self._name = name
        self._progress = progress
        self._stepper = engine.new_stepper(f'replica "{name}" ({engine.holder})', notes_failures=False)
        self._seen: CatalogState | None = None
        self._failed: dict[GlobalId, tuple[CollectionRow, float]] = {}
        self._reported: set[GlobalId] = set()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Computes what there is to compute, until it is over.

        Raises:
            ReplicaRunning: Another process runs a replica of this name; or does by now, since this one's registration
                ran out while the catalog was away.
        """
        catalog, ttl = self._engine.catalog, self._engine.project.lease_ms
        holder = self._engine.holder
        replica = catalog.register_replica(self._name, holder, self._engine.project.engine.value, ttl)
        if replica.holder != holder:
            raise ReplicaRunning(f'a replica "{self._name}" is running already: {replica.holder}', hint=_ANOTHER_NAME)
        is_replaced = threading.Event()

        def renew() -> None:
            if not catalog.renew_replica(replica, ttl):
                is_replaced.set()

        try:
            with Renewal(renew, every_ms=ttl // 3):
                self._progress(f'replica "{self._name}" is there')
                while not is_over():
                    if is_replaced.is_set():
                        raise ReplicaRunning(
                            f'another replica "{self._name}" is running by now',
                            detail="This one's registration ran out: it was paused, or the catalog was away.",
                            hint=_ANOTHER_NAME,
                        )
                    try:
                        self.turn()
                    except OperationalError as error:  # the catalog is away, for example
                        logger.warning("trying again: %s", one_line(error))
                    self._engine.clock.sleep(_LOOK_EVERY_S)
        finally:
            self._forget(replica)

    def _forget(self, replica: ComputeReplica) -> None:
        with suppress(OperationalError):  # else its registration runs out
            self._engine.catalog.remove_replica(replica)

    def turn(self) -> tuple[StepReport, ...]:
        """Computes what there is to compute now; returns what was done in each timeline in which there was something.

        Costs one look at the catalog if nothing has changed.
        """
        state = self._engine.catalog.state()
        now = self._engine.clock.monotonic_ms()
        if state is self._seen and all(now < until for _, until in self._failed.values()):
            return ()
        self._seen, is_left = None, False  # what raises is not done
        reports = []
        for timeline in self._engine.catalog.timelines():
            try:
                report = self._step(timeline.name, state)
            except StepLost as lost:
                logger.info("looking again: %s", one_line(lost))
                is_left = True
                continue
            if report is not None:
                self._engine.stepped(report)
                reports.append(report)
        self._seen = None if is_left else state
        return tuple(reports)

    def _step(self, timeline: str, state: CatalogState) -> StepReport | None:
        graph = self._engine.graph(timeline)
        for node in graph:
            if isinstance(node, FailedNode) and node.owner is None and node.id not in self._reported:
                self._reported.add(node.id)
                logger.warning('"%s" is not computed here: %s', node.name, one_line(node.error))
        failing = graph.downstream(self._failing(state))
        wanted = [one for one in graph if isinstance(one, MaintainedNode) and one.id not in failing]
        listed = self._engine.catalog.live_batches(tuple({id for one in wanted for id in one.reads}))
        working = frozenset(one.id for one in wanted if _has_work(one, state, listed))
        if not working:
            return None
        moved = graph.upstream(graph.downstream(working)) & {one.id for one in wanted}
        tick = self._engine.catalog.read_ts(timeline)
        report = self._stepper.run(graph, tick, only=moved, progress=self._progress)
        for one in report.failures:
            row = state.collection(one.id)
            if row is not None:
                self._failed[one.id] = row, self._engine.clock.monotonic_ms() + _TRY_AGAIN_MS
                logger.warning('"%s" fails here: %s', one.name, one.reason)
        return report

    def _failing(self, state: CatalogState) -> frozenset[GlobalId]:
        """Returns what failed in this process a while ago, and is where it was then."""
        now = self._engine.clock.monotonic_ms()
        self._failed = {
            id: (row, until)
            for id, (row, until) in self._failed.items()
            if now < until and (found := state.collection(id)) is not None and found.upper == row.upper
        }
        return frozenset(self._failed)


def _has_work(node: MaintainedNode, state: CatalogState, listed: Mapping[GlobalId, Sequence[Batch]]) -> bool:
    """Returns whether what is sealed of its inputs lets a collection advance by more than its upper."""
    row = state.collection(node.id)
    inputs = [state.collection(id) for id in node.inputs]
    if row is None or row.upper.is_empty or any(one is None or one.upper.is_empty for one in inputs):
        return False
    lower = row.upper.only
    upper = min((one.upper.only for one in inputs if one is not None), default=lower)
    if upper <= lower:
        return False
    if not row.is_hydrated or row.is_due(upper):
        return True
    return any(True for id in node.reads for _ in overlapping(listed.get(id, ()), lower, upper))
