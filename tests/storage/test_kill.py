"""A real process is killed by SIGKILL at random moments and started again, while an independent reader looks on.

What the process acknowledged is there, what it did not say is there as a whole or not at all, in all collections of its
transaction alike; and what could once be read at a time never changes. Nothing of that is asked of the engine.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from mz_dagster.catalog import Catalog
from mz_dagster.clock import SYSTEM_CLOCK, ManualClock
from mz_dagster.storage import LocalShards, sweep
from tests.catalog.by_driver import READER, one_state
from tests.catalog.connected import connected
from tests.forks import forks
from tests.object_store import BUCKET, running_gateway
from tests.storage.independent_reader import Contents, IndependentReader, Row
from tests.storage.kill_worker import Intent, Worker, expected_at, journal, live, make_project
from tests.storage.leftovers import check_only_live_is_left
from tests.storage.places import place_of, put_in_bucket


class Watcher:
    """Compares what can be read with what the journal says, all along, in a thread.

    Attributes:
        looks: How often it has looked.
        failure: What was wrong; the thread ends with the first failure.
    """

    def __init__(self, folder: Path, url: str, shards: Path | None = None) -> None:
        self._folder, self._reader = folder, IndependentReader(url, shards or folder)
        self._lost: set[str] = set()
        self._past: dict[tuple[str, int], Counter[Row]] = {}
        self._frontiers: dict[str, tuple[int, int]] = {}
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.looks = 0
        self.failure: BaseException | None = None

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self.look()
            except BaseException as failure:
                self.failure = failure
                return
            SYSTEM_CLOCK.sleep(0.01)

    def look(self) -> None:
        """Checks the present state."""
        with self._turn:
            acknowledged = self._intents()
            found = self._reader.look()
            self._check(acknowledged, self._intents(), found)
            self.looks += 1

    def settle(self) -> int:
        """Decides what became of the last intent of a process that is dead; returns how many were sealed so far."""
        with self._turn:
            intents = self._intents()
            found = self._reader.look()
            for intent in intents:
                reached = [found[id].upper >= upper for id, (_, upper, _) in intent.seals.items()]
                if intent.sealed is None and not any(reached):
                    self._lost.add(intent.number)
            self._check(intents, self._intents(), found)
            return sum(intent.sealed is not False for intent in self._intents())

    def _intents(self) -> list[Intent]:
        intents = journal(self._folder)
        for intent in intents:
            if intent.number in self._lost:
                intent.sealed = False
        return intents

    def _check(self, before: list[Intent], after: list[Intent], found: Mapping[str, Contents]) -> None:
        """Checks a look between two readings of the journal."""
        for intent in before:
            if intent.sealed:
                for id, (_, upper, _) in intent.seals.items():
                    assert upper <= found[id].upper, f"{intent} was acknowledged, and {id} ends at {found[id].upper}"
        possible = [intent for intent in after if intent.sealed is not False]
        for intent in possible:
            reached = {id: found[id].upper >= upper for id, (_, upper, _) in intent.seals.items()}
            assert len(set(reached.values())) == 1, f"{intent} shows in one collection only: {reached}"
        for id, contents in found.items():
            sealed = [one for one in possible if id in one.seals and one.seals[id][1] <= contents.upper]
            ends = {1, *(one.seals[id][1] for one in sealed)}
            assert contents.upper == max(ends), f"{id} ends at {contents.upper}, sealed was {max(ends)}"
            since, upper = self._frontiers.get(id, (0, 0))
            assert (since, upper) <= (contents.since, contents.upper), f"{id} went back from [{since}, {upper})"
            assert since <= contents.since
            self._frontiers[id] = contents.since, contents.upper
            for time in range(contents.since, contents.upper):
                rows = contents.at(time)
                assert rows == expected_at(sealed, id, time), f"{id} at {time}"
                assert rows == self._past.setdefault((id, time), rows), f"the past of {id} changed at {time}"


def kill_again_and_again(folder: Path, url: str, kills: int, seed: int, shards: Path | None = None) -> None:
    random = Random(seed)
    make_project(url)
    context = forks()
    with Watcher(folder, url, shards) as watcher:
        for n in range(kills):
            worker = context.Process(target=live, args=(str(folder), url, f"w{n}", seed + n), daemon=True)
            worker.start()
            wait_for_lines(folder, f'"begun": "w{n}"', random.choice([0, 0, 1, 2, 3, 5]))
            SYSTEM_CLOCK.sleep(random.random() * 0.03)
            worker.kill()
            worker.join(60)
            assert worker.exitcode == -9, (folder / f"w{n}.error").read_text()
            wait_for_commits(url)
            sealed = watcher.settle()
            if watcher.failure is not None:
                raise watcher.failure
    assert sealed >= kills // 4
    assert watcher.looks >= kills // 4
    with Catalog.open(url, clock=ManualClock(SYSTEM_CLOCK.now_ms() + 10**9)) as catalog:
        local = LocalShards(place_of(folder), catalog)
        sweep(catalog, local, thorough=True)
        check_only_live_is_left(catalog, local, catalog.collections())
    watcher.look()


def wait_for_lines(folder: Path, first: str, more: int) -> None:
    """Waits until the journal has a line, and so many more behind it: that depends on no machine's speed."""
    deadline = SYSTEM_CLOCK.monotonic_ms() + 60_000
    path = folder / "journal"
    while not path.exists() or path.read_text().partition(first)[2].count("\n") <= more:
        assert SYSTEM_CLOCK.monotonic_ms() < deadline, "the process does not get on"
        SYSTEM_CLOCK.sleep(0.002)


