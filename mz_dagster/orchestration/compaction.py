"""The compaction job: merges batches and sweeps, within limits, beside whatever else is running.

Compaction is invisible to readers and never waits for steps or they for it. A run that is killed leaves what the next
sweep deletes, and two at once only lose some of each other's work; so nothing keeps them apart.
"""

# Annotations of ops are Dagster's to read: no `from __future__ import annotations` here.
from collections.abc import Iterator, Mapping, Sequence

import dagster as dg
from pydantic import Field

from mz_dagster.adapter import Engine, Project, effective_objects
from mz_dagster.catalog import NO_ROWS, BatchStats
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.assets import build_mz_asset_specs
from mz_dagster.orchestration.events import asset_metadata
from mz_dagster.orchestration.recording import asset_rows
from mz_dagster.orchestration.resource import MzResource
from mz_dagster.orchestration.runs import holder_of
from mz_dagster.orchestration.translator import MzDagsterTranslator
from mz_dagster.progress import Lines, reported_to

COMPACTION_CRON = "17 * * * *"

_Event = dg.AssetObservation | dg.Output[None]
_Counts = Mapping[GlobalId, tuple[int, BatchStats]]


class CompactionConfig(dg.Config):
    """Says what a compaction may do."""

    collections: list[str] = Field(
        default=[], description="Names of what to merge, with its arrangements; empty: everything."
    )
    max_seconds: float = Field(default=900.0, gt=0, description="After how long to start no further merge.")
    max_rows: int = Field(default=50_000_000, gt=0, description="After how many rows read to start no further merge.")
    thorough: bool = Field(default=True, description="Also look for strays of crashed writers in every shard.")


def build_compaction_job(
    project: Project, *, name: str = "mz_compaction", translator: MzDagsterTranslator | None = None
) -> dg.JobDefinition:
    """Returns the job that lets sinces rise, merges batches and sweeps, on all timelines of the project.

    Needs the resource `mz`, an `MzResource`.

    Args:
        project: The project.
        translator: Decides the assets' keys; the one of `mz_assets`.
        name: The job's name.
    """

    @dg.op(name=f"{name}_op", description="Merges batches as far as its limits allow, and sweeps.")
    def compact(context: dg.OpExecutionContext, config: CompactionConfig, mz: MzResource) -> Iterator[_Event]:
        with mz.engine(holder_of(context.run_id)) as engine:
            yield from _compact(context, engine, config, translator)

    @dg.job(
        name=name,
        executor_def=dg.in_process_executor,
        description=f'Merges batches of project "{project.name}", forgets what retention allows to, and sweeps.',
    )
    def compaction() -> None:
        compact()

    return compaction


def build_compaction_schedule(
    project: Project,
    job: dg.JobDefinition,
    *,
    cron_schedule: str = COMPACTION_CRON,
    default_status: dg.DefaultScheduleStatus = dg.DefaultScheduleStatus.RUNNING,
) -> dg.ScheduleDefinition:
    """Returns the schedule of a compaction job.

    Args:
        project: The project.
        job: What `build_compaction_job` returned.
        cron_schedule: When; by default once an hour.
        default_status: Whether it runs without being switched on.
    """
    return dg.ScheduleDefinition(
        name=f"{job.name}_schedule",
        job=job,
        cron_schedule=cron_schedule,
        default_status=default_status,
        description=f'Compacts project "{project.name}".',
    )


def _compact(
    context: dg.OpExecutionContext, engine: Engine, config: CompactionConfig, translator: MzDagsterTranslator | None
) -> Iterator[_Event]:
    only = _selected(engine, config.collections)
    before = engine.catalog.live_batch_counts()
    with reported_to(Lines(context.log.info)):
        for line in engine.compact(
            only=only, max_seconds=config.max_seconds, max_rows=config.max_rows, thorough=config.thorough
        ):
            context.log.info(line)
    after = engine.catalog.live_batch_counts()
    timelines = {one.definition.timeline or engine.project.timeline for one in effective_objects(engine.project)}
    specs = [
        spec
        for timeline in sorted(timelines)
        for spec in build_mz_asset_specs(engine.project, timeline=timeline, translator=translator)
    ]
    for key, row in asset_rows(engine, specs).items():
        (batches, was), (left, now) = before.get(row.id, (0, NO_ROWS)), after.get(row.id, (0, NO_ROWS))
        if left < batches:
            tick = 0 if row.timeline is None else engine.catalog.last_tick(row.timeline) or 0
            metadata = {
                **asset_metadata(engine, row, tick),
                "mz/batches_before": batches,
                "mz/bytes_before": was.bytes,
                "mz/bytes_after": now.bytes,
            }
            yield dg.AssetObservation(key, metadata=metadata)
    yield dg.Output(
        None,
        metadata={
            "batches before": _batches(before, only),
            "batches after": _batches(after, only),
            "bytes before": _bytes(before, only),
            "bytes after": _bytes(after, only),
        },
    )


def _selected(engine: Engine, names: Sequence[str]) -> frozenset[GlobalId] | None:
    """Returns the collections that are named, with those that serve them; None for all.

    Raises:
        ProgrammingError: Nothing bears one of the names.
    """
    if not names:
        return None
    objects = engine.catalog.objects()
    own = {engine.collection_of(name) for name in names}
    named = {row.id for row in objects if row.name in names}
    return frozenset(own | {row.id for row in objects if row.owner in named})


def _batches(counts: _Counts, only: frozenset[GlobalId] | None) -> int:
    return sum(batches for id, (batches, _) in counts.items() if only is None or id in only)


def _bytes(counts: _Counts, only: frozenset[GlobalId] | None) -> int:
    return sum(stats.bytes for id, (_, stats) in counts.items() if only is None or id in only)
