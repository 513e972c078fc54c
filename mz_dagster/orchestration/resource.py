"""The resource by which Dagster's ops and sensors reach the engine."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from mz_dagster.adapter import (
    BadProjectFile,
    Engine,
    Project,
    RowCount,
    SecondRunner,
    apply_changes,
    errors_written,
    rows_at,
)
from mz_dagster.adapter.setting_values import engine_setting_of
from mz_dagster.catalog import CollectionRow
from mz_dagster.compute import CollectionStep, Outcome, StepReport
from mz_dagster.errors import one_line
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.data_checks import data_check_results, holding_up
from mz_dagster.orchestration.events import (
    FORGOTTEN,
    NAME_KEY,
    OUTCOME_KEY,
    TIMELINE_KEY,
    asset_ids,
    asset_metadata,
    readable,
)
from mz_dagster.orchestration.frontier_checks import (
    GOES_ON,
    FrontierChecks,
    FrontierSnapshot,
    counted_before,
    evaluation,
    last_frontiers,
)
from mz_dagster.orchestration.recording import missing_partitions
from mz_dagster.orchestration.runs import holder_of
from mz_dagster.orchestration.ticks import partition_key, partitions_of, tick_of
from mz_dagster.process_exit import leave_threads_at_exit
from mz_dagster.progress import Lines, reported_to
from mz_dagster.version import __version__

logger = logging.getLogger("mz_dagster.dagster")

# Dagster shows which libraries a code location uses: one that uses this one has the resource.
dg.DagsterLibraryRegistry.register(  # type: ignore[attr-defined]  # public, but not re-exported for type checkers
    "mz_dagster", __version__, is_dagster_package=False
)

__all__ = ["NAME_KEY", "MzResource", "StepResult", "summary"]

#: How many texts of errors of the data a step's log shows for a collection.
_ERRORS = 3


#: For how long a run waits for whoever leads its timeline, how often it looks, and how often it says so, in seconds.
_LEADER_DEADLINE_S, _LOOK_S, _TELL_EVERY_S = 600, 0.2, 60

#: What a step yields: an asset that is readable at the run's ticks; in a run of checks alone, what one of them says.
StepResult = dg.MaterializeResult[None] | dg.AssetCheckResult


class MzResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Opens the engine of a project.

    Which catalog, which retention and, by default, which Spark are settings of the project's `mz.toml`, so that
    Dagster, the command line and sessions can never disagree about them. With `spark`, runs use the session of a
    dagster-pyspark resource instead; the command line and sessions still use the settings' own.

    Example::

        spark = LazyPySparkResource(spark_config={"spark.remote": "sc://spark:15002"})
        MzResource(project_dir="path/to/project", spark=spark)
    """

    project_dir: str = Field(description="The project's root folder, which holds mz.toml.")
    spark: dg.ConfigurableResource | None = Field(  # type: ignore[type-arg]
        default=None,
        description="A `LazyPySparkResource` or `PySparkResource` whose session the engine uses when there is work. "
        "Its Spark must have Delta Lake; its settings are made exact (UTC, ANSI). Of the two the lazy one opens "
        "nothing in sensors and idle steps.",
    )
    engine_setting: str | None = Field(
        default=None,
        description="Who computes, instead of what the project's settings say: `auto`, `spark` or `local`.",
    )
    sample_rows: int = Field(default=5, ge=0, description="How many of the updates just written an event shows.")

    def project(self) -> Project:
        """Returns the project.

        Raises:
            BadSettings: Its settings are wrong, or `engine_setting` is none.
        """
        found = Project.load(Path(self.project_dir))
        return found if self.engine_setting is None else replace(found, engine=engine_setting_of(self.engine_setting))

    @contextmanager
    def engine(self, holder: str) -> Iterator[Engine]:
        """Opens the engine for the length of a block, with the project's definitions applied.

        A file that is wrong keeps nothing from being applied but what changed: what the catalog holds goes on, and the
        error is logged at each use until the file is corrected.

        Args:
            holder: Names the user of the engine in leases, a run id for example.
        """
        spark: Any = self.spark  # the two of dagster-pyspark share no class that has a `spark_session`
        session = None if spark is None else lambda: spark.spark_session
        with Engine(self.project(), holder=holder, session=session) as engine:
            try:
                apply_changes(engine)
            except BadProjectFile as error:
                logger.error("the project's files are not applied: %s", error)
            try:
                yield engine
            except dg.DagsterExecutionInterruptedError:  # the process is Dagster's, and soon over
                leave_threads_at_exit()
                raise

    def step(self, context: dg.AssetExecutionContext) -> Iterator[StepResult]:
        """Steps the selected assets to the run's newest tick, and yields a result for each that is readable there.

        A run of all assets steps whatever else sessions have created on the timeline, too: a tick is closed only then.
        A tick that is closed already changes nothing; its assets are reported as they are. Of a range of ticks, the
        newest is told what the step did, so that sums over partitions are right. An asset that did not get to the
        newest one is materialized at those that can be read.

        While another process leads the timeline, a run waits for it, ten minutes at most; what that one has completed
        is not stepped again. So runs of one timeline may be started at once, as a backfill does.

        A run without ticks, as `dagster job execute` makes one, asks the sources what is new and steps to the newest
        tick. Its materializations are those of the ticks that it closed, and no result is yielded, which would be of no
        tick: what else is in its job and depends on an asset is skipped.

        A run of checks alone, without ticks, steps nothing and yields what they say of the latest time that each asset
        is complete at.

        Raises:
            SecondRunner: Another process led the timeline for all that time.
            dagster.Failure: A blocking check does not hold; or a collection failed, as its check `goes_on` and those of
                its dependants say. Those that finished are materialized all the same, and a run of the same ticks goes
                on with the others only.
        """
        specs = {spec.key: spec for spec in context.assets_def.specs}
        timeline = str(next(iter(specs.values())).metadata[TIMELINE_KEY])
        before = last_frontiers(context.instance, specs)
        if not context.selected_asset_keys:
            with self.engine(holder_of(context.run.run_id)) as engine:
                yield from _checked(context.selected_asset_check_keys, engine, timeline, specs, before)
            return
        asked = _ticks_asked_for(context)
        with self.engine(holder_of(context.run.run_id)) as engine:
            ticks = _newest_ticks(context, engine, timeline) if asked is None else asked
            if not ticks:
                return
            assets = asset_ids(engine, specs.values())
            ids = {key: id for key, id in assets.items() if key in context.selected_asset_keys}
            only: frozenset[GlobalId] | None = None
            if len(ids) < len(assets):
                # With them what is no asset of its own: their arrangements, and what sessions put in between.
                selected = frozenset(ids.values())
                # The checks go on as far as what they read.
                checked = frozenset(row.id for row in engine.catalog.objects("check") if row.timeline == timeline)
                only = selected | (engine.graph(timeline).upstream(selected | checked) - frozenset(assets.values()))
            with reported_to(Lines(context.log.info)):
                report = _stepped(context, engine, timeline, ticks[-1], only)
            rows = {row.id: row for row in engine.catalog.collections(timeline)}
            if report is not None:
                context.log.info(summary(report))
                _warn_of_errors(context, engine, rows, report)
            checks = FrontierChecks(engine, engine.graph(timeline), rows, ticks[-1], before)
            said = _data_checks(engine, timeline, specs.values(), ticks[-1], context.selected_asset_check_keys)
            closed_of = {id: [tick for tick in ticks if not rows[id].upper.less_equal(tick)] for id in ids.values()}
            newest = [(rows[id], closed[-1]) for id, closed in closed_of.items() if closed]
            counts = rows_at(engine, newest, counted_before(before))
            for key, id in ids.items():
                closed = closed_of[id]
                is_whole = asked is not None and closed == ticks
                step = None if report is None else report.of_object(id)
                self._report(context, engine, key, rows[id], step, closed, counts.get(id), is_whole=is_whole)
                wanted = {one.name for one in context.selected_asset_check_keys if one.asset_key == key}
                found = list(checks.results(key, id, wanted if closed == ticks else wanted & {GOES_ON}))
                found += said.get(key, []) if closed == ticks else []
                if asked is None:
                    for one in found:  # a result would be looked up at the run's tick
                        context.log_event(evaluation(key, one))
                elif is_whole:
                    yield dg.MaterializeResult(asset_key=key, check_results=found)
                else:
                    yield from found
        if report is not None:
            _raise_failures(report)
        _raise_held_up([one for found in said.values() for one in found])

    def _report(
        self,
        context: dg.AssetExecutionContext,
        engine: Engine,
        key: dg.AssetKey,
        row: CollectionRow,
        step: CollectionStep | None,
        closed: Sequence[int],
        counted: RowCount | None,
        *,
        is_whole: bool,
    ) -> None:
        """Says what each closed tick's materialization carries; makes it where no result for the whole run can."""
        if not closed:
            return
        earlier = asset_metadata(engine, row, closed[0])  # none of them lags: what is true of one is true of all
        newest = asset_metadata(engine, row, closed[-1], step=step, changes=self.sample_rows, counted=counted)
        forgotten = [tick for tick in closed if not row.since.less_equal(tick)]
        if forgotten:
            context.log.warning(
                f"{key.to_user_string()} was complete at {len(forgotten)} of the run's ticks, of which the newest is "
                f"{partition_key(forgotten[-1])}, and has forgotten them: nothing was computed for them, and what it "
                f"contained then cannot be read. It is readable from {readable(row)}; RETAIN HISTORY keeps more."
            )
        for tick in closed:
            metadata = newest if tick == closed[-1] else earlier
            if tick in forgotten:
                metadata = {**metadata, OUTCOME_KEY: FORGOTTEN}
            if is_whole:
                context.add_asset_metadata(metadata, asset_key=key, partition_key=partition_key(tick))
            else:
                context.log_event(dg.AssetMaterialization(key, partition=partition_key(tick), metadata=metadata))


