"""Several processes do everything at once to one project, some paused past their leases; the history is explained.

On both catalogs. A pause is a SIGSTOP, longer than every lease; a process that goes on finds itself expired, swept or
deposed, at whatever instruction it was.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random

import pytest

from mz_dagster.catalog import Catalog
from mz_dagster.clock import SYSTEM_CLOCK, ManualClock
from mz_dagster.storage import LocalShards, sweep
from tests.forks import forks
from tests.object_store import BUCKET, running_gateway
from tests.storage.history import history
from tests.storage.history_checker import violations
from tests.storage.leftovers import check_only_live_is_left
from tests.storage.places import place_of, put_in_bucket
from tests.storage.race_worker import LEASE_MS, STOP, make_project, work

WORKERS = 5


def started(folder: Path, url: str, seed: int) -> list[ForkServerProcess]:
    context = forks()
    workers = [
        context.Process(target=work, args=(str(folder), url, f"p{n}", seed + n), daemon=True) for n in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    return workers


def race(folder: Path, url: str, answers: int, seed: int) -> Counter[tuple[str, str | None]]:
    """Lets processes race for so many answers, explains these, and returns how often each came."""
    random = Random(seed)
    make_project(url)
    workers = started(folder, url, seed)
    try:
        while answered(folder) < answers and not errors(folder):
            SYSTEM_CLOCK.sleep(random.random() * 0.5)
            victims = [one.pid for one in random.sample(workers, random.choice([1, 1, 2]))]
            for pid in victims:
                assert pid is not None
                os.kill(pid, signal.SIGSTOP)
            SYSTEM_CLOCK.sleep(LEASE_MS * random.choice([1.2, 2]) / 1000)
            for pid in victims:
                assert pid is not None
                os.kill(pid, signal.SIGCONT)
        (folder / STOP).touch()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0] * WORKERS, errors(folder)
    finally:
        for worker in workers:
            worker.kill()
            worker.join(60)
    events = history(folder / "history")
    assert violations(events) == []
    check_nothing_is_left(folder, url)
    return Counter((event.operation, event.answer) for event in events)


def answered(folder: Path) -> int:
    path = folder / "history"
    return path.read_text().count("\n") if path.exists() else 0


def errors(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.glob("*.error"))


def check_nothing_is_left(folder: Path, url: str) -> None:
    """Long after, a sweep leaves the live batches and nothing else."""
    with Catalog.open(url, clock=ManualClock(SYSTEM_CLOCK.now_ms() + 10**9)) as catalog:
        shards = LocalShards(place_of(folder), catalog)
        sweep(catalog, shards, thorough=True)
        check_only_live_is_left(catalog, shards, catalog.collections(dropped=True))


EVERYTHING = {
    ("append", "done"),
    ("append", "refused"),
    ("read", "contents"),
    ("read", "before since"),
    ("read", "beyond upper"),
    ("lead", "done"),
    ("hold", "done"),
    ("downgrade", "done"),
    ("renew", "done"),
    ("release", "done"),
}


@pytest.mark.parametrize(
    ("url", "count"), [("sqlite", 60), pytest.param("postgresql", 40, marks=pytest.mark.deep)], indirect=["url"]
)
def test_what_racing_processes_are_told_can_be_explained(tmp_path: Path, url: str, count: int) -> None:
    # On a busy machine leases end in between, and many attempts are told so.
    answers = race(tmp_path, url, answers=count, seed=11)
    assert answers["append", "done"] >= count // 12
    assert answers["read", "contents"] >= count // 12


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_what_racing_processes_are_told_all_along_can_be_explained(tmp_path: Path, url: str, seed: int) -> None:
    assert set(race(tmp_path, url, answers=5000, seed=seed)) >= EVERYTHING


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_what_processes_that_race_in_a_bucket_are_told_can_be_explained(tmp_path: Path, url: str) -> None:
    (folder := tmp_path / "project").mkdir()
    with running_gateway(tmp_path) as store:
        put_in_bucket(folder, f"s3://{BUCKET}/{folder.name}", store)
        answers = race(folder, url, answers=1500, seed=5)
    assert answers["append", "done"] >= 100
