"""The step: one advance of a graph of collections to a tick.

    for each collection C, from its own upper l_C:
        u_C = min(tick + 1, min over inputs I of u_I)        C never passes an input (constraint W)
        updates of C in [l_C, u_C) are computed and written
    and then, in ONE catalog transaction, everything that finished is sealed.

How it goes:

1. *Close the tables.* Their uppers move to `tick + 1` first. From then on no session can write at or before the tick,
   so what the step reads cannot change under it; a session that loses the race takes a later timestamp.
2. *List.* One catalog transaction says what there is. Where no input has updates, and no row of a temporal filter is
   due, a collection only moves its upper: no Spark, no Delta commit. If that holds for all, the step ends here, in one
   more transaction.
3. *Lease and run.* Batches that will be read are leased. Collections run concurrently, each as soon as its inputs
   are written; each reads listed batches plus the step's own unsealed ones.
4. *Seal* all that finished, together. A collection that failed stays where it was and says why; its dependants stay
   behind with it; nobody else waits.

A crash anywhere before 4 leaves batches that no list names. Leadership is validated by the sealing
transaction, so a step that was paused past its lease cannot seal over its successor; it is looked at before each
collection, too, so that such a step does no more work than it must.

*Hydration.* A collection whose upper is still its since has no output yet: its output at `since` is the plan's
result over the inputs as of then, and from there on it steps like any other, in the same run.

This module does not choose ticks, does not poll sources and does not know SQL or Dagster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from mz_dagster.catalog import (
    NO_ROWS,
    Batch,
    BatchId,
    BatchNotWriting,
    BatchState,
    BatchStats,
    Binding,
    Catalog,
    CollectionRow,
    Leadership,
    LeadershipLost,
    Seal,
    Sealed,
    UpperMismatch,
)
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute.common_lookups import CommonLookups
from mz_dagster.compute.consolidate import consolidate
from mz_dagster.compute.due import next_due
from mz_dagster.compute.few_contents import FewContents
from mz_dagster.compute.few_plans import FewPlans
from mz_dagster.compute.few_updates import FEW_AT_FIRST, few_updates, likely_few
from mz_dagster.compute.frame import META, replan_while_running, with_positions
from mz_dagster.compute.graph import Graph, MaintainedNode, Node, SourceNode, TableNode
from mz_dagster.compute.ingest import FEW_BYTES, ingest
from mz_dagster.compute.render import Renderer
from mz_dagster.compute.schedule import Schedule
from mz_dagster.compute.sizes import rows_at_most
from mz_dagster.compute.state import FrameState, OwnState, ShardState
from mz_dagster.compute.step_reads import StepReads, read_here
from mz_dagster.compute.step_report import CollectionStep, Outcome, StepReport
from mz_dagster.compute.union import union
from mz_dagster.errors import DatabaseError, InternalError, OperationalError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.lowering import ordered_by_size
from mz_dagster.plan.operators import operators
from mz_dagster.plan.physical import ReadCollection, is_linear
from mz_dagster.plan.types import RelationType
from mz_dagster.storage.append import BatchWriter
from mz_dagster.storage.local_shards import LocalShards, summed
from mz_dagster.storage.read import leased, overlapping
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.spark import reporting_lost_spark
from mz_dagster.storage.spark_shards import update_schema

logger = logging.getLogger("mz_dagster.step")

#: Up to how many updates of an input are sent to every task of a lookup instead of being shuffled to them, and planned
#: once. Many, since the other way shuffles all that they are looked up in.
BROADCAST_ROWS = 500_000
#: How often a step that works says what it is working on, in seconds.
STILL_WORKING_S = 10.0


class StepLost(OperationalError):
    """Reports that another moved or dropped a collection, or took the lead, while this step ran; nothing was sealed."""

    sqlstate = "40001"


Progress = Callable[[str], None]


def quiet(line: str) -> None:
    """Is a progress that only goes to the log."""
    logger.debug(line)


@dataclass(slots=True)
class _Run:
    """Is the state of one step while it runs.

    Attributes:
        opened: Spark, once it is needed: the same one until the step is over, since asking whether a Spark still
            answers takes a round trip, and a busy one that is late would be given up under those who use it.
        common: The lookups that its collections share.
    """

    graph: Graph
    tick: int
    rows: Mapping[GlobalId, CollectionRow]
    batches: dict[GlobalId, list[Batch]]
    selected: frozenset[GlobalId]
    bound: Mapping[GlobalId, int]
    started: dict[GlobalId, float] = field(default_factory=dict)
    done: dict[GlobalId, CollectionStep] = field(default_factory=dict)
    written: dict[GlobalId, BatchId] = field(default_factory=dict)
    dues: dict[GlobalId, int | None] = field(default_factory=dict)
    opened: tuple[SparkSession, Shards[DataFrame]] | None = None
    common: CommonLookups | None = None
    opening: Lock = field(default_factory=Lock)

    def upper_of(self, id: GlobalId) -> int:
        """The upper that the collection will have when this step seals."""
        return self.done[id].upper if id in self.done else self.rows[id].upper.only

    def overlapping(self, id: GlobalId, lower: int | None, upper: int) -> list[Batch]:
        """The batches that may hold updates in `[lower, upper)`."""
        return list(overlapping(self.batches[id], lower, upper))

    def is_empty(self, id: GlobalId, lower: int, upper: int) -> bool:
        """True if the collection provably has no updates in `[lower, upper)`."""
        return not self.overlapping(id, lower, upper)

    def rows_between(self, id: GlobalId, lower: int | None, upper: int) -> int:
        """The updates of a collection in `[lower, upper)`; a batch that reaches beyond it counts whole."""
        return sum(batch.stats.rows for batch in self.overlapping(id, lower, upper))

    def rows_in(self, node: Node, lower: int, upper: int) -> int:
        """The updates in `[lower, upper)` of what a maintained collection is defined over."""
        if not isinstance(node, MaintainedNode):
            return 0
        first = lower if self.rows[node.id].is_hydrated else None
        return sum(self.rows_between(input.id, first, upper) for input in self.inputs(node))

    def inputs(self, node: Node) -> list[Node]:
        """What a person would call a collection's inputs: not its own arrangements."""
        inputs = (self.graph.by_id[input] for input in sorted(node.inputs))
        return [one for one in inputs if not isinstance(one, MaintainedNode) or one.owner != node.id]