def _ticks_asked_for(context: dg.AssetExecutionContext) -> list[int] | None:
    """Returns the ticks of a run, ascending; None of one that names none.

    Raises:
        dagster.Failure: They are no ascending range.
    """
    if not context.has_partition_key and not context.has_partition_key_range:
        return None
    ticks = [tick_of(key) for key in context.partition_keys]
    if not ticks or ticks != sorted(set(ticks)):
        raise dg.Failure(
            f"the partitions {list(context.partition_keys)} are not an ascending range of ticks",
            metadata={"hint": "Select one tick, or a range from an older to a newer one."},
        )
    return ticks


def _newest_ticks(context: dg.AssetExecutionContext, engine: Engine, timeline: str) -> list[int]:
    """Polls, and returns the open ticks, else the newest one if there is any; partitions are made of them."""
    context.log.info(engine.poll(timeline).reason)
    ticks = list(engine.unsealed_ticks(timeline) or engine.catalog.ticks(timeline, 1))
    if new := missing_partitions(context.instance, engine, timeline, ticks):
        context.instance.add_dynamic_partitions(partitions_of(engine.project, timeline).name or "", new)
    return ticks


def _stepped(
    context: dg.AssetExecutionContext, engine: Engine, timeline: str, tick: int, only: frozenset[GlobalId] | None
) -> StepReport | None:
    """Steps to a tick once nobody else leads the timeline; None if whoever led it has completed all of it there."""
    clock = engine.clock
    until = clock.monotonic_ms() + 1000 * _LEADER_DEADLINE_S
    tell_at = clock.monotonic_ms()
    while True:
        try:
            return engine.step(timeline, tick, only=only, progress=context.log.info)
        except SecondRunner as error:
            rows = [row for row in engine.catalog.collections(timeline) if only is None or row.id in only]
            if not any(row.upper.less_equal(tick) for row in rows):
                context.log.info(
                    f"{error.message}, and all is complete at {partition_key(tick)}: nothing is left to do"
                )
                return None
            if clock.monotonic_ms() >= until:
                raise
            if clock.monotonic_ms() >= tell_at:  # again and again, since a run that says nothing counts as lost
                context.log.info(f"{error.message}; waiting for it")
                tell_at += 1000 * _TELL_EVERY_S
        clock.sleep(_LOOK_S)


