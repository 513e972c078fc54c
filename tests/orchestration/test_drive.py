"""Driving in one process: what fails keeps nothing else from being done, and is told together at the end."""

import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mz_dagster import Project, connect
from mz_dagster.cli import main
from mz_dagster.cli.state import MANY_VIEWS
from mz_dagster.compute import Stepper
from mz_dagster.compute.step.graph import Node
from mz_dagster.errors import OperationalError
from mz_dagster.orchestration.drive import RunDone, RunFailed, dagster_home, drive

METADATA: Mapping[str, int | float | str] = {
    "mz/rows_out": 0,
    "mz/errors": 0,
    "mz/bytes": 0,
    "mz/spark_s": 0.0,
    "mz/outcome": "advanced",
    "mz/engine": "local",
}
TICKS = dg.DynamicPartitionsDefinition(name="ticks")


def driven(bad: dict[str, str], asked: list[str]) -> dg.Definitions:
    """Returns definitions whose sensor asks for one more tick at each look, and again for those that failed."""

    @dg.asset(partitions_def=TICKS)
    def stepped(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        asked.append(context.partition_key)
        if why := bad.get(context.partition_key):
            raise dg.Failure(why)
        return dg.MaterializeResult(metadata=METADATA)

    job = dg.define_asset_job("step", selection=[stepped], executor_def=dg.in_process_executor)

    @dg.sensor(name="a_broken", job=job)
    def broken(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest]:
        if "sensor" in bad:
            raise OperationalError(bad["sensor"])
        yield from ()

    @dg.sensor(name="frontier", job=job)
    def frontier(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        number = int(context.cursor or 0) + 1
        failed = [key for key in bad if key.isdecimal() and int(key) < number]
        return dg.SensorResult(
            run_requests=[dg.RunRequest(partition_key=key) for key in (*failed, str(number))],
            dynamic_partitions_requests=[TICKS.build_add_request([str(number)])],
            cursor=str(number),
        )

    return dg.Definitions(assets=[stepped], jobs=[job], sensors=[broken, frontier])


def test_ticks_after_a_failed_run_are_carried_out_and_all_failures_are_told_together(
    instance: dg.DagsterInstance,
) -> None:
    done: list[RunDone] = []
    asked: list[str] = []
    told: list[str] = []
    definitions = driven({"1": "no such header", "3": "no such folder", "sensor": "no such clock"}, asked)
    with pytest.raises(RunFailed) as failed:
        drive(definitions, instance, ticks=3, on_run=done.append, tell=told.append)
    # What failed is asked for at each look, and neither tried again nor in the way of the others.
    assert asked == ["1", "2", "3"]
    assert [run.partition for run in done] == ["2"]
    assert failed.value.message == "3 failures in 3 runs"
    detail = str(failed.value.detail)
    assert "sensor a_broken failed: no such clock;" in detail
    assert "of 1 failed: no such header;" in detail
    assert "of 3 failed: no such folder." in detail
    assert sum("no such header" in line for line in told) == 1


def test_the_newest_tick_of_a_range_tells_what_it_cost_and_assets_of_others_tell_nothing(
    instance: dg.DagsterInstance,
) -> None:
    keys = [f"{number:02}" for number in range(10)]

    @dg.asset(partitions_def=TICKS)
    def stepped(context: dg.AssetExecutionContext) -> None:
        for key in keys:
            rows = 7 if key == keys[-1] else 0
            context.add_asset_metadata({**METADATA, "mz/rows_out": rows}, partition_key=key)

    @dg.asset(partitions_def=TICKS, deps=[stepped])
    def report() -> None: ...

    job = dg.define_asset_job("step", selection=[stepped, report], executor_def=dg.in_process_executor)

    @dg.sensor(name="frontier", job=job)
    def frontier(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        ends = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
        return dg.SensorResult(
            run_requests=[dg.RunRequest(tags=ends)], dynamic_partitions_requests=[TICKS.build_add_request(keys)]
        )

    done: list[RunDone] = []
    definitions = dg.Definitions(assets=[stepped, report], jobs=[job], sensors=[frontier])
    assert drive(definitions, instance, ticks=1, on_run=done.append) == 1
    (run,) = done
    assert [(one.name, one.rows) for one in run.assets] == [("stepped", 7)]


def test_a_view_that_cannot_be_read_keeps_no_other_from_being_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with connect(tmp_path) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (a integer)")
        cursor.execute("INSERT INTO t VALUES (0)")
        cursor.execute('CREATE MATERIALIZED VIEW "in ""error""" AS SELECT 1 / a AS b FROM t')
        cursor.execute("CREATE MATERIALIZED VIEW sound AS SELECT a + 41 AS b FROM t")
    (tmp_path / "definitions.py").write_text("import dagster as dg\n\ndefs = dg.Definitions()\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert main(["--project", str(tmp_path), "run"]) == 1
    shown, told = capsys.readouterr()
    assert '\nin "error"\ncannot be read: division by zero' in shown
    assert "\nsound\n b\n" in shown
    assert 'ERROR: view "in "error"" cannot be read: division by zero' in told


def test_of_many_views_those_that_cannot_be_read_are_printed_and_others_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with connect(tmp_path) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE t (a integer)")
        cursor.execute("INSERT INTO t VALUES (0)")
        for number in range(MANY_VIEWS):
            cursor.execute(f"CREATE MATERIALIZED VIEW sound_{number} AS SELECT a + {number} AS b FROM t")
        cursor.execute("CREATE MATERIALIZED VIEW failing AS SELECT 1 / a AS b, count(*) AS n FROM t GROUP BY a")
    (tmp_path / "definitions.py").write_text("import dagster as dg\n\ndefs = dg.Definitions()\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert main(["--project", str(tmp_path), "run"]) == 1
    shown, _ = capsys.readouterr()
    assert f"{MANY_VIEWS + 1} views; mz-dagster run --rows 5 prints" in shown
    assert "\nfailing\ncannot be read: division by zero" in shown
    assert "\nsound_0\n" not in shown
    assert "(arrangement 1)" not in shown
    assert main(["--project", str(tmp_path), "run", "--rows", "1"]) == 1
    shown, _ = capsys.readouterr()
    assert all(f"\nsound_{number}\n" in shown for number in range(MANY_VIEWS))
    assert "failing (arrangement 1)" in shown


def test_what_is_no_plain_sensor_is_left_to_the_daemon(instance: dg.DagsterInstance) -> None:
    asked: list[str] = []
    definitions = driven({}, asked)

    @dg.asset(deps=["stepped"], automation_condition=dg.AutomationCondition.eager())
    def exported() -> None: ...

    @dg.run_failure_sensor(name="alarm")
    def alarm(context: dg.RunFailureSensorContext) -> None: ...

    told: list[str] = []
    done: list[RunDone] = []
    definitions = dg.Definitions.merge(definitions, dg.Definitions(assets=[exported], sensors=[alarm]))
    assert drive(definitions, instance, ticks=2, on_run=done.append, tell=told.append) == 2
    assert asked == ["1", "2"]
    left = [
        line.partition(":")[0]
        for line in told
        if line.endswith("left to Dagster's daemon, which evaluates it in its own way")
    ]
    assert sorted(left) == ["alarm", "default_automation_condition_sensor"]


@pytest.mark.skipif(sys.platform != "linux", reason="warm runs need Linux")
def test_runs_are_warm_if_the_project_says_so_and_edited_settings_are_left_as_they_are(tmp_path: Path) -> None:
    def settings_with(text: str) -> str:
        (tmp_path / "mz.toml").write_text(text)
        return (dagster_home(Project.load(tmp_path)) / "dagster.yaml").read_text()

    warm, public = "[dagster]\nwarm_runs = true\n", settings_with("")
    assert "launcher" not in public
    assert settings_with(warm).startswith(public)
    assert "WarmRunLauncher" in settings_with(warm)
    assert settings_with("") == public
    (tmp_path / ".mz" / "dagster" / "dagster.yaml").write_text("# mine\n" + public)
    assert settings_with(warm) == "# mine\n" + public


def test_a_signal_ends_a_drive_without_waiting_for_what_is_computed(
    quiet: Project, defs: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    (quiet.root / "landing" / "a" / "1.jsonl").write_text('{"id": 1}\n')
    (quiet.root / "clock").write_text("1")
    begun, go_on = threading.Event(), threading.Event()
    over: list[bool] = []
    advance = Stepper._advance

    def waiting(stepper: Stepper, run: Any, node: Node, *rest: Any) -> Any:
        if node.name == "doubled":
            begun.set()
            over.append(go_on.wait(60))
        return advance(stepper, run, node, *rest)

    def press() -> None:
        if begun.wait(30):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Stepper, "_advance", waiting)
    interrupt = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            drive(defs, instance, ticks=1, on_run=lambda run: None)
        assert begun.is_set()
        assert not over, "it waited for what was computed"
        with connect(quiet.root) as connection, connection.engine.lead("feed") as lead:
            assert hasattr(lead, "epoch"), "nobody leads the timeline any more"
    finally:
        go_on.set()
        interrupt.join()
        signal.signal(signal.SIGINT, before)
