"""The engine: one process's handle on a project's durable state, and the commands that move it.

Owns the opening of catalog, shards and (on demand) Spark, the graph of each timeline, polling, minting, stepping and
compaction. Sessions, the command line and Dagster all go through it; it keeps nothing that is not in the catalog, so
any number of processes may hold one on the same project.

    poll    asks the sources what is there; what is new gets a tick and its bindings, in one transaction. A source that
            cannot tell stays behind, with what depends on it, and the others go on
    step    takes the lead of a timeline and advances its collections to a tick
    reach   makes a time readable for some collections: waits for the leader, or steps itself
    lead    keeps the lead of a timeline from one poll and step to the next
    wrote   is told of what sessions write
    compact forgets history that nobody needs, merges batches and sweeps

After a step and a write it merges young batches (`minor_compaction`), so that compactions may be far apart, and now and
then it forgets (`retention`).

It does not know SQL (sessions do) nor Dagster.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from mz_dagster.adapter.activity import Activity
from mz_dagster.adapter.apply import NotAllApplied, apply_objects
from mz_dagster.adapter.arrivals import Arrivals
from mz_dagster.adapter.catalog_definitions import CatalogDefinitions, PlannedDifferently
from mz_dagster.adapter.change_plan import ChangePlan, plan_changes
from mz_dagster.adapter.compaction import compact_all
from mz_dagster.adapter.graphs import Graphs, not_polled
from mz_dagster.adapter.group_commit import GroupCommit
from mz_dagster.adapter.health import reasons
from mz_dagster.adapter.idle_timeline import IdleTimeline, IdleTimelines
from mz_dagster.adapter.minor_compaction import MinorCompaction
from mz_dagster.adapter.planned_queries import PlannedQueries
from mz_dagster.adapter.polls import Poll
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import Fault, load_project
from mz_dagster.adapter.replanning import replan
from mz_dagster.adapter.retention import Retention
from mz_dagster.adapter.sink_versions import write_manifest
from mz_dagster.adapter.worker_process import workers_of
from mz_dagster.budget import budget, engine_of, limit_memory
from mz_dagster.catalog import (
    Catalog,
    CatalogState,
    CatalogUnavailable,
    CollectionRow,
    Leadership,
    LedByAnother,
    NameTaken,
    SinceBehindInput,
    TickMinted,
    UnknownObject,
)
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute import (
    FailedNode,
    Graph,
    Node,
    Progress,
    StepLost,
    StepOverdue,
    Stepper,
    StepReport,
    TableNode,
    WarmSpark,
    quiet,
)
from mz_dagster.disk import make_private_folder
from mz_dagster.errors import Error, OperationalError, ProgrammingError, one_line
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.sql.errors import UndefinedTable
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.ownership import check_place, claim_shards, owner_of
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.source import Gain, Ledger, Source
from mz_dagster.storage.spark import SparkConfig

logger = logging.getLogger("mz_dagster.engine")

Changed = TypeVar("Changed")

_CHANGE_TRIES = 5
_POLL_TRIES = 20
_TELL_AFTER_S = 1.0
"""After how long a read that waits for another runner says so, in seconds."""

_BEHIND_MS = 1000
"""Up to how far behind a timeline a clock is nothing to speak of."""


class SecondRunner(OperationalError):
    """Another runner leads the timeline; nothing was done."""

    sqlstate = "55P03"


class TickNotMinted(ProgrammingError):
    """A step to a time that was never minted as a tick, nor written at."""

    sqlstate = "22023"


class TimeNotReached(OperationalError):
    """A time could not be made readable before a deadline."""

    sqlstate = "57014"


class ObjectRecreated(OperationalError):
    """What was to be read has another id now, since this release plans it otherwise; nothing was done."""

    def __init__(self, id: GlobalId) -> None:
        super().__init__(
            f'"{id}" has just been made anew, because this release plans it otherwise', hint="Bind its name again."
        )


class ClockUnreadable(OperationalError):
    """A feed's clock file does not tell a time."""


