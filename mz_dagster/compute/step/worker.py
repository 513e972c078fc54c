"""A worker: a process that computes collections of a step beside the process that steps, and stores nothing.

Python computes in one thread at a time, whatever the machine has, and in a step of many little changes nearly all is
Python. So the process that steps, which here is called the *stepper*, has others compute some of its collections: whole
objects, each with its arrangements, always the same ones as far as that goes, since what they look up is in memory then
where it is asked for (`work_shares`).

    stepper                                       worker
    Work: objects' plans, rows, batch lists  ---> computes its collections one after the other, from what is sealed,
                                                  from what the message brings, and from what it just made
    Done: for each, batch and updates        <--- each a batch that brings its updates along
    seals them as if it had made them

*Nothing is agreed on, and nothing stored.* A worker reads the shards and the catalog, writes neither, holds no lease
and leads nothing: what it reads is under the stepper's lease. One that dies, is killed, hangs or is out of memory
leaves no trace, and the stepper computes for itself what it had sent. So everything that is shown of crashes, races and
retries of a step holds as before.

*What it leaves.* A worker has no Spark. What would be Spark's, or fails for whatever reason, is left to the stepper
with what depends on it; the stepper computes it once more, and tells the error if there is one.

*What is sent.* Plans once; lists of batches as far as they are others than the worker had; updates that are not sealed
yet with their batch. `worker_processes` and `worker_process` have the stepper's side.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import pyarrow as pa

from mz_dagster.allocators import return_freed
from mz_dagster.budget import Budget, EngineSetting, budget_of, engine_of, memory_limit
from mz_dagster.catalog import Batch, BatchId, BatchStats, Catalog, CollectionRow
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.step.advance import Advance
from mz_dagster.compute.step.common_time import CommonTime
from mz_dagster.compute.step.graph import Graph, MaintainedNode, TableNode
from mz_dagster.compute.step.outcomes import advanced, step_of, without_work
from mz_dagster.compute.step.report import CollectionStep, Outcome
from mz_dagster.compute.step.run import StepRun
from mz_dagster.errors import DatabaseError, OperationalError, one_line
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.lowering import LookupOrders
from mz_dagster.recursion import allow_deep_calls
from mz_dagster.storage.append import Frame
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.inlined import NOTHING
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shards import Shards


@dataclass(frozen=True, slots=True)
class Frontiers:
    """What has changed of a collection that has only advanced; see `CollectionRow`."""

    since: Antichain[int]
    upper: Antichain[int]
    next_due: int | None

    def of(self, row: CollectionRow) -> CollectionRow:
        """Returns a collection as it is now."""
        return replace(row, since=self.since, upper=self.upper, next_due=self.next_due)


ALIVE = "alive"
"""What a worker says when it is ready, and then every `ALIVE_EVERY_S` seconds while it computes."""

ALIVE_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Collections to compute in a step.

    Attributes:
        step: Names the step: what was read for one of its collections is not read again for the next.
        is_anew: Whether all that was sent before is to be forgotten.
        timeline: Whose step it is.
        tick: The time to close.
        budget: How much is little.
        engine: Who computes.
        batches: The collections, in an order in which inputs come first, each with the id of the batch to make.
        nodes: The definitions of those that the worker does not have, or has otherwise.
        rows: They and their inputs, as the catalog has them: of what the worker knows nothing else only frontiers.
        uppers: How far their inputs are, or will be once the step is sealed.
        listed: The batch lists that are others than the worker has: of each batch that it knows the id.
    """

    step: str
    is_anew: bool
    timeline: str
    tick: int
    budget: Budget
    engine: EngineSetting
    batches: Mapping[GlobalId, BatchId]
    nodes: Sequence[MaintainedNode]
    rows: Mapping[GlobalId, CollectionRow | Frontiers]
    uppers: Mapping[GlobalId, int]
    listed: Mapping[GlobalId, Sequence[Batch | BatchId]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of the collections of a `Work`.

    Attributes:
        steps: What was done with those that were computed; what was written is in their stats.
        dues: When temporal filters' states change next by themselves.
        left: Those that were not computed, with the reason.
        lines: The story.
    """

    steps: Sequence[CollectionStep]
    dues: Mapping[GlobalId, int | None]
    left: Mapping[GlobalId, str]
    lines: Sequence[str]


class LeftToStepper(OperationalError):
    """A collection needs what a worker does not have."""

    sqlstate = "0A000"


class _InMemory:
    """Gives each collection's updates the batch id that they were promised, and stores them nowhere."""

    def __init__(self, ids: Mapping[GlobalId, BatchId]) -> None:
        self._ids = ids

    def write(
        self,
        shards: Shards[Frame],
        collection: CollectionRow,
        lower: Antichain[int],
        upper: Antichain[int],
        frame: Frame,
        *,
        key: Sequence[int] = (),
        rows: int | None = None,
    ) -> tuple[BatchId, BatchStats]:
        """Returns the batch with its updates; see `BatchWriter.write`."""
        if not isinstance(shards, LocalShards):
            raise LeftToStepper("Spark writes it")
        table: Any = frame.read_all() if isinstance(frame, pa.RecordBatchReader) else frame
        made = shards.in_memory(collection, table, (lower, upper)) if table.num_rows else NOTHING
        return self._ids[collection.id], made


class Worker:
    """Computes what it is sent.

    Args:
        catalog: What is sealed; only read.
        local: The shards; only read.
        number: Which worker it is, for people.
    """

    def __init__(self, catalog: Catalog, local: LocalShards, number: int) -> None:
        allow_deep_calls()
        self._catalog = catalog
        self._local = local
        self._number = number
        self._orders = LookupOrders()
        self._nodes: dict[GlobalId, MaintainedNode] = {}
        self._rows: dict[GlobalId, CollectionRow] = {}
        self._listed: dict[GlobalId, tuple[Batch, ...]] = {}
        self._step = ""
        self._run: StepRun | None = None

    def compute(self, work: Work) -> Done:
        """Returns what became of collections."""
        if work.is_anew:
            self._nodes, self._rows, self._listed, self._step = {}, {}, {}, ""
        self._nodes |= {node.id: node for node in work.nodes}
        for id, batches in work.listed.items():
            known = {one.id: one for one in self._listed.get(id, ())}
            self._listed[id] = tuple(one if isinstance(one, Batch) else known[one] for one in batches)
        for id, row in work.rows.items():
            self._rows[id] = row if isinstance(row, CollectionRow) else row.of(self._rows[id])
        run = self._begun(work)
        steps: list[CollectionStep] = []
        left: dict[GlobalId, str] = {}
        lines: list[str] = []
        with budget_of(work.budget), engine_of(work.engine):
            for id in work.batches:
                node = self._nodes[id]
                if node.inputs & left.keys():
                    left[id] = "an input is left"
                    continue
                try:
                    with only_our_errors():
                        run.done[id] = self._advanced(run, node, work, lines.append)
                except (DatabaseError, MemoryError) as error:
                    left[id] = one_line(error) if isinstance(error, DatabaseError) else "it is too much for a worker"
                else:
                    steps.append(run.done[id])
        dues = {id: due for id, due in run.dues.items() if id in work.batches}
        return Done(steps=steps, dues=dues, left=left, lines=lines)

    def _begun(self, work: Work) -> StepRun:
        """Returns the step, as it is known here, with the work's collections and their inputs in it."""
        run = self._run if self._step == work.step else None
        inputs = [TableNode(id, id) for id in work.uppers]
        graph = Graph(work.timeline, (*inputs, *(self._nodes[id] for id in work.batches)))
        if run is None:
            held = CommonTime(self._catalog, holder="", ttl_ms=0)  # nothing is held here
            run = StepRun(graph, work.tick, {}, {}, frozenset(), held, {})
            self._run, self._step = run, work.step
        run.graph, run.rows = graph, self._rows
        for id in (*work.uppers, *work.batches):
            if id not in run.batches or id in work.listed:
                run.batches[id] = list(self._listed.get(id, ()))
        for id, upper in work.uppers.items():
            run.done[id] = step_of(graph.by_id[id], Outcome.CURRENT, upper, upper)
        return run

    def _advanced(
        self, run: StepRun, node: MaintainedNode, work: Work, progress: Callable[[str], None]
    ) -> CollectionStep:
        if (done := without_work(node, run)) is not None:
            return done
        row = run.rows[node.id]
        start = SYSTEM_CLOCK.monotonic_ms()
        advance = Advance(
            run=run,
            node=node,
            row=row,
            lower=row.upper.only,
            upper=run.target(node),
            catalog=self._catalog,
            local=self._local,
            orders=self._orders,
            writer=_InMemory(work.batches),
            spark=SparkUse(_no_spark),
            common=None,
            progress=progress,
        )
        stats, rows_read = advance.write(sends=True)
        return advanced(advance, stats, rows_read, SYSTEM_CLOCK.monotonic_ms() - start, self._number)


def serve(connection: Connection, worker: Worker) -> None:
    """Answers each `Work` with its `Done`, until the stepper hangs up.

    What is sent while it computes is received at once. While it computes it says `ALIVE` now and then, so that one that
    hangs is told from one that has much to do.
    """
    sending = threading.Lock()
    received: SimpleQueue[bytes | None] = SimpleQueue()

    def receive() -> None:
        with suppress(EOFError, OSError):
            while True:
                received.put(connection.recv_bytes())
        received.put(None)

    def say_alive() -> None:
        while True:
            if is_busy.wait():
                with suppress(OSError), sending:  # the stepper is gone, as is found with the next answer
                    connection.send(ALIVE)
            SYSTEM_CLOCK.sleep(ALIVE_EVERY_S)

    is_busy = threading.Event()
    for act in (receive, say_alive):
        threading.Thread(target=act, daemon=True).start()
    with suppress(OSError):
        with sending:
            connection.send(ALIVE)
        while (message := received.get()) is not None:
            is_busy.set()
            done = worker.compute(pickle.loads(message))
            is_busy.clear()
            with sending:
                connection.send(done)
            if memory_limit() is not None:
                return_freed()


def _no_spark() -> Any:
    raise LeftToStepper("Spark computes it")
