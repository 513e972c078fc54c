"""Bound files are rewritten while they are polled, read and stepped: none is ever read otherwise than it was bound.

A file is written again in place or replaced, in its size or another one, moved away and put back, while engines poll
and step and readers read. Whatever comes of it, a source has of each bound file the rows that it had when it was bound,
all of them. One that stays rewritten is told by the next poll, and once all are as they were bound, the source goes on.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

import pytest

from mz_dagster import disk
from mz_dagster.adapter import Engine, Project, Session
from mz_dagster.adapter.engine import SecondRunner, TimeNotReached
from mz_dagster.adapter.graphs import SourceNotPolled
from mz_dagster.compute.step.stepper import StepLost
from mz_dagster.storage.source import BoundFileChanged
from tests.cli.raw_catalog import url_of
from tests.postgres_server import Postgres

TIMELINE = "default"
ROWS = 50


def content(number: int, version: int) -> bytes:
    """Returns a version of a file: each has as many bytes as the one two before."""
    padding = " " * (version % 2)
    return "".join(
        f'{{"file": {number}, "version": {version:4}, "row": {row}}}{padding}\n' for row in range(ROWS)
    ).encode()


class Folder:
    """Is the landing folder, in which files arrive and are rewritten.

    Attributes:
        versions: What number and version each content that was ever there is, by its hash.
        arrived: How many files were.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.versions: dict[str, tuple[int, int]] = {}
        self.arrived = 0

    def path(self, number: int) -> Path:
        return self.root / f"{number:06}.jsonl"

    def arrive(self) -> None:
        self.put(self.arrived, 0)
        self.arrived += 1

    def put(self, number: int, version: int) -> None:
        """Writes a version of a file beside it and puts it in its place."""
        draft = self.root / f".{number}"
        draft.write_bytes(self.known(number, version))
        draft.replace(self.path(number))

    def rewrite(self, number: int, version: int) -> None:
        """Writes a version of a file over what is there."""
        with open(self.path(number), "r+b", buffering=0) as file:
            said = self.known(number, version)
            for begin in range(0, len(said), 1000):
                file.write(said[begin : begin + 1000])
            file.truncate()

    def known(self, number: int, version: int) -> bytes:
        found = content(number, version)
        self.versions[hashlib.sha256(found).hexdigest()] = (number, version)
        return found


def disturb(project: Project, folder: Folder, rng: random.Random, over: Event) -> int:
    """Lets files arrive, rewrites bound ones until it is over, and puts each back; returns how often."""
    version = times = 0
    with Engine(project, holder="disturber") as engine:
        while not over.wait(rng.random() / 20):
            folder.arrive()
            bound = bound_versions(engine, folder)
            if not bound:
                continue
            number = rng.choice([max(bound), rng.choice([*bound])])
            version += 1
            match rng.randrange(4):
                case 0:
                    folder.rewrite(number, version)
                case 1:
                    folder.put(number, version)
                case 2:
                    os.replace(folder.path(number), folder.root / ".away")
                case _:
                    folder.rewrite(number, bound[number] + 2)
            times += 1
            over.wait(rng.random() / 20)
            folder.put(number, bound[number])
    return times


def bound_versions(engine: Engine, folder: Folder) -> dict[int, int]:
    """Returns as which version each bound file was bound."""
    files = [file for one in engine.catalog.bindings(engine.collection_of("s")) for file in one.files]
    return dict(folder.versions[file.sha256] for file in files)


def run(project: Project, name: str, over: Event) -> int:
    """Polls and steps until it is over; returns how often a bound file was found rewritten."""
    found = 0
    with Engine(project, holder=name) as engine:
        while not over.wait(0.01):
            failures = [*engine.poll(TIMELINE).failures.values()]
            for tick in engine.unsealed_ticks(TIMELINE)[-1:]:
                try:
                    failures += [one.error for one in engine.step(TIMELINE, tick).failures if one.error is not None]
                except (SecondRunner, StepLost):
                    continue
            assert all(isinstance(one, BoundFileChanged | SourceNotPolled) for one in failures), failures
            found += len(failures)
    return found


