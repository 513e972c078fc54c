"""The frontier sensor, which pushes the uppers forward, and the retention sensor, which lets the sinces follow.

The frontier sensor asks the sources what is there, mints ticks, requests runs, and records what is readable. It is
a function of the catalog and of Dagster's records, with no state of its own:

- as long as a minted tick is open and no run of its timeline is live, it asks for one run over all such ticks. So a run
  that died is asked for again, what piled up is one range, and two runs of a timeline never overlap;
- a run is asked only for the assets that are behind, at the ticks at which all of these are, and only for what files
  define: its worker loads them anew, and knows nothing of what a code location that was loaded before still has;
- a tick whose runs keep ending with it open is asked for after growing waits; a newer tick, or one that waited for a
  source that can be polled again, at once;
- a source that cannot be polled stays behind, with what depends on it, as their checks `goes_on` say;
- while another process leads the timeline, that one polls and steps, and the sensor does neither;
- Dagster looks at sensors every five seconds. Where each has a thread, an evaluation that finds nothing goes on
  watching until shortly before its second next look: for arrivals, and for the end of the live run;
- ticks that became readable without a run become materialized partitions.

A crash between minting and requesting changes nothing: the tick is durable, and the next evaluation asks.

The retention sensor forgets history as far as retention and capabilities allow, takes forgotten ticks out of Dagster's
partitions, and tells Dagster of assets that are fresh because nothing has happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta

import dagster as dg

from mz_dagster.adapter import Arrivals, Engine, Project, effective_objects
from mz_dagster.catalog import CollectionRow
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.orchestration.data_checks import CHECK_KEY, data_check_specs
from mz_dagster.orchestration.events import NAME_KEY, asset_metadata
from mz_dagster.orchestration.frontier_checks import poll_changes
from mz_dagster.orchestration.recording import (
    RecordedTicks,
    UnrecordedTick,
    asset_rows,
    asset_specs,
    live_ticks,
    materializations,
    missing_partitions,
    unrecorded,
)
from mz_dagster.orchestration.resource import MzResource
from mz_dagster.orchestration.runs import TICK_TAG, attempts_of, checks_of, end_lost_run, is_over, live_run, tags_of
from mz_dagster.orchestration.ticks import named, partition_key, partitions_of, tick_of

#: How many materializations one evaluation records; Dagster gives a sensor a minute, and each takes some milliseconds.
_EVENTS = 200

#: How many partitions one evaluation deletes, for the same reason.
_DELETIONS = 1000

#: For how long an evaluation watches, and after which time it polls again without a sign, in seconds. Dagster looks
#: every five, and what is not over by then misses a look.
_WATCH_S, _POLL_S = 8.5, 4.5
#: How often to look at folders and the live run, and how long after a poll at the earliest to follow a sign.
_LOOK_S, _FOLLOW_S = 0.1, 0.3

#: How far a frontier may be behind its timeline's time to count as caught up.
_CAUGHT_UP_MS = 60_000


def build_frontier_sensor(
    project: Project,
    job: dg.JobDefinition | dg.UnresolvedAssetJobDefinition,
    *,
    timeline: str | None = None,
    name: str | None = None,
    minimum_interval_seconds: int = 4,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
) -> dg.SensorDefinition:
    """Returns the sensor that pushes a timeline's frontier forward by runs of `job`.

    Args:
        project: The project.
        job: The job over the timeline's assets.
        timeline: Which timeline; by default the project's own.
        name: The sensor's name; by default `mz_frontier_` and the timeline.
        minimum_interval_seconds: Dagster looks every five seconds; four makes it every look.
        default_status: Whether it runs without being switched on.
    """
    chosen = timeline or project.timeline
    called = name or named("mz_frontier", chosen)

    @dg.sensor(
        name=called,
        job=job,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description=f'Polls the sources of timeline "{chosen}", mints ticks and requests their runs.',
    )
    def frontier(context: dg.SensorEvaluationContext, mz: MzResource) -> dg.SensorResult:
        with mz.engine(f"dagster sensor {called}") as engine:
            until = engine.clock.monotonic_ms() + 1000 * (_WATCH_S if _may_watch(context) else 0)
            while True:
                arrivals = engine.arrivals(chosen)
                result, live = _evaluate(context, engine, chosen, job.name)
                if _requests_runs(result) or not _arrives_before(context.instance, engine, arrivals, live, until):
                    return result

    return frontier


def build_retention_sensor(
    project: Project,
    *,
    timeline: str | None = None,
    name: str | None = None,
    minimum_interval_seconds: int = 60,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
) -> dg.SensorDefinition:
    """Returns the sensor that lets a timeline's sinces rise, and keeps partitions and freshness true to them.

    Args:
        project: The project; its `retention.keep` and each object's `RETAIN HISTORY` say how much is kept.
        timeline: Which timeline; by default the project's own.
        name: The sensor's name; by default `mz_retention_` and the timeline.
        minimum_interval_seconds: How often it looks.
        default_status: Whether it runs without being switched on.
    """
    chosen = timeline or project.timeline
    called = name or named("mz_retention", chosen)

    @dg.sensor(
        name=called,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description=f'Forgets history of timeline "{chosen}" as retention allows, and prunes its partitions.',
    )
    def retention(context: dg.SensorEvaluationContext, mz: MzResource) -> dg.SensorResult:
        with mz.engine(f"dagster sensor {called}") as engine:
            return _retain(context, engine, chosen)

    return retention


# ---- the frontier sensor


def _may_watch(context: dg.SensorEvaluationContext) -> bool:
    """Returns whether the daemon evaluates, which tells since when, and other sensors need not wait for this one."""
    return context.last_sensor_start_time is not None and bool(
        context.instance.get_sensor_settings().get("use_threads")
    )


def _requests_runs(result: dg.SensorResult) -> bool:
    return bool(result.run_requests or result.dynamic_partitions_requests or result.asset_events)


def _arrives_before(
    instance: dg.DagsterInstance, engine: Engine, arrivals: Arrivals, live: str | None, until_ms: float
) -> bool:
    """Waits for the live run's end or else for arrivals; returns whether to evaluate again, and False if time is up."""
    started = engine.clock.monotonic_ms()
    while (now := engine.clock.monotonic_ms()) < until_ms:
        if live is not None:
            run = instance.get_run_by_id(live)
            if run is None or run.is_finished:
                return True
        elif now >= started + 1000 * _FOLLOW_S and arrivals.changed():
            return True
        if now >= started + 1000 * _POLL_S:
            return True
        engine.clock.sleep(_LOOK_S)
    return False


