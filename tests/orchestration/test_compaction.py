"""The compaction job: within its limits, beside others, and told to Dagster; on tables, which need no Spark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mz_dagster import MzResource, Project, build_compaction_job, build_compaction_schedule, mz_assets
from mz_dagster.adapter import Engine, Session
from mz_dagster.catalog import NO_ROWS
from mz_dagster.errors import OperationalError
from mz_dagster.storage.compact import compact as merge

Compact = Callable[..., dg.ExecuteInProcessResult]
COUNTS = ("mz/batches_before", "mz/batches", "mz/bytes_before", "mz/bytes")


@pytest.fixture
def tables(tmp_path: Path) -> Project:
    """A project of two tables, each with ten batches of a row."""
    (tmp_path / "mz.toml").write_text("[spark]\nremote = 'sc://127.0.0.1:1'\n")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "all.sql").write_text("CREATE TABLE left_one (a integer);\nCREATE TABLE right_one (a text);")
    project = Project.load(tmp_path)
    with Engine(project) as engine:
        engine.apply()
        session = Session(engine)
        for number in range(10):
            session.execute(f"INSERT INTO left_one VALUES ({number})")
            session.execute(f"INSERT INTO right_one VALUES ('{number}')")
    return project


@pytest.fixture
def compact(tables: Project, instance: dg.DagsterInstance) -> Compact:
    @mz_assets(project=tables)
    def stepped(context: dg.AssetExecutionContext, mz: MzResource) -> Any:
        yield from mz.step(context)

    job = build_compaction_job(tables)
    defs = dg.Definitions(
        assets=[stepped],
        jobs=[job],
        schedules=[build_compaction_schedule(tables, job)],
        resources={"mz": MzResource(project_dir=str(tables.root))},
    )
    assert defs.resolve_schedule_def("mz_compaction_schedule").cron_schedule == "17 * * * *"

    def run(**config: Any) -> dg.ExecuteInProcessResult:
        return defs.resolve_job_def("mz_compaction").execute_in_process(
            instance=instance, run_config={"ops": {"mz_compaction_op": {"config": config}}}, raise_on_error=False
        )

    return run


def batches(project: Project) -> tuple[int, int]:
    with Engine(project) as engine:
        counts = engine.catalog.live_batch_counts()
        left, right = (counts.get(engine.collection_of(name), (0, NO_ROWS))[0] for name in ("left_one", "right_one"))
        return left, right


def rows(project: Project, table: str) -> int:
    with Engine(project) as engine:
        return len(Session(engine).execute(f"SELECT * FROM {table}").rows)


def test_it_merges_everything_and_tells_what_it_saved(
    tables: Project, compact: Compact, instance: dg.DagsterInstance
) -> None:
    assert batches(tables) == (10, 10)
    result = compact()
    assert result.success
    assert batches(tables) == (1, 1)
    assert rows(tables, "left_one") == rows(tables, "right_one") == 10
    for name in ("left_one", "right_one"):
        (record,) = instance.fetch_observations(dg.AssetKey(name), limit=10).records
        assert record.asset_observation is not None
        value = {key: int(str(one.value)) for key, one in record.asset_observation.metadata.items() if key in COUNTS}
        assert (value["mz/batches_before"], value["mz/batches"]) == (10, 1)
        assert value["mz/bytes_before"] > value["mz/bytes"] > 0
    (output,) = [event for event in result.all_node_events if event.event_type_value == "STEP_OUTPUT"]
    metadata = {key: one.value for key, one in output.step_output_data.metadata.items()}
    assert (metadata["batches before"], metadata["batches after"]) == (20, 2)

    # A second one has nothing to do and says nothing.
    assert compact().success
    assert len(instance.fetch_observations(dg.AssetKey("left_one"), limit=10).records) == 1


def test_it_merges_only_what_is_named(tables: Project, compact: Compact) -> None:
    assert compact(collections=["right_one"]).success
    assert batches(tables) == (10, 1)


def test_a_name_that_nothing_bears_is_refused(tables: Project, compact: Compact) -> None:
    result = compact(collections=["left_one", "nothing"])
    assert not result.success
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    assert 'relation "nothing" does not exist' in str(failure.step_failure_data.error)
    assert batches(tables) == (10, 10)


def test_it_starts_no_merge_beyond_its_limits(tables: Project, compact: Compact) -> None:
    assert compact(max_rows=10).success
    assert batches(tables) == (1, 10)  # the first merge has read ten rows
    assert compact(max_seconds=1e-9).success
    assert batches(tables) == (1, 10)
    assert compact().success
    assert batches(tables) == (1, 1)


def test_one_that_cannot_be_merged_stops_no_other_and_is_named(
    tables: Project, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(catalog: Any, shards: Any, row: Any, **rest: Any) -> Any:
        if row.columns[0].name == "a" and str(row.columns[0].type) == "integer":
            raise OperationalError("the disk is full")
        return merge(catalog, shards, row, **rest)

    monkeypatch.setattr("mz_dagster.adapter.compaction.compact", broken)
    result = compact()
    assert not result.success
    (failure,) = [event for event in result.all_node_events if event.is_step_failure]
    assert '"left_one": the disk is full' in str(failure.step_failure_data.error)
    assert batches(tables) == (10, 1)
