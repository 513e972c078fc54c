"""Continuous mode: a loop in one process that records what runs would; without Spark, since nothing ever arrives."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mz_dagster import Project
from mz_dagster.adapter import Engine
from mz_dagster.budget import Budget
from mz_dagster.catalog import Leadership
from mz_dagster.errors import OperationalError
from mz_dagster.orchestration import partition_key
from mz_dagster.orchestration.continuous import Continuous, Event
from mz_dagster.orchestration.drive import instance_of, tell
from mz_dagster.orchestration.kept_event_log import instance_keeping
from mz_dagster.orchestration.recording import asset_specs
from tests.budgets import SetBudget

Mint = Callable[..., None]
ALL = {dg.AssetKey(name) for name in ("a", "b", "doubled")}


@pytest.fixture
def told() -> list[str]:
    return []


def looping(engine: Engine, instance: dg.DagsterInstance, defs: dg.Definitions, told: list[str]) -> Continuous:
    specs = asset_specs(defs.get_repository_def(), engine, "feed")
    return Continuous(engine, instance, "feed", specs, told.append, interval_s=0.05, for_s=60.0)


@pytest.fixture
def loop(engine: Engine, instance: dg.DagsterInstance, defs: dg.Definitions, told: list[str]) -> Continuous:
    return looping(engine, instance, defs, told)


def events_until(loop: Continuous, done: Callable[[], bool]) -> list[Event]:
    """Runs the loop, and records its events, until `done`; fails if that never is within its 60 s."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            if done():
                loop.stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    events: list[Event] = []
    try:
        for together in loop.run():
            tell(loop.instance, together)
            events += together
    finally:
        over.set()
        watcher.join()
    assert loop.stop.is_set(), "not within the loop's time"
    return events


def materialized(events: list[Event]) -> list[tuple[dg.AssetKey, str | None]]:
    return sorted((one.asset_key, one.partition) for one in events if isinstance(one, dg.AssetMaterialization))


def at(*ticks: int) -> list[tuple[dg.AssetKey, str | None]]:
    return sorted((key, partition_key(tick)) for key in ALL for tick in ticks)


def test_it_steps_and_records_each_tick_once_and_checks_when_they_change(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, loop: Continuous, told: list[str]
) -> None:
    mint(500)
    engine.step("feed", 500)  # somebody's step, of which Dagster does not know
    mint(1000, 2000)
    events = events_until(loop, lambda: bool(told))
    assert materialized(events) == at(500, 1000, 2000)
    assert instance.get_dynamic_partitions("mz_ticks_shop.feed") == [partition_key(tick) for tick in (500, 1000, 2000)]
    assert loop.ticks == 2
    (line,) = told
    assert "step to tick 2000" in line
    outcomes = {
        one.partition: one.metadata["mz/outcome"].value for one in events if isinstance(one, dg.AssetMaterialization)
    }
    assert outcomes == {
        partition_key(500): "readable",
        partition_key(1000): "readable",
        partition_key(2000): "idle",
    }
    told_rows = [
        one for one in events if isinstance(one, dg.AssetMaterialization) and "dagster/row_count" in one.metadata
    ]
    assert {(one.asset_key, one.partition) for one in told_rows} == {(key, partition_key(2000)) for key in ALL}
    checks = [one for one in events if isinstance(one, dg.AssetCheckEvaluation)]
    assert {one.asset_key for one in checks} == ALL
    assert len(checks) == len({(one.asset_key, one.check_name) for one in checks})
    assert all(one.passed for one in checks)

    # The next tick, in the same loop: the checks say what they said.
    mint(3000)
    loop.stop.clear()
    told.clear()
    later = events_until(loop, lambda: bool(told))
    assert materialized(later) == at(3000)
    assert not [one for one in later if isinstance(one, dg.AssetCheckEvaluation)]