def _evaluate(
    context: dg.SensorEvaluationContext, engine: Engine, timeline: str, job: str
) -> tuple[dg.SensorResult, str | None]:
    """Returns what to do, and which run is live."""
    instance = context.instance
    specs = asset_specs(context.repository_def, engine, timeline)
    # Frontiers before runs: what a run had sealed when it is found to be over, it has also recorded.
    assets = asset_rows(engine, specs)
    leader = engine.catalog.leader(timeline, engine.project.lease_ms)
    if leader is not None and is_over(instance, leader):
        context.log.warning(f"{leader.holder} is over and still leads: its worker was killed, so its lease is ended")
        engine.catalog.depose(leader)
        leader = None
    if (
        ended := end_lost_run(instance, engine.catalog.lost_leader(timeline), engine.clock.now_ms() / 1000)
    ) is not None:
        context.log.warning(f"run {ended.run_id} had no worker any more, and is ended")
    now_s = engine.clock.now_ms() / 1000
    live = live_run(context, engine.project, timeline, frozenset(assets), leader, now_s)
    if leader is not None and live is None:
        return dg.SensorResult(
            skip_reason=f'timeline "{timeline}" is led by {leader.holder}, which polls and steps it itself; '
            f"{leader.ending(engine.clock.now_ms())}",
            cursor=context.cursor,
        ), None
    failure: Error | None = None
    reason = ""
    healed: Set[GlobalId] = frozenset()
    events: list[dg.AssetMaterialization | dg.AssetCheckEvaluation] = []
    try:
        polled = engine.poll(timeline)
        reason, healed = polled.reason, polled.healed
        events += poll_changes(engine, timeline, assets, polled.changed)
    except Error as error:  # what was minted before is requested all the same
        failure, reason = error, str(error)
    ticks = live_ticks(engine, timeline)
    new = missing_partitions(instance, engine, timeline, ticks)
    requests = [partitions_of(engine.project, timeline).build_add_request(new)] if new else []
    shown = frozenset(ticks)
    open_ticks = [tick for tick in engine.unsealed_ticks(timeline) if tick in shown]
    if live is not None:
        _raise_if_alone(context, failure, bool(new))
        state = "is in Dagster's queue" if live.status == dg.DagsterRunStatus.QUEUED else "is live"
        waiting = f"; {len(open_ticks)} ticks wait for it" if open_ticks else ""
        return dg.SensorResult(
            skip_reason=f'run {live.run_id} of timeline "{timeline}" {state}{waiting}',
            dynamic_partitions_requests=requests,
            asset_events=events,
            cursor=context.cursor,
        ), live.run_id
    lacking, recorded = unrecorded(instance, assets, ticks, RecordedTicks.from_text(context.cursor), most=_EVENTS)
    events += materializations(instance, engine, lacking)
    request = None
    if open_ticks:
        before = attempts_of(instance, engine.project, timeline, partition_key(open_ticks[-1]))
        if before is None or before.again_at <= now_s or healed:
            defined, checks = _defined(context.repository_def, engine, specs, checks_of(context.repository_def, job))
            request = _request(tags_of(engine.project, timeline), open_ticks, asset_rows(engine, defined), checks)
        else:
            at = datetime.fromtimestamp(before.again_at, UTC)
            reason = (
                f"tick {partition_key(open_ticks[-1])} is still open after {before.times} runs "
                f"({_failing(engine, timeline)}); it is tried again at {at:%H:%M:%S} UTC, newer ticks at once"
            )
    _raise_if_alone(context, failure, bool(new or events or request))
    return dg.SensorResult(
        run_requests=[] if request is None else [request],
        skip_reason=reason if request is None else None,
        dynamic_partitions_requests=requests,
        asset_events=events,
        cursor=recorded.to_text(),
    ), None


