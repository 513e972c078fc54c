"""Dagster's runs of a timeline: which one is live, and how often a tick was tried in vain.

Everything is read from the instance's run records, which has those of all code locations. A run is a timeline's by its
tags, or, since runs that a person starts in the UI bear none, by its job or its assets.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import dagster as dg

from mz_dagster.adapter import Project
from mz_dagster.catalog import LedByAnother, LostLeader

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

#: After how long without any event a run that does not lead its timeline and is in no queue counts as lost.
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


def end_lost_run(instance: dg.DagsterInstance, lost: LostLeader | None, now_s: float) -> dg.DagsterRun | None:
    """Ends a run that led its timeline and whose worker is gone; returns it, or None if there is none.

    Dagster's own launcher tells only as long as the process lives that launched: after a restart of the machine or of
    the code server's container the run would be started for ever, and hold its place in queues and pools. A worker of
    another machine, which may be paused, is gone if its lease has run out and the run has said nothing for a while.

    Args:
        instance: Dagster's record.
        lost: Who led the timeline last, if the lead was not given back.
        now_s: The time, in seconds since the epoch.
    """
    record = None if lost is None else instance.get_run_record_by_id(lost.holder.removeprefix(_HOLDER))
    if lost is None or record is None or record.dagster_run.is_finished:
        return None
    run = record.dagster_run
    if not lost.is_dead and not _is_silent(instance, record, now_s):
        return None
    if lost.is_dead:
        instance.add_run_tags(run.run_id, {KILLED_TAG: "true"})  # first, so that none sees it over without
    why = "The worker of this run is gone: it led its timeline and does not renew its lease."
    if run.status == dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, why)
    else:
        instance.report_run_failed(run, why)
    # Dagster's run monitoring alone frees the slots of pools, if it is on.
    if instance.event_log_storage.supports_global_concurrency_limits:
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    return run


def live_run(
    context: dg.SensorEvaluationContext,
    project: Project,
    timeline: str,
    keys: AbstractSet[dg.AssetKey],
    leader: LedByAnother | None,
    now_s: float,
) -> dg.DagsterRun | None:
    """Returns a run that may be stepping the timeline, or None.

    A launcher that lost its worker's whole machine may never tell, nor a process that was killed while it launched:
    such a run does not lead the timeline and logs nothing, and after a while it counts as lost. If it wakes up, the
    writer's lease still keeps it from doing harm. One in a queue waits for others, for as long as these take.

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
        leads = leader is not None and leader.holder == holder_of(run.run_id)
        if run.status == dg.DagsterRunStatus.QUEUED or leads or not _is_silent(instance, record, now_s):
            return run
    return None


def _is_silent(instance: dg.DagsterInstance, record: dg.RunRecord, now_s: float) -> bool:
    """Returns whether nothing was heard of a run for so long that it counts as lost."""
    last = instance.get_records_for_run(record.dagster_run.run_id, limit=1, ascending=False).records
    heard_s = last[0].timestamp if last else record.create_timestamp.timestamp()
    return heard_s < now_s - LOST_AFTER_S


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
