"""A run that names no tick, as `dagster job execute` makes one, polls and steps to the newest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import dagster as dg
import pytest

from mz_dagster import Project, build_frontier_sensor, build_mz_asset_checks, step_selection
from mz_dagster.adapter import Engine, SecondRunner, Session
from mz_dagster.compute import StepReport
from mz_dagster.orchestration import partition_key, partitions_of, resource
from mz_dagster.orchestration.drive import drive


def execute(
    defs: dg.Definitions, instance: dg.DagsterInstance, only: Sequence[str] | None = None
) -> dg.ExecuteInProcessResult:
    selection = None if only is None else [dg.AssetKey(one) for one in only]
    return defs.resolve_job_def("step").execute_in_process(instance=instance, asset_selection=selection)


def arrive(quiet: Project, clock: int) -> None:
    (quiet.root / "landing" / "a" / f"{clock}.jsonl").write_text(f'{{"key": {{"id": {clock}}}, "value": {{}}}}\n')
    (quiet.root / "clock").write_text(str(clock))


def materialized(result: dg.ExecuteInProcessResult) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for event in result.get_asset_materialization_events():
        one = event.step_materialization_data.materialization
        found.setdefault(one.asset_key.to_user_string(), []).append(one.partition)
    return found


def test_a_run_without_a_tick_steps_to_the_newest(
    quiet: Project, engine: Engine, defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    arrive(quiet, 1000)
    every = ("a", "b", "doubled")
    assert materialized(execute(defs, instance)) == {key: [partition_key(1000)] for key in every}
    assert sorted(Session(engine).execute("SELECT two FROM doubled").rows) == [(2000,)]
    assert partitions_of(quiet, "feed").get_partition_keys(dynamic_partitions_store=instance) == [partition_key(1000)]

    # Ticks that others minted and did not close are closed and recorded with it.
    arrive(quiet, 2000)
    engine.poll("feed")
    arrive(quiet, 3000)
    both = [partition_key(2000), partition_key(3000)]
    result = execute(defs, instance)
    assert materialized(result) == dict.fromkeys(every, both)
    assert {one.check_name for one in result.get_asset_check_evaluations()} >= {"goes_on", "since_le_upper"}

    # Nothing is new: the newest tick is told once more.
    assert materialized(execute(defs, instance)) == {key: [partition_key(3000)] for key in every}


@pytest.mark.deep
def test_a_run_waits_for_whoever_leads_and_does_what_that_one_left(
    quiet: Project, engine: Engine, defs: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several runs may be started at once, by a backfill or by hand: each that comes later was a failure."""
    arrive(quiet, 1000)
    engine.poll("feed")
    every = ("a", "b", "doubled")
    refused: list[SecondRunner] = []
    step = Engine.step
    with ExitStack() as leading:
        leading.enter_context(engine.lead("feed"))

        def tried(self: Engine, *arguments: Any, **options: Any) -> StepReport:
            try:
                return step(self, *arguments, **options)
            except SecondRunner as error:
                refused.append(error)
                leading.close()
                raise

        monkeypatch.setattr(Engine, "step", tried)
        assert materialized(execute(defs, instance)) == {key: [partition_key(1000)] for key in every}
    assert len(refused) == 1
    assert sorted(Session(engine).execute("SELECT two FROM doubled").rows) == [(2000,)]
    said = [one.user_message for one in instance.all_logs(instance.get_runs(limit=1)[0].run_id)]
    assert 'timeline "feed" is led by a session; waiting for it' in said

    # What is complete needs no lead: one that drives the timeline for ever keeps no run waiting.
    with engine.lead("feed"):
        assert materialized(execute(defs, instance)) == {key: [partition_key(1000)] for key in every}
    assert len(refused) == 2
    assert not instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))


def test_a_run_that_waits_in_vain_fails_with_who_leads(
    quiet: Project, engine: Engine, defs: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "_LEADER_DEADLINE_S", 0)
    arrive(quiet, 1000)
    engine.poll("feed")
    with engine.lead("feed"), pytest.raises(SecondRunner, match='timeline "feed" is led by a session'):
        execute(defs, instance)


def test_only_what_is_selected_is_stepped(
    quiet: Project, engine: Engine, defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    arrive(quiet, 1000)
    assert materialized(execute(defs, instance, ["a"])) == {"a": [partition_key(1000)]}
    assert engine.catalog.collection(engine.collection_of("a")).is_readable_at(1000)
    assert not engine.catalog.collection(engine.collection_of("doubled")).is_readable_at(1000)


def test_before_the_first_tick_there_is_nothing_to_do(
    quiet: Project, engine: Engine, defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    result = execute(defs, instance)
    assert result.success
    assert materialized(result) == {}


def test_a_run_of_what_is_behind_takes_only_checks_of_the_job_along(
    quiet: Project, engine: Engine, defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    """Dagster takes every check of a selected asset along, those that compute a view once more, too."""
    (stepped,) = (one for one in defs.assets or () if isinstance(one, dg.AssetsDefinition))
    job = dg.define_asset_job("step", selection=step_selection(stepped), executor_def=dg.in_process_executor)
    audited = dg.Definitions(
        assets=[stepped],
        asset_checks=[build_mz_asset_checks(quiet)],
        jobs=[job],
        sensors=[build_frontier_sensor(quiet, job)],
        resources=defs.resources,
    )
    arrive(quiet, 1000)
    execute(defs, instance, ["a"])
    assert drive(audited, instance, ticks=1, on_run=lambda run: None) == 1
    (last,) = instance.get_run_records(limit=1)
    told = instance.all_logs(last.dagster_run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    found = [one.get_dagster_event().asset_check_evaluation_data for one in told]
    assert {one.asset_key.to_user_string() for one in found} == {"b", "doubled"}
    assert {one.check_name for one in found} == {spec.name for spec in stepped.check_specs}
    assert engine.catalog.collection(engine.collection_of("doubled")).is_readable_at(1000)
