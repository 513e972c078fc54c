"""The step: one advance of a graph of collections to a tick.

    for each collection C, from its own upper l_C:
        u_C = min(tick + 1, min over inputs I of u_I)        C never passes an input (constraint W)
        updates of C in [l_C, u_C) are computed and written
    and then, in ONE catalog transaction, everything that finished is sealed.

What takes long holds back no seal of the others: after a while, what has finished by then is sealed in a transaction of
its own, and so on until all is. Each such group is closed under inputs, since what is computed has its inputs behind
it, and stays readable at the last time at which the rest is complete (`common_time`).

How it goes:

1. *Close the tables.* Their uppers move to `tick + 1` first. From then on no session can write at or before the tick,
   so what the step reads cannot change under it; a session that loses the race takes a later timestamp.
2. *List.* One catalog transaction says what there is. Where no input has updates, and no row of a temporal filter is
   due, a collection only moves its upper: no Spark, no Delta commit. If that holds for all, the step ends here, in one
   more transaction.
3. *Lease and run.* Batches that will be read are leased. Collections run concurrently, each as soon as its inputs
   are written; each reads listed batches plus the step's own unsealed ones.
4. *Seal* all that finished, together, or in groups if some take long. The last seal checks and ends the lease, and
   gives the lead back, in the same transaction. A collection that failed stays where it was and
   says why; its dependants stay behind with it; nobody else waits.
5. *Sinks* write what is sealed, and each moves its own upper (`sinks`).

*Others that compute the same.* A replica (`adapter.replica`) may compute what this step computes, and seal it first.
What is in a collection at a time is the same whoever computes it, so each seal only has to find its collections where
they were when it began. What was overtaken is not waited for: its work is dropped, with what would pass it, all else
is sealed, and the step begins once more from what is there then. What another sealed before the rest is held like what
this step did.

A crash anywhere before 4 leaves batches that no list names. Leadership is validated by the sealing
transaction, so a step that was paused past its lease cannot seal over its successor; it is looked at before each
collection, too, so that such a step does no more work than it must.

*Hydration.* A collection whose upper is still its since has no output yet: its output at `since` is the plan's
result over the inputs as of then, and from there on it steps like any other, in the same run.

This module does not choose ticks, does not poll sources and does not know SQL or Dagster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mz_dagster.budget import EngineSetting, budget, engine_of
from mz_dagster.catalog import (
    BatchNotWriting,
    BatchStats,
    Catalog,
    CollectionRow,
    CollectionUpperMismatch,
    Leadership,
    LeadershipLost,
    Seal,
    Sealed,
    UnknownLease,
    UnknownObject,
)
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute.algebra.frame import replan_while_running
from mz_dagster.compute.lookups.common_lookups import CommonLookups
from mz_dagster.compute.spark.broadcast import is_too_large_to_broadcast
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.step.advance import Advance, frontier_at
from mz_dagster.compute.step.common_time import CommonTime
from mz_dagster.compute.step.graph import FailedNode, Graph, MaintainedNode, Node, SinkNode, SourceNode, TableNode
from mz_dagster.compute.step.lead_watch import LeadWatch
from mz_dagster.compute.step.outcomes import advanced, behind, known_to_fail, step_of, without_work
from mz_dagster.compute.step.report import CollectionStep, Outcome, Progress, StepReport
from mz_dagster.compute.step.run import StepGivenUp, StepRun
from mz_dagster.compute.step.sharing import Sharing
from mz_dagster.compute.step.sinks import Sinks
from mz_dagster.compute.step.turns import Turn
from mz_dagster.compute.step.work_shares import STEPPER, Unit
from mz_dagster.compute.step.worker_processes import WorkerProcesses
from mz_dagster.errors import DatabaseError, OperationalError
from mz_dagster.fail_point import fail_point
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.plan.lowering import LookupOrders
from mz_dagster.plan.plan_size import PlanTooLarge
from mz_dagster.process_exit import STEP_THREADS, leave_threads_at_exit
from mz_dagster.progress import task
from mz_dagster.storage.append import BatchWriter
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.read import HeldLease, LeaseLost, leased
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.spark.deadline import HeapFull, interrupt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mz_dagster.compute.step.worker_process import WorkerProcess

logger = logging.getLogger("mz_dagster.step")

#: How often a step that works says what it is working on, in seconds.
STILL_WORKING_S = 10.0
#: After how long what has finished is sealed without what has not, in seconds: most steps are over by then.
SEAL_AFTER_S = 30.0
#: How often a step looks whether another was faster with what it works on, in seconds.
_LOOK_EVERY_S = 1.0


class StepOverdue(OperationalError):
    """A step was given up at its deadline; what it had sealed stays sealed."""

    sqlstate = "57014"


class StepLost(OperationalError):
    """Another moved or dropped a collection, or took the lead, while this step ran; nothing was sealed."""

    sqlstate = "40001"


def quiet(line: str) -> None:
    """A progress that only goes to the log."""
    logger.debug(line)


class Stepper:
    """Advances graphs of collections.

    Args:
        catalog: The durable state.
        spark: Returns the session and the shards on it; called only when there is work for Spark.
        smaller: Returns those for what filled Spark's heap, and is computed once more in smaller pieces; None if there
            is no other session.
        holder: Names this process in leases.
        local: The shards in this process, for what is too little to have Spark do it.
        lease_ms: How long a lease lasts without renewal.
        parallelism: How many collections may be computed at the same time.
        still_working_s: How often a step that works says so, in seconds.
        seal_after_s: After how long what has finished is sealed without what has not, in seconds.
        engine: Who computes, where whoever has it run does not choose.
        notes_failures: Whether the catalog is told of collections that fail; else only the caller is.
        workers: What computes beside this process in steps of many collections; None for nothing.
    """

    def __init__(
        self,
        catalog: Catalog,
        spark: Callable[[], tuple[SparkSession, Shards[DataFrame]]],
        *,
        holder: str,
        local: LocalShards,
        smaller: Callable[[], tuple[SparkSession, Shards[DataFrame]]] | None = None,
        lease_ms: int = 60_000,
        parallelism: int = 4,
        still_working_s: float = STILL_WORKING_S,
        seal_after_s: float = SEAL_AFTER_S,
        engine: EngineSetting = EngineSetting.AUTO,
        notes_failures: bool = True,
        workers: WorkerProcesses | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._catalog = catalog
        self._spark = spark
        self._smaller = smaller
        self._holder = holder
        self._lease_ms = lease_ms
        self._parallelism = parallelism
        self._still_working_s = still_working_s
        self._seal_after_s = seal_after_s
        self._engine = engine
        self._notes_failures = notes_failures
        self._clock = clock
        self._local = local
        self._orders = LookupOrders()
        self._stepped: set[GlobalId] = set()
        self._sharing = Sharing(catalog, local, workers, clock)
        self._sinks = Sinks(catalog, local, holder, lease_ms, clock)

    def run(
        self,
        graph: Graph,
        tick: int,
        *,
        leadership: Leadership | None = None,
        resigns: bool = False,
        only: frozenset[GlobalId] | None = None,
        idle_only: bool = False,
        until_ms: float | None = None,
        progress: Progress = logger.info,
    ) -> StepReport:
        """Advances the graph's collections to the tick.

        Args:
            graph: All collections of one timeline.
            tick: The time to close; every collection that can gets `upper = tick + 1`.
            leadership: The right to step the timeline, validated when sealing; None for a project that no one else
                opens.
            resigns: Whether the last seal gives it back.
            only: The collections to advance; None for all. Inputs outside are read as far as they are.
            idle_only: Whether to stop where Spark would be needed; what is left stays where it is.
            until_ms: When to give up what is not done, in milliseconds of the monotonic clock; None for never.
            progress: Receives lines that read as the story of the step.

        Returns:
            What became of each collection. A collection's failure is reported, not raised.

        Raises:
            StepLost: Another runner interfered; nothing more was sealed, and running again is safe.
            StepOverdue: It was not done by its deadline; nothing more was sealed, and running again is safe.
        """
        with engine_of(self._engine, unless_chosen=True):
            return self._run(graph, tick, leadership, only, until_ms, progress, resigns=resigns, idle_only=idle_only)

    def _run(
        self,
        graph: Graph,
        tick: int,
        leadership: Leadership | None,
        only: frozenset[GlobalId] | None,
        until_ms: float | None,
        progress: Progress,
        *,
        resigns: bool,
        idle_only: bool,
    ) -> StepReport:
        start = self._clock.monotonic_ms()
        selected = frozenset(graph.by_id) if only is None else only
        wanted = [node for node in graph if isinstance(node, SinkNode) and node.id in selected]
        resigns = resigns and not wanted  # they are sealed later
        self._close_tables(graph, tick, selected)
        done: dict[GlobalId, CollectionStep] = {}
        with CommonTime(self._catalog, holder=self._holder, ttl_ms=self._lease_ms) as common_time:
            run = self._list(graph, tick, selected, common_time)
            while True:
                self._settle(run, leadership, until_ms, progress, resigns=resigns, idle_only=idle_only)
                done |= {id: one for id, one in run.done.items() if _is_news(run, one, done.get(id))}
                if not run.overtaken:
                    break
                failed = {one.id for one in run.done.values() if one.outcome is Outcome.FAILED} - run.overtaken
                left = run.selected - graph.downstream(failed)  # once is enough
                before, run = run, self._list(graph, tick, left, common_time)
                if all(run.rows[id].upper == before.rows[id].upper for id in before.overtaken):
                    raise _lost(run, "what another sealed is not there")
        for one in self._sinks.advance(wanted, tick, leadership, progress, idle_only=idle_only):
            done[one.id] = one
        collections = tuple(done[node.id] for node in graph)
        return StepReport(graph.timeline, tick, collections, self._clock.monotonic_ms() - start)

    def _settle(
        self,
        run: StepRun,
        leadership: Leadership | None,
        until_ms: float | None,
        progress: Progress,
        *,
        resigns: bool,
        idle_only: bool,
    ) -> None:
        """Advances what can be advanced from what was listed, and seals it; what others sealed first is left."""
        for node in run.graph:
            if isinstance(node, SinkNode):  # they write what is sealed
                upper = run.rows[node.id].upper.only
                run.done[node.id] = step_of(node, Outcome.CURRENT, upper, upper)
        self._pass_idle(run)
        if idle_only:
            for node in run.graph:
                run.done.setdefault(node.id, behind(node, run))
        progress(_beginning(run))
        if len(run.done) == len(run.graph.nodes):
            self._seal(run, leadership, progress, resigns=resigns)
            return
        writing = BatchWriter(self._catalog, holder=self._holder, ttl_ms=self._lease_ms)
        with writing as writer, self._leased(run) as lease:
            self._pass_working(run, leadership, writer, lease, until_ms, progress)
            # Only what was read under a lease that is intact may be sealed: all of it was there.
            self._seal(run, leadership, progress, lease, resigns=resigns)

    def rewrite(self, node: SinkNode, leadership: Leadership | None) -> None:
        """Has a sink written anew; see `Sinks.rewrite`."""
        self._sinks.rewrite(node, leadership)

    # ---- 1. close the tables

    def _close_tables(self, graph: Graph, tick: int, selected: frozenset[GlobalId]) -> None:
        """Moves every selected table's upper beyond the tick; a session's write that came first is kept."""
        state = self._catalog.state()
        tables = [node.id for node in graph if node.id in selected and isinstance(node, TableNode)]
        # Uppers never go back, so what is beyond the tick needs no transaction, as after a read that has closed it.
        if any((row := state.collection(id)) is None or row.upper.less_equal(tick) for id in tables):
            self._catalog.close_tables(graph.timeline, tick, tables)

    # ---- 2. list

    def _list(self, graph: Graph, tick: int, selected: frozenset[GlobalId], common_time: CommonTime) -> StepRun:
        state = self._catalog.state()
        rows: dict[GlobalId, CollectionRow] = {}
        for node in graph:
            row = state.collection(node.id)
            if row is None:
                if not self._catalog.was_dropped(node.id):
                    raise UnknownObject(node.id)
                raise StepLost(f'"{node.name}" was dropped under the step to {tick}', hint="Run again.")
            rows[node.id] = row
        altered = {id: row.columns for id, row in rows.items() if row.version}
        graph = graph.over_stored(altered) if altered else graph
        listed = self._catalog.live_batches(tuple(node.id for node in graph))
        batches = {id: list(of_one) for id, of_one in listed.items()}
        sources = [node.bound for node in graph if isinstance(node, SourceNode)]
        bound = self._catalog.newest_bindings(sources, tick + 1)
        return StepRun(graph, tick, rows, batches, selected, common_time, bound)

    def _opened(self, run: StepRun, id: GlobalId) -> tuple[SparkSession, Shards[DataFrame]]:
        """Returns Spark, set up for what a step has to do."""
        with run.opening:
            run.check_wanted(id)
            if run.opened is None:
                session, shards = self._spark()
                working = [node for node in run.graph if node.id not in run.done]
                replan_while_running(session, not all(self._is_small(run, node) for node in working))
                run.opened = session, shards
                run.check_wanted(id)  # again: who gave it up meanwhile saw no session in which to interrupt it
            _tag(run.opened[0], run, id)
            return run.opened

    def _opened_smaller(self, run: StepRun, id: GlobalId) -> tuple[SparkSession, Shards[DataFrame]]:
        """Returns Spark, set up for what is computed in smaller pieces, which one collection at a time is."""
        with run.opening:
            run.check_wanted(id)
            if run.smaller is None:
                assert self._smaller is not None
                run.smaller = self._smaller()
                run.check_wanted(id)
            _tag(run.smaller[0], run, id)
            return run.smaller

    def _common(self, run: StepRun) -> CommonLookups:
        """Returns the lookups of the collections that have work."""
        small = [node for node in run.graph if node.id not in run.done and self._is_small(run, node)]
        return CommonLookups(
            [node.plan for node in small if isinstance(node, MaintainedNode)],
            maintained={node.id: node.plan for node in run.graph if isinstance(node, MaintainedNode)},
            rows=run.rows,
            listed=run.overlapping,
            is_written=lambda id, upper: run.upper_of(id) >= upper,
            local=self._local,
        )

    def _pass_idle(self, run: StepRun) -> None:
        """Settles, without Spark, every collection whose inputs are settled, and which has nothing to do."""
        for node in run.graph:
            lower = run.rows[node.id].upper.only
            if isinstance(node, SinkNode):
                continue
            if node.id not in run.selected or isinstance(node, TableNode):
                run.done[node.id] = step_of(node, Outcome.CURRENT, lower, lower)
                continue
            if isinstance(node, FailedNode):
                run.done[node.id] = known_to_fail(node, lower, run)
                continue
            if all(input in run.done for input in node.inputs) and (done := without_work(node, run)) is not None:
                run.done[node.id] = done

    # ---- 3. lease and run

    @contextmanager
    def _leased(self, run: StepRun) -> Iterator[HeldLease]:
        """Leases the lists of everything that may be read, for as long as the block runs."""
        working = frozenset(node.id for node in run.graph if node.id not in run.done)
        readable = sorted(run.graph.upstream(working))
        with leased(self._catalog, readable, holder=self._holder, ttl_ms=self._lease_ms) as lease:
            for id, listed in lease.snapshots.items():
                run.batches[id] = list(listed.batches)
            # Of what another has sealed since it was listed, this step would read both what that made and its own.
            late = {id: listed.upper for id, listed in lease.snapshots.items() if id in working}
            run.overtake({id: _time_of(upper) for id, upper in late.items() if upper != run.rows[id].upper})
            yield lease

    def _pass_working(
        self,
        run: StepRun,
        leadership: Leadership | None,
        writer: BatchWriter,
        lease: HeldLease,
        until_ms: float | None,
        progress: Progress,
    ) -> None:
        """Computes and writes all that is left, each collection as soon as its inputs are done.

        Seals now and then what has finished, while others go on; leaves what somebody else has sealed first.

        Raises:
            StepLost: Another took the lead, so that nothing of this could be sealed.
        """
        working = [node for node in run.graph if node.id not in run.done]
        run.common = self._common(run)
        lead = None if leadership is None else LeadWatch(self._catalog, leadership, self._clock)

        def work(unit: Unit, worker: WorkerProcess | None) -> None:
            def tell(line: str) -> None:
                if not run.given_up.is_set() and unit.id not in run.overtaken:
                    progress(line)

            if lead is not None and lead.is_over():
                raise _lost(run, f"the lead of epoch {lead.leadership.epoch} is over")
            left = unit.nodes if worker is None else self._sharing.computed(run, unit, worker, writer, tell)
            for node in left:
                try:
                    run.check_wanted(node.id)
                    done = self._advance(run, node, writer, tell)
                except StepGivenUp:
                    if node.id not in run.overtaken:
                        raise
                    continue  # others of the unit may be wanted
                if node.id not in run.overtaken:
                    run.done[node.id] = done
            progressing.advance(len(unit.nodes))

        running: dict[Future[None], tuple[Unit, int]] = {}
        sealed_at = told_at = looked_at = self._clock.monotonic_ms()
        with (
            task(f"step to {run.tick}", len(working), "collections") as progressing,
            self._sharing.workers(run, working) as ready,
            self._threads(run, running) as pool,
        ):
            shares = self._sharing.shares(run, working, self._parallelism, is_shared=ready is not None)
            while True:
                workers = {} if ready is None else ready()
                shares.join(workers)
                for place in (STEPPER, *workers):
                    while (unit := shares.take(place)) is not None:
                        if run.is_unwanted(unit.nodes):
                            shares.done(unit, place)
                            continue
                        future = pool.submit(copy_context().run, work, unit, workers.get(place))
                        running[future] = unit, place
                if not running:
                    break
                now = self._clock.monotonic_ms()
                ends = [told_at + self._still_working_s * 1000, looked_at + _LOOK_EVERY_S * 1000]
                ends += [sealed_at + self._seal_after_s * 1000] if run.has_unsealed else []
                ends += [] if until_ms is None else [until_ms]
                finished, _ = wait(running, timeout=max(min(ends) - now, 0) / 1000, return_when=FIRST_COMPLETED)
                now = self._clock.monotonic_ms()
                if not finished and until_ms is not None and now >= until_ms:
                    raise StepOverdue(f"the step to {run.tick} is not done by its deadline", hint="Run again.")
                if finished:
                    told_at = now
                elif now >= told_at + self._still_working_s * 1000:
                    progress(self._still_working(run, working))
                    told_at = now
                for future in finished:
                    unit, place = running.pop(future)
                    shares.done(unit, place)
                    if not run.is_unwanted(unit.nodes):
                        future.result()
                if now >= looked_at + _LOOK_EVERY_S * 1000:
                    self._overtaken(run, [node.id for node in run.graph if run.works_on(node.id)], progress)
                    looked_at = now
                is_due = now >= sealed_at + self._seal_after_s * 1000
                if is_due and len(run.done) < len(run.graph.nodes) and run.has_unsealed:
                    self._seal_group(run, leadership, lease, progress)
                    sealed_at = self._clock.monotonic_ms()
                for future, (unit, place) in list(running.items()):
                    if run.is_unwanted(unit.nodes):
                        del running[future]
                        shares.done(unit, place)
                        _leave(run, future, unit)

    def _overtaken(self, run: StepRun, ids: Iterable[GlobalId], progress: Progress) -> bool:
        """Notes which of the collections somebody else has sealed since the step began; returns whether any.

        They are held where the rest stands.
        """
        state = self._catalog.state()
        found = [row for id in ids if (row := state.collection(id)) is not None]
        faster = [row for row in found if row.upper != run.rows[row.id].upper]
        if not faster:
            return False
        run.overtake({row.id: _time_of(row.upper) for row in faster})
        _hold(run, faster)
        names = ", ".join(f'"{run.graph.by_id[row.id].name}"' for row in faster)
        progress(f"another was faster with {names}")
        return True

    @contextmanager
    def _threads(self, run: StepRun, running: Mapping[Future[None], object]) -> Iterator[ThreadPoolExecutor]:
        """Opens threads to compute in; if the step is given up, nobody waits for what is running in them."""
        # What was overtaken goes on for a while in its thread, and no other waits for that.
        pool = ThreadPoolExecutor(4 * self._parallelism, thread_name_prefix=STEP_THREADS)
        try:
            yield pool
        except BaseException as error:
            # Of what was overtaken, some may go on for long; so nobody waits for any. What interrupts is no Exception:
            # Python's KeyboardInterrupt, and what Dagster makes of a signal within a run.
            if run.overtaken or isinstance(error, StepOverdue) or not isinstance(error, Exception):
                run.given_up.set()
                if isinstance(error, KeyboardInterrupt):
                    leave_threads_at_exit()
                for opened in (run.opened, run.smaller):
                    if opened is not None:
                        interrupt(opened[0], run.tag, lambda seconds: not wait(running, seconds).not_done)
            raise
        finally:
            unwanted = run.given_up.is_set() or bool(run.overtaken)
            pool.shutdown(wait=not unwanted, cancel_futures=unwanted)

    def _is_small(self, run: StepRun, node: Node) -> bool:
        """Returns whether what is new to a collection is little, as far as one knows before the step."""
        lower = run.rows[node.id].upper.only
        match node:
            case SourceNode():
                new = self._catalog.bindings(node.bound, lower, run.tick + 1)
                return node.source.size(new) <= budget().small_file_bytes
            case _:
                rows = (run.rows_between(input, lower, run.tick + 1) for input in node.inputs)
                return run.rows[node.id].is_hydrated and sum(rows) <= budget().broadcast_updates

    def _still_working(self, run: StepRun, working: Sequence[Node]) -> str:
        now = self._clock.monotonic_ms()
        started = dict(run.started)  # as other threads go on
        busy = [
            f'"{node.name}" {(now - started[node.id]) / 1000:.0f} s'
            for node in working
            if node.id in started and node.id not in run.done
        ]
        done = sum(1 for node in working if node.id in run.done)
        return f"still working: {', '.join(busy)}; {done} of {len(working)} collections done"

    def _advance(self, run: StepRun, node: Node, writer: BatchWriter, progress: Progress) -> CollectionStep:
        if (done := without_work(node, run)) is not None:
            return done
        row = run.rows[node.id]
        lower, upper = row.upper.only, run.target(node)
        start = run.started[node.id] = self._clock.monotonic_ms()
        is_alone = node.id in self._stepped and run.is_little(node, lower, upper)
        turn = run.turn_of[node.id] = Turn(run.turns, is_alone=is_alone)
        spark = SparkUse(partial(self._opened, run, node.id), turn)
        try:
            with turn, only_our_errors():  # what is not sealed is never seen, so a retry is safe
                run.check_wanted(node.id)
                advance = Advance(
                    run=run,
                    node=node,
                    row=row,
                    lower=lower,
                    upper=upper,
                    catalog=self._catalog,
                    local=self._local,
                    orders=self._orders,
                    writer=writer,
                    spark=spark,
                    common=run.common,
                    progress=progress,
                )
                stats, rows_read = self._written(advance)
                self._stepped.add(node.id)
        except DatabaseError as error:
            run.check_wanted(node.id)
            logger.info('"%s" failed', node.name, exc_info=error)
            failure = error
            if isinstance(error, HeapFull | PlanTooLarge):
                failure = error.of(f'{node.operators} of "{node.name}"')
        else:
            return advanced(advance, stats, rows_read, self._clock.monotonic_ms() - start)
        progress(f'"{node.name}" [{lower}, {upper}) failed in {node.operators}: {failure.message}')
        spark_ms = self._clock.monotonic_ms() - start
        failed = step_of(node, Outcome.FAILED, lower, lower)
        used = replace(failed, spark_ms=spark_ms, spark_because=tuple(spark.because), handovers=spark.handovers)
        return replace(used, placements=tuple(spark.placements), error=failure, reason=failure.message)

    def _written(self, advance: Advance) -> tuple[BatchStats, int]:
        """Returns what an advance wrote, and how many rows it read; what filled Spark's heap is in smaller pieces.

        A second time it is an error. A server that died of its heap is started anew.
        """
        run, node = advance.run, advance.node
        because = "the heap was full, so it goes on in smaller pieces"
        if self._smaller is None or not run.heap_was_full.is_set():
            try:
                with only_our_errors():
                    return self._written_at_once(advance)
            except HeapFull as error:
                if self._smaller is None or node.id in run.reserved:  # what is reserved is written
                    raise
                because = f"Spark had too little memory for {node.operators}, so it is computed in smaller pieces"
                logger.warning('"%s": %s (%s)', node.name, because, error.detail)
                advance.progress(f"{advance.interval}: {because}")
            run.heap_was_full.set()
        run.turn_of[node.id].give_up()  # who has the lock may wait for one
        with run.one_by_one:
            advance.spark.resume()
            run.smaller = None  # that of the one before may have gone as well
            advance.spark.begin_anew(partial(self._opened_smaller, run, node.id), because)
            return replace(advance, common=None).write(sends=False)

    def _written_at_once(self, advance: Advance) -> tuple[BatchStats, int]:
        """Returns what `_written` does; what is more than is sent to all tasks is shuffled."""
        try:
            return advance.write(sends=True)
        except Exception as error:
            if not is_too_large_to_broadcast(error):
                raise
            advance.progress(f"{advance.interval}: much comes of {advance.node.operators}, so it is shuffled")
            replan_while_running(self._opened(advance.run, advance.node.id)[0], True)
            return advance.write(sends=False)

    # ---- 4. seal

    def _seal_group(self, run: StepRun, leadership: Leadership | None, lease: HeldLease, progress: Progress) -> None:
        """Seals what has finished while others go on, and holds it where they stand."""
        unsealed = run.unsealed()  # what finishes from here on is not held, so it is not sealed with these
        _hold(run, (run.rows[one.id] for one in unsealed))
        self._seal(run, leadership, progress, lease, unsealed, goes_on=True)

    def _seal(
        self,
        run: StepRun,
        leadership: Leadership | None,
        progress: Progress,
        lease: HeldLease | None = None,
        unsealed: Sequence[CollectionStep] | None = None,
        *,
        goes_on: bool = False,
        resigns: bool = False,
    ) -> None:
        """Seals what finished and is not sealed, or of that only some, and notes what failed, in one transaction.

        It ends the lease and gives the lead back, too, unless others go on. What somebody else sealed first is left
        out, with what depends on it.
        """
        unsealed = run.unsealed() if unsealed is None else unsealed
        failed = [one.id for one in unsealed if one.outcome is Outcome.FAILED]
        if failed and self._overtaken(run, failed, progress):  # then it has not failed
            unsealed = [one for one in unsealed if one.id not in run.overtaken]
        seals = [
            Seal(
                one.id,
                run.rows[one.id].upper,
                frontier_at(run.rows[one.id].upper, one.upper),
                run.reserved.get(one.id),
                one.stats if one.id in run.reserved else None,
            )
            for one in unsealed
            if one.outcome in (Outcome.ADVANCED, Outcome.IDLE)
        ]
        failures = {
            one.id: one.reason if one.outcome is Outcome.FAILED else None
            for one in unsealed
            if (one.outcome is Outcome.FAILED or run.rows[one.id].failure is not None)
            and one.outcome in (Outcome.FAILED, Outcome.ADVANCED, Outcome.IDLE)
        }
        if not self._notes_failures:  # but what goes well again is known to
            failures = {id: reason for id, reason in failures.items() if reason is None}
        if not seals and not failures:
            return
        fail_point("append.before_seal")
        advanced = {one.id for one in unsealed if one.outcome is Outcome.ADVANCED}
        dues = {id: due for id, due in list(run.dues.items()) if id in advanced}
        try:
            sealed = self._catalog.seal(
                seals,
                leadership=leadership,
                failures=failures,
                dues=dues,
                lease=None if lease is None else lease.id,
                releases=not goes_on,
                resigns=resigns and not run.overtaken,
            )
        except UnknownLease as error:
            assert lease is not None, "another lease was not asked for"
            raise LeaseLost(lease.id) from error
        match sealed:
            case Sealed():
                if lease is not None:
                    lease.is_over = not goes_on
                run.sealed |= {one.id for one in unsealed}
                progress(f"sealed {len(seals)} collections")
                return
            case CollectionUpperMismatch():
                if self._overtaken(run, [one.id for one in unsealed], progress):
                    left = [one for one in unsealed if one.id not in run.overtaken]
                    self._seal(run, leadership, progress, lease, left, goes_on=goes_on, resigns=resigns)
                    return
                fact = f'collection "{sealed.collection}" is at {sealed.found}, not at {sealed.expected}'
            case LeadershipLost():
                fact = f"the lead of epoch {sealed.epoch} is over"
            case BatchNotWriting():
                fact = f"batch {sealed.batch} was swept"
        raise _lost(run, fact)


def _is_news(run: StepRun, one: CollectionStep, before: CollectionStep | None) -> bool:
    """Returns whether what a round did with a collection is to be told, rather than what a round before it did."""
    if one.id in run.overtaken:
        return False
    if before is None:
        return True
    has_failed = before.outcome in (Outcome.FAILED, Outcome.BLOCKED)
    return one.outcome is not Outcome.CURRENT or (has_failed and one.id in run.selected)


def _time_of(upper: Antichain[int]) -> int:
    """Returns how far a collection is known; of one that was dropped, less than any time."""
    return -1 if upper.is_empty else upper.only


def _hold(run: StepRun, rows: Iterable[CollectionRow]) -> None:
    """Holds what is sealed before the rest where the rest stands, if any of that can be read."""
    going_on = [run.rows[node.id] for node in run.graph if node.id not in run.done and run.works_on(node.id)]
    if stands := [row.upper.only for row in going_on if row.is_hydrated]:
        run.common_time.hold((row for row in rows if row.is_hydrated), min(stands) - 1)


def _leave(run: StepRun, future: Future[None], unit: Unit) -> None:
    """Waits no more for what was overtaken, and ends what Spark does for it."""
    for node in unit.nodes:
        if node.id in run.turn_of:
            run.turn_of[node.id].leave()
        for opened in (run.opened, run.smaller):
            if opened is not None:
                interrupt(opened[0], run.tag_of(node.id), partial(_is_done, future))


def _is_done(future: Future[None], seconds: float) -> bool:
    """Returns whether a future is done, after waiting so many seconds for it."""
    return not wait([future], seconds).not_done


def _tag(session: SparkSession, run: StepRun, id: GlobalId) -> None:
    """Has Spark know what a thread does from here on as the step's, and as a collection's: tags are a thread's own."""
    session.clearTags()
    session.addTag(run.tag)
    session.addTag(run.tag_of(id))


def _lost(run: StepRun, fact: str) -> StepLost:
    return StepLost(
        f"another runner interfered with the step to {run.tick}",
        detail=f"{fact[:1].upper()}{fact[1:]}.",
        hint="Nothing was lost: run again; it goes on from where the other runner is.",
    )


def _beginning(run: StepRun) -> str:
    """Returns the first line of a step's story."""
    lowest = min((run.rows[id].upper.only for id in run.selected if not run.rows[id].upper.is_empty), default=0)
    outcomes = [one.outcome for one in run.done.values()]
    told = [f"{len(run.graph.nodes) - len(outcomes)} of {len(run.graph.nodes)} collections have work"]
    told += [f"{outcomes.count(one)} {one.value}" for one in Outcome if one in outcomes]
    return f"step to tick {run.tick}, from {lowest}: {', '.join(told)}"
