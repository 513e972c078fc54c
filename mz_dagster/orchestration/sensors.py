"""The frontier sensor: asks the sources what is there, mints ticks, and requests runs.

It is a function of the catalog and of Dagster's runs, with no state of its own: as long as a minted tick
is not sealed and no run of its timeline is live, it asks for one run over all such ticks. So a run that
died is asked for again, what piled up is one range, and two runs of a timeline never overlap. A crash
between minting and requesting changes nothing: the tick is durable, and the next evaluation asks.
"""

from __future__ import annotations

import dagster as dg

from mz_dagster.adapter import Engine, Project
from mz_dagster.orchestration.resource import MzResource
from mz_dagster.orchestration.ticks import partition_key, partitions_of

TIMELINE_TAG = "mz/timeline"

#: States of a run that may still write.
LIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def build_frontier_sensor(
    project: Project,
    job: dg.JobDefinition | dg.UnresolvedAssetJobDefinition,
    *,
    timeline: str | None = None,
    minimum_interval_seconds: int = 4,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
) -> dg.SensorDefinition:
    """Returns the sensor that pushes a timeline's frontier forward by runs of `job`.

    Args:
        project: The project.
        job: The job over the timeline's assets.
        timeline: Which timeline; by default the project's own.
        minimum_interval_seconds: Dagster looks every five seconds; four makes it every look.
        default_status: Whether it runs without being switched on.
    """
    chosen = timeline or project.timeline

    @dg.sensor(
        name=f"mz_frontier_{chosen}",
        job=job,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description=f'Polls the sources of timeline "{chosen}", mints ticks and requests their runs.',
    )
    def frontier(context: dg.SensorEvaluationContext, mz: MzResource) -> dg.SensorResult:
        with mz.engine(f"dagster sensor mz_frontier_{chosen}") as engine:
            poll = engine.poll(chosen)
            return _evaluate(context, engine, chosen, poll.reason)

    return frontier


def _evaluate(context: dg.SensorEvaluationContext, engine: Engine, timeline: str, reason: str) -> dg.SensorResult:
    keys = [partition_key(tick) for tick in engine.unsealed_ticks(timeline)]
    if not keys:
        return dg.SensorResult(skip_reason=reason)
    partitions = partitions_of(timeline)
    known = set(partitions.get_partition_keys(dynamic_partitions_store=context.instance))
    new = [key for key in keys if key not in known]
    requests = [partitions.build_add_request(new)] if new else []
    live = context.instance.get_runs_count(dg.RunsFilter(tags={TIMELINE_TAG: timeline}, statuses=LIVE))
    if live:
        return dg.SensorResult(
            skip_reason=f"a run of timeline {timeline!r} is live; {len(keys)} ticks wait for it",
            dynamic_partitions_requests=requests,
        )
    tags = {TIMELINE_TAG: timeline}
    if len(keys) == 1:
        request = dg.RunRequest(partition_key=keys[0], tags=tags)
    else:
        tags |= {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
        request = dg.RunRequest(tags=tags)
    return dg.SensorResult(run_requests=[request], dynamic_partitions_requests=requests)
