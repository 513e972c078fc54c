"""A real process is killed at every fail point, then another goes on: no update lost, doubled or exposed early."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from mz_dagster.catalog import BatchState
from mz_dagster.clock import ManualClock
from mz_dagster.fail_point import FAIL_POINTS
from mz_dagster.storage import Inlining
from tests.forks import forks
from tests.storage.leftovers import check_only_live_is_left
from tests.storage.life import ALL_INLINED, NOTHING_INLINED, SOME_INLINED, TICKS, Life, live_until, rows_at

EPOCH = 1_000_000
LATER = 10_000_000


def killed_at(folder: Path, fail_at: str, inlining: Inlining, url: str) -> None:
    """Lives until a fail point kills."""
    process = forks().Process(target=live_until, args=(folder, EPOCH, fail_at, inlining, url))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, f"{fail_at} was not passed"


def check_nothing_is_left(life: Life) -> None:
    """Checks that a sweep leaves the live batches and nothing else, neither in the shard nor in the catalog."""
    life.sweep(thorough=True)
    check_only_live_is_left(life.catalog, life.shards, [life.row])
    assert life.catalog.sweepable() == ()
    life.check()


def crash_and_go_on(folder: Path, fail_at: str, inlining: Inlining, url: str) -> None:
    killed_at(folder, fail_at, inlining, url)
    # Long after the crash, so that the dead process's leases are over.
    with (life := Life(folder, ManualClock(LATER), inlining, url)).catalog:
        life.check()  # before anything is repaired
        life.sweep()
        life.check()
        life.live()  # the interrupted operation is done again
        row = life.row
        assert row.upper.only == TICKS + 1
        assert life.catalog.ticks("t") == tuple(range(1, TICKS + 1))
        assert list(life.catalog.bound_files(life.id)) == [f"f{n}" for n in range(1, TICKS + 1)]
        assert life.read(TICKS) == rows_at(TICKS)
        check_nothing_is_left(life)


def passages(name: str) -> Iterator[ParameterSet]:
    """Yields a catalog, a fail point, and where batches are stored in lives that pass it."""
    stored = {"some": SOME_INLINED, "all": ALL_INLINED}
    if name == "compact.inlined":
        del stored["some"]
    if name.rpartition(".")[2] in ("reserved", "written"):
        del stored["all"]
    for catalog in ("sqlite", "postgresql"):
        for words, inlining in stored.items():
            in_every_run = name == "compact.inlined" or (catalog, words) == ("sqlite", "some")
            marks = () if in_every_run else pytest.mark.deep
            yield pytest.param(catalog, name, inlining, id=f"{name}, {words} inlined, {catalog}", marks=marks)


@pytest.mark.parametrize(
    ("url", "name", "inlining"), [one for name in FAIL_POINTS for one in passages(name)], indirect=["url"]
)
def test_a_crash_at_every_fail_point_loses_and_doubles_nothing(
    tmp_path: Path, url: str, name: str, inlining: Inlining
) -> None:
    # The third passage of most: there are batches to merge and to sweep by then.
    nth = {"catalog.before_commit": 30, "catalog.committed": 30}.get(name, 1 if name.startswith("sweep.de") else 3)
    crash_and_go_on(tmp_path, f"{name}:{nth}", inlining, url)


@pytest.mark.deep
@pytest.mark.parametrize("nth", range(1, 76))
@pytest.mark.parametrize("name", ["catalog.before_commit", "catalog.committed"])
def test_a_crash_around_every_transaction_loses_and_doubles_nothing(
    tmp_path: Path, url: str, name: str, nth: int
) -> None:
    crash_and_go_on(tmp_path, f"{name}:{nth}", SOME_INLINED, url)


@pytest.mark.parametrize(("fail_at", "upper"), [("seal.in_transaction", 1), ("seal.sealed", 2)])
@pytest.mark.parametrize(
    ("url", "inlining"),
    [("sqlite", NOTHING_INLINED), ("sqlite", SOME_INLINED), ("postgresql", SOME_INLINED)],
    indirect=["url"],
)
def test_a_crash_is_only_seen_once_sealed(
    tmp_path: Path, url: str, inlining: Inlining, fail_at: str, upper: int
) -> None:
    """Killed right before the seal's commit nothing is readable; right after it, everything is."""
    killed_at(tmp_path, fail_at, inlining, url)
    with (life := Life(tmp_path, ManualClock(EPOCH), inlining, url)).catalog:
        assert life.row.upper.only == upper
        assert life.catalog.last_tick("t") == 1
        before = [BatchState.WRITING] if inlining == NOTHING_INLINED else []
        states = [one.state for one in life.catalog.batches(life.id)]
        assert states == (before if upper == 1 else [BatchState.LIVE])
        left = [one.state for one in life.catalog.sweepable()]
        assert left == (before if upper == 1 else [])  # its writer is known to be dead
        life.check()
