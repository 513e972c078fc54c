"""The sensors as functions of the catalog and of Dagster's records, without Spark: nothing ever arrives here."""

import logging
from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from mz_dagster import Project
from mz_dagster.adapter import Engine
from mz_dagster.catalog import LedByAnother, timelines
from mz_dagster.clock import SystemClock
from mz_dagster.orchestration import partition_key, partitions_of, runs
from mz_dagster.orchestration.recording import RecordedTicks, asset_rows, asset_specs, live_ticks, unrecorded
from tests.orchestration.conftest import QUIET_SQL

RETENTION = "mz_retention_feed"
Mint = Callable[..., None]
ALL = {dg.AssetKey(name) for name in ("a", "b", "doubled")}


def asked(result: Any) -> tuple[list[str], set[str] | None]:
    """Returns the partitions and the assets of the only run request."""
    (request,) = result.run_requests
    ends = [request.tags.get(f"dagster/asset_partition_range_{end}") for end in ("start", "end")]
    keys = [request.partition_key] if request.partition_key else [end for end in ends if end]
    selection = request.asset_selection
    return keys, None if selection is None else {key.to_user_string() for key in selection}


def origin(location: str) -> RemoteJobOrigin:
    return RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), "__repository__"), "step")


def failed_run(instance: dg.DagsterInstance, defs: dg.Definitions, tags: dict[str, str]) -> None:
    instance.report_run_failed(instance.create_run_for_job(defs.resolve_job_def("step"), tags=tags))


