"""The seed's examples of compaction and of envelopes, with their numbers.

Times are small numbers here: t1 < t2 < t3 are the times of the first, second and third append.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.catalog import Catalog, CollectionRow, NewObject, Sealed
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.scalars.types import TEXT, Column
from mz_dagster.storage import LocalShards, compact, compare_and_append, update_table
from mz_dagster.storage.spark import SparkConfig

TIMELINE = "default"
COLUMNS = (Column("r", TEXT),)

Stored = list[tuple[str, int, int]]


class Shard:
    """Is one collection without a project: `(r)`, each time appended by itself."""

    def __init__(self, folder: Path) -> None:
        self.catalog = Catalog.open(f"sqlite:///{folder}/catalog.sqlite", clock=ManualClock(1_000_000))
        self.catalog.declare_timeline("t")
        self.id: GlobalId = self.catalog.create_object(NewObject("x", "table", "", "t", COLUMNS)).id
        self.shards = LocalShards(folder)

    @property
    def row(self) -> CollectionRow:
        return self.catalog.collection(self.id)

    def append(self, time: int, updates: Sequence[tuple[str, int]]) -> None:
        frame = update_table(COLUMNS, [((data,), time, diff) for data, diff in updates])
        upper = Antichain.of(EPOCH_MS, time + 1)
        done = compare_and_append(self.catalog, self.shards, self.row, self.row.upper, upper, frame, holder="test")
        assert isinstance(done, Sealed)

    def since(self, time: int) -> None:
        """Lets since rise to `time`, and compacts."""
        self.catalog.allow_compaction("t", retention_ms=self.row.upper.only - 1 - time)
        assert self.row.since.only == time
        compact(self.catalog, self.shards, self.row, holder="test", least_parts=1)

    def stored(self) -> Stored:
        frame = self.shards.read(self.row, self.catalog.live_batches([self.id])[self.id])
        return sorted((one["r"], one["mz_timestamp"], one["mz_diff"]) for one in frame.to_pylist())


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    made = Shard(tmp_path)
    with made.catalog:
        yield made


def test_an_insertion_and_its_deletion_vanish_when_since_passes_them(shard: Shard) -> None:
    shard.append(1, [("r", 1)])
    shard.append(3, [("r", -1)])
    shard.append(5, [])
    shard.since(2)  # which must still tell that r was there at 2
    assert shard.stored() == [("r", 2, 1), ("r", 3, -1)]
    shard.since(3)
    assert shard.stored() == []


def test_a_row_inserted_twice_becomes_one_update_of_two(shard: Shard) -> None:
    shard.append(1, [("r", 1)])
    shard.append(3, [("r", 1)])
    shard.since(2)
    assert shard.stored() == [("r", 2, 1), ("r", 3, 1)]
    shard.append(5, [])
    shard.since(3)
    assert shard.stored() == [("r", 3, 2)]


def test_a_since_that_is_now_leaves_an_ordinary_table(shard: Shard) -> None:
    for time in range(1, 10):
        shard.append(time, [(f"r{time}", 1), *([(f"r{time - 2}", -1)] if time > 2 else [])])
    shard.since(9)
    assert shard.stored() == [("r8", 9, 1), ("r9", 9, 1)]  # one update for each row that there is


class Sources:
    """Is a project with sources of `(k, v)`, fed by files."""

    def __init__(self, connection: Connection, folder: Path) -> None:
        self.connection = connection
        self.engine = connection.engine
        self.folder = folder
        self.files = 0

    def create(self, name: str, envelope: str) -> None:
        (self.folder / name).mkdir()
        key = ", PRIMARY KEY (k)" if envelope == "UPSERT" else ""
        self.connection.execute(
            f"CREATE SOURCE {name} (k integer NOT NULL, v text{key}) "
            f"FROM FILES (FOLDER '{name}') FORMAT JSON ENVELOPE {envelope}"
        )

    def drop(self, name: str, records: Sequence[tuple[int, str]]) -> None:
        self.files += 1
        rows = [{"k": k, "v": v} for k, v in records]
        written = rows if name == "appended" else [{"key": {"k": row["k"]}, "value": row} for row in rows]
        lines = "".join(json.dumps(record) + "\n" for record in written)
        (self.folder / name / f"{self.files}.jsonl").write_text(lines)

    def step(self) -> None:
        poll = self.engine.poll(TIMELINE)
        assert poll.tick is not None, poll.reason
        assert not self.engine.step(TIMELINE, poll.tick).failures

    def compact(self) -> None:
        """Lets since rise to the newest complete time, and rewrites every batch as of then."""
        self.engine.catalog.allow_compaction(TIMELINE, retention_ms=0)
        for row in self.engine.catalog.collections(TIMELINE):
            compact(self.engine.catalog, self.engine.shards, row, holder="test", least_parts=1)

    def stored(self, name: str) -> list[tuple[int, str, int]]:
        """Returns what is stored of a source: key, value and diff of each update, by time."""
        row = self.engine.catalog.collection(self.engine.collection_of(name))
        frame = self.engine.shards.read(row, self.engine.catalog.live_batches([row.id])[row.id]).to_pylist()
        frame.sort(key=lambda one: (one["mz_timestamp"], one["mz_diff"], one["k"]))
        return [(one["k"], one["v"], one["mz_diff"]) for one in frame]


@contextmanager
def sources(folder: Path, spark: SparkConfig) -> Iterator[Sources]:
    project = replace(Project.load(folder), retention_ms=None)
    with Connection(Engine(project, spark=spark), Isolation.STRICT_SERIALIZABLE) as connection:
        yield Sources(connection, folder)


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_storage_follows_the_key_space_of_upserts_and_the_history_of_appends(
    tmp_path: Path, spark_config: SparkConfig
) -> None:
    """Both sources ingest the same: a key written twice, then 100 keys written over and over."""
    with sources(tmp_path, spark_config) as world:
        world.create("upserted", "UPSERT")
        world.create("appended", "NONE")
        for value in ("v1", "v2"):
            for name in ("upserted", "appended"):
                world.drop(name, [(-1, value)])
            world.step()
        assert world.stored("upserted") == [(-1, "v1", 1), (-1, "v1", -1), (-1, "v2", 1)]
        world.compact()
        assert world.stored("upserted") == [(-1, "v2", 1)]
        assert world.stored("appended") == [(-1, "v1", 1), (-1, "v2", 1)]

        keys, rounds = 100, 3
        for round in range(rounds):
            records = [(k, f"round {round}") for k in range(keys)]
            for name in ("upserted", "appended"):
                world.drop(name, records)
            world.step()
        ingested = 2 + keys * rounds
        assert len(world.stored("appended")) == ingested
        assert len(world.stored("upserted")) == 1 + keys * (2 * rounds - 1)
        world.compact()
        assert len(world.stored("appended")) == ingested  # nothing to remove: no two rows are the same
        assert len(world.stored("upserted")) == 1 + keys

        # Only where an identical row comes twice is there anything to gain.
        world.drop("appended", [(-1, "v2")])
        world.step()
        world.compact()
        assert len(world.stored("appended")) == ingested
        assert (-1, "v2", 2) in world.stored("appended")
