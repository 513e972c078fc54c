"""What a run leaves in Dagster: the events of its assets, its log, its failures, and what a second run does."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource

from mz_dagster import MzResource, Project, StepResult, mz_assets, step_selection
from mz_dagster.adapter import Engine
from mz_dagster.adapter.samples import CELL, shown
from mz_dagster.orchestration import partition_key
from mz_dagster.storage.spark import SparkConfig, ensure_server

ORDER = '{"key": {"id": %d}, "value": {"customer": "%s", "amount": %d}}'
CUSTOMER = '{"key": {"name": "%s"}, "value": {"city": "%s"}}'
NUMBERS = {
    "mz/since",
    "mz/upper",
    "mz/lag_ms",
    "mz/rows_in",
    "mz/rows_out",
    "mz/rows_retained",
    "mz/errors",
    "mz/bytes",
    "mz/batches",
    "mz/handovers",
    "mz/spark_s",
}


def mint(project: Project, instance: dg.DagsterInstance) -> int:
    """Polls, as a sensor would; returns the tick, whose partition is there."""
    with Engine(project) as engine:
        engine.apply()
        tick = engine.poll("feed").tick
    assert tick is not None
    instance.add_dynamic_partitions("mz_ticks_shop.feed", [partition_key(tick)])
    return tick


def run(definitions: dg.Definitions, instance: dg.DagsterInstance, first: int, last: int) -> dg.ExecuteInProcessResult:
    """Runs a tick or a range of them."""
    job = definitions.resolve_job_def("step")
    options: dict[str, Any] = {"partition_key": partition_key(first)}
    if first != last:
        ends = {"start": first, "end": last}
        options = {"tags": {f"dagster/asset_partition_range_{end}": partition_key(t) for end, t in ends.items()}}
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    return job.execute_in_process(instance=instance, run_config=quiet, raise_on_error=False, **options)


def events(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns the metadata of each asset's materialization of each partition."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for event in result.get_asset_materialization_events():
        one = event.step_materialization_data.materialization
        key = one.asset_key.to_user_string(), str(one.partition)
        assert key not in found, f"{key} was materialized twice"
        found[key] = dict(one.metadata)
    return found


def log(result: dg.ExecuteInProcessResult, instance: dg.DagsterInstance) -> list[str]:
    """Returns the lines that the step wrote to the run's log."""
    entries = (one.event_log_entry for one in instance.get_records_for_run(result.run_id, limit=1000).records)
    return [one.user_message for one in entries if one.dagster_event is None]


