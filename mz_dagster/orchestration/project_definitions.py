"""All that Dagster is to know of a project, by one call, for a `definitions.py` that has more than that.

    defs = dg.Definitions.merge(own, build_mz_definitions(Project.load("shop")))

Owns no behaviour of its own: it calls the same builders as a project's own `definitions.py`. Jobs and sensors are named
after timelines, and the resource is `mz`, so a code location has one of it. Others of the same instance have projects
of other names, after which partition sets and runs are called, and assets of other keys.
"""

# Dagster looks at the annotations of the op that is defined here: no `from __future__ import annotations`.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from mz_dagster.adapter import Project, effective_objects
from mz_dagster.orchestration.assets import Neighbour, mz_assets
from mz_dagster.orchestration.checks import build_mz_asset_checks, step_selection
from mz_dagster.orchestration.compaction import COMPACTION_CRON, build_compaction_job, build_compaction_schedule
from mz_dagster.orchestration.continuous import build_continuous_job
from mz_dagster.orchestration.resource import MzResource, StepResult
from mz_dagster.orchestration.sensors import build_frontier_sensor, build_retention_sensor
from mz_dagster.orchestration.ticks import named
from mz_dagster.orchestration.translator import MzDagsterTranslator

#: What a step does: `mz.step(context)`, and whatever is around it.
Execute = Callable[[dg.AssetExecutionContext, MzResource], Iterator[StepResult]]


def _step(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
    """Steps the selected assets to the run's ticks, and yields their results."""
    yield from mz.step(context)


def build_mz_definitions(
    project: Project,
    *,
    timelines: Sequence[str] | None = None,
    translator: MzDagsterTranslator | None = None,
    upstream: Iterable[Neighbour] = (),
    execute: Execute = _step,
    op_name: str | None = None,
    description: str | None = None,
    op_tags: Mapping[str, Any] | None = None,
    pool: str | None = None,
    backfill_policy: dg.BackfillPolicy | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    start_sensors: bool = True,
    compaction_schedule: str | None = COMPACTION_CRON,
) -> dg.Definitions:
    """Returns the definitions of a project's assets and of what drives them.

    For each timeline: an asset for each source, table, materialized view and index, their checks, the job that steps
    them, the sensor that requests its runs, the retention sensor, and the continuous job. For the project: the
    compaction job with its schedule, and the resource `mz`.

    Args:
        project: The project.
        timelines: Which of its timelines; by default all on which its files define something.
        translator: Decides how each asset looks.
        upstream: Assets of others that write what sources read; see `mz_assets`.
        execute: What a step does, if it is more than `mz.step(context)`.
        op_name: Of the op that steps a timeline; with several timelines a prefix.
        description: The op's.
        op_tags: The op's, beside `mz/timeline`.
        pool: The concurrency pool that the op takes a slot of.
        backfill_policy: How a backfill's ticks become runs.
        retry_policy: When a step is tried again whose process or Spark was lost.
        start_sensors: Whether sensors and the schedule run without being switched on.
        compaction_schedule: When batches are merged, as a cron expression; None for no schedule.

    Raises:
        CatalogUnavailable: A file is wrong, and what was applied last cannot be looked up.
        NoProject: Where the project is to be is none.
        ProgrammingError: The project has no timeline of one of the names.
    """
    chosen = timelines or _timelines_of(project)
    sensors = dg.DefaultSensorStatus.RUNNING if start_sensors else dg.DefaultSensorStatus.STOPPED
    neighbours = tuple(upstream)

    def of_timeline(timeline: str) -> dg.Definitions:
        alone = len(chosen) == 1

        @mz_assets(
            project=project,
            timeline=timeline,
            name=op_name if alone or op_name is None else named(op_name, timeline),
            translator=translator,
            upstream=neighbours,
            description=description,
            op_tags=op_tags,
            pool=pool,
            backfill_policy=backfill_policy,
            retry_policy=retry_policy,
        )
        def assets(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
            yield from execute(context, mz)

        step = dg.define_asset_job(
            "step" if alone else named("step", timeline),
            selection=step_selection(assets),
            executor_def=dg.in_process_executor,
            description=f'Advances every collection of timeline "{timeline}" to the selected ticks.',
        )
        return dg.Definitions(
            assets=[assets],
            asset_checks=[build_mz_asset_checks(project, timeline=timeline, translator=translator)],
            jobs=[step, build_continuous_job(project, timeline=timeline, translator=translator)],
            sensors=[
                build_frontier_sensor(project, step, timeline=timeline, default_status=sensors),
                build_retention_sensor(project, timeline=timeline, default_status=sensors),
            ],
        )

    compaction = build_compaction_job(project, translator=translator)
    schedules = []
    if compaction_schedule is not None:
        status = dg.DefaultScheduleStatus.RUNNING if start_sensors else dg.DefaultScheduleStatus.STOPPED
        schedules.append(
            build_compaction_schedule(project, compaction, cron_schedule=compaction_schedule, default_status=status)
        )
    resources = {"mz": MzResource(project_dir=str(project.root))}
    return dg.Definitions.merge(
        *map(of_timeline, chosen), dg.Definitions(jobs=[compaction], schedules=schedules, resources=resources)
    )


def _timelines_of(project: Project) -> list[str]:
    """Returns the timelines on which the project's files define something; the default one if there is nothing."""
    found = dict.fromkeys(one.definition.timeline for one in effective_objects(project))
    return [one for one in found if one is not None] or [project.timeline]