def _raise_if_alone(context: dg.SensorEvaluationContext, failure: Error | None, found: bool) -> None:
    """Raises a failed poll, which fails the evaluation, unless that would lose what else was found."""
    if failure is None:
        return
    if not found:
        raise failure
    context.log.error(str(failure))


def _defined(
    repository: dg.RepositoryDefinition | None,
    engine: Engine,
    specs: Sequence[dg.AssetSpec],
    checks: Sequence[dg.AssetCheckKey],
) -> tuple[list[dg.AssetSpec], list[dg.AssetCheckKey]]:
    """Returns those of the assets and of a job's checks, as they were loaded, that the files define now."""
    objects = {one.name: one for one in effective_objects(engine.project)}
    defined = [spec for spec in specs if spec.metadata[NAME_KEY] in objects]
    there = {one.key for one in data_check_specs(objects, {str(one.metadata[NAME_KEY]): one.key for one in defined})}
    definitions = {} if repository is None else repository.assets_defs_by_key
    loaded = (check for one in definitions.values() for check in one.check_specs if CHECK_KEY in check.metadata)
    gone = {check.key for check in loaded} - there
    return defined, [check for check in checks if check not in gone]


def _request(
    tags: Mapping[str, str],
    ticks: Sequence[int],
    assets: Mapping[dg.AssetKey, CollectionRow],
    checks: Sequence[dg.AssetCheckKey],
) -> dg.RunRequest:
    """Returns the request for one run over the open ticks.

    It selects the assets that are behind, all others being finished, with those of the job's `checks` that are theirs:
    Dagster would take along whatever checks them, an audit, too. Its ticks are those at which every selected asset
    is behind, so that no asset is materialized twice at a tick; at the ones before, at which only some are, the run's
    step makes the others readable, too, and they are recorded afterwards.
    """
    behind = {key: row for key, row in assets.items() if row.upper.less_equal(ticks[-1])}
    # What is no asset is stepped by a run of all: where only such is behind, and where all assets are.
    selection = sorted(behind) if 0 < len(behind) < len(assets) else None
    of_these = None if selection is None else [check for check in checks if check.asset_key in behind]
    keys = [partition_key(tick) for tick in ticks if all(row.upper.less_equal(tick) for row in behind.values())]
    if not behind:
        keys = keys[-1:]
    tags = {**tags, TICK_TAG: keys[-1]}
    if len(keys) == 1:
        return dg.RunRequest(partition_key=keys[0], tags=tags, asset_selection=selection, asset_check_keys=of_these)
    tags |= {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
    return dg.RunRequest(tags=tags, asset_selection=selection, asset_check_keys=of_these)


def _failing(engine: Engine, timeline: str) -> str:
    """Returns which collections fail and why, in one line."""
    names = engine.names()
    failing = [row for row in engine.catalog.collections(timeline) if row.reason is not None]
    return "; ".join(f'"{names.get(row.id, row.id)}": {row.reason}' for row in failing) or "no collection says why"


# ---- the retention sensor


def _retain(context: dg.SensorEvaluationContext, engine: Engine, timeline: str) -> dg.SensorResult:
    moved = engine.forget(timeline)
    specs = asset_specs(context.repository_def, engine, timeline)
    assets = asset_rows(engine, specs)
    last = engine.catalog.last_tick(timeline) or 0
    told = [
        dg.AssetObservation(key, metadata=asset_metadata(engine, row, last))
        for key, row in assets.items()
        if row.id in moved
    ]
    fresh = materializations(context.instance, engine, list(_fresh(context.instance, engine, timeline, specs, assets)))
    forgotten = _forgotten(context.instance, engine, timeline)
    portion = forgotten[:_DELETIONS]
    rest = f", {len(forgotten) - len(portion)} more to go" if len(forgotten) > len(portion) else ""
    return dg.SensorResult(
        skip_reason=f"since of {len(moved)} collections moved; {len(portion)} partitions deleted{rest}",
        dynamic_partitions_requests=[partitions_of(engine.project, timeline).build_delete_request(portion)]
        if portion
        else [],
        asset_events=[*told, *fresh],
    )


def _forgotten(instance: dg.DagsterInstance, engine: Engine, timeline: str) -> list[str]:
    """Returns the partitions of ticks that are readable nowhere any more, or too many to show; oldest first."""
    live = live_ticks(engine, timeline)
    if not live:
        return []
    keys = partitions_of(engine.project, timeline).get_partition_keys(dynamic_partitions_store=instance)
    return [key for key in keys if (tick := _tick_or_none(key)) is not None and tick < live[0]]


def _tick_or_none(key: str) -> int | None:
    try:
        return tick_of(key)
    except ValueError:
        return None  # not ours: somebody has added it by hand


def _fresh(
    instance: dg.DagsterInstance,
    engine: Engine,
    timeline: str,
    specs: Sequence[dg.AssetSpec],
    assets: Mapping[dg.AssetKey, CollectionRow],
) -> Iterator[UnrecordedTick]:
    """Yields the assets that Dagster would soon call stale although they are complete to this moment.

    Dagster judges freshness by the last materialization alone, and a poll that finds nothing makes none. So where the
    frontier has moved since, and stands at the timeline's time, the newest closed tick is materialized once more, at
    most once per half of the policy's window.
    """
    now_s, present = engine.clock.now_ms() / 1000, engine.now(timeline)
    ticks = engine.catalog.ticks(timeline, 1)
    for spec in specs:
        row, window = assets.get(spec.key), _window(spec)
        if row is None or window is None or not ticks or row.upper.is_empty or row.upper.less_equal(ticks[-1]):
            continue
        last = instance.get_latest_materialization_event(spec.key)
        if last is None or last.asset_materialization is None or now_s - last.timestamp < window.total_seconds() / 2:
            continue
        seen = last.asset_materialization.metadata.get("mz/upper")
        moved = seen is None or not isinstance(seen.value, int) or seen.value < row.upper.only
        if moved and present - row.upper.only <= _CAUGHT_UP_MS:
            yield UnrecordedTick(spec.key, row, ticks[-1])


def _window(spec: dg.AssetSpec) -> timedelta | None:
    """Returns within which time an asset's freshness policy wants to see a materialization; None without a policy."""
    policy = spec.freshness_policy
    for name in ("warn_window", "fail_window"):
        if (window := getattr(policy, name, None)) is not None:
            return timedelta(seconds=window.to_timedelta().total_seconds())
    bound = getattr(policy, "lower_bound_delta", None)
    return bound if isinstance(bound, timedelta) else None
