"""What arrives is seen at once: by the frontier sensor while it watches, and by continuous mode; without Spark."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from mz_dagster import Project
from mz_dagster.adapter import Engine
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.orchestration import partition_key, sensors
from mz_dagster.orchestration.continuous import Continuous
from mz_dagster.orchestration.recording import asset_specs
from tests.orchestration.instances import own_instance

SENSOR = "mz_frontier_feed"
Mint = Callable[..., None]


def arrive(project: Project, clock: int) -> None:
    (project.root / "landing" / "a" / f"{clock}.jsonl").write_text(f'{{"key": {{"id": {clock}}}, "value": {{}}}}\n')
    (project.root / "clock.new").write_text(str(clock))
    (project.root / "clock.new").rename(project.root / "clock")


@pytest.fixture
def later() -> Iterator[Callable[[float, Callable[[], object]], None]]:
    """Does something after so many seconds, in another thread."""
    timers: list[threading.Timer] = []

    def scheduled(seconds: float, action: Callable[[], object]) -> None:
        timers.append(threading.Timer(seconds, action))
        timers[-1].start()

    yield scheduled
    for timer in timers:
        timer.cancel()
        timer.join()


@pytest.fixture
def threads() -> Iterator[dg.DagsterInstance]:
    """An instance whose sensors have a thread each."""
    with own_instance(sensors={"use_threads": True, "num_workers": 4}) as opened:
        yield opened


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the sensor watch for a minute, so that what ends sooner, however busy the machine, has another reason."""
    monkeypatch.setattr(sensors, "_WATCH_S", 60.0)
    monkeypatch.setattr(sensors, "_POLL_S", 60.0)


def evaluate(defs: dg.Definitions, instance: dg.DagsterInstance, *, daemon: bool = True) -> tuple[Any, float]:
    """Returns what the frontier sensor answers, and after how many seconds."""
    started = SYSTEM_CLOCK.monotonic_ms()
    with dg.build_sensor_context(
        instance=instance,
        instance_ref=instance.get_ref(),
        definitions=defs,
        sensor_name=SENSOR,
        resources=defs.resources or {},
        last_sensor_start_time=1.0 if daemon else None,
    ) as context:
        result = defs.resolve_sensor_def(SENSOR).evaluate_tick(context)
    return result, (SYSTEM_CLOCK.monotonic_ms() - started) / 1000


def test_files_and_the_feeds_clock_are_seen_and_nothing_else(quiet: Project, engine: Engine) -> None:
    arrivals = engine.arrivals("feed")
    assert not arrivals.changed()
    (quiet.root / "elsewhere").touch()
    assert not arrivals.changed()
    (quiet.root / "landing" / "b" / "1.jsonl").touch()
    assert arrivals.changed()
    arrivals = engine.arrivals("feed")
    assert not arrivals.changed()
    (quiet.root / "clock").write_text("1000")
    assert arrivals.changed()
    arrivals = engine.arrivals("feed")
    (quiet.root / "landing" / "b" / "1.jsonl").unlink()
    (quiet.root / "landing" / "b").rmdir()
    assert arrivals.changed()
    assert not engine.arrivals("feed").changed()


@pytest.mark.usefixtures("patient")
def test_a_sensor_that_finds_nothing_goes_on_watching(
    quiet: Project, engine: Engine, defs: dg.Definitions, threads: dg.DagsterInstance, later: Callable[..., None]
) -> None:
    later(2.0, lambda: arrive(quiet, 1000))
    result, seconds = evaluate(defs, threads)
    assert [one.partition_key for one in result.run_requests] == [partition_key(1000)]
    assert 2.0 <= seconds < 50.0  # by the sign, not by the regular poll


def test_it_polls_without_a_sign_and_ends_in_time(
    engine: Engine,
    mint: Mint,
    defs: dg.Definitions,
    threads: dg.DagsterInstance,
    later: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sensors, "_WATCH_S", 4.0)
    monkeypatch.setattr(sensors, "_POLL_S", 2.0)
    later(1.0, lambda: mint(1000))
    result, seconds = evaluate(defs, threads)
    assert [one.partition_key for one in result.run_requests] == [partition_key(1000)]
    assert seconds >= 2.0
    engine.step("feed", 1000)
    evaluate(defs, threads)  # adds the partition, since this instance has none
    threads.add_dynamic_partitions("mz_ticks_shop.feed", [partition_key(1000)])
    for event in evaluate(defs, threads)[0].asset_events:
        threads.report_runless_asset_event(event)
    result, seconds = evaluate(defs, threads)
    assert not result.run_requests
    assert "nothing new" in result.skip_message
    assert 4.0 <= seconds < 50.0


@pytest.mark.usefixtures("patient")
def test_it_sees_the_live_run_end(
    mint: Mint, defs: dg.Definitions, threads: dg.DagsterInstance, later: Callable[..., None]
) -> None:
    mint(1000, 2000)
    threads.add_dynamic_partitions("mz_ticks_shop.feed", [partition_key(1000), partition_key(2000)])
    tags = {"mz/project": "shop", "mz/timeline": "feed", "mz/tick": partition_key(1000)}
    run = threads.create_run_for_job(defs.resolve_job_def("step"), tags=tags, status=dg.DagsterRunStatus.STARTED)
    later(1.5, lambda: threads.report_run_failed(run))
    result, seconds = evaluate(defs, threads)
    assert result.run_requests
    assert 1.5 <= seconds < 50.0


@pytest.mark.usefixtures("patient")
def test_where_it_would_keep_others_waiting_it_does_not_watch(
    engine: Engine, defs: dg.Definitions, instance: dg.DagsterInstance, threads: dg.DagsterInstance
) -> None:
    assert evaluate(defs, instance)[1] < 50.0  # one thread for all sensors
    assert evaluate(defs, threads, daemon=False)[1] < 50.0  # a person's test of it, or `mz-dagster run`


def test_continuous_mode_follows_an_arrival_and_keeps_its_interval_between_ticks(
    quiet: Project,
    engine: Engine,
    mint: Mint,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    later: Callable[..., None],
) -> None:
    mint(500)
    engine.step("feed", 500)
    told: list[str] = []
    specs = asset_specs(defs.get_repository_def(), engine, "feed")
    loop = Continuous(engine, instance, "feed", specs, told.append, interval_s=30.0, for_s=60.0)
    ticks: list[tuple[int, ...]] = []

    def look() -> None:
        with Engine(engine.project) as other:
            ticks.append(other.catalog.ticks("feed"))

    later(2.0, lambda: arrive(quiet, 1000))
    later(12.0, look)
    later(12.1, lambda: arrive(quiet, 2000))
    later(18.0, look)
    later(18.1, loop.stop.set)
    for _ in loop.run():
        pass
    # Spark is nowhere, so the tick stays open; it is there, and the next one is not before its time.
    assert ticks == [(500, 1000), (500, 1000)]


def test_a_temporary_file_is_a_sign_of_nothing_that_lasts(quiet: Project, engine: Engine) -> None:
    before = engine.arrivals("feed")
    Path(quiet.root / "landing" / "a" / "1.jsonl.tmp").touch()
    assert before.changed()
    assert engine.poll("feed").tick is None
