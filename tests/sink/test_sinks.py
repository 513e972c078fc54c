"""The laws of sinks, which every kind keeps wherever it writes: what is written is what was told, once, and says so.

A kind of sink registers itself below: how one is made of a place, and how a reader who knows nothing of it reads that.
"""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pytest

from mz_dagster.errors import Error
from mz_dagster.fail_point import VARIABLE
from mz_dagster.scalars import types
from mz_dagster.scalars.types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Column,
    ScalarType,
    array_of,
    numeric,
)
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.object_store import S3
from mz_dagster.storage.plain_cells import stored_cells
from mz_dagster.storage.sink.delta_sink import DeltaSink
from mz_dagster.storage.sink.sink import Sink, SinkChanged, SinkEnvelope, SinkTaken, SinkUnwritable
from mz_dagster.storage.table_place import Folder, InStore, TablePlace
from tests.forks import forks
from tests.object_store import BUCKET, Store, running_store

COLUMNS = (Column("a", INT4), Column("b", TEXT))
#: Row, time, diff.
Update = tuple[tuple[Any, ...], int, int]
History = Sequence[Update]


def table(history: History, columns: Sequence[Column] = COLUMNS) -> pa.Table:
    """Returns updates as a sink is told them."""
    schema = update_schema(columns)
    cells = [stored_cells([row[i] for row, _, _ in history], one.type) for i, one in enumerate(columns)]
    meta = [pa.array([one[i] for one in history], pa.int64()) for i in (1, 2)]
    errors = pa.nulls(len(history), pa.string())
    return pa.Table.from_arrays([*cells, *meta, errors], schema=schema)


def between(history: History, lower: int, upper: int) -> History:
    return [one for one in history if lower <= one[1] < upper]


def sums(history: History) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row, _, diff in history:
        found[row] += diff
    return Counter({row: count for row, count in found.items() if count})


class Kind(ABC):
    """One kind of sink, with a place of its own.

    Args:
        place: Its name.
        root: A folder.
    """

    def __init__(self, place: str, root: Path) -> None:
        self.place, self.root = place, root

    @abstractmethod
    def sink(self, columns: Sequence[Column] = COLUMNS, *, id: str = "u1", project: str = "p") -> Sink:
        """Returns a sink of the place, as another process would make it, too."""

    @abstractmethod
    def version(self) -> int:
        """Returns the newest version of what is written."""

    @abstractmethod
    def read(self, version: int | None = None) -> Counter[tuple[Any, ...]]:
        """Returns how often each row is there, as a reader reads it, at a version."""

    @abstractmethod
    def spoil(self) -> None:
        """Has somebody else put something into the place, which is empty."""

    @abstractmethod
    def remove(self) -> None:
        """Takes away what is written."""