class Engine:
    """A project, opened. Use it as a context manager.

    Args:
        project: The project.
        holder: Names this process in leases, for the messages of others.
        clock: Wall clock.
        spark: Which Spark, instead of what the project's settings say.
        session: Returns a session that somebody else opened, to be used instead of any; asked only when there is work.
    """

    def __init__(
        self,
        project: Project,
        *,
        holder: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
        spark: SparkConfig | None = None,
        session: Callable[[], Any] | None = None,
    ) -> None:
        self.project = project
        self.clock = clock
        self.holder = holder or f"{socket.gethostname()} process {os.getpid()}"
        limit_memory(project.process_memory)
        check_place(project.state)
        make_private_folder(project.state)
        place = project.shard_place()
        self.catalog = Catalog.open(project.catalog_url, project=owner_of(place), clock=clock)
        try:
            claim_shards(self.catalog, place)
            for timeline in project.timelines:
                self.catalog.declare_timeline(timeline)
        except BaseException:
            self.catalog.close()
            raise
        self.shards = LocalShards(place, self.catalog, project.inlining, project.hot_bytes, project.decoded_files())
        self.spark = WarmSpark(spark or project.spark_config(), project.state, self.shards, session)
        self.definitions = CatalogDefinitions(self.catalog, project)
        self._graphs = Graphs(self.catalog, self.definitions)
        self._idle = IdleTimelines(self.catalog)
        self.workers = workers_of(project)
        self.stepper = self.new_stepper(self.holder)
        #: What in the project's files cannot be used, if that is known.
        self.known_faults: tuple[Fault, ...] | None = None
        self._polled: dict[str, Arrivals] = {}
        self.activity = Activity(clock)
        self.planned_queries = PlannedQueries()
        self.group_commit = GroupCommit(self.catalog, self.shards, project, clock, self.holder, self.now, self.wrote)
        self._young = MinorCompaction(self.catalog, self.shards, self.definitions, self.holder, project.lease_ms, clock)
        self._retention = Retention(
            self.catalog, self.shards, self.definitions, self.holder, project.retention_ms, clock
        )

    def new_stepper(self, holder: str, *, notes_failures: bool = True) -> Stepper:
        """Returns what steps on this process's shards and Spark; see `Stepper`."""
        return Stepper(
            self.catalog,
            self.spark.open,
            smaller=partial(self.spark.open, smaller_pieces=True),
            holder=holder,
            lease_ms=self.project.lease_ms,
            clock=self.clock,
            local=self.shards,
            engine=self.project.engine,
            notes_failures=notes_failures,
            workers=self.workers,
        )

    def close(self) -> None:
        """Ends workers and closes the catalog. Spark stays warm for others; its sessions end with the process."""
        if self.workers is not None:
            self.workers.close()
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- definitions

    def apply(self, *, drop: bool = False) -> ChangePlan:
        """Creates what the project's files define and the catalog does not hold, and replaces what they changed.

        Tables are as they were, with their foreign keys: `apply_project` alters both around it. Several processes may
        do so at once: who is late finds everything there. What is wrong in the files stays as it was applied last, with
        what reads it; all else is applied before the error is raised.

        Args:
            drop: Whether to drop what the files once defined and no longer do.

        Raises:
            NotAllApplied: A file is wrong, or a table was changed, or an object has the name of one of another kind.
            OrphanStillRead: Something made in a session reads what is to be dropped.
        """
        # The files are read anew with each attempt: they may leave columns to tables, and others have decided them.
        plan = self.change(
            lambda: apply_objects(self.catalog, self.definitions, self.project, load_project(self.project), drop=drop)
        )
        self.known_faults = plan.faults
        if plan.faults:
            raise NotAllApplied(plan)
        return plan

    def change(self, attempt: Callable[[], Changed]) -> Changed:
        """Returns what an attempt to change the catalog returns; it is made again if the catalog changed under it.

        Raises:
            NameTaken: It changed under each of several attempts.
            SinceBehindInput: Likewise.
            UnknownObject: Likewise.
        """
        for _ in range(_CHANGE_TRIES - 1):
            with suppress(NameTaken, SinceBehindInput, UnknownObject):
                return attempt()
        return attempt()

    def definition_faults(self) -> dict[GlobalId, str]:
        """Returns what is wrong in the files by the collections that go on as they were applied last, a line each."""
        faults = sorted(self.faults(), key=lambda one: one.about is None)  # a foreign key's are a table's least
        named = {name: one_line(one.error) for one in faults if (name := one.name or one.about) is not None}
        return {one.id: named[one.name] for one in self.catalog.objects() if one.has_collection and one.name in named}

    def faults(self) -> tuple[Fault, ...]:
        """Returns what in the project's files cannot be used, as `apply` found it; before that, as it is now."""
        if self.known_faults is None:
            files = load_project(self.project)
            self.known_faults = plan_changes(files, self.catalog.objects(), self.definitions).faults
        return self.known_faults

    def replan(self) -> Mapping[GlobalId, GlobalId]:
        """Makes anew what this release plans otherwise than the one that made it, with all that reads it.

        Returns:
            The new ids by the old ones; nothing if there is nothing to do, or somebody else has just done it.
        """
        try:
            done = self.change(lambda: replan(self.catalog, self.definitions))
        except (NameTaken, SinceBehindInput, UnknownObject):
            return {}
        for one, _ in done:
            logger.warning('"%s" hydrates anew: %s', one.name, one.reason)
        return {one.row.id: id for one, id in done}

    def _movable(
        self, timeline: str, wanted: frozenset[GlobalId] | None = None
    ) -> tuple[Graph, Mapping[GlobalId, GlobalId]]:
        """Returns the graph once nothing in it is planned otherwise that could be made anew; and what was, by old ids.

        Asked by what moves frontiers; who only looks is shown what is. Only what is wanted has to be in it, with what
        that is computed from; with None, all.
        """
        graph = self._graphs.graph(timeline, wanted)
        if not any(_is_healed_anew(node) for node in graph):
            return graph, {}
        anew = self.replan()
        return self.graph(timeline), anew

    def graph(self, timeline: str) -> Graph:
        """Returns the graph of all collections of a timeline, as the catalog has them now."""
        return self._graphs.graph(timeline)

    def collection_of(self, name: str) -> GlobalId:
        """Returns the id of the collection that holds what `name` stands for.

        An index that is its collection's own order has no collection but that one.

        Raises:
            ProgrammingError: Nothing bears the name, or it has no collection.
        """
        row = self.catalog.resolve_name(name)
        if row is None:
            raise UndefinedTable.named(name, self.definitions.names())
        return self.definitions.collection_of(row)

    # ---- time

    def now(self, timeline: str) -> int:
        """Returns the timeline's time now: its feed's, or the wall clock's, in milliseconds.

        Raises:
            ClockUnreadable: The feed's clock file holds no time.
        """
        clock = self.project.clock_of(timeline)
        if clock is None:
            return self.clock.now_ms()
        try:
            return int(clock.read_text(encoding="ascii").strip())
        except FileNotFoundError:
            return 0  # the feed has not begun
        except (OSError, ValueError) as error:
            raise ClockUnreadable(
                f'the clock of timeline "{timeline}" cannot be read: {error}',
                hint=f'"{clock}" must hold one number, milliseconds since the epoch, and be replaced by rename.',
            ) from error

    def reading_time(self, timeline: str) -> int:
        """Returns the time of a reader for whom time counts, not before what any reader was given.

        That is now; but of a feed the latest time that was minted, since nobody knows yet what a later one contains.
        """
        read_ts = self.catalog.read_ts(timeline)
        return read_ts if self.project.clock_of(timeline) is not None else max(read_ts, self.now(timeline))

    # ---- moving the frontiers

    def arrivals(self, timeline: str) -> Arrivals:
        """Returns how the folders of a timeline's sources look now, as far as their definitions tell."""
        sources: list[Source] = []
        for id in self.definitions.sources(timeline):
            with suppress(Error):  # a poll says what is wrong with it
                sources.append(self.definitions.source(id))
        return Arrivals.of(sources, self.project.clock_of(timeline), self.clock.now_ms())

    def poll_for(self, timeline: str, ids: Iterable[GlobalId]) -> None:
        """Polls a timeline's sources if collections are computed from any, unless nothing can have arrived since.

        From then on, the oracle's time is one at which all is readable that lay there when this was called.

        Args:
            timeline: The timeline.
            ids: Collections on it that are to be read.

        Raises:
            SourceNotPolled: One of the sources cannot tell what is there.
            OperationalError: As `poll`; or others minted ticks again and again.
        """
        wanted = frozenset[GlobalId]().union(*map(self.definitions.sources_of, ids))
        if not wanted:
            return
        last = self._polled.get(timeline)
        if last is not None and last.rule_out_more():
            return
        for _ in range(_POLL_TRIES):
            arrivals = self.arrivals(timeline)
            polled = self.poll(timeline)
            if polled.is_raced:
                continue
            for id in sorted(polled.failures.keys() & wanted):
                raise not_polled(self.catalog.object(id), self.catalog.collection(id))
            if not polled.failures:
                self._polled[timeline] = arrivals
            return
        raise OperationalError(
            f'others minted ticks of timeline "{timeline}" whenever its sources were polled', hint="Try again."
        )

    def poll(self, timeline: str, *, leadership: Leadership | None = None) -> Poll:
        """Asks the timeline's sources what is there, and mints a tick if there is anything new.

        New are files that no binding names, writes to tables or new views that no tick has covered, and rows of
        temporal filters that are due by now. A poll that finds nothing moves the frontiers to now without minting a
        tick, if that takes no work.

        A source that cannot be polled is told in the result and in the catalog, and stays behind with what depends on
        it until a poll of it goes well; all others go on.

        Args:
            timeline: The timeline.
            leadership: The lead of the timeline, if the caller has it.

        Raises:
            OperationalError: The feed's clock or the catalog cannot be read; nothing was minted.
            StepLost: The lead was lost; nothing was sealed.
        """
        last = self.catalog.last_tick(timeline)
        now = self.now(timeline)  # read before the folders: what was dropped before `now` is seen
        names = self.definitions.sources(timeline)
        state = self.catalog.state()
        before = {id: row.poll_failure for id in names if (row := state.collection(id)) is not None}
        found, failures = self._poll_sources(names)
        told = {id: one_line(failures[id]) if id in failures else None for id in names}
        changed = {id: text for id, text in told.items() if id in before and before[id] != text}
        self.catalog.note_polls(changed)  # before the tick is there: its step must know who stays behind
        polled = self._mint(timeline, now, last, found, leadership)
        self._retention.now_and_then()
        lines = (polled.reason, *(f'"{names[id]}" cannot be polled: {told[id]}' for id in failures))
        return replace(polled, reason="; ".join(lines), failures=failures, changed=frozenset(changed))

    def bind(self, id: GlobalId, gain: Callable[[int | None], Gain]) -> None:
        """Mints a tick at which a source gains what `gain` returns, given the last tick, unless that is nothing.

        Raises:
            OperationalError: As `gain`, or others minted ticks again and again; nothing was bound.
        """
        timeline = str(self.catalog.collection(id).timeline)
        for _ in range(_POLL_TRIES):
            last, now = self.catalog.last_tick(timeline), self.now(timeline)
            if not (gained := gain(last)):
                return
            minted = self._mint(timeline, now, last, {id: gained}, None)
            if minted.is_raced:
                continue
            if minted.tick is None:
                raise OperationalError(minted.reason, hint="Try again once the timeline has gone on.")
            return
        raise OperationalError(f'others minted ticks of timeline "{timeline}" again and again', hint="Try again.")

    def _poll_sources(self, names: Iterable[GlobalId]) -> tuple[dict[GlobalId, Gain], dict[GlobalId, Error]]:
        """Returns what is new of each source, on disk, and why some of the sources cannot tell that."""
        found: dict[GlobalId, Gain] = {}
        failures: dict[GlobalId, Error] = {}
        for id in names:
            try:
                ledger = Ledger(self.catalog, self.catalog.collection(id), self.project.expect_files_ms)
                if gain := self.definitions.source(id).gain(ledger):
                    found[id] = gain
            except CatalogUnavailable:
                raise
            except Error as error:
                failures[id] = error
        return found, failures

    def _mint(
        self,
        timeline: str,
        now: int,
        last: int | None,
        found: Mapping[GlobalId, Gain],
        leadership: Leadership | None,
    ) -> Poll:
        """Mints a tick for what is new, or if something else needs one."""
        graph, _ = self._movable(timeline)
        read_ts = self.catalog.read_ts(timeline)
        state = self.catalog.state()
        idle = None if found else self._idle.lasting(graph, state, now, read_ts)
        if idle is not None:
            is_open = bool(self.catalog.ticks(timeline, lower=idle.upper))
            return self._nothing_new(graph, now, read_ts, leadership, is_open=is_open, idle=idle)
        rows = {node.id: row for node in graph if (row := state.collection(node.id)) is not None}
        failing = reasons(graph, rows).keys()
        unsealed = self._unsealed(state, timeline, failing)
        if not found and (unsealed or not self._needs_tick(graph, rows, failing, now, read_ts)):
            return self._nothing_new(graph, now, read_ts, leadership, is_open=bool(unsealed))
        if self.project.clock_of(timeline) is not None:
            if now <= read_ts:
                return Poll(None, 0, f"the feed's clock stands at {now}, which is closed already")
            tick = now
        else:
            tick = self.catalog.write_ts(timeline, now)
        files = {id: gain.files for id, gain in found.items() if gain.files}
        offsets = {id: gain.offset for id, gain in found.items() if gain.offset is not None}
        minted = self.catalog.mint_tick(timeline, tick, files, expected_last=last, offsets=offsets)
        if not isinstance(minted, TickMinted):
            return Poll(None, 0, "another runner minted a tick first", is_raced=True)
        count = sum(gain.count for gain in found.values())
        return Poll(tick, count, f"minted tick {tick}: {count} new files")

    def _needs_tick(
        self, graph: Graph, rows: Mapping[GlobalId, CollectionRow], failing: Set[GlobalId], now: int, read_ts: int
    ) -> bool:
        """True if a collection can only become readable at the present by a step: it is new, or changes by `now`.

        What fails needs none: it is tried with the ticks of the others, and with those that it has left open.
        """
        return any(
            rows[node.id].is_due(now + 1) or not rows[node.id].is_hydrated or rows[node.id].upper.less_equal(read_ts)
            for node in graph
            if not isinstance(node, TableNode) and node.id in rows and node.id not in failing
        )

    def _nothing_new(
        self,
        graph: Graph,
        now: int,
        read_ts: int,
        held: Leadership | None,
        *,
        is_open: bool,
        idle: IdleTimeline | None = None,
    ) -> Poll:
        """Moves the frontiers to now, unless there is a tick that steps have to close first (`is_open`)."""
        if now < read_ts - _BEHIND_MS and self.project.clock_of(graph.timeline) is None:
            behind = f"the clock is {(read_ts - now) // 1000} s behind times that were given already"
            return Poll(None, 0, f"nothing new; {behind}: those that follow are counted one by one until it catches up")
        if now <= read_ts or is_open:
            return Poll(None, 0, "nothing new")
        with self._try_lead(graph.timeline, held) as lead:
            if isinstance(lead, LedByAnother):
                return Poll(None, 0, "nothing new")
            if idle is None or not self._idle.pass_over(idle, now, lead):
                # First the oracle, so that no tick is ever minted where a source is closed already.
                self.catalog.apply_write(graph.timeline, now)
                self.stepper.run(graph, now, leadership=lead, idle_only=True, progress=quiet)
                self._idle.note(graph, self.catalog.state())
        return Poll(None, 0, f"nothing new; the frontiers stand at {now}")

    def reasons(self) -> dict[GlobalId, str]:
        """Returns why collections stay behind, by their ids, a line for people each; see `health`."""
        rows = {row.id: row for row in self.catalog.collections()}
        return {id: why for one in self.catalog.timelines() for id, why in reasons(self.graph(one.name), rows).items()}

    def unsealed_ticks(self, timeline: str) -> tuple[int, ...]:
        """Returns the minted ticks at which some collection of the timeline cannot be read yet, ascending."""
        return self._unsealed(self.catalog.state(), timeline, frozenset())

    def _unsealed(self, state: CatalogState, timeline: str, besides: Set[GlobalId]) -> tuple[int, ...]:
        """Returns the minted ticks at which some collection but these cannot be read yet, ascending."""
        others = besides | {one.id for one in state.objects("collection")}  # those that no step moves
        rows = [row for row in state.collections(timeline) if row.id not in others]
        lowest = min((row.upper.only for row in rows if not row.upper.is_empty), default=None)
        return () if lowest is None else self.catalog.ticks(timeline, lower=lowest)

    def step(
        self,
        timeline: str,
        tick: int,
        *,
        only: frozenset[GlobalId] | None = None,
        leadership: Leadership | None = None,
        progress: Progress = quiet,
    ) -> StepReport:
        """Takes the lead of the timeline and advances its collections to `tick`.

        Args:
            timeline: The timeline.
            tick: The tick.
            only: The collections to advance; None for all.
            leadership: The lead of the timeline, if the caller has it.
            progress: Receives lines that read as the story of the step.

        Raises:
            NotMinted: Nothing has decided yet what the sources contain at `tick`.
            SecondRunner: Another runner leads; nothing was done.
            StepLost: Another runner took over while this one was paused; nothing was sealed.
        """
        if tick > self.catalog.read_ts(timeline):
            raise TickNotMinted(
                f'{tick} is no tick of timeline "{timeline}" yet', hint="Poll its sources first, which mints ticks."
            )
        with self._try_lead(timeline, leadership) as lead:
            if isinstance(lead, LedByAnother):
                raise SecondRunner(
                    f'timeline "{timeline}" is led by {lead.holder}',
                    detail=f"{lead.ending(self.clock.now_ms()).capitalize()}.",
                    hint="Wait until it has finished; one runner moves a timeline at a time.",
                )
            graph, anew = self._movable(timeline, only)
            if only is not None:
                only = frozenset(anew.get(id, id) for id in only)
            report = self.stepper.run(
                graph, tick, leadership=lead, resigns=leadership is None, only=only, progress=progress
            )
        self.stepped(report)
        write_manifest(self.project, self.catalog, self.definitions)
        return report

    def reach(
        self,
        timeline: str,
        time: int,
        wanted: frozenset[GlobalId],
        *,
        deadline_s: float = 600.0,
        progress: Progress = quiet,
    ) -> None:
        """Makes `time` readable in the wanted collections.

        Steps them and what they depend on, or waits for the leader to do so.

        Args:
            timeline: The timeline.
            time: The time.
            wanted: The collections.
            deadline_s: After how long to give up, in seconds.
            progress: Receives lines that read as the story of what it takes.

        Raises:
            NotReached: Neither the leader nor this process got there before the deadline.
            OperationalError: A collection failed.
        """
        begun = self.clock.monotonic_ms()
        until = begun + deadline_s * 1000
        waited: str | None = None
        has_told = False
        while True:
            state = self.catalog.state()
            rows = {id: row for id in wanted if (row := state.collection(id)) is not None}
            if gone := wanted - rows.keys():
                raise UnknownObject(min(gone), dropped=True)
            lagging = [row for row in rows.values() if row.upper.less_equal(time)]
            if not lagging:
                return
            # No tick is minted at or before it from here on; and what is tables only needs no step.
            ids, ttl = [row.id for row in lagging], self.project.lease_ms
            taken = self.catalog.close_tables_and_lead(timeline, time, ids, self.holder, ttl)
            if taken is None:
                return
            stepped = None
            with self._leading(taken) as lead:
                if not isinstance(lead, LedByAnother):
                    stepped = self._step_to(timeline, time, wanted, lead, until, progress)
            if stepped is not None:
                self.stepped(stepped)
            waited_s = (self.clock.monotonic_ms() - begun) / 1000
            if waited_s > deadline_s:
                who = f"{lead.holder} leads the timeline and" if isinstance(lead, LedByAnother) else "this process"
                raise TimeNotReached(
                    f"{who} has not reached {time} in {deadline_s:.0f} s",
                    hint="Try again later, or read at a time that is complete with AS OF.",
                )
            if isinstance(lead, LedByAnother):
                ending = lead.ending(self.clock.now_ms())
                if waited != lead.holder:
                    waited = lead.holder
                    progress(f"waiting for {waited}, which leads the timeline: {ending}")
                if waited_s >= _TELL_AFTER_S and not has_told:
                    has_told = True
                    logger.warning('waiting for %s, who leads timeline "%s": %s', lead.holder, timeline, ending)
                self.clock.sleep(0.1)

    def _step_to(
        self,
        timeline: str,
        time: int,
        wanted: frozenset[GlobalId],
        lead: Leadership,
        until_ms: float,
        progress: Progress,
    ) -> StepReport | None:
        """Steps the wanted collections and what they depend on; what is dropped under the step only ends it."""
        graph, anew = self._movable(timeline, wanted)
        if gone := wanted & anew.keys():
            raise ObjectRecreated(min(gone))
        try:
            report = self.stepper.run(
                graph,
                time,
                leadership=lead,
                resigns=True,
                only=graph.upstream(wanted),
                until_ms=until_ms,
                progress=progress,
            )
        except StepLost as lost:
            logger.info("stepping again: %s", lost)
            return None
        except StepOverdue as overdue:
            logger.info("giving up: %s", overdue)
            return None
        if report.failures:
            raise report.failures[0].error or OperationalError("a step failed")
        return report

    def wrote(self, table: GlobalId) -> None:
        """Is told of each write to a table once it is sealed; merges and forgets what is due."""
        self._young.merge([table])
        self._retention.now_and_then()

    def stepped(self, report: StepReport) -> None:
        """Is told of each step once it is sealed; merges and forgets what is due."""
        self.activity.stepped(report)
        if any(one.batch is not None for one in report.collections):
            self._young.merge(one.id for one in report.collections)
        self._retention.now_and_then()

    def forget(self, timeline: str) -> Mapping[GlobalId, Antichain[int]]:
        """Lets the sinces of a timeline rise as far as retention and capabilities allow, and merges what is quiet.

        Engines do so by themselves, now and then.

        Returns:
            The new since of each collection whose since moved.
        """
        return self._retention.forget(timeline)

    def compact(
        self,
        *,
        only: frozenset[GlobalId] | None = None,
        max_seconds: float | None = None,
        max_rows: int | None = None,
        thorough: bool = True,
    ) -> Iterator[str]:
        """Lets every since rise as far as retention and capabilities allow, merges batches, and sweeps.

        Small shards are merged in this process, larger ones by Spark; each merge runs until there is nothing to gain.
        Beside steps, readers and other compactions it costs at most its own work.

        Args:
            only: The collections whose batches to merge; None for all.
            max_seconds: After how long to start no further merge.
            max_rows: After how many rows read to start no further merge.
            thorough: Whether to look for strays of crashed writers in every shard, too.

        Yields:
            One line for people for each thing done.

        Raises:
            OperationalError: Some shards could not be merged; all others were.
        """
        for timeline in self.catalog.timelines():
            if moved := self.forget(timeline.name):
                yield f"timeline {timeline.name}: since of {len(moved)} collections moved"

        def shards_for(rows: int) -> LocalShards | Shards[Any]:
            with engine_of(self.project.engine, unless_chosen=True):
                return self.shards if rows <= budget().small_rows else self.spark.open()[1]

        yield from compact_all(
            self.catalog,
            self.shards,
            shards_for,
            self.names(),
            self.definitions.sort_key,
            holder=self.holder,
            ttl_ms=self.project.lease_ms,
            clock=self.clock,
            only=only,
            max_seconds=max_seconds,
            max_rows=max_rows,
            thorough=thorough,
        )

    def names(self) -> dict[GlobalId, str]:
        """Returns what to call each object when speaking to people: its name, or whose arrangement it is."""
        rows = {row.id: row for row in self.catalog.objects()}
        return {
            id: row.name
            or (f"{row.kind} of {rows[row.owner].name or row.owner}" if row.owner in rows else f"{row.kind} {id}")
            for id, row in rows.items()
        }

    @contextmanager
    def lead(self, timeline: str) -> Iterator[Leadership | LedByAnother]:
        """Leads the timeline for the length of a block, or says who does.

        While it lasts, nobody else steps the timeline, so who takes it must poll and step.
        """
        with self._try_lead(timeline) as lead:
            yield lead

    @contextmanager
    def _try_lead(self, timeline: str, held: Leadership | None = None) -> Iterator[Leadership | LedByAnother]:
        """Leads the timeline for the length of a block, or says who does; keeps on with a lead that is held already."""
        if held is not None:
            yield held
            return
        with self._leading(self.catalog.lead(timeline, self.holder, self.project.lease_ms)) as lead:
            yield lead

    @contextmanager
    def _leading(self, lead: Leadership | LedByAnother) -> Iterator[Leadership | LedByAnother]:
        """Keeps a lead that was taken for the length of a block, and gives it back."""
        if isinstance(lead, LedByAnother):
            yield lead
            return
        ttl = self.project.lease_ms
        try:
            with Renewal(lambda: self.catalog.renew_leadership(lead, ttl), every_ms=ttl // 3):
                yield lead
        finally:
            try:
                self.catalog.resign(lead)
            except OperationalError as failure:
                # What was done is done, and what failed has its own error; the lease runs out by itself.
                logger.warning("could not give the lead of timeline %s back: %s", lead.timeline, failure)


def _is_healed_anew(node: Node) -> bool:
    return isinstance(node, FailedNode) and isinstance(node.error, PlannedDifferently) and not node.error.newer
