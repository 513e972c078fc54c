"""Continuous mode: one process polls a timeline as soon as something arrives, steps it, and records what runs do.

It looks at the sources' folders many times a second, which costs next to nothing, and polls where one has changed, and
every second anyway.

It holds the lead of the timeline while it works, so the frontier sensor waits, and it takes over from it again as
soon as the lead is free. Nothing depends on it: ticks are minted and sealed as ever, and what a crash left unrecorded
the sensor records.

A collection that fails does not end it: the others go on, and the failed one is tried again after growing waits, and
whenever there is a new tick.
"""

# Annotations of ops are Dagster's to read: no `from __future__ import annotations` here.
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import dagster as dg
from pydantic import Field

from mz_dagster.adapter import Arrivals, Engine, Project, RowCount, rows_at
from mz_dagster.catalog import CollectionRow, Leadership, LedByAnother
from mz_dagster.compute import StepLost, StepReport
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.assets import build_mz_asset_specs
from mz_dagster.orchestration.data_checks import VIOLATIONS, data_check_results
from mz_dagster.orchestration.events import NAME_KEY, asset_metadata
from mz_dagster.orchestration.frontier_checks import (
    GOES_ON,
    FrontierChecks,
    FrontierSnapshot,
    counted_before,
    evaluation,
    frontier_check_specs,
    last_frontiers,
    poll_changes,
)
from mz_dagster.orchestration.recording import (
    RecordedTicks,
    UnrecordedTick,
    asset_rows,
    live_ticks,
    missing_partitions,
    unrecorded,
)
from mz_dagster.orchestration.resource import MzResource, summary
from mz_dagster.orchestration.runs import holder_of, tags_of, wait_s
from mz_dagster.orchestration.ticks import named, partition_key, partitions_of
from mz_dagster.orchestration.translator import MzDagsterTranslator
from mz_dagster.progress import Lines, Reporter, reported_to

Event = dg.AssetMaterialization | dg.AssetCheckEvaluation

Tell = Callable[[str], None]

#: The least time between two ticks by default, in seconds.
INTERVAL_S = 0.25
#: The longest between two polls where nothing arrives, how often to look for a sign that something does, and how long
#: after a poll at the earliest to follow it, in seconds.
_IDLE_S, _LOOK_S, _FOLLOW_S = 1.0, 0.05, 0.2
#: How often to look whether whoever leads the timeline is gone.
_TAKE_OVER_S = 0.1