def wait_for_commits(url: str) -> None:
    """Waits until PostgreSQL serves no process: what a killed one had sent may still be committed."""
    query = f"SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name <> '{READER}'"
    deadline = SYSTEM_CLOCK.monotonic_ms() + 60_000
    while not url.startswith("sqlite"):
        with one_state(url) as connection:
            if connection.execute(query).fetchone() is None:
                return
        assert SYSTEM_CLOCK.monotonic_ms() < deadline, "it serves a process that is dead"
        SYSTEM_CLOCK.sleep(0.01)


@pytest.mark.parametrize(
    ("url", "kills"),
    [
        ("sqlite", 10),
        pytest.param("postgresql", 4, marks=pytest.mark.deep),
        pytest.param("sqlite", 24, marks=pytest.mark.deep),
        pytest.param("postgresql", 24, marks=pytest.mark.deep),
    ],
    indirect=["url"],
)
def test_kills_lose_double_and_expose_nothing(tmp_path: Path, url: str, kills: int) -> None:
    kill_again_and_again(tmp_path, url, kills=kills, seed=1)


TAMPERED = {
    "a batch is lost": "DELETE FROM batch WHERE id = (SELECT max(id) FROM batch WHERE state = 'live')",
    "updates are doubled": "UPDATE batch SET state = 'live' WHERE state = 'replaced'",
    "a time is exposed early": "UPDATE collection SET upper = '[9999]'",
    "upper goes back": "UPDATE collection SET upper = since",
    "history is told that was forgotten": "UPDATE collection SET since = '[1]'",
}


@pytest.mark.parametrize("url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True)
@pytest.mark.parametrize("tampered", TAMPERED)
def test_the_watcher_sees_what_must_not_be(tmp_path: Path, url: str, tampered: str) -> None:
    make_project(url)
    worker, watcher = Worker(tmp_path, url, "w", Random(3)), Watcher(tmp_path, url)
    with worker.catalog:
        for _ in range(8):
            worker.append()
        for _ in range(6):
            worker.compact()
    watcher.look()
    with connected(url) as connection:
        assert connection.exec_driver_sql(TAMPERED[tampered]).rowcount > 0
    with pytest.raises(AssertionError):
        watcher.look()


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_thousands_of_kills_lose_double_and_expose_nothing(tmp_path: Path, url: str, seed: int) -> None:
    kill_again_and_again(tmp_path, url, kills=300, seed=1000 * seed)


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [100])
def test_kills_of_writers_to_a_bucket_lose_double_and_expose_nothing(tmp_path: Path, kills: int) -> None:
    (folder := tmp_path / "project").mkdir()
    with running_gateway(tmp_path) as store:
        put_in_bucket(folder, f"s3://{BUCKET}/{folder.name}", store)
        # What is in the bucket is in files of the gateway's.
        url = f"sqlite:///{folder}/catalog.sqlite"
        kill_again_and_again(folder, url, kills, seed=7, shards=tmp_path / BUCKET / folder.name)
