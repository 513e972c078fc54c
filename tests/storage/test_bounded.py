"""Everything stays bounded: a commit a second, for as long as one likes, keeps what retention keeps and no more.

A day is simulated: the clock is moved by hand, and files are made older as it goes, since Delta's log goes by their
age. Each second a table gains an update at a tick of its own, after which young batches are merged, as the engine does.
Once an hour, as the schedule of the compaction job has it, history is forgotten, batches are merged and swept. In each
hour a writer, a reader and a session crash, too.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select

from mz_dagster.adapter import Project
from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.minor_compaction import MinorCompaction
from mz_dagster.catalog import Catalog, CollectionRow, NewObject, Sealed, TickMinted
from mz_dagster.catalog.schema import METADATA
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.scalars.types import INT4, Column
from mz_dagster.storage import LocalShards, Merge, compact, compare_and_append, read_at, sweep, update_table

COLUMNS = (Column("k", INT4), Column("v", INT4))
HOUR_MS = 3_600_000
KEYS = 20


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


@dataclass(frozen=True)
class Footprint:
    """Is what a project takes up.

    Attributes:
        rows: How many rows each table of the catalog has.
        files: How many files of each kind are on the disk.
        bytes: How large all of them are.
    """

    rows: dict[str, int]
    files: dict[str, int]
    bytes: int


class Day:
    """Is a table whose keys are overwritten one after the other, at a tick each.

    Args:
        folder: Where.
        every_ms: The time from one commit to the next.
    """

    def __init__(self, folder: Path, every_ms: int) -> None:
        self.folder = folder
        self.every_ms = every_ms
        self.clock = ManualClock(1_700_000_000_000)
        self.url = f"sqlite:///{folder}/catalog.sqlite"
        self.catalog = Catalog.open(self.url, clock=self.clock)
        self.catalog.declare_timeline("t")
        self.id = self.catalog.create_object(NewObject("x", "table", "", "t", COLUMNS)).id
        self.shards = LocalShards(folder)
        (folder / "mz.toml").write_text('[project]\nname = "day"\n')
        definitions = CatalogDefinitions(self.catalog, Project.load(folder))
        self.young = MinorCompaction(self.catalog, self.shards, definitions, "t", 60_000)
        self.values: dict[int, int] = {}
        self.commits = 0

    @property
    def row(self) -> CollectionRow:
        return self.catalog.collection(self.id)

    def commit(self) -> None:
        """Overwrites a key and closes the time."""
        self.clock.advance(self.every_ms)
        self.commits += 1
        key = self.commits % KEYS
        time = self.catalog.write_ts("t", self.clock.now_ms())
        updates = [((key, self.commits), time, 1)]
        if key in self.values:
            updates.append(((key, self.values[key]), time, -1))
        self.values[key] = self.commits
        frame, row = update_table(COLUMNS, updates), self.row
        done = compare_and_append(
            self.catalog, self.shards, row, row.upper, at(time + 1), frame, holder="t", apply=("t", time)
        )
        assert isinstance(done, Sealed)
        minted = self.catalog.mint_tick("t", time + 1, {}, self.catalog.last_tick("t"))
        assert isinstance(minted, TickMinted)
        self.young.merge([self.id])

    def crash(self) -> None:
        """Leaves what a writer, a reader and a session leave that are killed."""
        writer = self.catalog.register_writer("crashed", 60_000)
        row = self.row
        batch = self.catalog.reserve_batch(self.id, writer, row.upper, at(row.upper.only + 1))
        self.shards.append(row, batch, update_table(COLUMNS, [((0, 0), row.upper.only, 1)]))
        self.catalog.lease([self.id], "crashed", 60_000)
        self.catalog.acquire(self.id, holder="crashed", ttl_ms=60_000)

    def hour(self) -> Footprint:
        """Lets an hour of commits pass, then cleans up; returns what there was before that."""
        for number in range(HOUR_MS // self.every_ms):
            self.commit()
            if number == 0:
                self.crash()
        self._grow_older()
        largest = self.footprint()
        self.catalog.allow_compaction("t", retention_ms=HOUR_MS // 10)
        self.catalog.forget_ticks("t")
        while isinstance(compact(self.catalog, self.shards, self.row, holder="t"), Merge):
            pass
        sweep(self.catalog, self.shards, thorough=True)
        return largest

    def _grow_older(self) -> None:
        for path in self.folder.rglob("*"):
            if path.is_file() and "sqlite" not in path.name:
                found = path.stat()
                os.utime(path, (found.st_atime, found.st_mtime - HOUR_MS / 1000))

    def footprint(self) -> Footprint:
        engine = create_engine(self.url)
        with engine.connect() as connection:
            tables = METADATA.sorted_tables
            rows = {t.name: connection.execute(select(func.count()).select_from(t)).scalar_one() for t in tables}
        engine.dispose()
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        kinds = Counter(f"{'log ' if path.parent.name == '_delta_log' else ''}{path.suffix}" for path in files)
        return Footprint(rows, dict(kinds), sum(path.stat().st_size for path in files))

    def check(self) -> None:
        with read_at(self.catalog, self.shards, self.row, self.row.upper.only - 1, holder="t") as frame:
            assert {row["k"]: row["v"] for row in frame.to_pylist()} == self.values


def check_bounded(folder: Path, hours: int, every_ms: int) -> None:
    """Lets hours pass; what there is at the end of each is no more than at the end of the first ones."""
    day = Day(folder, every_ms)
    with day.catalog:
        hour = HOUR_MS // every_ms
        seen = [day.hour() for _ in range(hours)]
        day.check()
        left = day.footprint()
    settled, later = seen[1 : hours // 2], seen[hours // 2 :]

    def most(of: list[Footprint], what: str, name: str) -> int:
        counts: list[dict[str, int]] = [getattr(one, what) for one in of]
        return max(one.get(name, 0) for one in counts)

    for name in seen[-1].rows:
        grown = most(later, "rows", name) - most(settled, "rows", name)
        # What crashed in an hour is remembered for a day, to say what became of it.
        remembered = hours if name in ("lease", "leased_batch", "capability") else 1
        assert grown <= remembered * (hour + 5 if name == "leased_batch" else 1), f"{name} grew by {grown} rows"
    for kind in seen[-1].files:
        grown = most(later, "files", kind) - most(settled, "files", kind)
        assert grown <= 60, f"{grown} more files {kind}"  # a log is cut at a checkpoint, one in 50 commits
    assert max(one.bytes for one in later) <= 1.2 * max(one.bytes for one in settled)
    # And nearly nothing is left of an hour once it is cleaned up.
    assert left.rows["batch"] <= 8
    assert left.rows["tick"] <= hour // 10 + 2
    assert left.files[".parquet"] <= 8
    assert left.files["log .json"] <= 60


@pytest.mark.timeout(300)
def test_hours_of_commits_take_up_what_retention_keeps(tmp_path: Path) -> None:
    check_bounded(tmp_path, hours=6, every_ms=180_000)


@pytest.mark.deep
@pytest.mark.timeout(10_800)
def test_a_day_of_a_commit_a_second_takes_up_what_retention_keeps(tmp_path: Path) -> None:
    check_bounded(tmp_path, hours=24, every_ms=1000)
