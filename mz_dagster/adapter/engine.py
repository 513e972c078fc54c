"""The engine: one process's handle on a project's durable state, and the commands that move it.

Owns the opening of catalog, shards and (on demand) Spark, the graph of each timeline, polling, minting, stepping and
compaction. Sessions, the command line and Dagster all go through it; it keeps nothing that is not in the catalog, so
any number of processes may hold one on the same project.

    poll    asks the sources what is there; what is new gets a tick and its bindings, in one transaction
    step    takes the lead of a timeline and advances its collections to a tick
    reach   makes a time readable for some collections: waits for the leader, or steps itself
    lead    keeps the lead of a timeline from one poll and step to the next
    wrote   is told of what sessions write
    compact forgets history that nobody needs, merges batches and sweeps

After a step and a write it merges young batches (`young_batches`), so that compactions may be far apart.

It does not know SQL (sessions do) nor Dagster.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from mz_dagster.adapter.apply import apply_objects
from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import ChangePlan
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import load_objects
from mz_dagster.adapter.young_batches import YoungBatches
from mz_dagster.catalog import (
    NO_ROWS,
    BoundFile,
    Catalog,
    Leadership,
    Led,
    Minted,
    NameTaken,
    SinceBehindInput,
    UnknownObject,
)
from mz_dagster.catalog.disk import make_folder, sync_files
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute import Graph, Progress, SourceNode, StepLost, Stepper, StepReport, TableNode, WarmSpark, quiet
from mz_dagster.errors import Error, OperationalError, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.sql.errors import UndefinedTable
from mz_dagster.storage.compact import Merge, compact
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.renewal import Renewal
from mz_dagster.storage.spark import SparkConfig
from mz_dagster.storage.sweep import sweep

logger = logging.getLogger("mz_dagster.engine")

#: Up to how many updates a collection is read and merged in this process instead of by Spark.
SMALL = 100_000


_APPLY_TRIES = 5

_BEHIND_MS = 1000
"""Up to how far behind a timeline a clock is nothing to speak of."""


class SecondRunner(OperationalError):
    """Reports that another runner leads the timeline; nothing was done."""

    sqlstate = "55P03"


class NotMinted(ProgrammingError):
    """Reports a step to a time that was never minted as a tick, nor written at."""

    sqlstate = "22023"


class ClockUnreadable(OperationalError):
    """Reports that a feed's clock file does not tell a time."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Is what a poll of a timeline's sources found.

    Attributes:
        tick: The tick that it minted, or None.
        files: How many files were bound to it.
        reason: One line for people.
    """

    tick: int | None
    files: int
    reason: str


class Engine:
    """Is a project, opened. Use it as a context manager.

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
        make_folder(project.state)
        self.catalog = Catalog.open(project.catalog_url, clock=clock)
        for timeline in project.timelines:
            self.catalog.declare_timeline(timeline)
        self.shards = LocalShards(project.state)
        self.spark = WarmSpark(spark or spark_config(project), project.state, session)
        self.definitions = CatalogDefinitions(self.catalog, project)
        self.stepper = Stepper(
            self.catalog,
            self.spark.open,
            holder=self.holder,
            lease_ms=project.lease_ms,
            clock=clock,
            local=self.shards,
        )
        self._young = YoungBatches(self.catalog, self.shards, self.definitions, self.holder)

    def close(self) -> None:
        """Closes the catalog. Spark stays warm for others; its sessions end with the process."""
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

        Several processes may do so at once: who is late finds everything there.

        Args:
            drop: Whether to drop what the files once defined and no longer do.

        Raises:
            BadProjectFile: A file is wrong, or a table was changed, or an object has the name of one of another kind.
            OrphanStillRead: Something made in a session reads what is to be dropped.
        """
        objects = load_objects(self.project)
        for _ in range(_APPLY_TRIES - 1):
            try:
                return apply_objects(self.catalog, self.definitions, objects, drop=drop)
            except (NameTaken, SinceBehindInput, UnknownObject):
                continue  # the catalog changed between the look and the swap
        return apply_objects(self.catalog, self.definitions, objects, drop=drop)

    def graph(self, timeline: str) -> Graph:
        """Returns the graph of all collections of a timeline, as the catalog has them now."""
        return self.definitions.graph(timeline)

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
        clock = self.project.timelines[timeline].clock if timeline in self.project.timelines else None
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
        return read_ts if self._has_feed_clock(timeline) else max(read_ts, self.now(timeline))

    def _has_feed_clock(self, timeline: str) -> bool:
        settings = self.project.timelines.get(timeline)
        return settings is not None and settings.clock is not None

    # ---- moving the frontiers

    def poll(self, timeline: str, *, leadership: Leadership | None = None) -> Poll:
        """Asks the timeline's sources what is there, and mints a tick if there is anything new.

        New are files that no binding names, writes to tables or new views that no tick has covered, and rows of
        temporal filters that are due by now. A poll that finds nothing moves the frontiers to now without minting a
        tick, if that takes no work.

        Args:
            timeline: The timeline.
            leadership: The lead of the timeline, if the caller has it.

        Raises:
            OperationalError: A source cannot be polled; nothing was minted.
            StepLost: The lead was lost; nothing was sealed.
        """
        graph = self.graph(timeline)
        last = self.catalog.last_tick(timeline)
        now = self.now(timeline)  # read before the folders: what was dropped before `now` is seen
        found = {
            node.id: files
            for node in graph
            if isinstance(node, SourceNode) and (files := node.source.poll(self.catalog.bound_files(node.id)))
        }
        read_ts = self.catalog.read_ts(timeline)
        behind = self._behind(graph, read_ts)
        if not found and not behind and not self._is_due(graph, now):
            return self._nothing_new(graph, now, read_ts, leadership)
        if self._has_feed_clock(timeline):
            if now <= read_ts:
                return Poll(None, 0, f"the feed's clock stands at {now}, which is closed already")
            tick = now
        else:
            tick = self.catalog.write_ts(timeline, now)
        for node in graph:
            if isinstance(node, SourceNode) and node.id in found:
                _sync_new(node, found[node.id])
        minted = self.catalog.mint_tick(timeline, tick, found, expected_last=last)
        if not isinstance(minted, Minted):
            return Poll(None, 0, "another runner minted a tick first")
        count = sum(len(files) for files in found.values())
        return Poll(tick, count, f"minted tick {tick}: {count} new files")

    def _behind(self, graph: Graph, read_ts: int) -> bool:
        """True if a collection can only become readable at the present by a step: a new view, for example."""
        rows = {row.id: row for row in self.catalog.collections(graph.timeline)}
        unsealed = set(self.unsealed_ticks(graph.timeline))
        return not unsealed and any(
            not rows[node.id].is_hydrated or rows[node.id].upper.less_equal(read_ts)
            for node in graph
            if not isinstance(node, TableNode) and node.id in rows
        )

    def _is_due(self, graph: Graph, now: int) -> bool:
        """True if a collection changes by `now` although nothing new is there for it."""
        dues = (row.next_due for row in self.catalog.collections(graph.timeline))
        return not self.unsealed_ticks(graph.timeline) and any(due is not None and due <= now for due in dues)

    def _nothing_new(self, graph: Graph, now: int, read_ts: int, held: Leadership | None) -> Poll:
        if now < read_ts - _BEHIND_MS and not self._has_feed_clock(graph.timeline):
            behind = f"the clock is {(read_ts - now) // 1000} s behind times that were given already"
            return Poll(None, 0, f"nothing new; {behind}: those that follow are counted one by one until it catches up")
        if now <= read_ts or self.unsealed_ticks(graph.timeline):
            return Poll(None, 0, "nothing new")
        with self._try_lead(graph.timeline, held) as lead:
            if isinstance(lead, Led):
                return Poll(None, 0, "nothing new")
            # First the oracle, so that no tick is ever minted where a source is closed already.
            self.catalog.apply_write(graph.timeline, now)
            self.stepper.run(graph, now, leadership=lead, idle_only=True, progress=quiet)
        return Poll(None, 0, f"nothing new; the frontiers stand at {now}")

    def unsealed_ticks(self, timeline: str) -> tuple[int, ...]:
        """Returns the minted ticks at which some collection of the timeline cannot be read yet, ascending."""
        others = {one.id for one in self.catalog.objects("collection")}  # those that no step moves
        rows = [row for row in self.catalog.collections(timeline) if row.id not in others]
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
            raise NotMinted(
                f'{tick} is no tick of timeline "{timeline}" yet', hint="Poll its sources first, which mints ticks."
            )
        with self._try_lead(timeline, leadership) as lead:
            if isinstance(lead, Led):
                raise SecondRunner(
                    f'timeline "{timeline}" is led by {lead.holder}',
                    detail=f"Its lease runs until {lead.until_ms} ms since the epoch, and is renewed while it works.",
                    hint="Wait until it has finished; one runner moves a timeline at a time.",
                )
            report = self.stepper.run(self.graph(timeline), tick, leadership=lead, only=only, progress=progress)
        self._merge_young(report)
        return report

    def reach(self, timeline: str, time: int, wanted: frozenset[GlobalId], *, deadline_s: float = 600.0) -> None:
        """Makes `time` readable in the wanted collections.

        Steps them and what they depend on, or waits for the leader to do so.

        Raises:
            OperationalError: A collection failed, or the leader did not get there before the deadline.
        """
        until = self.clock.monotonic_ms() + deadline_s * 1000
        while True:
            rows = {row.id: row for row in self.catalog.collections(timeline)}
            if gone := wanted - rows.keys():
                raise UnknownObject(min(gone), dropped=True)
            lagging = [rows[id] for id in wanted if rows[id].upper.less_equal(time)]
            if not lagging:
                return
            self.catalog.apply_write(timeline, time)  # so that no tick is minted at or before it from here on
            with self._try_lead(timeline) as lead:
                stepped = None if isinstance(lead, Led) else self._step_to(timeline, time, wanted, lead)
            if stepped is not None:
                self._merge_young(stepped)
            if self.clock.monotonic_ms() > until:
                who = f"{lead.holder} leads the timeline and" if isinstance(lead, Led) else "this process"
                raise OperationalError(
                    f"{who} has not reached {time} in {deadline_s:.0f} s",
                    hint="Try again later, or read at a time that is complete with AS OF.",
                )
            if isinstance(lead, Led):
                self.clock.sleep(0.1)

    def _step_to(self, timeline: str, time: int, wanted: frozenset[GlobalId], lead: Leadership) -> StepReport | None:
        """Steps the wanted collections and what they depend on; what is dropped under the step only ends it."""
        graph = self.graph(timeline)
        try:
            report = self.stepper.run(graph, time, leadership=lead, only=graph.upstream(wanted), progress=quiet)
        except StepLost as lost:
            logger.info("stepping again: %s", lost)
            return None
        if report.failures:
            raise report.failures[0].error or OperationalError("a step failed")
        return report

    def wrote(self, table: GlobalId) -> None:
        """Is told of each write to a table once it is sealed; merges the table's young batches if that is due."""
        self._young.merge([table])

    def _merge_young(self, report: StepReport) -> None:
        if any(one.batch is not None for one in report.collections):
            self._young.merge(one.id for one in report.collections)

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
            moved = self.catalog.allow_compaction(timeline.name, retention_ms=self.project.retention_ms)
            if moved:
                yield f"timeline {timeline.name}: since of {len(moved)} collections moved"
            self.catalog.forget_ticks(timeline.name)
        failures: dict[str, Error] = {}
        rows_read = 0
        until = None if max_seconds is None else self.clock.monotonic_ms() + max_seconds * 1000
        names = self.names()
        counts = self.catalog.live_batch_counts()
        rows = [row for row in self.catalog.collections() if only is None or row.id in only]
        while rows:
            if (max_rows is not None and rows_read >= max_rows) or (
                until is not None and self.clock.monotonic_ms() >= until
            ):
                yield f"stopped at the limit, after merges of {rows_read} updates; the rest waits for the next run"
                break
            row = rows[0]
            name = names.get(row.id, row.id)
            _, stats = counts.get(row.id, (0, NO_ROWS))
            try:
                shards = self.shards if stats.rows <= SMALL else self.spark.open()[1]
                merge = compact(self.catalog, shards, row, holder=self.holder, key=self.definitions.sort_key(row))
            except Error as failure:
                failures[name] = failure
                yield f'"{name}" could not be merged: {failure.message}'
                merge = None
            if isinstance(merge, Merge):
                rows_read += merge.rows_read
                told = f"{merge.rows_read} updates became {merge.rows_written}"
                yield f'"{name}": merged {len(merge.parts)} batches, {told}'
            else:
                del rows[0]
        swept = sweep(self.catalog, self.shards, thorough=thorough)
        batches = sum(len(ids) for ids in (*swept.batches.values(), *swept.strays.values()))
        yield f"swept {batches} batches"
        if failures:
            name, first = next(iter(failures.items()))
            raise OperationalError(
                f"{len(failures)} collections could not be merged",
                detail=f'First of them "{name}": {first}.',
                hint="They are as readable as before; compact again once the cause is gone.",
            ) from first

    def names(self) -> dict[GlobalId, str]:
        """Returns what to call each object when speaking to people: its name, or whose arrangement it is."""
        rows = {row.id: row for row in self.catalog.objects()}
        return {
            id: row.name
            or (f"{row.kind} of {rows[row.owner].name or row.owner}" if row.owner in rows else f"{row.kind} {id}")
            for id, row in rows.items()
        }

    @contextmanager
    def lead(self, timeline: str) -> Iterator[Leadership | Led]:
        """Leads the timeline for the length of a block, or says who does.

        While it lasts, nobody else steps the timeline, so who takes it must poll and step.
        """
        with self._try_lead(timeline) as lead:
            yield lead

    @contextmanager
    def _try_lead(self, timeline: str, held: Leadership | None = None) -> Iterator[Leadership | Led]:
        """Leads the timeline for the length of a block, or says who does; keeps on with a lead that is held already."""
        if held is not None:
            yield held
            return
        lead = self.catalog.lead(timeline, self.holder, self.project.lease_ms)
        if isinstance(lead, Led):
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
                logger.warning("could not give the lead of timeline %s back: %s", timeline, failure)


def _sync_new(node: SourceNode, files: Sequence[BoundFile]) -> None:
    """Returns once new files are on disk: what a tick binds, no power cut may change."""
    try:
        sync_files(node.source.folder, (file.path for file in files))
    except OSError as error:
        raise OperationalError(
            f'cannot force the new files of "{node.name}" to disk: {error}',
            hint="Nothing was bound. Check that the files are still there and that their disk works.",
        ) from error


def spark_config(project: Project) -> SparkConfig:
    """Returns how the project's Spark is reached."""
    return SparkConfig(
        state_dir=project.state / "spark",
        remote=project.spark.remote,
        master=project.spark.master,
        conf=project.spark.conf,
    )
