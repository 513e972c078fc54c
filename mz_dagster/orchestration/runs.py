"""Dagster's runs of a timeline: which one is live, and how often a tick was tried in vain.

Everything is read from the instance's run records, which has those of all code locations. A run is a timeline's by its
tags, or, since runs that a person starts in the UI bear none, by its job or its assets.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import dagster as dg

from mz_dagster.adapter import Project
from mz_dagster.catalog import LedByAnother

#: Tags of the runs that sensors request: which timeline of which project they step, and to which tick.
PROJECT_TAG = "mz/project"
TIMELINE_TAG = "mz/timeline"
TICK_TAG = "mz/tick"

#: The tag of a run whose worker was killed, so that what it computed had no say in its end.
KILLED_TAG = "mz/killed"

#: States of a run that may still write.
LIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

#: After how long without any event a started run that does not lead its timeline counts as lost.
LOST_AFTER_S = 300.0

FIRST_WAIT_S = 4.0
LONGEST_WAIT_S = 900.0
_HOLDER = "dagster run "

#: So many tries in vain, and the wait grows no further.
_TRIES = 8


def wait_s(tries: int) -> float:
    """Returns how long to wait after so many tries in vain.

    Example:
        >>> wait_s(1), wait_s(3), wait_s(20)
        (8.0, 32.0, 900.0)
    """
    return min(FIRST_WAIT_S * 2.0 ** min(tries, _TRIES), LONGEST_WAIT_S)


@dataclass(frozen=True, slots=True)
class TickAttempts:
    """Says how often runs to a tick have ended with the tick still open.

    Attributes:
        times: How many runs, at most eight.
        again_at: When to try again, in seconds since the epoch.
    """

    times: int
    again_at: float


def tags_of(project: Project, timeline: str) -> dict[str, str]:
    """Returns the tags by which a run is a timeline's."""
    return {PROJECT_TAG: project.name, TIMELINE_TAG: timeline}


def holder_of(run_id: str) -> str:
    """Returns how a run calls itself in leases."""
    return f"{_HOLDER}{run_id}"


def is_over(instance: dg.DagsterInstance, leader: LedByAnother) -> bool:
    """Returns whether the leader is a run that has ended: one that is over and still leads was killed."""
    run = instance.get_run_by_id(leader.holder.removeprefix(_HOLDER))
    return run is not None and run.is_finished


def live_run(
    context: dg.SensorEvaluationContext,
    project: Project,
    timeline: str,
    keys: AbstractSet[dg.AssetKey],
    leader: LedByAnother | None,
    now_s: float,
) -> str | None:
    """Returns the id of a run that may be stepping the timeline, or None.

    A launcher that lost its worker's whole machine may never tell: such a run does not lead the timeline and logs
    nothing, and after a while it counts as lost. If it wakes up, the writer's lease still keeps it from doing harm.

    Args:
        context: The sensor's, of Dagster's record and of what is loaded, which tells which assets a job covers.
        project: The project.
        timeline: Its timeline.
        keys: Its assets.
        leader: Who leads it.
        now_s: The time, in seconds since the epoch.
    """
    instance, tags = context.instance, tags_of(project, timeline)
    for record in instance.get_run_records(dg.RunsFilter(statuses=LIVE)):
        run = record.dagster_run
        if not tags.items() <= run.tags.items() and not keys & _assets_of(run, context):
            continue
        if run.status == dg.DagsterRunStatus.STARTED and (leader is None or leader.holder != holder_of(run.run_id)):
            last = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
            if last and last[0].timestamp < now_s - LOST_AFTER_S:
                continue
        return run.run_id
    return None


def attempts_of(instance: dg.DagsterInstance, project: Project, timeline: str, key: str) -> TickAttempts | None:
    """Returns how often runs to the tick with that partition key have ended, or None if none has.

    After a first one that was killed the next may begin at once; if that is killed, too, the tick itself may be why.
    """
    asked = dg.RunsFilter(tags={**tags_of(project, timeline), TICK_TAG: key})
    records = instance.get_run_records(asked, limit=_TRIES)
    if not records:
        return None
    ended = max(record.end_time or record.update_timestamp.timestamp() for record in records)
    was_killed = len(records) == 1 and KILLED_TAG in records[0].dagster_run.tags
    return TickAttempts(len(records), ended + (0.0 if was_killed else wait_s(len(records))))


def _assets_of(run: dg.DagsterRun, context: dg.SensorEvaluationContext) -> AbstractSet[dg.AssetKey]:
    """Returns the assets that a run materializes; one that only checks assets has none.

    Jobs of other code locations have their own names, which may be the same.
    """
    if run.asset_selection or run.asset_check_selection:
        return run.asset_selection or frozenset()
    here, there = context.code_location_origin, run.remote_job_origin
    if here is not None and there is not None and here.location_name != there.location_name:
        return frozenset()
    repository = context.repository_def
    if repository is None or not repository.has_job(run.job_name):
        return frozenset()
    return frozenset(repository.get_job(run.job_name).asset_layer.selected_asset_keys)


def checks_of(repository: dg.RepositoryDefinition | None, job: str) -> list[dg.AssetCheckKey]:
    """Returns the asset checks that a job makes."""
    if repository is None or not repository.has_job(job):
        return []
    return sorted(repository.get_job(job).asset_layer.asset_graph.asset_check_keys)