@dataclass(slots=True)
class Continuous:
    """The loop over one timeline.

    Attributes:
        engine: The project.
        instance: Where partitions are added.
        timeline: The timeline.
        specs: Its assets.
        tell: Receives lines for people.
        interval_s: The least time from one poll that finds something to the next, in seconds.
        for_s: After how long to end, in seconds, if it leads after one look at least; None for never.
        stop: Ends the loop once set, after the step at work.
        reporter: Shows how far steps are, beside who does anyway.
        sample_rows: How many of the updates just written an event shows.
        ticks: How many ticks were closed so far.
    """

    engine: Engine
    instance: dg.DagsterInstance
    timeline: str
    specs: Sequence[dg.AssetSpec]
    tell: Tell
    interval_s: float = INTERVAL_S
    for_s: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    reporter: Reporter | None = None
    sample_rows: int = 5
    ticks: int = 0
    _printed: dict[str, str] = field(default_factory=dict)
    _failed: tuple[int, int, float] | None = None
    _recorded: RecordedTicks = field(default_factory=lambda: RecordedTicks({}))
    _newest: int = -1
    _seen: Mapping[dg.AssetKey, CollectionRow] = field(default_factory=dict)
    _frontiers: dict[dg.AssetKey, FrontierSnapshot] = field(default_factory=dict)
    _counted: dict[GlobalId, RowCount] = field(default_factory=dict)
    _said: dict[dg.AssetCheckKey, tuple[bool, object]] = field(default_factory=dict)

    def run(self) -> Iterator[Sequence[Event]]:
        """Yields what to record, after what it tells of is durable, until it is stopped.

        What comes together may be recorded together. What is not recorded, because this process ends, the next one
        that leads yields.
        """
        started = self._now_s()
        until = None if self.for_s is None else started + self.for_s
        while not self._is_over(until):
            with self.engine.lead(self.timeline) as lead:
                if isinstance(lead, LedByAnother):
                    self._wait_for(lead, until)
                    continue
                self._tell_once("lead", "")
                try:
                    yield from filter(None, self._leading(lead, until))
                except StepLost as lost:  # whoever interfered leads now, or nobody does
                    self.tell(str(lost))

    def _wait_for(self, lead: LedByAnother, until: float | None) -> None:
        """Waits until nobody leads, or somebody else; tells once for each whom it waits for, and for how long."""
        if self._printed.get("lead") != lead.holder:
            ending = lead.ending(self.engine.clock.now_ms())
            self.tell(f'{lead.holder} leads timeline "{self.timeline}"; waiting for it: {ending}')
            self._printed["lead"] = lead.holder
        lease_ms = self.engine.project.lease_ms
        while not self._is_over(until):
            self.stop.wait(_TAKE_OVER_S)
            now = self.engine.catalog.leader(self.timeline, lease_ms)
            if now is None or now.holder != lead.holder:
                return

    def _leading(self, lead: Leadership, until: float | None) -> Iterator[Sequence[Event]]:
        yield from self._record(None)
        while not self.stop.is_set():
            polled, idle = self._now_s(), None
            changed: Set[GlobalId] = frozenset()
            with self._logging_failures("poll"):
                arrivals = self.engine.arrivals(self.timeline)
                poll = self.engine.poll(self.timeline, leadership=lead)
                if poll.tick is None:
                    idle = arrivals
                self._tell_once("sources", "\n".join(str(failure) for failure in poll.failures.values()))
                if poll.healed:
                    self._failed = None
                changed = poll.changed
            if changed:
                yield tuple(poll_changes(self.engine, self.timeline, asset_rows(self.engine, self.specs), changed))
            report = None
            with self._logging_failures("step"):  # also where a poll failed: what was minted before is closed
                report = self._step(lead)
            if report is not None:
                yield from self._record(report)
            self._wait(polled, idle if report is None else None)
            if self._is_over(until):
                return

    def _wait(self, polled: float, arrivals: Arrivals | None) -> None:
        """Waits for the interval's end, or, if it is given what was there, for longer, but until something arrives."""
        wait = self.interval_s if arrivals is None else max(self.interval_s, _IDLE_S)
        while (left := polled + wait - self._now_s()) > 0 and not self.stop.is_set():
            if arrivals is not None and self._now_s() >= polled + _FOLLOW_S and arrivals.changed():
                return
            self.stop.wait(left if arrivals is None else min(left, _LOOK_S))

    def _step(self, lead: Leadership) -> StepReport | None:
        """Closes the open ticks, unless the newest has just failed."""
        ticks = self.engine.unsealed_ticks(self.timeline)
        if not ticks:
            self._failed = None
            return None
        tick, tries = ticks[-1], 1
        if self._failed is not None and self._failed[0] == tick:
            _, tries, again = self._failed
            if self._now_s() < again:
                return None
            tries += 1
        self._failed = (tick, tries, self._now_s() + wait_s(tries))
        with nullcontext() if self.reporter is None else reported_to(self.reporter):
            report = self.engine.step(self.timeline, tick, leadership=lead)
        self.tell(f"{partition_key(tick)}: {summary(report)}")
        if report.failures:
            why = "; ".join(f'"{one.name}": {one.error}' for one in report.failures)
            self.tell(f"{why}\ntried again in {wait_s(tries):.0f} s, or with the next tick")
            self._failed = (tick, tries, self._now_s() + wait_s(tries))
        else:
            self._failed = None
            self.ticks += len(ticks)
        return report

    def _record(self, report: StepReport | None) -> Iterator[Sequence[Event]]:
        """Yields a materialization for each tick that can be read now and is not recorded, and what checks say now.

        Dagster is asked what it has when the lead was taken. From then on nobody else closes a tick, so what could not
        be read at the last look is recorded by nobody else either.
        """
        assets = asset_rows(self.engine, self.specs)
        if report is None:
            self._frontiers = last_frontiers(self.instance, assets)
            self._counted = counted_before(self._frontiers)
            self._seen = {}
            ticks = live_ticks(self.engine, self.timeline)
            new = missing_partitions(self.instance, self.engine, self.timeline, ticks)
        else:
            ticks = live_ticks(self.engine, self.timeline, after=self._recorded.of_all(assets))
            new = [partition_key(tick) for tick in ticks if tick > self._newest]
        if new:
            self.instance.add_dynamic_partitions(partitions_of(self.engine.project, self.timeline).name or "", new)
        self._newest = max((self._newest, *ticks[-1:]))
        unseen = {key: row.upper for key, row in self._seen.items() if key in assets and assets[key].id == row.id}
        self._seen = assets
        compared = None
        while compared != self._recorded:
            compared = self._recorded
            found, self._recorded = unrecorded(self.instance, assets, ticks, compared, unseen=unseen)
            yield tuple(self._materializations(found, report))
        if report is not None:
            yield tuple(self._check(assets, report.tick))

    def _materializations(self, found: Sequence[UnrecordedTick], report: StepReport | None) -> Iterator[Event]:
        """Yields what records ticks; that of a step just made has its figures."""
        newest = [(one.row, one.tick) for one in found if report is not None and one.tick == report.tick]
        counts = rows_at(self.engine, newest, self._counted)
        self._counted |= counts
        for one in found:
            step = report.of_object(one.row.id) if report is not None and one.tick == report.tick else None
            told = asset_metadata(
                self.engine,
                one.row,
                one.tick,
                step=step,
                changes=self.sample_rows,
                counted=counts.get(one.row.id),
            )
            yield dg.AssetMaterialization(one.key, partition=partition_key(one.tick), metadata=told)

    def _check(self, assets: dict[dg.AssetKey, CollectionRow], tick: int) -> Iterator[dg.AssetCheckEvaluation]:
        """Yields the checks whose results are not what they were."""
        rows: dict[GlobalId, CollectionRow] = {row.id: row for row in self.engine.catalog.collections(self.timeline)}
        names = {one.name for one in frontier_check_specs(self.specs)}
        checks = FrontierChecks(self.engine, self.engine.graph(self.timeline), rows, tick, self._frontiers)
        for key, row in assets.items():
            if row.id not in rows or row.upper.is_empty:
                continue
            for result in checks.results(key, row.id, {GOES_ON} if row.upper.less_equal(tick) else names):
                yield from self._new(key, result)
            self._frontiers[key] = FrontierSnapshot(row.id, row.since.only, row.upper.only)

        keys = {str(spec.metadata[NAME_KEY]): spec.key for spec in self.specs}
        for result in data_check_results(self.engine, self.timeline, keys, tick, None):
            assert result.asset_key is not None, "each is of an asset"
            yield from self._new(result.asset_key, result)

    def _new(self, key: dg.AssetKey, result: dg.AssetCheckResult) -> Iterator[dg.AssetCheckEvaluation]:
        """Yields what a check says unless it said the same before."""
        check = dg.AssetCheckKey(key, result.check_name or "")
        count = result.metadata.get(VIOLATIONS)
        said = (result.passed, None if count is None else count.value)
        if self._said.get(check) != said:
            self._said[check] = said
            yield evaluation(key, result)

    def _is_over(self, until: float | None) -> bool:
        return self.stop.is_set() or (until is not None and self._now_s() >= until)

    def _now_s(self) -> float:
        return self.engine.clock.monotonic_ms() / 1000

    @contextmanager
    def _logging_failures(self, what: str) -> Iterator[None]:
        """Tells of a failure of the world outside instead of ending with it."""
        try:
            yield
        except StepLost:
            raise
        except OperationalError as failure:
            self._tell_once(what, str(failure))
        else:
            self._tell_once(what, "")

    def _tell_once(self, what: str, line: str) -> None:
        """Tells what is the matter when it changes, not at every turn."""
        if line and line != self._printed.get(what):
            self.tell(line)
        self._printed[what] = line