def read(project: Project, over: Event) -> int:
    """Reads until it is over: each file is there whole, in one version; returns how often."""
    times = 0
    with Engine(project, holder="reader") as engine:
        session = Session(engine)
        while not over.wait(0.02):
            try:
                rows = session.execute("SELECT file, version, count(*) FROM s GROUP BY file, version").rows
            except (BoundFileChanged, SourceNotPolled, TimeNotReached):
                continue
            assert all(count == ROWS for *_, count in rows), rows
            assert len({file for file, *_ in rows}) == len(rows), rows
            times += 1
    return times


@pytest.mark.parametrize(
    ("seconds", "catalog"),
    [
        (2, "sqlite"),
        pytest.param(4, "postgresql", marks=pytest.mark.deep),
        *(
            pytest.param(300, one, marks=[pytest.mark.deep, pytest.mark.timeout(900)])
            for one in ("sqlite", "postgresql")
        ),
    ],
)
def test_a_bound_file_is_read_as_it_was_bound_or_not_at_all(
    request: pytest.FixtureRequest, tmp_path: Path, catalog: str, seconds: int
) -> None:
    settings = ""
    if catalog == "postgresql":
        server: Postgres = request.getfixturevalue("postgres_server")
        settings = f"[catalog]\nurl = '{url_of(server.new_database())}'\n"
    (tmp_path / "mz.toml").write_text(settings)
    (tmp_path / "landing").mkdir()
    project, folder, over = Project.load(tmp_path), Folder(tmp_path / "landing"), Event()
    with Engine(project) as engine:
        session = Session(engine)
        session.execute(
            "CREATE SOURCE s (file integer, version integer, row integer) FROM FILES (FOLDER 'landing') FORMAT JSON"
        )
        session.execute("CREATE MATERIALIZED VIEW v AS SELECT file, count(*) AS n FROM s GROUP BY file")
        with ThreadPoolExecutor() as pool:
            disturbing = pool.submit(disturb, project, folder, random.Random(seconds), over)
            runners = [pool.submit(run, project, f"runner {n}", over) for n in range(2)]
            reading = pool.submit(read, project, over)
            wait([disturbing, *runners, reading], timeout=seconds, return_when=FIRST_EXCEPTION)
            over.set()
        print(f"{disturbing.result()} times rewritten, {[one.result() for one in runners]} times found, "
              f"{reading.result()} times read")  # fmt: skip

        # What stays rewritten is told by the next poll, also in its size.
        assert not engine.poll(TIMELINE).failures
        bound = bound_versions(engine, folder)
        number = max(bound)
        folder.rewrite(number, bound[number] + 2)
        (told,) = engine.poll(TIMELINE).failures.values()
        assert isinstance(told, BoundFileChanged)

        # Once all is as it was bound, all goes on.
        folder.put(number, bound[number])
        polled = engine.poll(TIMELINE)
        assert not polled.failures
        assert engine.collection_of("s") in polled.healed
        for tick in engine.unsealed_ticks(TIMELINE)[-1:]:
            assert not engine.step(TIMELINE, tick).failures
        assert engine.unsealed_ticks(TIMELINE) == ()
        bound = bound_versions(engine, folder)
        assert bound.keys() == set(range(folder.arrived))
        expected = Counter((number, version) for number, version in bound.items() for _ in range(ROWS))
        assert Counter(session.execute("SELECT file, version FROM s").rows) == expected
        assert Counter(session.execute("SELECT file, n FROM v").rows) == Counter((one, ROWS) for one in bound)


def test_a_file_that_goes_before_it_is_on_disk_is_not_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "landing").mkdir()
    for number in range(2):
        (tmp_path / "landing" / f"{number}.jsonl").write_text(f'{{"a": {number}}}\n')
    sync = disk.sync_files

    def taken_away(folder: Path, paths: Iterable[str]) -> None:
        (folder / "0.jsonl").unlink(missing_ok=True)
        sync(folder, paths)

    monkeypatch.setattr("mz_dagster.storage.source.folder.sync_files", taken_away)
    with Engine(Project.load(tmp_path)) as engine:
        session = Session(engine)
        session.execute("CREATE SOURCE s (a integer) FROM FILES (FOLDER 'landing') FORMAT JSON")
        assert not engine.poll(TIMELINE).failures
        assert session.execute("SELECT a FROM s").rows == ((1,),)
