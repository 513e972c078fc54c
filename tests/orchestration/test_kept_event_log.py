"""Events that are told together, by connections that stay: Dagster reads them as if it had written them itself."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from alembic.script import ScriptDirectory

from mz_dagster.orchestration import kept_event_log
from mz_dagster.orchestration.kept_event_log import KeptEventLog, instance_keeping, told_together

KEYS = [dg.AssetKey(name) for name in ("a", "b")]
#: What Dagster's own instance, and ours, is told.
EVENTS: list[dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation] = [
    *(dg.AssetMaterialization(key, partition=at, metadata={"n": int(at)}) for at in ("1", "2") for key in KEYS),
    dg.AssetCheckEvaluation(asset_key=KEYS[0], check_name="holds", passed=False, metadata={"n": 1}),
    dg.AssetObservation(KEYS[1], metadata={"text": "x"}),
]


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an instance that has just been made."""
    home = tmp_path_factory.mktemp("new")
    with instance_keeping(home):
        pass
    return home


@pytest.fixture
def home(new: Path, tmp_path: Path) -> Path:
    return shutil.copytree(new, tmp_path / "home")


@pytest.fixture
def kept(home: Path) -> Iterator[dg.DagsterInstance]:
    with instance_keeping(home) as opened:
        assert isinstance(opened.event_log_storage, KeptEventLog)
        yield opened


def tell(instance: dg.DagsterInstance) -> None:
    for event in EVENTS:
        instance.report_runless_asset_event(event)


def told(instance: dg.DagsterInstance) -> list[object]:
    """Returns all that an instance has been told, by what reads it."""
    found: list[object] = []
    for key in KEYS:
        for fetch in (instance.fetch_materializations, instance.fetch_observations):
            records = fetch(key, limit=10, ascending=True).records
            found += [(key, one.partition_key, one.event_log_entry.run_id, shown(one)) for one in records]
        found.append(instance.get_materialized_partitions(key))
        found.append(instance.get_latest_storage_id_by_partition(key, dg.DagsterEventType.ASSET_MATERIALIZATION))
    check = dg.AssetCheckKey(KEYS[0], "holds")
    (latest,) = instance.event_log_storage.get_latest_asset_check_execution_by_key([check]).values()
    assert latest.event is not None
    found += [latest.status, latest.event.dagster_event]
    return found


def shown(record: dg.EventLogRecord) -> object:
    """Returns what an event carries."""
    event = record.asset_event if hasattr(record, "asset_event") else None
    if event is None:
        event = record.asset_materialization or record.event_log_entry.asset_observation
    assert event is not None
    return dict(event.metadata)


def tables(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
        return [made, connection.execute("SELECT * FROM alembic_version").fetchall()]


def test_dagster_reads_and_goes_on_with_what_was_told_together_as_with_its_own(
    home: Path, kept: dg.DagsterInstance, tmp_path: Path
) -> None:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as own:
        tell(own)
        with told_together(own):  # which does nothing to it
            pass
        with told_together(kept):
            tell(kept)
        with dg.DagsterInstance.from_config(str(home)) as reader:
            assert told(kept) == told(own) == told(reader)
            reader.report_runless_asset_event(EVENTS[0])
        own.report_runless_asset_event(EVENTS[0])
        assert told(kept) == told(own)
        for database in ("history/runs.db", "history/runs/index.db", "history/runs/.db", "schedules/schedules.db"):
            assert tables(home / database) == tables(tmp_path / database), database


def test_what_is_told_together_is_seen_at_its_end_and_not_at_all_if_it_fails(
    home: Path, kept: dg.DagsterInstance
) -> None:
    with dg.DagsterInstance.from_config(str(home)) as reader:
        with suppress(ZeroDivisionError), told_together(kept):
            tell(kept)
            assert kept.get_materialized_partitions(KEYS[0]) == {"1", "2"}
            assert not reader.get_materialized_partitions(KEYS[0])
            raise ZeroDivisionError
        assert not kept.get_materialized_partitions(KEYS[0])
        with told_together(kept), told_together(kept):
            tell(kept)
        assert reader.get_materialized_partitions(KEYS[0]) == {"1", "2"}
    with closing(sqlite3.connect(home / "history" / "runs" / ".db")) as connection:
        assert connection.execute("SELECT count(*) FROM event_logs").fetchone() == (len(EVENTS),)


def test_a_run_is_recorded_as_by_dagster_and_few_databases_stay_open(home: Path, kept: dg.DagsterInstance) -> None:
    @dg.op
    def works() -> None:
        pass

    @dg.job
    def job() -> None:
        works()

    runs = [job.execute_in_process(instance=kept).run_id for _ in range(4)]
    files = os.listdir(home / "history" / "runs")
    assert sorted(one.removesuffix("-wal") for one in files if one.endswith("-wal")) == sorted(
        ["index.db", *(f"{run}.db" for run in runs[-2:])]
    )
    with dg.DagsterInstance.from_config(str(home)) as reader:
        for run in runs:
            assert reader.get_run_stats(run).steps_succeeded == 1
            assert [one.dagster_event_type for one in reader.all_logs(run)] == [
                one.dagster_event_type for one in kept.all_logs(run)
            ]


def test_migrations_are_read_once_for_all_databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dg.job
    def job() -> None:
        pass

    read, places = ScriptDirectory.from_config, list[str]()

    def counted(config: Any) -> Any:
        places.append(config.get_main_option("script_location"))
        return read(config)

    monkeypatch.setattr(ScriptDirectory, "from_config", counted)
    monkeypatch.setattr(kept_event_log, "_migrations", {})
    for _ in range(2):
        with instance_keeping(tmp_path) as instance:
            tell(instance)
            job.execute_in_process(instance=instance)
    assert len(places) == 1
    assert vars(ScriptDirectory)["from_config"] is counted
    with dg.DagsterInstance.from_config(str(tmp_path)) as reader:
        assert tables(tmp_path / "history" / "runs.db")[1] == tables(tmp_path / "history" / "runs" / "index.db")[1]
        assert len(reader.get_runs()) == 2


def test_an_instance_that_is_deleted_while_it_is_open_is_missed_and_not_written_into_nothing(
    home: Path, kept: dg.DagsterInstance
) -> None:
    tell(kept)
    shutil.rmtree(home / "history")
    with pytest.raises(Exception, match=r"unable to open|no such table"):
        tell(kept)


def test_an_instance_whose_storage_is_elsewhere_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text(f"event_log_storage:\n{ELSEWHERE.format(folder=tmp_path / 'elsewhere')}")
    with instance_keeping(tmp_path) as opened:
        assert not isinstance(opened.event_log_storage, KeptEventLog)
        with told_together(opened):
            tell(opened)
        assert opened.get_materialized_partitions(KEYS[0]) == {"1", "2"}
    assert (tmp_path / "elsewhere" / "index.db").exists()


ELSEWHERE = """\
  module: dagster._core.storage.event_log
  class: SqliteEventLogStorage
  config:
    base_dir: {folder}
"""