class Delta(Kind):
    """A Delta table in a folder."""

    envelope: SinkEnvelope = "upsert"

    @property
    def table(self) -> TablePlace:
        return Folder(self.root / self.place)

    def sink(self, columns: Sequence[Column] = COLUMNS, *, id: str = "u1", project: str = "p") -> Sink:
        return DeltaSink(self.table, tuple(columns), self.envelope, id, project)

    def version(self) -> int:
        return self.table.opened().version()

    def read(self, version: int | None = None) -> Counter[tuple[Any, ...]]:
        found = self.table.opened(version).to_pyarrow_table().to_pylist()
        if self.envelope == "upsert":
            return Counter(tuple(row.values()) for row in found)
        return sums([(tuple(row.values())[:-2], row["mz_timestamp"], row["mz_diff"]) for row in found])

    def spoil(self) -> None:
        (self.root / self.place).mkdir()
        (self.root / self.place / "theirs").write_text("x")

    def remove(self) -> None:
        for path in sorted((self.root / self.place).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


class DeltaChanges(Delta):
    """A Delta table of changes."""

    envelope: SinkEnvelope = "append changes"


class DeltaPartitioned(Delta):
    """A Delta table that is partitioned by a column."""

    partition = ("b",)

    def sink(self, columns: Sequence[Column] = COLUMNS, *, id: str = "u1", project: str = "p") -> Sink:
        return DeltaSink(
            self.table, tuple(columns), self.envelope, id, project, partition=self.partition, file_bytes=1 << 20
        )


class DeltaChangesPartitioned(DeltaPartitioned):
    """A Delta table of changes that is partitioned."""

    envelope: SinkEnvelope = "append changes"


class DeltaEvents(Delta):
    """A Delta table of Debezium's events; each row goes into the sum once it is there, out of it once it was."""

    envelope: SinkEnvelope = "debezium"

    def sink(self, columns: Sequence[Column] = COLUMNS, *, id: str = "u1", project: str = "p") -> Sink:
        return DeltaSink(self.table, tuple(columns), self.envelope, id, project, key=(columns[0].name,))

    def read(self, version: int | None = None) -> Counter[tuple[Any, ...]]:
        found = self.table.opened(version).to_pyarrow_table().to_pylist()
        for one in found:
            assert (one["before"] is None, one["after"] is None) == OPS[one["op"]]
            assert one["op"] != "u" or one["before"]["a"] == one["after"]["a"]
        sides = [(one[name], one["ts_ms"], diff) for one in found for name, diff in (("before", -1), ("after", 1))]
        return sums([(tuple(row.values()), time, diff) for row, time, diff in sides if row is not None])


#: Whether an event has no row before, and none after.
OPS = {"r": (True, False), "c": (True, False), "u": (False, False), "d": (False, True)}


class DeltaInStore(Delta):
    """A Delta table in a bucket."""

    store: Store

    @property
    def table(self) -> TablePlace:
        options = {"access key id": self.store.key, "secret access key": self.store.secret}
        options |= {"region": "us-east-1", "endpoint": self.store.endpoint}
        return InStore(f"s3://{BUCKET}/{self.place}", S3("store", tuple(options.items())), self.root)

    def spoil(self) -> None:
        self.store.client().put_object(Bucket=BUCKET, Key=f"{self.place}/theirs", Body=b"x")

    def remove(self) -> None:
        client = self.store.client()
        for one in client.list_objects_v2(Bucket=BUCKET, Prefix=f"{self.place}/").get("Contents", ()):
            client.delete_object(Bucket=BUCKET, Key=one["Key"])


class DeltaChangesInStore(DeltaInStore):
    """A Delta table of changes in a bucket."""

    envelope: SinkEnvelope = "append changes"


class DeltaPartitionedInStore(DeltaInStore, DeltaPartitioned):
    """A Delta table in a bucket that is partitioned by a column."""


#: Of two things that a kind has, each is in another one, too; tables in a store are in other tests.
DEEP = (DeltaChangesPartitioned, DeltaInStore, DeltaChangesInStore, DeltaPartitionedInStore)
KINDS: tuple[type[Kind], ...] = (
    Delta, DeltaChanges, DeltaPartitioned, DeltaChangesPartitioned, DeltaEvents, DeltaInStore, DeltaChangesInStore,
    DeltaPartitionedInStore,
)  # fmt: skip


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running_store() as store:
        yield store


@pytest.fixture(
    params=[pytest.param(one, marks=pytest.mark.deep if one in DEEP else ()) for one in KINDS],
    ids=[one.__name__ for one in KINDS],
)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    made: Kind = request.param(f"out_{abs(hash(request.node.nodeid))}", tmp_path)
    if isinstance(made, DeltaInStore):
        made.store = request.getfixturevalue("store")
    return made


def random_history(random: Random, ticks: int) -> History:
    held: Counter[tuple[Any, ...]] = Counter()
    found: list[Update] = []
    for time in range(10, 10 + ticks):
        for _ in range(random.randrange(4)):
            gone = random.choice(sorted(held.elements(), key=repr)) if held and random.random() < 0.4 else None
            row = gone or (random.randrange(4), random.choice(["x", "a b/c=%é", None]))
            diff = -1 if gone else random.randrange(1, 3)
            held[row] += diff
            held += Counter()
            found.append((row, time, diff))
    return found


def tell(sink: Sink, history: History, lower: int, upper: int) -> None:
    """Has a sink go on, as a step does."""
    due = table(between(history, lower, upper))
    sink.go_on(consolidated(due, upper - 1) if not sink.keeps_times else due, lower, upper)


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.deep) for one in range(1, 20))])
def test_whatever_the_intervals_each_version_is_what_was_told_until_then(kind: Kind, seed: int) -> None:
    random = Random(seed)
    history = random_history(random, 12)
    sink = kind.sink()
    assert sink.stands_at() is None
    upper = 10 + random.randrange(3)
    sink.begin(consolidated(table(between(history, 0, upper)), upper - 1), upper)
    written = {upper: kind.version()}
    while upper < 22:
        assert kind.sink().stands_at() == upper, "another process knows it, too"
        assert kind.read() == sums(between(history, 0, upper))
        lower, upper = upper, min(22, upper + random.randrange(1, 4))
        tell(sink, history, lower, upper)
        written[upper] = kind.version()
        if random.random() < 0.5:
            tell(sink, history, lower, upper)  # again
            assert kind.version() == written[upper], "nothing was written"
    for upper, version in written.items():
        assert kind.read(version) == sums(between(history, 0, upper))
        found = sink.version_at(upper - 1)
        assert found is not None
        assert kind.read(found) == kind.read(version)
    assert sink.version_at(min(written) - 2) is None
    assert sink.difference(consolidated(table(history), 22)) is None
    assert "1 rows are missing" in str(sink.difference(table([*one_by_one(history), ((77, "new"), 22, 1)])))