def test_what_was_stepped_and_not_told_is_told_at_the_next_start(
    quiet: Project, engine: Engine, mint: Mint, defs: dg.Definitions, told: list[str], tmp_path: Path
) -> None:
    mint(1000)
    with instance_keeping(tmp_path) as instance:
        loop = looping(engine, instance, defs, told)
        unfinished = loop.run()
        assert len(materialized([*next(unfinished)])) == len(ALL)
        del unfinished  # as if it had been killed
        assert not any(instance.get_materialized_partitions(key) for key in ALL)

        # The event log fails in the middle: nothing is told, and that it failed is.
        def full(*arguments: object) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        again = looping(engine, instance, defs, told)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(instance.event_log_storage, "store_asset_check_event", full)
            events = [*next(again.run())]
            check = dg.AssetCheckEvaluation(asset_key=dg.AssetKey("a"), check_name="goes_on", passed=True)
            with pytest.raises(sqlite3.OperationalError, match="full"):
                tell(instance, [*events, check])
        assert not any(instance.get_materialized_partitions(key) for key in ALL)

        later = looping(engine, instance, defs, told)
        mint(2000)
        assert materialized(events_until(later, lambda: later.ticks == 1)) == at(1000, 2000)
        for key in ALL:
            (records, _, _) = instance.fetch_materializations(key, limit=10, ascending=True)
            assert [one.partition_key for one in records] == [partition_key(1000), partition_key(2000)]


def test_dagster_is_asked_at_the_start_and_not_for_each_tick(
    engine: Engine, mint: Mint, instance: dg.DagsterInstance, loop: Continuous, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dg.AssetKey] = []
    asks = type(instance).get_latest_storage_id_by_partition

    def asking(self: dg.DagsterInstance, key: dg.AssetKey, *arguments: Any) -> Any:
        asked.append(key)
        return asks(self, key, *arguments)

    monkeypatch.setattr(type(instance), "get_latest_storage_id_by_partition", asking)
    mint(500)
    engine.step("feed", 500)
    minted = 500

    def after_three() -> bool:
        nonlocal minted
        if loop.ticks == (minted - 500) // 500 and minted < 2000:
            minted += 500
            mint(minted)
        return loop.ticks == 3

    assert materialized(events_until(loop, after_three)) == at(500, 1000, 1500, 2000)
    assert sorted(asked) == sorted(ALL)
    assert instance.get_dynamic_partitions("mz_ticks_shop.feed") == [
        partition_key(tick) for tick in (500, 1000, 1500, 2000)
    ]


def test_it_keeps_the_lead_while_it_works_and_gives_it_back(engine: Engine, mint: Mint, loop: Continuous) -> None:
    mint(1000)
    events = loop.run()
    next(events)
    leader = engine.catalog.leader("feed", engine.project.lease_ms)
    assert leader is not None
    assert leader.holder == engine.holder
    loop.stop.set()
    assert list(events)
    assert engine.catalog.leader("feed", engine.project.lease_ms) is None


def test_it_waits_for_another_leader_and_says_so_once(
    quiet: Project, mint: Mint, loop: Continuous, told: list[str]
) -> None:
    mint(1000)
    with Engine(quiet, holder="somebody else") as other, other.lead("feed") as lead:
        assert isinstance(lead, Leadership)
        turns = 0

        def after_some_turns() -> bool:
            nonlocal turns
            turns += bool(told)
            return turns > 20

        assert events_until(loop, after_some_turns) == []
    (line,) = told
    assert line.startswith('somebody else leads timeline "feed"; waiting for it: its lease ends in ')
    loop.stop.clear()
    assert materialized(events_until(loop, lambda: len(told) > 1)) == at(1000)


@pytest.mark.deep
def test_a_lost_lead_is_taken_again(engine: Engine, mint: Mint, loop: Continuous, told: list[str]) -> None:
    mint(1000)

    def deposed() -> bool:
        if loop.ticks == 1 and engine.catalog.last_tick("feed") == 1000:
            leader = engine.catalog.leader("feed", engine.project.lease_ms)
            if leader is not None:
                engine.catalog.depose(leader)
                mint(2000)
        return loop.ticks == 2

    events = events_until(loop, deposed)
    assert materialized(events) == at(1000, 2000)
    assert any("interfered" in line for line in told)