def test_a_tick_whose_runs_keep_failing_is_asked_for_after_growing_waits_and_a_newer_one_at_once(
    engine: Engine,
    mint: Mint,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mint(1000)
    assert asked(look()) == ([partition_key(1000)], None)
    tags = dict(look().run_requests[0].tags)
    now_ms = SystemClock().now_ms()
    engine.catalog.seal([], failures={engine.collection_of("doubled"): "division of all things"})
    for tries, wait in ((1, 8), (2, 16), (3, 32)):
        failed_run(instance, defs, tags)
        held = look()
        assert not held.run_requests
        assert f"still open after {tries} runs" in held.skip_message
        assert '"doubled": division of all things' in held.skip_message
        assert "tried again at" in held.skip_message
        with monkeypatch.context() as later:
            later.setattr(SystemClock, "now_ms", lambda _, at=now_ms + (wait - 2) * 1000: at)
            assert not look().run_requests
            later.setattr(SystemClock, "now_ms", lambda _, at=now_ms + (wait + 60) * 1000: at)
            assert asked(look()) == ([partition_key(1000)], None)
    mint(2000)
    assert asked(look()) == ([partition_key(1000), partition_key(2000)], None)


def test_a_tick_whose_first_run_was_killed_is_asked_for_again_at_once(
    mint: Mint, defs: dg.Definitions, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000)
    tags = {**look().run_requests[0].tags, runs.KILLED_TAG: "true"}
    failed_run(instance, defs, tags)
    assert asked(look()) == ([partition_key(1000)], None)
    failed_run(instance, defs, tags)
    assert not look().run_requests, "it may be the tick that kills them"


def test_waits_grow_to_a_quarter_of_an_hour() -> None:
    assert [runs.wait_s(tries) for tries in range(1, 10)] == [8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_only_assets_that_are_behind_are_asked_for_and_no_tick_twice(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000)
    b = engine.collection_of("b")
    engine.step("feed", 1000, only=frozenset({b}))
    result = look()
    assert asked(result) == ([partition_key(1000)], {"a", "doubled"})
    # `b` can be read at 1000, though no run told of it.
    assert [(one.asset_key, one.partition) for one in result.asset_events] == [(dg.AssetKey("b"), partition_key(1000))]

    # At 2000 all are behind: one run of all there makes 1000 readable, too, and that is recorded afterwards.
    mint(2000)
    assert asked(look()) == ([partition_key(2000)], None)
    engine.step("feed", 2000)
    assert {(one.asset_key, one.partition) for one in look().asset_events} == {
        *((key, partition_key(2000)) for key in ALL),
        *((dg.AssetKey(name), partition_key(1000)) for name in ("a", "doubled")),
    }


def test_what_the_files_no_longer_define_is_not_asked_for_although_it_was_loaded(
    quiet: Project, request: pytest.FixtureRequest
) -> None:
    """A run's worker loads the definitions anew: a selection of what is gone from them fails it, again and again."""
    files = quiet.root / "assets"
    (files / "all.sql").write_text(f"-- @check not_null(id)\n{QUIET_SQL.lstrip()}")
    (files / "gone.sql").write_text("CREATE MATERIALIZED VIEW gone AS SELECT id FROM b")
    engine, mint, look = (request.getfixturevalue(name) for name in ("engine", "mint", "look"))
    mint(1000)
    engine.step("feed", 1000, only=frozenset({engine.collection_of("b")}))
    result = look()
    assert asked(result) == ([partition_key(1000)], {"a", "doubled", "gone"})
    assert "a_not_null_id" in {check.name for check in result.run_requests[0].asset_check_keys}

    (files / "all.sql").write_text(QUIET_SQL)
    (files / "gone.sql").unlink()
    result = look()
    assert asked(result) == ([partition_key(1000)], {"a", "doubled"})
    assert "a_not_null_id" not in {check.name for check in result.run_requests[0].asset_check_keys}
    engine.step("feed", 1000, only=frozenset(engine.collection_of(name) for name in ("a", "doubled")))
    assert asked(look()) == ([partition_key(1000)], None)  # which steps what nothing in the files stands for, too


def test_where_only_what_sessions_made_is_behind_a_run_of_all_is_asked_for(
    engine: Engine, mint: Mint, look: Callable[..., Any]
) -> None:
    from mz_dagster.adapter import Session

    Session(engine).execute("CREATE MATERIALIZED VIEW made AS SELECT id + 1 AS one FROM a")
    mint(1000, 2000)
    engine.step("feed", 2000, only=frozenset(engine.collection_of(name) for name in ("a", "b", "doubled")))
    assert asked(look()) == ([partition_key(2000)], None)


def test_a_tick_that_became_readable_without_a_run_is_materialized_once(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000, 2000)
    engine.step("feed", 2000)
    first = look()
    assert not first.run_requests
    assert {(one.asset_key, one.partition) for one in first.asset_events} == {
        (key, partition_key(tick)) for key in ALL for tick in (1000, 2000)
    }
    assert all(one.metadata["mz/outcome"].value == "readable" for one in first.asset_events)
    counted = {(one.asset_key, one.partition) for one in first.asset_events if "dagster/row_count" in one.metadata}
    assert counted == {(key, partition_key(2000)) for key in ALL}, "how many rows there are is told of the newest"
    assert instance.get_dynamic_partitions("mz_ticks_shop.feed") == [partition_key(1000), partition_key(2000)]
    assert not look().asset_events
    assert not look(lost_cursor=True).asset_events
    mint(3000)
    engine.step("feed", 3000)
    assert len(look().asset_events) == len(ALL)


def test_many_are_recorded_in_portions(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, defs: dg.Definitions
) -> None:
    mint(*range(1000, 1030))
    engine.step("feed", 1029)
    assets = asset_rows(engine, asset_specs(defs.get_repository_def(), engine, "feed"))
    ticks = live_ticks(engine, "feed")
    found, recorded = [], RecordedTicks({})
    for _ in range(9):
        portion, recorded = unrecorded(instance, assets, ticks, recorded, most=10)
        assert len(portion) == 10
        found += [(one.key, one.tick) for one in portion]
    assert sorted(found) == sorted((key, tick) for key in ALL for tick in range(1000, 1030))
    assert unrecorded(instance, assets, ticks, recorded, most=10) == ([], recorded)
    assert RecordedTicks.from_text(recorded.to_text()) == recorded
    assert RecordedTicks.from_text("no cursor of ours") == RecordedTicks({})


def test_while_another_process_leads_the_sensor_waits_and_says_so(
    engine: Engine, mint: Mint, look: Callable[..., Any]
) -> None:
    mint(1000)
    with engine.lead("feed") as lead:
        assert not isinstance(lead, LedByAnother)
        held = look()
        assert not held.run_requests
        assert "is led by a session" in held.skip_message
    assert look().run_requests


@pytest.mark.parametrize("start", ["tag", "selection", "job", "implicit"])
def test_a_run_is_live_by_its_tag_its_assets_or_its_job(
    start: str, engine: Engine, mint: Mint, defs: dg.Definitions, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000)
    step, implicit = defs.resolve_job_def("step"), defs.resolve_implicit_global_asset_job_def()
    started = dg.DagsterRunStatus.STARTED
    match start:
        case "tag":
            run = instance.create_run_for_job(
                implicit, tags={"mz/project": "shop", "mz/timeline": "feed"}, status=started
            )
        case "selection":
            some = frozenset({dg.AssetKey("b")})
            run = instance.create_run_for_job(implicit, asset_selection=some, status=started)
        case "job":
            run = instance.create_run_for_job(step, status=started)
        case _:
            run = instance.create_run_for_job(implicit, status=started)
    held = look()
    assert not held.run_requests
    assert f"run {run.run_id}" in held.skip_message
    assert "is live; 1 ticks wait for it" in held.skip_message
    instance.report_run_failed(run)
    assert look().run_requests


def test_runs_of_other_things_keep_nothing_waiting(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    @dg.job
    def elsewhere() -> None: ...

    mint(1000)
    others = ({"mz/project": "shop", "mz/timeline": "other"}, {"mz/project": "depot", "mz/timeline": "feed"})
    for tags in others:
        instance.create_run_for_job(elsewhere, tags=tags, status=dg.DagsterRunStatus.STARTED)
    assert look().run_requests


def test_a_job_of_the_same_name_in_another_code_location_keeps_nothing_waiting(
    mint: Mint,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its runs begin in the UI's launchpad without a tag and without a selection."""
    mint(1000)
    here = origin("shop").repository_origin.code_location_origin
    monkeypatch.setattr(dg.SensorEvaluationContext, "code_location_origin", here)
    for location, is_held in (("depot", False), ("shop", True)):
        instance.create_run_for_job(
            defs.resolve_job_def("step"), remote_job_origin=origin(location), status=dg.DagsterRunStatus.STARTED
        )
        assert bool(look().run_requests) is not is_held


def test_a_failed_tick_of_another_project_makes_none_wait(
    mint: Mint, defs: dg.Definitions, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000)
    failed_run(instance, defs, {**look().run_requests[0].tags, "mz/project": "depot"})
    assert asked(look()) == ([partition_key(1000)], None)


def test_a_run_whose_worker_vanished_with_its_machine_counts_as_lost_after_a_while(
    engine: Engine,
    mint: Mint,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mint(1000)
    run = instance.create_run_for_job(
        defs.resolve_job_def("step"),
        tags={"mz/project": "shop", "mz/timeline": "feed"},
        status=dg.DagsterRunStatus.STARTED,
    )
    instance.report_engine_event("its last words", run)
    assert "is live" in look().skip_message
    later = SystemClock().now_ms() + int(runs.LOST_AFTER_S + 10) * 1000
    monkeypatch.setattr(SystemClock, "now_ms", lambda _: later)
    assert look().run_requests
    # One that leads the timeline is at work, however long it says nothing.
    with Engine(engine.project, holder=runs.holder_of(run.run_id)) as working, working.lead("feed") as lead:
        assert not isinstance(lead, LedByAnother)
        assert "is live" in look().skip_message


@pytest.mark.parametrize("status", [status for status in runs.LIVE if status is not dg.DagsterRunStatus.STARTED])
def test_a_run_that_was_lost_before_it_started_or_while_it_was_terminated_keeps_nothing_waiting_for_ever(
    status: dg.DagsterRunStatus,
    mint: Mint,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mint(1000)
    run = instance.create_run_for_job(defs.resolve_job_def("step"), remote_job_origin=origin("shop"), status=status)
    is_queued = status == dg.DagsterRunStatus.QUEUED
    state = "is in Dagster's queue" if is_queued else "is live"
    said = f'run {run.run_id} of timeline "feed" {state}; 1 ticks wait for it'
    assert look().skip_message == said
    later = SystemClock().now_ms() + int(runs.LOST_AFTER_S + 10) * 1000
    monkeypatch.setattr(SystemClock, "now_ms", lambda _: later)
    if is_queued:
        assert look().skip_message == said
    else:
        assert look().run_requests


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE),
        (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED),
    ],
)
@pytest.mark.parametrize("here", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_a_run_whose_worker_was_killed_with_its_launcher_is_ended(
    here: bool,
    was: dg.DagsterRunStatus,
    becomes: dg.DagsterRunStatus,
    engine: Engine,
    mint: Mint,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would be there for ever, and hold its place in a queue with limits and its slot of a pool."""
    mint(1000)
    tags = look().run_requests[0].tags
    run = instance.create_run_for_job(defs.resolve_job_def("step"), tags=tags, status=was)
    pools = instance.event_log_storage
    pools.set_concurrency_slots("spark", 1)
    assert pools.claim_concurrency_slot("spark", run.run_id, "step").is_claimed
    engine.catalog.lead("feed", runs.holder_of(run.run_id), 60_000)
    assert "is live" in look().skip_message
    if here:
        monkeypatch.setattr(timelines, "is_dead", lambda process: process is not None)
    else:
        later = SystemClock().now_ms() + 61_000
        monkeypatch.setattr(SystemClock, "now_ms", lambda _: later)
        assert "is live" in look().skip_message, "its machine may be paused, or cut off"
        much_later = later + int(runs.LOST_AFTER_S) * 1000
        monkeypatch.setattr(SystemClock, "now_ms", lambda _: much_later)
    assert asked(look()) == ([partition_key(1000)], None)
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status == becomes
    assert (runs.KILLED_TAG in ended.tags) is here
    assert not pools.get_concurrency_info("spark").claimed_slots


def test_a_source_that_cannot_be_polled_stays_behind_alone_and_its_check_says_so_until_it_heals(
    engine: Engine, mint: Mint, quiet: Project, look: Callable[..., Any]
) -> None:
    mint(1000)
    folder = quiet.root / "landing" / "a"
    folder.rmdir()

    def told(result: Any) -> dict[str, tuple[bool, str]]:
        checks = [one for one in result.asset_events if isinstance(one, dg.AssetCheckEvaluation)]
        assert {one.check_name for one in checks} <= {"goes_on"}
        return {one.asset_key.to_user_string(): (one.passed, one.description or "") for one in checks}

    found = look()
    assert found.run_requests
    said = told(found)
    assert said.keys() == {"a", "doubled"}
    assert not said["a"][0]
    assert "does not exist" in said["a"][1]
    assert not said["doubled"][0]
    assert 'waits for "a"' in said["doubled"][1]
    assert [one.name for one in engine.step("feed", 1000).failures] == ["a"]
    found = look()
    assert told(found) == {}, "told once"
    recorded = [one.asset_key for one in found.asset_events if isinstance(one, dg.AssetMaterialization)]
    assert recorded == [dg.AssetKey("b")]
    folder.mkdir()
    found = look()
    assert {passed for passed, _ in told(found).values()} == {True}
    assert found.run_requests
    assert not engine.step("feed", 1000).failures


def test_a_file_that_is_wrong_keeps_nothing_that_was_applied_from_being_advanced(
    engine: Engine, mint: Mint, quiet: Project, look: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    (quiet.root / "assets" / "wrong.sql").write_text("CREATE MATERIALIZED VIEW wrong AS SELECT nothing FROM a")
    mint(1000)
    assert look().run_requests
    assert "wrong.sql:1" in caplog.text


def test_retention_forgets_and_prunes_partitions_and_tells_of_it(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000, 2000, 3000, 4000)
    engine.step("feed", 4000)
    look()
    instance.add_dynamic_partitions("mz_ticks_shop.feed", ["added by hand"])
    result = look(RETENTION)
    # `keep` is 1500 ms: of upper 4001, what is before 2500 is forgotten.
    assert {one.asset_key for one in result.asset_events} == ALL
    assert all(one.metadata["mz/since"].value == 2500 for one in result.asset_events)
    assert all(isinstance(one, dg.AssetObservation) for one in result.asset_events)
    left = [partition_key(3000), partition_key(4000), "added by hand"]
    assert instance.get_dynamic_partitions("mz_ticks_shop.feed") == left
    again = look(RETENTION)
    assert not again.asset_events
    assert not again.dynamic_partitions_requests
    # What is forgotten does not come back as a partition or materialization.
    assert not look(lost_cursor=True).asset_events
    assert instance.get_dynamic_partitions("mz_ticks_shop.feed") == left


def test_a_run_of_ticks_that_are_forgotten_says_that_nothing_was_done(
    engine: Engine, mint: Mint, defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    mint(1000, 2000, 4000)
    engine.step("feed", 4000)
    engine.forget("feed")
    instance.add_dynamic_partitions("mz_ticks_shop.feed", [partition_key(tick) for tick in (1000, 2000, 4000)])

    def run(**asked: Any) -> tuple[dict[str, str], list[str]]:
        result = defs.resolve_job_def("step").execute_in_process(
            instance=instance, run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}, **asked
        )
        events = (one.step_materialization_data.materialization for one in result.get_asset_materialization_events())
        outcomes = {str(one.partition): str(one.metadata["mz/outcome"].value) for one in events}
        warned = [one.user_message for one in instance.all_logs(result.run_id) if one.level == logging.WARNING]
        return outcomes, [one for one in warned if "forgotten" in one]

    outcomes, warned = run(partition_key=partition_key(1000))
    assert outcomes == {partition_key(1000): "forgotten"}
    assert len(warned) == len(ALL)
    assert "nothing was computed for them" in warned[0]
    ends = {f"dagster/asset_partition_range_{end}": partition_key(t) for end, t in (("start", 1000), ("end", 4000))}
    outcomes, warned = run(tags=ends)
    assert outcomes == dict(
        zip(map(partition_key, (1000, 2000, 4000)), ("forgotten", "forgotten", "current"), strict=True)
    )
    assert "was complete at 2 of the run's ticks" in warned[0]


def test_an_asset_to_which_nothing_happens_stays_fresh_while_its_frontier_follows_time(
    engine: Engine,
    mint: Mint,
    quiet: Project,
    instance: dg.DagsterInstance,
    look: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (quiet.root / "clock").write_text("1000")
    mint(1000)
    engine.step("feed", 1000)
    look()
    real = SystemClock().now_ms()

    def fresh(minutes: float) -> list[tuple[str, str | None]]:
        with monkeypatch.context() as later:
            later.setattr(SystemClock, "now_ms", lambda _: real + int(minutes * 60_000))
            events = look(RETENTION).asset_events
        made = [one for one in events if isinstance(one, dg.AssetMaterialization)]
        return [(one.asset_key.to_user_string(), one.partition) for one in made]

    assert fresh(3) == []  # nothing has moved: whether it is fresh, nobody knows
    (quiet.root / "clock").write_text("1400")
    assert engine.poll("feed").tick is None  # idle: the frontier follows the clock, without a tick
    assert fresh(1) == []  # not yet half of the window, which is four minutes
    assert fresh(3) == [("doubled", partition_key(1000))]
    assert fresh(3) == []  # it was told of this frontier
    (quiet.root / "clock").write_text("100000")
    assert fresh(6) == []  # time has gone on, but not the frontier


def test_partitions_keep_the_order_of_ticks(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, look: Callable[..., Any]
) -> None:
    mint(1000, 2000)
    engine.step("feed", 2000)
    mint(3000)
    look()
    keys = partitions_of(engine.project, "feed").get_partition_keys(dynamic_partitions_store=instance)
    assert list(keys) == [partition_key(tick) for tick in (1000, 2000, 3000)]