class ContinuousConfig(dg.Config):
    """Says how to drive."""

    interval_s: float = Field(default=INTERVAL_S, ge=0.05, description="The least time between two ticks, in seconds.")
    for_s: float | None = Field(default=None, gt=0, description="After how long to end; by default when terminated.")


def build_continuous_job(
    project: Project,
    *,
    timeline: str | None = None,
    name: str | None = None,
    translator: MzDagsterTranslator | None = None,
) -> dg.JobDefinition:
    """Returns the job whose one op polls and steps a timeline until it is terminated.

    It takes the place of the frontier sensor's runs while it is live, with the latency of a step instead of a run's. A
    timeline needs one at most; a second one waits for the first. Needs the resource `mz`, an `MzResource`.

    Args:
        project: The project.
        timeline: Which timeline; by default the project's own.
        translator: Decides the assets' keys; the one of `mz_assets`.
        name: The job's name; by default `mz_continuous_` and the timeline.
    """
    chosen = timeline or project.timeline
    called = name or named("mz_continuous", chosen)

    @dg.op(name=f"{called}_op", description=f'Polls and steps timeline "{chosen}" until it is terminated.')
    def continuous(
        context: dg.OpExecutionContext, config: ContinuousConfig, mz: MzResource
    ) -> Iterator[Event | dg.Output[None]]:
        with mz.engine(holder_of(context.run_id)) as engine:
            loop = Continuous(
                engine,
                context.instance,
                chosen,
                build_mz_asset_specs(engine.project, timeline=chosen, translator=translator),
                context.log.info,
                interval_s=config.interval_s,
                for_s=config.for_s,
                reporter=Lines(context.log.info),
                sample_rows=mz.sample_rows,
            )
            for events in loop.run():
                yield from events
        yield dg.Output(None, metadata={"ticks": loop.ticks})

    @dg.job(
        name=called,
        executor_def=dg.in_process_executor,
        tags=tags_of(project, chosen),
        description=f'Drives timeline "{chosen}" in one process, tick after tick, until it is terminated.',
    )
    def job() -> None:
        continuous()

    return job