def test_a_source_that_cannot_be_polled_does_not_end_it(
    quiet: Project, mint: Mint, loop: Continuous, told: list[str]
) -> None:
    landing = quiet.root / "landing" / "b"
    landing.rmdir()
    landing.write_text("no folder")
    turns = 0

    def mended() -> bool:
        nonlocal turns
        if told and turns == 0:
            landing.unlink()
            landing.mkdir()
            mint(1000)
        turns += bool(told)
        return loop.ticks == 1

    assert materialized(events_until(loop, mended)) == at(1000)
    assert str(landing) in told[0] or '"landing/b"' in told[0]
    assert len([line for line in told if "HINT" in line and "tried again in" not in line]) == 1


def test_a_collection_that_fails_holds_nobody_else_back_and_is_tried_after_a_wait(
    quiet: Project,
    instance: dg.DagsterInstance,
    defs: dg.Definitions,
    told: list[str],
    set_budget: SetBudget,
) -> None:
    set_budget(Budget.spark_alone())
    (quiet.root / "clock").write_text("1000")
    (quiet.root / "landing" / "a" / "1.jsonl").write_text('{"key": {"id": 1}, "value": {}}\n')

    def no_spark() -> Any:
        raise OperationalError("there is no Spark", hint="Start it.")

    with Engine(quiet, session=no_spark) as engine:
        engine.apply()
        loop = looping(engine, instance, defs, told)
        turns = 0

        def after_some_turns() -> bool:
            nonlocal turns
            turns += len(told) > 1
            return turns > 20

        events = events_until(loop, after_some_turns)
    assert materialized(events) == [(dg.AssetKey("b"), partition_key(1000))]
    step, failure = told  # tried once, though the loop went on turning
    assert "1 failed" in step
    assert '"a": there is no Spark' in failure
    assert "tried again in 8 s" in failure


def test_the_op_records_in_its_run_and_the_sensor_waits_for_it(
    mint: Mint, instance: dg.DagsterInstance, defs: dg.Definitions, look: Callable[..., Any]
) -> None:
    mint(1000)
    job = defs.resolve_job_def("mz_continuous_feed")
    result = job.execute_in_process(
        instance=instance,
        run_config={"ops": {"mz_continuous_feed_op": {"config": {"interval_s": 0.1, "for_s": 0.5}}}},
        resources=defs.resources,
    )
    assert result.success
    told = instance.fetch_materializations(dg.AssetKey("doubled"), limit=10).records
    assert [(one.run_id, one.partition_key) for one in told] == [(result.run_id, partition_key(1000))]
    instance.create_run_for_job(job, tags=dict(job.tags), status=dg.DagsterRunStatus.STARTED)
    assert "is live" in look().skip_message


DEFINITIONS = """
from pathlib import Path
import dagster as dg
from mz_dagster import MzResource, Project, mz_assets

PROJECT = Project.load(Path(__file__).parent)

@mz_assets(project=PROJECT)
def stepped(context: dg.AssetExecutionContext, mz: MzResource):
    yield from mz.step(context)

defs = dg.Definitions(assets=[stepped], resources={"mz": MzResource(project_dir=str(PROJECT.root))})
"""


@contextmanager
def command(project: Project, *arguments: str) -> Any:
    process = subprocess.Popen(
        [sys.executable, "-m", "mz_dagster.cli", "--project", str(project.root), "run", "--continuous", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.deep)])
def test_the_command_records_in_the_projects_instance_and_ends_cleanly_when_told_to(
    number: signal.Signals, quiet: Project, engine: Engine, mint: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")  # restored afterwards: opening the project's instance sets it
    (Path(quiet.root) / "definitions.py").write_text(DEFINITIONS)
    mint(1000)
    with command(quiet, "--interval", "0.1") as process:
        for line in process.stdout:
            if "step to tick 1000" in line:
                break
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait(30) == 0, rest
    assert "ended; 1 ticks were closed" in rest
    assert engine.catalog.leader("feed", engine.project.lease_ms) is None
    with instance_of(quiet) as instance:
        for key in ALL:
            assert instance.get_materialized_partitions(key) == {partition_key(1000)}