def _checked(
    wanted: Set[dg.AssetCheckKey],
    engine: Engine,
    timeline: str,
    specs: Mapping[dg.AssetKey, dg.AssetSpec],
    before: Mapping[dg.AssetKey, FrontierSnapshot],
) -> Iterator[dg.AssetCheckResult]:
    """Yields the results of checks without a step, each asset's of the latest time that it is complete at."""
    keys = {one.asset_key for one in wanted}
    ids = {key: id for key, id in asset_ids(engine, specs.values()).items() if key in keys}
    rows = {row.id: row for row in engine.catalog.collections(timeline)}
    graph = engine.graph(timeline)
    for key, id in ids.items():
        checks = FrontierChecks(engine, graph, rows, rows[id].upper.only - 1, before)
        yield from checks.results(key, id, {one.name for one in wanted if one.asset_key == key})
    yield from data_check_results(engine, timeline, _keys(specs.values()), None, wanted)


def _data_checks(
    engine: Engine, timeline: str, specs: Iterable[dg.AssetSpec], tick: int, wanted: Set[dg.AssetCheckKey]
) -> dict[dg.AssetKey, list[dg.AssetCheckResult]]:
    """Returns what the project's own checks say at a tick, by the assets that they are shown at."""
    found: dict[dg.AssetKey, list[dg.AssetCheckResult]] = {}
    for one in data_check_results(engine, timeline, _keys(specs), tick, wanted):
        assert one.asset_key is not None, "each is of an asset"
        found.setdefault(one.asset_key, []).append(one)
    return found