def one_by_one(history: History) -> History:
    return [(row, 22, count) for row, count in sums(history).items()]


def test_a_tick_without_updates_moves_where_it_stands_and_no_row(kind: Kind) -> None:
    sink = kind.sink()
    sink.begin(table([]), 5)
    assert (sink.stands_at(), kind.read()) == (5, Counter())
    sink.go_on(table([((1, "x"), 6, 1)]), 5, 7)
    sink.go_on(table([]), 7, 9)
    assert (sink.stands_at(), kind.read()) == (9, Counter({(1, "x"): 1}))


def test_it_goes_on_only_from_where_it_stands(kind: Kind) -> None:
    sink = kind.sink()
    sink.begin(table([((1, "x"), 4, 1)]), 5)
    version = kind.version()
    with pytest.raises(SinkChanged):
        sink.go_on(table([((2, "x"), 3, 1)]), 3, 8)
    assert (sink.stands_at(), kind.version()) == (5, version)
    sink.begin(table([((3, None), 9, 2)]), 10)
    assert (sink.stands_at(), kind.read()) == (10, Counter({(3, None): 2}))
    assert sink.version_at(4) is None, "what was there before may not be the sink's any more"
    other = kind.sink(id="u2")  # of the same project: it takes the place over
    assert other.stands_at() is None
    other.begin(table([]), 12)
    assert (other.stands_at(), kind.read()) == (12, Counter())


def test_what_others_have_put_there_is_left_alone(kind: Kind) -> None:
    kind.spoil()
    with pytest.raises(SinkTaken):
        kind.sink().stands_at()
    with pytest.raises(SinkTaken):
        kind.sink().begin(table([]), 5)
    kind.remove()
    kind.sink(project="theirs").begin(table([((1, "x"), 4, 1)]), 5)
    with pytest.raises(SinkTaken):
        kind.sink().stands_at()
    with pytest.raises(SinkTaken):
        kind.sink().begin(table([]), 9)
    assert kind.read() == Counter({(1, "x"): 1})
    kind.remove()
    with pytest.raises(SinkChanged):
        kind.sink().go_on(table([]), 5, 6)


def test_of_two_writers_one_writes(kind: Kind) -> None:
    kind.sink().begin(table([((1, "x"), 4, 1)]), 5)
    together, failures = Barrier(2), list[Error]()

    def write(own: str) -> None:
        sink = kind.sink()
        together.wait()
        try:
            sink.go_on(table([((1, "x"), 5, -1), ((2, "y"), 5, 1)]), 5, 6)
        except Error as error:
            failures.append(error)

    threads = [Thread(target=write, args=(one,)) for one in ("first", "second")]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(isinstance(one, SinkUnwritable | SinkChanged) for one in failures), failures
    assert len(failures) < 2
    assert (kind.sink().stands_at(), kind.read()) == (6, Counter({(2, "y"): 1}))