class Stepper:
    """Advances graphs of collections.

    Args:
        catalog: The durable state.
        spark: Returns the session and the shards on it; called only when there is work for Spark.
        holder: Names this process in leases.
        local: The shards in this process, for what is too little to have Spark do it.
        lease_ms: How long a lease lasts without renewal.
        parallelism: How many collections may be computed at the same time.
        still_working_s: How often a step that works says so, in seconds.
    """

    def __init__(
        self,
        catalog: Catalog,
        spark: Callable[[], tuple[SparkSession, Shards[DataFrame]]],
        *,
        holder: str,
        local: LocalShards,
        lease_ms: int = 60_000,
        parallelism: int = 4,
        still_working_s: float = STILL_WORKING_S,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._catalog = catalog
        self._spark = spark
        self._holder = holder
        self._lease_ms = lease_ms
        self._parallelism = parallelism
        self._still_working_s = still_working_s
        self._clock = clock
        self._local = local

    def run(
        self,
        graph: Graph,
        tick: int,
        *,
        leadership: Leadership | None = None,
        only: frozenset[GlobalId] | None = None,
        idle_only: bool = False,
        progress: Progress = logger.info,
    ) -> StepReport:
        """Advances the graph's collections to the tick.

        Args:
            graph: All collections of one timeline.
            tick: The time to close; every collection that can gets `upper = tick + 1`.
            leadership: The right to step the timeline, validated when sealing; None for a project that no one else
                opens.
            only: The collections to advance; None for all. Inputs outside are read as far as they are.
            idle_only: Whether to stop where Spark would be needed; what is left stays where it is.
            progress: Receives lines that read as the story of the step.

        Returns:
            What became of each collection. A collection's failure is reported, not raised.

        Raises:
            StepLost: Another runner interfered; nothing was sealed, and running again is safe.
        """
        start = self._clock.monotonic_ms()
        selected = frozenset(graph.by_id) if only is None else only
        self._close_tables(graph, tick, selected)
        run = self._list(graph, tick, selected)
        self._pass_idle(run)
        if idle_only:
            for node in graph:
                run.done.setdefault(node.id, _behind(node, run.rows[node.id], run))
        progress(_beginning(run))
        if len(run.done) < len(graph.nodes):
            with BatchWriter(self._catalog, holder=self._holder, ttl_ms=self._lease_ms) as writer:
                with self._leased(run):
                    self._pass_working(run, leadership, writer, progress)
                # Leaving the lease told whether all that was read was there; only then may it be sealed.
                self._seal(run, leadership, progress)
        else:
            self._seal(run, leadership, progress)
        done = tuple(run.done[node.id] for node in graph)
        return StepReport(graph.timeline, tick, done, self._clock.monotonic_ms() - start)

    # ---- 1. close the tables

    def _close_tables(self, graph: Graph, tick: int, selected: frozenset[GlobalId]) -> None:
        """Moves every selected table's upper beyond the tick; a session's write that came first is kept."""
        for node in graph:
            if not isinstance(node, TableNode) or node.id not in selected:
                continue
            while True:
                upper = self._catalog.collection(node.id).upper
                if upper.is_empty or upper.only > tick:
                    break
                closed = self._catalog.seal([Seal(node.id, upper, _at(upper, tick + 1))])
                if isinstance(closed, Sealed):
                    break

    # ---- 2. list

    def _list(self, graph: Graph, tick: int, selected: frozenset[GlobalId]) -> _Run:
        rows = {row.id: row for row in self._catalog.collections(graph.timeline)}
        for node in graph:
            if node.id not in rows:
                raise StepLost(f'"{node.name}" was dropped under the step to {tick}', hint="Run again.")
        listed = self._catalog.live_batches(tuple(node.id for node in graph))
        batches = {id: list(of_one) for id, of_one in listed.items()}
        bound = self._catalog.newest_bindings(graph.timeline, tick + 1)
        return _Run(graph, tick, rows, batches, selected, bound)

    def _opened(self, run: _Run) -> tuple[SparkSession, Shards[DataFrame]]:
        """Returns Spark, set up for what a step has to do."""
        with run.opening:
            if run.opened is None:
                session, shards = self._spark()
                working = [node for node in run.graph if node.id not in run.done]
                replan_while_running(session, not all(self._is_small(run, node) for node in working))
                run.opened = session, shards
            return run.opened

    def _common(self, run: _Run) -> CommonLookups:
        """Returns the lookups of the collections that have work."""
        small = [node for node in run.graph if node.id not in run.done and self._is_small(run, node)]
        return CommonLookups(
            lambda: self._opened(run)[0],
            [node.plan for node in small if isinstance(node, MaintainedNode)],
            maintained={node.id: node.plan for node in run.graph if isinstance(node, MaintainedNode)},
            rows=run.rows,
            listed=run.overlapping,
            is_written=lambda id, upper: run.upper_of(id) >= upper,
            local=self._local,
        )

    def _target(self, run: _Run, node: Node) -> int:
        """Returns the upper that the node can reach, `u_C`."""
        if isinstance(node, TableNode):
            return run.upper_of(node.id)
        return min((run.tick + 1, *(run.upper_of(input) for input in node.inputs)))

    def _pass_idle(self, run: _Run) -> None:
        """Settles, without Spark, every collection whose inputs are settled, and which has nothing to do."""
        for node in run.graph:
            row = run.rows[node.id]
            lower = row.upper.only
            if node.id not in run.selected or isinstance(node, TableNode):
                run.done[node.id] = _step(node, Outcome.CURRENT, lower, lower)
                continue
            if not all(input in run.done for input in node.inputs):
                continue
            upper = self._target(run, node)
            if upper <= lower:
                run.done[node.id] = _behind(node, row, run)
            elif not self._has_work(run, node, lower, upper):
                run.done[node.id] = _idle(node, run, lower, upper)

    def _has_work(self, run: _Run, node: Node, lower: int, upper: int) -> bool:
        match node:
            case SourceNode():
                return run.bound.get(node.id, -1) >= lower
            case MaintainedNode():
                if run.rows[node.id].is_hydrated:
                    due = run.rows[node.id].next_due
                    fresh = any(not run.is_empty(input, lower, upper) for input in node.reads)
                    return fresh or (due is not None and due < upper)
                return node.has_constants or any(run.overlapping(input, None, upper) for input in node.reads)
            case TableNode():
                return False

    # ---- 3. lease and run

    @contextmanager
    def _leased(self, run: _Run) -> Iterator[None]:
        """Leases the lists of everything that may be read, for as long as the block runs."""
        working = frozenset(node.id for node in run.graph if node.id not in run.done)
        readable = sorted(run.graph.upstream(working))
        with leased(self._catalog, readable, holder=self._holder, ttl_ms=self._lease_ms) as lease:
            for id, listed in lease.snapshots.items():
                run.batches[id] = list(listed.batches)
            yield

    def _pass_working(self, run: _Run, leadership: Leadership | None, writer: BatchWriter, progress: Progress) -> None:
        """Computes and writes all that is left, each collection as soon as its inputs are done.

        Raises:
            StepLost: Another took the lead, so that nothing of this could be sealed.
        """
        working = {node.id: node for node in run.graph if node.id not in run.done}
        run.common = self._common(run)
        schedule = Schedule({id: node.inputs for id, node in working.items()})

        def work(node: Node) -> None:
            if leadership is not None and not self._catalog.is_leading(leadership):
                raise _lost(run, f"the lead of epoch {leadership.epoch} is over")
            run.done[node.id] = self._advance(run, node, writer, progress)

        running: dict[Future[None], GlobalId] = {}
        with ThreadPoolExecutor(self._parallelism, thread_name_prefix="mz-step") as pool:
            while True:
                while len(running) < self._parallelism and (id := schedule.take()) is not None:
                    running[pool.submit(work, working[id])] = id
                if not running:
                    break
                finished, _ = wait(running, timeout=self._still_working_s, return_when=FIRST_COMPLETED)
                if not finished:
                    progress(self._still_working(run, list(working.values())))
                for future in finished:
                    schedule.done(running.pop(future))
                    future.result()

    def _is_small(self, run: _Run, node: Node) -> bool:
        """Returns whether what is new to a collection is little, as far as one knows before the step."""
        lower = run.rows[node.id].upper.only
        match node:
            case SourceNode():
                new = self._catalog.bindings(node.id, lower, run.tick + 1)
                return sum(file.size for one in new for file in one.files) <= FEW_BYTES
            case _:
                rows = (run.rows_between(input, lower, run.tick + 1) for input in node.inputs)
                return run.rows[node.id].is_hydrated and sum(rows) <= BROADCAST_ROWS

    def _still_working(self, run: _Run, working: Sequence[Node]) -> str:
        now = self._clock.monotonic_ms()
        started = dict(run.started)  # as other threads go on
        busy = [
            f'"{node.name}" {(now - started[node.id]) / 1000:.0f} s'
            for node in working
            if node.id in started and node.id not in run.done
        ]
        done = sum(1 for node in working if node.id in run.done)
        return f"still working: {', '.join(busy)}; {done} of {len(working)} collections done"

    def _advance(self, run: _Run, node: Node, writer: BatchWriter, progress: Progress) -> CollectionStep:
        row = run.rows[node.id]
        lower = row.upper.only
        upper = self._target(run, node)
        if upper <= lower:
            return _behind(node, row, run)
        if not self._has_work(run, node, lower, upper):
            return _idle(node, run, lower, upper)
        start = run.started[node.id] = self._clock.monotonic_ms()
        try:
            with reporting_lost_spark():  # what is not sealed is never seen, so a retry is safe
                stats, rows_read = self._write(run, node, row, lower, upper, writer, progress)
        except DatabaseError as error:
            failure = error
        except Exception as error:
            failure = _as_failure(node, error)
        else:
            spark_ms = self._clock.monotonic_ms() - start
            progress(f'"{node.name}" [{lower}, {upper}): wrote {stats.rows} updates in {spark_ms / 1000:.1f} s')
            rows_in = stats.rows if isinstance(node, SourceNode) else run.rows_in(node, lower, upper)
            return replace(
                _step(node, Outcome.ADVANCED, lower, upper),
                stats=stats,
                batch=run.written.get(node.id),
                rows_in=rows_in,
                spark_ms=spark_ms,
                rows_read=rows_read,
            )
        progress(f'"{node.name}" [{lower}, {upper}) failed in {_operators(node)}: {failure.message}')
        spark_ms = self._clock.monotonic_ms() - start
        failed = _step(node, Outcome.FAILED, lower, lower)
        return replace(failed, spark_ms=spark_ms, error=failure, reason=failure.message)

    def _write(
        self,
        run: _Run,
        node: Node,
        row: CollectionRow,
        lower: int,
        upper: int,
        writer: BatchWriter,
        progress: Progress,
    ) -> tuple[BatchStats, int]:
        """Computes the collection's updates in `[lower, upper)` and writes them as one unsealed batch.

        Returns what was written, and how many rows were read.
        """
        if isinstance(node, MaintainedNode):
            progress(f'"{node.name}" [{lower}, {upper}): maintaining {_reading(run, node, lower, upper)}')
            found = None if row.is_hydrated else self._hydrated_here(run, node, row, lower, upper)
            if found is not None:
                batch, stats = writer.write(self._local, row, row.upper, _at(row.upper, upper), summed(found))
                self._note(run, row, lower, upper, batch, stats)
                self._note_due(run, node, row, upper)
                return stats, run.rows_in(node, lower, upper)
        is_grouped = not (isinstance(node, MaintainedNode) and is_linear(node.plan))
        with StepReads(
            lambda: self._opened(run),
            run.rows,
            run.overlapping,
            is_grouped=is_grouped,
            common=run.common,
            local=self._local,
        ) as reads:
            match node:
                case SourceNode():
                    bindings = self._catalog.bindings(node.id, lower, upper)
                    progress(f'"{node.name}" [{lower}, {upper}): reading {_files(bindings)}')
                    session, shards = self._opened(run)
                    has_prior = not run.is_empty(node.id, 0, lower)
                    with node.source.kept_still(bindings):
                        updates = ingest(session, shards, row, node.source, bindings, reads, has_prior=has_prior)
                        few = sum(file.size for one in bindings for file in one.files) <= FEW_BYTES
                        stats = self._append(run, node, row, lower, upper, writer, updates, few=few)
                case MaintainedNode():
                    maintained = self._maintain(run, node, row, lower, upper, reads)
                    if maintained is None:
                        return NO_ROWS, reads.rows_read
                    first = lower if row.is_hydrated else None
                    read = {id: run.rows_between(id, first, upper) for id in node.reads}
                    most = rows_at_most(node.plan, read.__getitem__)
                    few = likely_few(sum(read.values()), is_first=not row.is_hydrated)
                    stats = self._append(run, node, row, lower, upper, writer, maintained, most, few=few)
                    self._note_due(run, node, row, upper)
                case TableNode():
                    raise InternalError(f'table "{node.name}" has no work in a step')
            return stats, reads.rows_read

    def _append(
        self,
        run: _Run,
        node: Node,
        row: CollectionRow,
        lower: int,
        upper: int,
        writer: BatchWriter,
        updates: DataFrame | pa.Table,
        most: int | None = None,
        *,
        few: bool,
    ) -> BatchStats:
        """Writes a collection's updates in `[lower, upper)` as one unsealed batch, which the rest of the step reads.

        Those of an operator are consolidated first. What is likely to be `few` is written in this process.
        """
        whole = row.upper, _at(row.upper, upper)
        operator = isinstance(node, MaintainedNode)
        if isinstance(updates, pa.Table):
            fetched: pa.Table | None = updates
        else:
            fetched = few_updates(updates, row.columns) if few else None
        if fetched is not None:
            batch, stats = writer.write(self._local, row, *whole, summed(fetched) if operator else fetched)
        else:
            updates = consolidate(updates, row.columns) if operator else updates
            key = () if isinstance(node, TableNode) else node.key
            batch, stats = writer.write(self._opened(run)[1], row, *whole, updates, key=key, rows=most)
        self._note(run, row, lower, upper, batch, stats)
        return stats

    def _note(self, run: _Run, row: CollectionRow, lower: int, upper: int, batch: BatchId, stats: BatchStats) -> None:
        """Notes a batch that was written, for the rest of the step to read."""
        if stats.rows:
            run.written[row.id] = batch
            interval = (_at(row.upper, lower), _at(row.upper, upper))
            run.batches[row.id].append(Batch(batch, row.id, *interval, BatchState.WRITING, stats))

    def _note_due(self, run: _Run, node: MaintainedNode, row: CollectionRow, upper: int) -> None:
        """Notes when a temporal filter's state, which has been written, changes next by itself."""
        if node.is_temporal:
            written = [batch for batch in run.batches[node.id] if batch.id == run.written.get(node.id)]
            listed = partial(run.overlapping, node.id, None, upper)
            run.dues[node.id] = next_due(row, upper, written, listed, lambda: self._opened(run)[1], self._local)

    def _hydrated_here(
        self, run: _Run, node: MaintainedNode, row: CollectionRow, as_of: int, upper: int
    ) -> pa.Table | None:
        """Returns the first updates of a collection, those up to `as_of` at `as_of`, if they are made of little."""
        for input in node.inputs:
            _check_since(run.rows[input], as_of, node)

        def rows(id: GlobalId) -> int:
            return run.rows_between(id, None, upper)

        def read(one: ReadCollection, used: Collection[int]) -> pa.Table:
            batches = run.overlapping(one.id, None, upper)
            return read_here(self._local, run.rows[one.id], batches, None, upper, used, one.where)

        contents = FewContents(lambda: self._opened(run)[0], rows, read, as_of, upper)
        found = contents.updates(ordered_by_size(node.plan, rows))
        if found is None or found.num_rows > FEW_AT_FIRST:
            return None
        return found.rename_columns([*(column.name for column in row.columns), *META])

    def _maintain(
        self,
        run: _Run,
        node: MaintainedNode,
        row: CollectionRow,
        lower: int,
        upper: int,
        reads: StepReads,
    ) -> DataFrame | pa.Table | None:
        """Returns a collection's updates in `[lower, upper)`, None if there are none; few perhaps in this process."""

        def is_small(id: GlobalId) -> bool:
            return run.rows_between(id, lower, upper) <= BROADCAST_ROWS

        plan = ordered_by_size(node.plan, lambda id: run.rows_between(id, None, upper))
        columns = RelationType(row.columns)
        parts: list[DataFrame] = []

        def session() -> SparkSession:
            return self._opened(run)[0]

        def nothing() -> DataFrame:
            return session().createDataFrame([], update_schema(row.columns))

        if not row.is_hydrated:
            as_of = lower
            for input in node.inputs:
                _check_since(run.rows[input], as_of, node)
            if node.has_constants or any(run.overlapping(input, None, as_of + 1) for input in node.reads):
                parts.append(
                    Renderer(session(), reads.read, reads=reads).snapshot(plan, as_of).toDF(*columns.names, *META)
                )
            lower = as_of + 1
            # What was just computed is not written yet: the steps that follow in this run see it as a frame.
            own: OwnState = FrameState(with_positions(parts[0] if parts else nothing(), columns))
        else:
            for input in node.inputs:
                _check_since(run.rows[input], lower - 1, node)
            # Before its next due time nothing of a temporal state matters to what arrives.
            waits = node.is_temporal and (row.next_due is None or row.next_due >= upper)
            if waits:
                own = FrameState(with_positions(nothing(), columns))
            else:
                few = all(is_small(id) for id in node.reads)
                own = ShardState(reads, row.id, columns, lower, prunes=few)
        updates = None
        if lower < upper:
            few_plans = (
                FewPlans(session, reads, lower, upper, ReadCollection(row.id, columns)) if row.is_hydrated else None
            )
            if few_plans is not None and (here := few_plans.updates(plan)) is not None:
                # A temporal filter's next due time is looked for even if nothing came of what fell due.
                return here.rename_columns([*columns.names, *META]) if here.num_rows or node.is_temporal else None
            renderer = Renderer(session(), reads.read, is_small=is_small, own=own, reads=reads, few=few_plans)
            updates = renderer.updates(plan, lower, upper, lambda id: run.is_empty(id, lower, upper))
        if updates is not None:
            parts.append(updates)
        if not parts:
            return None
        # A plan's columns are known by position; the shard's bear the object's names.
        return union(parts).toDF(*(column.name for column in row.columns), *META)

    # ---- 4. seal

    def _seal(self, run: _Run, leadership: Leadership | None, progress: Progress) -> None:
        """Seals everything that finished, and notes what failed, in one transaction."""
        seals = [
            Seal(
                one.id,
                run.rows[one.id].upper,
                _at(run.rows[one.id].upper, one.upper),
                run.written.get(one.id),
                one.stats if one.id in run.written else None,
            )
            for one in run.done.values()
            if one.outcome in (Outcome.ADVANCED, Outcome.IDLE)
        ]
        failures = {
            one.id: one.reason if one.outcome is Outcome.FAILED else None
            for one in run.done.values()
            if (one.outcome is Outcome.FAILED or run.rows[one.id].failure is not None)
            and one.outcome in (Outcome.FAILED, Outcome.ADVANCED, Outcome.IDLE)
        }
        if not seals and not failures:
            return
        fail_point("append.before_seal")
        dues = {id: due for id, due in run.dues.items() if run.done[id].outcome is Outcome.ADVANCED}
        sealed = self._catalog.seal(seals, leadership=leadership, failures=failures, dues=dues)
        match sealed:
            case Sealed():
                progress(f"sealed {len(seals)} collections")
                return
            case UpperMismatch():
                fact = f'collection "{sealed.collection}" is at {sealed.found}, not at {sealed.expected}'
            case LeadershipLost():
                fact = f"the lead of epoch {sealed.epoch} is over"
            case BatchNotWriting():
                fact = f"batch {sealed.batch} was swept"
        raise _lost(run, fact)


def _lost(run: _Run, fact: str) -> StepLost:
    return StepLost(
        f"another runner interfered with the step to {run.tick}",
        detail=f"{fact[:1].upper()}{fact[1:]}.",
        hint="Nothing was lost: run again; it goes on from where the other runner is.",
    )


def _at(like: Antichain[int], time: int) -> Antichain[int]:
    return Antichain.of(like.lattice, time)


def _operators(node: Node) -> str:
    match node:
        case SourceNode():
            return f"ENVELOPE {node.source.envelope.upper()}"
        case TableNode():
            return ""
        case MaintainedNode():
            return operators(node.plan)


def _reading(run: _Run, node: MaintainedNode, lower: int, upper: int) -> str:
    names = ", ".join(f'"{one.name}"' for one in run.inputs(node))
    of = f"{run.rows_in(node, lower, upper)} rows of {names}" if names else "constants"
    return f"{_operators(node)}, {of}{'' if run.rows[node.id].is_hydrated else f', hydrating at {lower}'}"


def _files(bindings: Sequence[Binding]) -> str:
    files = [file for one in bindings for file in one.files]
    return f"{len(files)} file{'' if len(files) == 1 else 's'}, {sum(file.size for file in files)} bytes"


def _beginning(run: _Run) -> str:
    """Returns the first line of a step's story."""
    lowest = min((run.rows[id].upper.only for id in run.selected if not run.rows[id].upper.is_empty), default=0)
    outcomes = [one.outcome for one in run.done.values()]
    told = [f"{len(run.graph.nodes) - len(outcomes)} of {len(run.graph.nodes)} collections have work"]
    told += [f"{outcomes.count(one)} {one.value}" for one in Outcome if one in outcomes]
    return f"step to tick {run.tick}, from {lowest}: {', '.join(told)}"


def _step(node: Node, outcome: Outcome, lower: int, upper: int) -> CollectionStep:
    owner = node.owner if isinstance(node, MaintainedNode) else None
    return CollectionStep(node.id, node.name, outcome, lower, upper, operators=_operators(node), owner=owner)


def _idle(node: Node, run: _Run, lower: int, upper: int) -> CollectionStep:
    return replace(_step(node, Outcome.IDLE, lower, upper), rows_in=run.rows_in(node, lower, upper))


def _behind(node: Node, row: CollectionRow, run: _Run) -> CollectionStep:
    """Returns what is said of a collection that has nothing to do: it is current, or waits for an input."""
    upper = row.upper.only
    if upper > run.tick:
        return _step(node, Outcome.CURRENT, upper, upper)
    held = [run.graph.by_id[input].name for input in node.inputs if run.upper_of(input) <= upper]
    reason = "waits for " + ", ".join(f'"{name}"' for name in sorted(held))
    return replace(_step(node, Outcome.BLOCKED, upper, upper), reason=reason)


def _check_since(input: CollectionRow, needed: int, node: Node) -> None:
    """Holds constraint R: what is needed of an input is not forgotten."""
    if not input.since.less_equal(needed):
        raise InternalError(
            f'"{node.name}" needs its input "{input.id}" as of {needed}, but its history begins at {input.since}',
            detail="A capability of the reader should have held the input's since back.",
        )


def _as_failure(node: Node, error: Exception) -> DatabaseError:
    """Returns the error of a collection whose step raised something that is not ours: Spark's, mostly."""
    text = str(error).strip().splitlines()
    logger.info('"%s" failed', node.name, exc_info=error)
    return OperationalError(
        f'Spark could not compute "{node.name}": {text[0] if text else type(error).__name__}',
        detail="The whole error is in the log of level INFO.",
        hint="Free space where the shards are, and where Spark keeps its temporary files; then run again."
        if "No space left" in str(error)
        else 'If Spark is gone, the next run starts it again; "mz-dagster spark status" tells.',
        may_have_taken_effect=False,
    )