def _keys(specs: Iterable[dg.AssetSpec]) -> dict[str, dg.AssetKey]:
    return {str(spec.metadata[NAME_KEY]): spec.key for spec in specs}


def summary(report: StepReport) -> str:
    """Returns a step's story in one line."""
    count = {outcome: sum(1 for one in report.collections if one.outcome is outcome) for outcome in Outcome}
    told = ", ".join(f"{number} {outcome.value}" for outcome, number in count.items() if number)
    return f"step to tick {report.tick}: {told}; {report.engine_ms / 1000:.1f} s"


def _warn_of_errors(
    context: dg.AssetExecutionContext, engine: Engine, rows: dict[GlobalId, CollectionRow], report: StepReport
) -> None:
    """Tells of the errors that the step added to the data of views, not to their arrangements, which pass them on."""
    for one in report.collections:
        if one.stats.errors and one.owner is None:
            added = errors_written(engine, rows[one.id], one, _ERRORS)
            if added.total:
                more = f"; and {added.distinct - len(added.texts)} more" if added.distinct > len(added.texts) else ""
                context.log.warning(
                    f'"{one.name}" has {added.total} new errors of the data: {"; ".join(added.texts)}{more}. '
                    "Reading it raises them until the rows that cause them are corrected or deleted."
                )


def _raise_held_up(results: Sequence[dg.AssetCheckResult]) -> None:
    """Raises if a blocking check does not hold, which keeps what is downstream in the run from being computed."""
    failed = holding_up(results)
    if failed:
        raise dg.Failure(
            "; ".join(f'blocking check "{one.check_name}" does not hold: {one.description}' for one in failed),
            metadata={
                "mz/next": "All assets are materialized. What is downstream stays as it was until the check holds."
            },
            allow_retries=False,
        )


def _raise_failures(report: StepReport) -> None:
    if not report.failures:
        return
    # What is kept for an object stays behind with it, and is no name that anybody has given.
    behind = sorted(one.name for one in report.collections if one.outcome is Outcome.BLOCKED and one.owner is None)
    names = {one.id: one.name for one in report.collections}
    why = {
        names.get(one.owner or one.id, one.name): one.reason if one.error is None else one_line(one.error)
        for one in report.failures
    }
    failed = [
        {
            "collection": one.name,
            "operator": one.operators,
            "reason": one.reason,
            "hint": (one.error.hint if one.error is not None else None) or "",
        }
        for one in report.failures
    ]
    raise dg.Failure(
        "\n".join(f'"{name}" failed: {reason}' for name, reason in why.items())
        + (f"\nbehind it: {', '.join(behind)}" if behind else ""),
        metadata={
            "mz/failed": dg.MetadataValue.table([dg.TableRecord(one) for one in failed]),
            "mz/behind": dg.MetadataValue.json(behind),
            "mz/next": "What finished is kept. Remove the reasons and run the same ticks again: only the rest is done.",
        },
        allow_retries=False,
    )