def write_until_killed(kind: Kind, fail_point: str, begins: bool) -> None:
    """Is the process: writes, and is killed on the way."""
    os.environ[VARIABLE] = fail_point
    write(kind.sink(), begins=begins)


def write(sink: Sink, *, begins: bool) -> None:
    if begins:
        sink.begin(table([((2, "y"), 5, 1)]), 6)
    else:
        sink.go_on(table([((1, "x"), 5, -1), ((2, "y"), 5, 1)]), 5, 6)


#: Of the first kind at each point, of the others at one of them; all others are deep.
KILLS = [
    pytest.param(
        one,
        *kill,
        id=f"{one.__name__}-{'-'.join(map(str, kill))}",
        marks=pytest.mark.deep if one in DEEP or (number and (number + place) % 3) else (),
    )
    for number, one in enumerate(KINDS)
    for place, kill in enumerate([("sink.written", False), ("sink.committed", False), ("sink.committed", True)])
]


@pytest.mark.parametrize(("kind", "fail_point", "begins"), KILLS, indirect=["kind"])
def test_a_kill_leaves_all_or_nothing_and_the_next_does_the_rest(kind: Kind, fail_point: str, begins: bool) -> None:
    kind.sink().begin(table([((1, "x"), 4, 1)]), 5)
    process = forks().Process(target=write_until_killed, args=(kind, fail_point, begins))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    stands = kind.sink().stands_at()
    assert stands == (6 if fail_point == "sink.committed" else 5)
    assert kind.read() == Counter({(2, "y") if stands == 6 else (1, "x"): 1})
    write(kind.sink(), begins=begins)
    assert (kind.sink().stands_at(), kind.read()) == (6, Counter({(2, "y"): 1}))


VALUES: dict[Column, Sequence[Any]] = {
    Column("b", BOOL): [True, False],
    Column("i2", INT2): [-(1 << 15), 7],
    Column("i4", INT4): [(1 << 31) - 1, 0],
    Column("i8", INT8): [-(1 << 63), 1],
    Column("f4", FLOAT4): [1.5, float("-inf")],
    Column("f8", FLOAT8): [-0.0, float("nan")],
    Column("n", numeric(3)): [Decimal("1.250"), Decimal(-1)],
    Column("t", TEXT): ["é\u2028", ""],
    Column("v", ScalarType(types.Kind.VARCHAR, length=3)): ["abc", "x"],
    Column("x", BYTEA): [b"\0\xff", b""],
    Column("d", DATE): [-719_162, 2_932_896],
    Column("ts", TIMESTAMP): [-1, 1_767_225_600_000_000],
    Column("tz", TIMESTAMPTZ): [1_767_225_600_000_000, 0],
    Column("iv", INTERVAL): [(1, -1, 5), (0, 0, 0)],
    Column("u", UUID): ["12345678-1234-5678-1234-567812345678"] * 2,
    Column("j", JSONB): ['{"a": [1]}', "null"],
    Column("a", array_of(INT4)): [[1, None], []],
}


def test_every_type_comes_goes_and_is_found_again(kind: Kind) -> None:
    columns = [replace(one, nullable=True) for one in VALUES]
    rows = [*zip(*VALUES.values(), strict=True), (None,) * len(columns)]
    cells = [stored_cells([row[i] for row in rows], one.type) for i, one in enumerate(columns)]

    def updates(time: int, diff: int, some: Sequence[int]) -> pa.Table:
        data = [one.take(pa.array(some, pa.int64())) for one in cells]
        meta = [pa.array([value] * len(some), pa.int64()) for value in (time, diff)]
        return pa.Table.from_arrays([*data, *meta, pa.nulls(len(some), pa.string())], schema=update_schema(columns))

    sink = kind.sink(columns)
    sink.begin(updates(4, 1, [0, 1, 2]), 5)
    assert sink.difference(updates(4, 1, [0, 1, 2])) is None
    sink.go_on(updates(5, -1, [0, 2]), 5, 6)
    assert sink.difference(updates(5, 1, [1])) is None
    sink.go_on(updates(6, 1, [0, 2]), 6, 7)
    assert sink.difference(updates(6, 1, [0, 1, 2])) is None
    with suppress(SinkUnwritable):
        assert sink.difference(updates(6, 1, [0, 1])) is not None
