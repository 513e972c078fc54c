"""The engine is killed by SIGKILL at random moments of poll, step, compaction and sweep, and started again.

After each kill, before anything is repaired, a reader that uses nothing of the engine finds in every collection, at
every time at which it can be read and something happened, exactly what belongs there; what is done once more in the end
is there once. `test_crash` kills at every named place; here it is wherever the clock says.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from mz_dagster.adapter import Engine, Project
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.storage.spark import SparkConfig, close_sessions
from tests.adapter.test_crash import TIMELINE, LaterClock, World, advance, url, world
from tests.forks import forks
from tests.storage.independent_reader import IndependentReader

__all__ = ["url", "world"]

#: Rows of which batches are inlined: those of some writes and steps, and not all.
SOME_INLINED = 5


def live(root: str, state_dir: str, ahead_ms: int) -> None:
    """Is the process: advances the project, once."""
    spark = SparkConfig(state_dir=Path(state_dir))
    with Engine(Project.load(Path(root)), holder="to be killed", clock=LaterClock(ahead_ms), spark=spark) as engine:
        advance(engine)
    close_sessions()


def check(world: World) -> None:
    """Compares what can be read with what the inputs say, without the engine."""
    reader = IndependentReader(world.url, world.root / ".mz")
    ids, found = reader.ids(), reader.look()
    for name in ("orders", "customers", "placed", "dear"):
        contents = found[ids[name]]
        for time in sorted({*world.orders, *world.customers}):
            if contents.since <= time < contents.upper:
                assert contents.at(time) == world.at(time)[name], f"{name} at {time}"


def run(world: World, kill_after_s: float | None) -> int | None:
    """Lets a process advance the project, and kills it after a while if it is not done; returns how it ended."""
    process = forks().Process(target=live, args=(str(world.root), str(world.spark.state_dir), world.later_ms()))
    process.start()
    process.join(kill_after_s or 300)
    process.kill()
    process.join(60)
    return process.exitcode


def seconds_undisturbed(world: World) -> float:
    """Lets a process advance the project to its end; returns how long that took."""
    begin = SYSTEM_CLOCK.monotonic_ms()
    assert run(world, None) == 0
    return (SYSTEM_CLOCK.monotonic_ms() - begin) / 1000


def kill_again_and_again(world: World, rounds: int, kills: int) -> None:
    random = Random(rounds)
    world.inline(SOME_INLINED)
    world.arrive()
    killed, needed_s = 0, seconds_undisturbed(world)
    for _ in range(rounds):
        time = world.arrive()
        for _ in range(kills):
            killed += run(world, random.random() * needed_s) == -9
            check(world)
        needed_s = seconds_undisturbed(world)
        check(world)
        with world.opened() as engine:
            assert engine.catalog.ticks(TIMELINE)[-1] == time
            assert engine.unsealed_ticks(TIMELINE) == ()
    assert killed >= rounds * kills // 4


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("url", "kills"),
    [
        ("postgresql", 2),
        pytest.param("sqlite", 4, marks=pytest.mark.deep),
        pytest.param("postgresql", 4, marks=pytest.mark.deep),
    ],
    indirect=["url"],
)
def test_an_engine_that_is_killed_at_random_loses_and_doubles_nothing(world: World, kills: int) -> None:
    kill_again_and_again(world, rounds=1, kills=kills)


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_an_engine_that_is_killed_hundreds_of_times_loses_and_doubles_nothing(world: World) -> None:
    kill_again_and_again(world, rounds=30, kills=8)
