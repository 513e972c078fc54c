"""Sensors mint ticks and request runs, runs step and materialize: in process, recorded in a Dagster instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pytest

from mz_dagster import Project
from mz_dagster.adapter import Engine, Session
from mz_dagster.orchestration import partition_key
from mz_dagster.orchestration.drive import RunDone, RunFailed, drive

ORDER = '{"key": {"id": %d}, "value": {"customer": "%s", "amount": %d}}'
CUSTOMER = '{"key": {"name": "%s"}, "value": {"city": "%s"}}'


def evaluate(definitions: dg.Definitions, instance: dg.DagsterInstance) -> Any:
    sensor = definitions.resolve_sensor_def("mz_frontier_feed")
    with dg.build_sensor_context(
        instance=instance,
        instance_ref=instance.get_ref(),
        definitions=definitions,
        sensor_name=sensor.name,
        resources=definitions.resources or {},
    ) as context:
        return sensor.evaluate_tick(context)


def rows(project: Project, as_of: int) -> list[tuple[Any, ...]]:
    with Engine(project) as engine:
        return sorted(Session(engine).execute(f"SELECT * FROM ordered AS OF {as_of}").rows)


def test_ticks_become_runs_and_materialized_partitions(
    project: Project, drop: Callable[..., None], definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    done: list[RunDone] = []
    drop(1000, "orders", ORDER % (1, "ann", 5), ORDER % (2, "bob", 7))
    assert drive(definitions, instance, ticks=1, on_run=done.append) == 1
    drop(2000, "customers", CUSTOMER % ("ann", "Oslo"))
    assert drive(definitions, instance, ticks=1, on_run=done.append) == 1
    assert [run.partition for run in done] == [partition_key(1000), partition_key(2000)]
    assert {one.name: one.outcome for one in done[1].assets} == {
        "orders": "idle",
        "customers": "advanced",
        "ordered": "advanced",
        "ordered_by_city": "advanced",
    }
    assert rows(project, 1000) == []
    assert rows(project, 2000) == [(1, 10, "Oslo")]

    materialized = instance.get_materialized_partitions(dg.AssetKey("ordered"))
    assert materialized == {partition_key(1000), partition_key(2000)}
    event = instance.get_latest_materialization_event(dg.AssetKey("ordered"))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = {key: value.value for key, value in event.asset_materialization.metadata.items()}
    assert (metadata["mz/since"], metadata["mz/upper"], metadata["mz/rows_out"]) == (0, 2001, 1)

    # Nothing new: no run, and a closed tick that is run again changes nothing.
    assert drive(definitions, instance, ticks=1, on_run=done.append, idle_rounds=1) == 0
    with Engine(project) as engine:
        before = [(row.since, row.upper) for row in engine.catalog.collections()]
        batches = engine.catalog.live_batch_counts()
    again = definitions.resolve_job_def("step").execute_in_process(instance=instance, partition_key=partition_key(1000))
    assert again.success
    with Engine(project) as engine:
        assert [(row.since, row.upper) for row in engine.catalog.collections()] == before
        assert engine.catalog.live_batch_counts() == batches


def test_what_piled_up_is_one_range_and_runs_never_overlap(
    project: Project, drop: Callable[..., None], definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    drop(1000, "orders", ORDER % (1, "ann", 5))
    first = evaluate(definitions, instance)
    assert [request.partition_key for request in first.run_requests] == [partition_key(1000)]
    for request in first.dynamic_partitions_requests:
        instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)

    # The request was lost (a crash, say): the next look asks again, for everything that has piled up.
    drop(2000, "customers", CUSTOMER % ("ann", "Oslo"))
    second = evaluate(definitions, instance)
    (request,) = second.run_requests
    assert request.tags["dagster/asset_partition_range_start"] == partition_key(1000)
    assert request.tags["dagster/asset_partition_range_end"] == partition_key(2000)

    # While a run of the timeline is live, none is requested.
    live = instance.create_run_for_job(
        definitions.resolve_job_def("step"),
        tags={"mz/project": "shop", "mz/timeline": "feed"},
        status=dg.DagsterRunStatus.STARTED,
    )
    held = evaluate(definitions, instance)
    assert not held.run_requests
    assert "is live" in held.skip_message
    instance.delete_run(live.run_id)

    done: list[RunDone] = []
    assert drive(definitions, instance, ticks=1, on_run=done.append) == 1
    assert done[0].partition == f"{partition_key(1000)}..{partition_key(2000)}"
    assert rows(project, 2000) == [(1, 10, "Oslo")]
    materialized = instance.get_materialized_partitions(dg.AssetKey("ordered"))
    assert materialized == {partition_key(1000), partition_key(2000)}
    assert not evaluate(definitions, instance).run_requests


def test_a_failed_collection_fails_the_run_and_keeps_the_others(
    project: Project, drop: Callable[..., None], definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    drop(1000, "orders", ORDER % (1, "ann", 5))
    drop(1500, "customers", CUSTOMER % ("ann", "Oslo"))
    evaluate(definitions, instance)
    bound = project.root / "landing" / "orders" / "1000.jsonl"
    good = bound.read_text()
    bound.write_text(good.replace("5", "6"))
    done: list[RunDone] = []
    with pytest.raises(RunFailed, match=r"1000\.jsonl"):
        drive(definitions, instance, ticks=1, on_run=done.append)
    assert instance.get_materialized_partitions(dg.AssetKey("ordered")) == set()

    bound.write_text(good)
    assert drive(definitions, instance, ticks=1, on_run=done.append) == 1
    assert rows(project, 1500) == [(1, 10, "Oslo")]


@pytest.mark.deep
def test_what_sessions_created_is_stepped_by_runs_too(
    project: Project, drop: Callable[..., None], definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    done: list[RunDone] = []
    drop(1000, "orders", ORDER % (1, "ann", 5))
    assert drive(definitions, instance, ticks=1, on_run=done.append) == 1
    with Engine(project) as engine:
        session = Session(engine)
        session.execute("CREATE TABLE notes (a integer)")
        session.execute("CREATE MATERIALIZED VIEW doubled AS SELECT twice * 2 AS four FROM ordered")
    drop(2000, "customers", CUSTOMER % ("ann", "Oslo"))
    assert drive(definitions, instance, ticks=1, on_run=done.append) == 1
    with Engine(project) as engine:
        assert engine.unsealed_ticks("feed") == ()  # else runs would be requested for ever
        assert engine.catalog.collection(engine.collection_of("doubled")).upper.only == 2001
    assert not evaluate(definitions, instance).run_requests