@pytest.mark.deep
def test_a_range_counts_once_and_its_log_is_a_story(
    project: Project, drop: Callable[..., None], definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    drop(1000, "orders", ORDER % (1, "ann", 5), ORDER % (2, "bob", 7))
    first = mint(project, instance)
    drop(2000, "customers", CUSTOMER % ("ann", "Oslo" * CELL), CUSTOMER % ("bob", "Rome"))
    second = mint(project, instance)
    result = run(definitions, instance, first, second)
    assert result.success
    found = events(result)
    assert len(found) == 8, "four assets at two ticks"
    for metadata in found.values():
        assert metadata.keys() >= NUMBERS | {"mz/outcome", "mz/id"}
        assert all(isinstance(metadata[key], dg.IntMetadataValue | dg.FloatMetadataValue) for key in NUMBERS)
        assert (metadata["mz/since"].value, metadata["mz/upper"].value) == (0, second + 1)
    for asset, rows_in, rows_out in (("orders", 2, 2), ("customers", 2, 2), ("ordered", 4, 2)):
        earlier, newest = (found[asset, partition_key(tick)] for tick in (first, second))
        told = [(one["mz/rows_in"].value, one["mz/rows_out"].value) for one in (earlier, newest)]
        assert told == [(0, 0), (rows_in, rows_out)]
        assert [one["mz/outcome"].value for one in (earlier, newest)] == ["readable", "advanced"]
        assert earlier["mz/spark_s"].value == 0.0 < newest["mz/spark_s"].value
        assert earlier["mz/rows_retained"].value == newest["mz/rows_retained"].value == rows_out
        assert "mz/changes" not in earlier
    changes = found["ordered", partition_key(second)]["mz/changes"]
    records = sorted((dict(one.data) for one in changes.records), key=lambda one: one["id"])
    ann = {"id": "1", "twice": "10", "city": "Oslo" * (CELL // 4 - 1) + "Osl…"}
    assert records[0] == {**ann, "mz_timestamp": second, "mz_diff": 1, "mz_error": "NULL"}
    assert [column.name for column in changes.schema.columns] == list(records[0])

    lines = log(result, instance)
    story = [
        rf"step to tick {second}, from 0: 3 of 3 collections have work",
        rf'"orders" \[0, {second + 1}\): reading 1 file, \d+ bytes',
        rf'"orders" \[0, {second + 1}\): wrote 2 updates in [\d.]+ s',
        rf'"ordered" \[0, {second + 1}\): maintaining DeltaJoin of 2, 4 rows of "orders", "customers", hydrating at 0',
        rf'"ordered" \[0, {second + 1}\): wrote 2 updates in [\d.]+ s',
        r"sealed 3 collections",
        rf"step to tick {second}: 3 advanced; [\d.]+ s",
    ]
    places = [next((i for i, line in enumerate(lines) if re.fullmatch(one, line)), None) for one in story]
    assert None not in places, (story, lines)
    assert places == sorted(places, key=lambda place: place or 0), lines


def test_a_run_again_does_only_what_failed(
    project: Project, drop: Callable[..., None], definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    drop(1000, "orders", ORDER % (1, "ann", 5))
    (project.root / "landing" / "customers" / "1000.jsonl").write_text(CUSTOMER % ("ann", "Oslo") + "\n")
    tick = mint(project, instance)
    bound = project.root / "landing" / "orders" / "1000.jsonl"
    good = bound.read_text()
    bound.write_text(good.replace("5", "6"))
    result = run(definitions, instance, tick, tick)
    assert not result.success
    assert {asset for asset, _ in events(result)} == {"customers"}, "what finished is materialized"
    (failure,) = [event.step_failure_data.user_failure_data for event in result.all_events if event.is_step_failure]
    assert failure is not None
    assert failure.description is not None
    first, *rest = failure.description.splitlines()
    assert first.startswith('"orders" failed: bound file "1000.jsonl" has changed. ')
    assert "ENVELOPE" not in failure.description
    assert rest == ["behind it: ordered"]
    table = failure.metadata["mz/failed"]
    assert isinstance(table, dg.TableMetadataValue)
    (told,) = [dict(record.data) for record in table.records]
    assert (told["collection"], told["operator"]) == ("orders", "ENVELOPE UPSERT")
    assert "1000.jsonl" in str(told["reason"])
    assert told["hint"]
    assert failure.metadata["mz/behind"].value == ["ordered"]

    def batches() -> Any:
        with Engine(project) as engine:
            id = engine.collection_of("customers")
            return engine.catalog.live_batches([id])[id]

    before = batches()
    bound.write_text(good)
    again = run(definitions, instance, tick, tick)
    assert again.success
    found = {asset: metadata for (asset, _), metadata in events(again).items()}
    assert {asset: one["mz/outcome"].value for asset, one in found.items() if asset != "ordered_by_city"} == {
        "customers": "current",
        "orders": "advanced",
        "ordered": "advanced",
    }
    assert found["customers"]["mz/spark_s"].value == 0.0
    assert found["customers"]["mz/rows_out"].value == 0
    assert batches() == before
    assert not any('"customers" [' in line for line in log(again, instance))


def with_lent_spark(project: Project, remote: str) -> dg.Definitions:
    """Returns definitions whose runs use the session of a dagster-pyspark resource."""

    @mz_assets(project=project)
    def assets(context: dg.AssetExecutionContext, mz: MzResource) -> Iterator[StepResult]:
        yield from mz.step(context)

    spark = LazyPySparkResource(spark_config={"spark.remote": remote})
    return dg.Definitions(
        assets=[assets],
        jobs=[dg.define_asset_job("step", selection=step_selection(assets), executor_def=dg.in_process_executor)],
        resources={"mz": MzResource(project_dir=str(project.root), spark=spark, sample_rows=0)},
    )


# What Dagster does with a nested resource that has a config calls what Dagster has deprecated.
@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning")
def test_runs_use_the_session_of_a_pyspark_resource_and_idle_ones_open_none(
    project: Project, drop: Callable[..., None], instance: dg.DagsterInstance, spark_config: SparkConfig
) -> None:
    server, nowhere = ensure_server(spark_config).url, "sc://localhost:1"
    settings = project.root / "mz.toml"
    settings.write_text(settings.read_text().replace(server, nowhere))
    drop(1000)
    idle = mint(project, instance)
    assert run(with_lent_spark(project, nowhere), instance, idle, idle).success
    drop(2000, "orders", ORDER % (1, "ann", 5))
    tick = mint(project, instance)
    result = run(with_lent_spark(project, server), instance, tick, tick)
    assert result.success
    found = {asset: metadata for (asset, _), metadata in events(result).items()}
    assert found["orders"]["mz/rows_out"].value == 1
    assert "mz/changes" not in found["orders"], "sample_rows is 0"
    assert "mz/spark_ui" not in found["orders"], "nobody knows the address of the UI of a Spark that was lent"


def test_a_cell_of_a_sample_is_text_and_short() -> None:
    assert [shown(cell) for cell in (None, 1, "x", [1, None])] == ["NULL", "1", "x", "[1, None]"]
    assert len(shown("x" * 10_000)) == CELL
