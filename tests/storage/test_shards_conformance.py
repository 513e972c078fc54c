"""The conformance suite of `Shards`: every implementation keeps the same promises, on tables that the others wrote."""

from __future__ import annotations

import datetime
import math
import operator
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import UUID as Uuid
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from mz_dagster.budget import Budget, budget_of
from mz_dagster.catalog import NO_ROWS, Batch, BatchId, BatchState, BatchStats, CollectionRow
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId, UpdateBeyondUpper, UpdateNotBeyondLower
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    MZ_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Column,
    ScalarType,
    array_of,
    dimensioned,
    numeric,
)
from mz_dagster.scalars.values import Dimensioned
from mz_dagster.storage import BatchIncomplete, LocalShards, local_shards, update_table
from mz_dagster.storage.batch_stats import stored_files
from mz_dagster.storage.open_tables import open_table
from mz_dagster.storage.shard_bucket import ShardBucket
from mz_dagster.storage.shard_place import ShardFolder, ShardPlace
from mz_dagster.storage.skipping import may_pass
from tests.object_store import BUCKET as BUCKET_NAME
from tests.object_store import Store, running_store

Row = tuple[Any, ...]
Update = tuple[Row, int, int, str | None]

WIDE = (
    Column("b", BOOL),
    Column("i2", INT2),
    Column("i4", INT4),
    Column("i8", INT8),
    Column("f4", FLOAT4),
    Column("f8", FLOAT8),
    Column("n", numeric(2)),
    Column("n38", numeric(38)),
    Column("t", TEXT),
    Column("d", DATE),
    Column("ts", TIMESTAMP),
    Column("tz", TIMESTAMPTZ),
    Column("mz", MZ_TIMESTAMP),
    Column("ai", array_of(INT4)),
    Column("at", array_of(TEXT)),
    Column("az", array_of(TIMESTAMPTZ)),
    Column("an", array_of(numeric(2))),
    Column("ad", dimensioned(TEXT)),
)
UTC = datetime.UTC
FULL: Row = (
    True,
    -(2**15),
    2**31 - 1,
    -(2**63),
    0.5,
    1e300,
    Decimal("999999999999999999999999999999999999.99"),
    Decimal("0.00000000000000000000000000000000000001"),
    "a'ü\n\x00",
    datetime.date(1, 1, 1),
    datetime.datetime(2013, 3, 31, 2, 30, 0, 123456),
    datetime.datetime(2013, 3, 31, 2, 30, 0, 123456, UTC),
    2**62,
    [3, None, 1],
    ["a", "", None],
    [datetime.datetime(2013, 3, 31, 2, 30, 0, 123456, UTC)],
    [],
    Dimensioned(["a", None, "", "é"], [2, 2], [1, 0]),
)
EMPTY: Row = (None,) * len(WIDE)

TWO = (Column("k", INT4), Column("v", TEXT))


class Harness:
    """Is an implementation with the means to turn rows into its frames and back."""

    def __init__(
        self, shards: Any, frame: Callable[[tuple[Column, ...], list[Update]], Any], place: Callable[[], ShardPlace]
    ) -> None:
        self.shards = shards
        self.place = place()
        self._frame = frame
        self._anew = place

    def other(self) -> LocalShards:
        """Returns the implementation in process, of another process that has the shards in the same place."""
        return LocalShards(self._anew())

    def frame(self, columns: tuple[Column, ...], updates: list[Update]) -> Any:
        return self._frame(columns, updates)

    def updates(self, frame: Any) -> Counter[Update]:
        """Returns a frame's rows as a multiset in which NaN equals NaN and -0.0 is not 0.0."""
        if hasattr(frame, "toArrow"):
            frame = frame.toArrow()
        lists = [column.to_pylist() for column in frame.columns]
        names = list(frame.column_names)
        assert names[-3:] == ["mz_timestamp", "mz_diff", "mz_error"]
        rows = [tuple(map(exact, row)) for row in zip(*lists, strict=True)]
        return Counter((row[:-3], row[-3], row[-2], row[-1]) for row in rows)


def exact(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(exact, value.values()))
    if isinstance(value, list | tuple):
        return tuple(map(exact, value))
    if isinstance(value, float):
        return ("NaN",) if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def expected(updates: list[Update]) -> Counter[Update]:
    return Counter((tuple(map(exact, data)), time, diff, error) for data, time, diff, error in updates)


@pytest.fixture(scope="session")
def running_bucket() -> Iterator[Store]:
    with running_store() as store:
        yield store


HARNESSES = (
    "local",
    pytest.param("spark", marks=pytest.mark.timeout(600)),
    pytest.param("local in a bucket", marks=pytest.mark.deep),
    pytest.param("spark in a bucket", marks=[pytest.mark.timeout(600), pytest.mark.deep]),
)
#: What `test_spark_shards.py` tells of Spark's, too, and other tests here do; deep.
MOSTLY_LOCAL = pytest.mark.parametrize(
    "harness",
    [
        "local",
        *(
            pytest.param(one, marks=[pytest.mark.timeout(600), pytest.mark.deep])
            for one in ("spark", "local in a bucket")
        ),
        HARNESSES[-1],
    ],
    indirect=True,
)


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    def place() -> ShardPlace:
        if "bucket" not in request.param:
            return ShardFolder(tmp_path)
        store: Store = request.getfixturevalue("running_bucket")
        monkeypatch.setenv("STORE_SECRET", store.secret)
        uri = f"s3://{BUCKET_NAME}/{abs(hash(request.node.nodeid))}"
        return ShardBucket(uri, store.means, tmp_path / uuid4().hex, tmp_path, 1 << 30)

    if "local" in request.param:
        yield Harness(LocalShards(place()), update_table, place)
        return
    from mz_dagster.storage.spark_shards import SparkShards, update_schema

    spark = request.getfixturevalue("spark")

    def frame(columns: tuple[Column, ...], updates: list[Update]) -> Any:
        table = update_table(columns, updates)
        return spark.createDataFrame(table if table.num_rows else [], update_schema(columns))

    yield Harness(SparkShards(tmp_path, spark, LocalShards(place())), frame, place)


def collection(columns: tuple[Column, ...] = TWO, id: str = "u1") -> CollectionRow:
    at = Antichain.of(EPOCH_MS, 0)
    return CollectionRow(GlobalId(id), "t", at, at, columns, frozenset(), f"shards/{id}", None)


def batch(id: int, stats: BatchStats, lower: int = 0, upper: int = 1000) -> Batch:
    return Batch(
        BatchId(id),
        GlobalId("u1"),
        Antichain.of(EPOCH_MS, lower),
        Antichain.of(EPOCH_MS, upper),
        BatchState.LIVE,
        stats,
    )


def test_every_type_comes_back_exactly(harness: Harness) -> None:
    floats: list[Update] = [
        ((*FULL[:4], f4, f8, *FULL[6:]), 7, 1, None)
        for f4, f8 in ((math.nan, math.nan), (-0.0, -0.0), (0.0, 0.0), (math.inf, -math.inf), (2.0**-149, 5e-324))
    ]
    updates: list[Update] = [(FULL, 5, 1, None), (EMPTY, 6, -2, "22012 division by zero"), *floats]
    shard = collection(WIDE)
    harness.shards.create(shard)
    stats = harness.shards.append(shard, BatchId(1), harness.frame(WIDE, updates))
    assert (stats.rows, stats.errors, stats.files >= 1, stats.bytes > 0) == (7, 1, True, True)
    found = harness.shards.read(shard, [batch(1, stats)])
    assert harness.updates(found) == expected(updates)
    # And the implementation in process reads what any other has written, and the other way round.
    local = harness.other()
    assert harness.updates(local.read(shard, [batch(1, stats)])) == expected(updates)
    other = local.append(shard, BatchId(2), update_table(WIDE, updates))
    assert harness.updates(harness.shards.read(shard, [batch(2, other)])) == expected(updates)


def test_an_empty_frame_commits_nothing(harness: Harness) -> None:
    shard = collection()
    harness.shards.create(shard)
    assert harness.shards.append(shard, BatchId(1), harness.frame(TWO, [])) == NO_ROWS
    assert harness.shards.stored_batches(shard) == frozenset()


def test_reading_nothing_gives_an_empty_frame_with_its_schema(harness: Harness) -> None:
    shard = collection()
    found = harness.shards.read(shard, [])  # not even its table is needed
    assert harness.updates(found) == Counter()
    assert list(harness.shards.read(shard, [], columns=["v"]).columns)[:1] != []


@MOSTLY_LOCAL
def test_only_listed_batches_exist(harness: Harness) -> None:
    shard = collection()
    harness.shards.create(shard)
    written = {}
    for id in (1, 2, 3):
        updates: list[Update] = [((id, "x"), id, 1, None)]
        written[id] = batch(id, harness.shards.append(shard, BatchId(id), harness.frame(TWO, updates)))
    found = harness.shards.read(shard, [written[1], written[3]])
    assert harness.updates(found) == expected([((1, "x"), 1, 1, None), ((3, "x"), 3, 1, None)])


@MOSTLY_LOCAL
def test_times_and_columns_are_chosen(harness: Harness) -> None:
    shard = collection()
    harness.shards.create(shard)
    updates: list[Update] = [((n, f"v{n}"), n, 1, None) for n in range(10)]
    stats = harness.shards.append(shard, BatchId(1), harness.frame(TWO, updates))

    def read(**bounds: Any) -> Counter[Update]:
        return harness.updates(harness.shards.read(shard, [batch(1, stats)], **bounds))

    assert read(lower=3, upper=6) == expected(updates[3:6])
    assert read(lower=3) == expected(updates[3:])
    assert read(upper=6) == expected(updates[:6])
    assert read(lower=0, upper=0) == Counter()
    assert read(lower=9, columns=["v"]) == expected([(("v9",), 9, 1, None)])
    assert read(lower=9, columns=[]) == expected([((), 9, 1, None)])


def test_columns_are_taken_by_name(harness: Harness) -> None:
    shard = collection()
    harness.shards.create(shard)
    frame = harness.frame(TWO, [((1, "x"), 5, 1, None)])
    shuffled = frame.select(["mz_error", "v", "mz_diff", "k", "mz_timestamp"])
    stats = harness.shards.append(shard, BatchId(1), shuffled)
    assert harness.updates(harness.shards.read(shard, [batch(1, stats)])) == expected([((1, "x"), 5, 1, None)])


def test_names_of_columns_may_be_odd(harness: Harness) -> None:
    columns = (Column("?column?", INT4), Column("Größe", TEXT), Column("a.b", INT4), Column("sel`ect", INT4))
    shard = collection(columns)
    harness.shards.create(shard)
    updates: list[Update] = [((1, "x", 2, 3), 5, 1, None)]
    stats = harness.shards.append(shard, BatchId(1), harness.frame(columns, updates))
    assert harness.updates(harness.shards.read(shard, [batch(1, stats)])) == expected(updates)


@MOSTLY_LOCAL
def test_wide_tables_keep_their_error_count(harness: Harness) -> None:
    columns = tuple(Column(f"c{n}", INT4) for n in range(60))
    shard = collection(columns)
    harness.shards.create(shard)
    row = tuple(range(60))
    updates: list[Update] = [(row, 1, 1, None), (row, 1, 1, "22003 x"), (row, 2, -1, "22003 x")]
    stats = harness.shards.append(shard, BatchId(1), harness.frame(columns, updates))
    assert (stats.rows, stats.errors) == (3, 2)


def test_a_missing_batch_is_an_error_and_never_an_empty_answer(harness: Harness) -> None:
    shard = collection()
    harness.shards.create(shard)
    updates: list[Update] = [((1, "x"), 1, 1, None)]
    stats = harness.shards.append(shard, BatchId(1), harness.frame(TWO, updates))
    listed = [batch(1, stats), batch(2, BatchStats(1, 0, 1, 1))]
    with pytest.raises(BatchIncomplete) as error:
        harness.updates(harness.shards.read(shard, listed))
    assert error.value.batch == 2
    with pytest.raises(BatchIncomplete):
        harness.updates(harness.shards.read(shard, [batch(1, BatchStats(2, 0, 1, 1))]))
    harness.shards.delete(shard, [BatchId(1)])
    with pytest.raises(BatchIncomplete):
        harness.updates(harness.shards.read(shard, [batch(1, stats)]))


@MOSTLY_LOCAL
def test_deleting_leaves_other_batches_and_no_files(harness: Harness, tmp_path: Path) -> None:
    shard = collection()
    harness.shards.create(shard)
    updates: list[Update] = [((1, "x"), 1, 1, None)]
    stats = {id: harness.shards.append(shard, BatchId(id), harness.frame(TWO, updates)) for id in (1, 2, 3)}
    assert harness.shards.stored_batches(shard) == {1, 2, 3}
    (half := tmp_path / "half").write_bytes(b"half a fi")
    harness.place.put_back(shard.shard, "mz_batch=4/part-0.parquet", half, tmp_path / "aside")
    assert harness.shards.stored_batches(shard) == {1, 2, 3, 4}
    harness.shards.delete(shard, [BatchId(1), BatchId(3), BatchId(4), BatchId(99)])
    harness.shards.delete(shard, [BatchId(1)])  # again: a sweep that crashed repeats it
    assert harness.shards.stored_batches(shard) == {2}
    assert list(harness.place.batch_folders(shard.shard)) == ["mz_batch=2"]
    assert harness.updates(harness.shards.read(shard, [batch(2, stats[2])])) == expected(updates)
    harness.shards.vacuum(shard)
    assert harness.updates(harness.shards.read(shard, [batch(2, stats[2])])) == expected(updates)
    # By a process that was killed.
    left = "shards/u9" if isinstance(harness.place, ShardBucket) else "shards/.u9.removed-0"
    harness.place.put_back(left, "mz_batch=1/part-0.parquet", half, tmp_path / "aside")
    assert harness.shards.folders() == {shard.shard, "shards/u9"}
    for one in (shard.shard, shard.shard, "shards/u9"):
        harness.shards.destroy(one)
    assert not harness.place.has_shard(left)
    assert not harness.shards.folders()


def test_consolidation_is_bitwise_and_by_error(harness: Harness) -> None:
    columns = (Column("f", FLOAT8), Column("v", TEXT))
    shard = collection(columns)
    updates: list[Update] = [
        ((0.0, None), 1, 1, None),
        ((-0.0, None), 2, -1, None),
        ((math.nan, "x"), 1, 1, None),
        ((math.nan, "x"), 3, 1, None),
        ((None, None), 1, 1, None),
        ((None, None), 2, 1, None),
        ((None, "gone"), 1, 2, None),
        ((None, "gone"), 2, -2, None),
        ((None, None), 1, 1, "22012 x"),
        ((None, None), 2, 1, "22003 y"),
        ((None, None), 3, -1, "22003 y"),
    ]
    found = harness.shards.consolidate(shard, harness.frame(columns, updates), 9)
    assert harness.updates(found) == expected(
        [
            ((0.0, None), 9, 1, None),
            ((-0.0, None), 9, -1, None),
            ((math.nan, "x"), 9, 2, None),
            ((None, None), 9, 2, None),
            ((None, None), 9, 1, "22012 x"),
        ]
    )


def test_arrays_are_grouped_and_merged(harness: Harness) -> None:
    columns = (Column("k", INT4), Column("a", array_of(TEXT)))
    shard = collection(columns)
    harness.shards.create(shard)
    updates: list[Update] = [
        ((1, ["x", None]), 1, 1, None),
        ((1, ["x", None]), 2, -1, None),
        ((1, ["x", None, "y"]), 2, 1, None),
        ((2, []), 1, 1, None),
        ((2, None), 1, 1, None),
        ((2, None), 2, 1, None),
        ((2, ["null"]), 3, 1, None),
    ]
    wanted: list[Update] = [
        ((1, ["x", None, "y"]), 9, 1, None),
        ((2, []), 9, 1, None),
        ((2, None), 9, 2, None),
        ((2, ["null"]), 9, 1, None),
    ]
    found = harness.shards.consolidate(shard, harness.frame(columns, updates), 9)
    assert harness.updates(found) == expected(wanted)
    stats = harness.shards.append(shard, BatchId(1), harness.frame(columns, updates))
    merged = harness.shards.merge(shard, [batch(1, stats)], 9, BatchId(2), ["k"])
    assert harness.updates(harness.shards.read(shard, [batch(2, merged)])) == expected(wanted)


def test_a_merge_compacts_to_since_and_keeps_what_is_after(harness: Harness) -> None:
    columns = (Column("k", INT4), Column("f", FLOAT4), Column("n", numeric(3)))
    shard = collection(columns)
    harness.shards.create(shard)
    n = Decimal("1.500")
    one: list[Update] = [
        ((3, math.nan, n), 1, 1, None),
        ((1, 0.0, None), 2, 1, None),
        ((1, -0.0, None), 3, 1, None),
        ((None, None, None), 4, 1, None),
        ((2, None, n), 5, 1, None),
    ]
    two: list[Update] = [
        ((3, math.nan, n), 6, 1, None),
        ((2, None, n), 10, -1, None),
        ((None, None, None), 11, -1, None),
        ((7, None, None), 11, 1, "22012 x"),
        ((7, None, None), 12, -1, "22012 x"),
    ]
    parts = [
        batch(1, harness.shards.append(shard, BatchId(1), harness.frame(columns, one)), 0, 6),
        batch(2, harness.shards.append(shard, BatchId(2), harness.frame(columns, two)), 6, 13),
    ]
    stats = harness.shards.merge(shard, parts, 10, BatchId(3), ["k"])
    merged: list[Update] = [
        ((3, math.nan, n), 10, 2, None),
        ((1, 0.0, None), 10, 1, None),
        ((1, -0.0, None), 10, 1, None),
        ((None, None, None), 10, 1, None),
        ((None, None, None), 11, -1, None),
        ((7, None, None), 11, 1, "22012 x"),
        ((7, None, None), 12, -1, "22012 x"),
    ]
    assert (stats.rows, stats.errors) == (7, 2)
    found = harness.shards.read(shard, [batch(3, stats)])
    assert harness.updates(found) == expected(merged)
    # The parts stay as they were, for readers whose lists are older.
    assert harness.updates(harness.shards.read(shard, parts)) == expected(one + two)


@MOSTLY_LOCAL
def test_a_merge_of_what_cancels_commits_nothing(harness: Harness) -> None:
    shard = collection()
    harness.shards.create(shard)
    parts = [
        batch(id, harness.shards.append(shard, BatchId(id), harness.frame(TWO, [((1, "x"), id, diff, None)])))
        for id, diff in ((1, 1), (2, -1))
    ]
    assert harness.shards.merge(shard, parts, 5, BatchId(3), ["k"]) == NO_ROWS
    assert harness.shards.stored_batches(shard) == {1, 2}


@MOSTLY_LOCAL
def test_creating_twice_keeps_the_rows(harness: Harness) -> None:
    shard = collection()
    harness.shards.create(shard)
    stats = harness.shards.append(shard, BatchId(1), harness.frame(TWO, [((1, "x"), 1, 1, None)]))
    harness.shards.create(shard)
    assert sum(harness.updates(harness.shards.read(shard, [batch(1, stats)])).values()) == 1
    assert cast(int, stats.rows) == 1


def test_updates_outside_of_the_interval_of_their_append_are_refused(
    harness: Harness,
) -> None:
    shard = collection(TWO)
    interval = (Antichain.of(EPOCH_MS, 5), Antichain.of(EPOCH_MS, 8))

    def append(id: int, *times: int | None) -> BatchStats:
        frame = harness.frame(TWO, [((1, "x"), cast(int, time), 1, None) for time in times])
        return cast(BatchStats, harness.shards.append(shard, BatchId(id), frame, interval))

    assert append(1, 5, 7).rows == 2
    assert append(2) == NO_ROWS
    with pytest.raises(UpdateNotBeyondLower, match=r"at 4 .* \{5\}"):
        append(3, 4, 6)
    with pytest.raises(UpdateBeyondUpper, match=r"at 8 .* \{8\}"):
        append(4, 8, 6)
    with pytest.raises(UpdateNotBeyondLower, match="without a time"):
        append(5, 6, None)
    closing = (Antichain.of(EPOCH_MS, 5), Antichain.empty(EPOCH_MS))
    assert harness.shards.append(shard, BatchId(6), harness.frame(TWO, [((1, "x"), 99, 1, None)]), closing).rows == 1


def test_multiplicities_that_do_not_fit_are_an_error_and_never_wrap(
    harness: Harness,
) -> None:
    shard = collection(TWO)
    updates: list[Update] = [((1, "x"), 1, 2**62, None), ((1, "x"), 2, 2**62, None), ((2, "y"), 1, -(2**62), None)]
    stats = harness.shards.append(shard, BatchId(1), harness.frame(TWO, updates))
    frame = harness.shards.read(shard, [batch(1, stats)])
    # On Spark it is evaluated later, by whoever turns Spark's errors into ours.
    with pytest.raises(Exception, match=r"OVERFLOW|out of range"):
        harness.updates(harness.shards.consolidate(shard, frame, 2))
    fits: list[Update] = [((1, "x"), 1, 2**62, None), ((1, "x"), 2, 2**62 - 1, None), ((2, "y"), 1, -(2**62), None)]
    stats = harness.shards.append(shard, BatchId(2), harness.frame(TWO, fits))
    frame = harness.shards.consolidate(shard, harness.shards.read(shard, [batch(2, stats)]), 2)
    assert harness.updates(frame) == expected([((1, "x"), 2, 2**63 - 1, None), ((2, "y"), 2, -(2**62), None)])


LONG = "a beginning that several of these have in common: "
MOMENTS = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999) + datetime.timedelta(microseconds=n) for n in (0, 1, 2)]
MOMENTS += [datetime.datetime(1970, 1, 1, 0, 0, 0, 1_500), datetime.datetime(2024, 2, 29)]
#: Of each type with statistics some values, ascending.
ASCENDING: dict[ScalarType, list[Any]] = {
    INT2: [-32_768, -1, 0, 1, 32_767],
    INT4: [-5, -1, 0, 1, 5],
    INT8: [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1],
    MZ_TIMESTAMP: [0, 1, 2, 3, 4],
    DATE: [datetime.date(1, 1, 1), *(datetime.date(year, 12, 31) for year in (1969, 1970, 2024, 9999))],
    TIMESTAMP: MOMENTS,
    TIMESTAMPTZ: [one.replace(tzinfo=UTC) for one in MOMENTS],
    TEXT: ["", LONG + "a", LONG + "b", "é" * 70, "🐘" * 70],
    UUID: [Uuid(int=n << 100) for n in range(5)],
}
COMPARISONS = {"eq": operator.eq, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


def test_files_in_which_no_row_passes_are_skipped(harness: Harness) -> None:
    # Each batch is a file: of one row, but for the last two: nothing but NULL, and an error.
    columns = tuple(Column(f"c{i}", type_) for i, type_ in enumerate(ASCENDING))
    shard = collection(columns)
    rows: list[Row] = [*zip(*ASCENDING.values(), strict=True), (None,) * len(columns)]
    updates: list[Update] = [*((row, 1, 1, None) for row in rows), (rows[-1], 1, 1, "22012 division by zero")]
    live = [
        batch(i, harness.shards.append(shard, BatchId(i), harness.frame(columns, [update])))
        for i, update in enumerate(updates)
    ]

    def read(*where: Call) -> set[int]:
        with budget_of(Budget(unbounded_rows=0)):
            files = harness.shards.files(shard, live, where=where)
        return {int(file.path.partition("/")[0].partition("=")[2]) for file in files}

    log = open_table(harness.place.table(shard.shard))
    assert log is not None
    bounds = [found[0].bounds for _, found in sorted(stored_files(log, columns=columns).items())]
    for type_, values in ASCENDING.items():
        for name, compare in COMPARISONS.items():
            for constant in values:
                passing = {i for i, value in enumerate(values) if compare(value, constant)}
                predicate = comparison(type_, name, constant)
                found = {i for i in range(6) if may_pass(predicate, columns, bounds[i])}
                assert found >= passing, (type_, name, constant)
                assert 5 not in found
                if type_ not in (TIMESTAMP, TIMESTAMPTZ, TEXT, UUID):  # which are rounded
                    assert found == passing, (type_, name, constant)
    assert read(comparison(TEXT, "lt", LONG)) == {0, 1, 2, 6}
    assert read(comparison(TIMESTAMP, "gt", MOMENTS[3])) == {3, 4, 6}
    either = Call("or", (comparison(INT4, "lt", -1), comparison(DATE, "eq", ASCENDING[DATE][4])), BOOL)
    assert read(either) == {0, 4, 6}
    assert read(either, comparison(INT8, "gt", 0)) == {4, 6}
    with budget_of(Budget(unbounded_rows=0)):
        assert harness.updates(harness.shards.read(shard, live, where=[either])).total() == 3
    assert harness.updates(harness.shards.read(shard, live, where=[either])).total() == 7  # no log is asked
    assert read(Call("or", (either, Call("is_null", (ColumnRef(0, INT2),), BOOL)), BOOL)) == set(range(7))


def comparison(type_: ScalarType, operation: str, constant: object) -> Call:
    column = ColumnRef(list(ASCENDING).index(type_), type_)
    return Call(f"{operation}_{type_.kind.name.lower()}", (column, Literal(cast(Any, constant), type_)), BOOL)


MOST_SHORT, LEAST_LONG = 10**18 - 1, 10**18
NUMERICS = (
    Column("whole", numeric(0)),
    Column("cents", numeric(2)),
    Column("fine", numeric(18)),
    Column("finer", numeric(19)),
    Column("mz_short_cents", TEXT),  # a user's, if they like
)


def of_digits(digits: int) -> Row:
    """Returns the row whose numerics have these digits, whatever their scale."""
    return (*(Decimal(f"{digits}E-{column.type.scale}") for column in NUMERICS[:4]), "x")


DIGITS = (0, 1, -1, MOST_SHORT, -MOST_SHORT, LEAST_LONG, -LEAST_LONG, 10**38 - 1, -(10**38) + 1)
EVERY_LENGTH: list[Update] = [
    *((of_digits(digits), 5, 1, None) for digits in DIGITS),
    ((None,) * 5, 5, 1, None),
    (of_digits(7), 6, 1, "22012 division by zero"),
]


def test_numerics_of_any_length_come_back_exactly(harness: Harness) -> None:
    shard = collection(NUMERICS)
    one = harness.shards.append(shard, BatchId(1), harness.frame(NUMERICS, EVERY_LENGTH))
    local = harness.other()
    two = local.append(shard, BatchId(2), update_table(NUMERICS, EVERY_LENGTH))
    parts = [batch(1, one), batch(2, two)]
    for shards in (harness.shards, local):
        assert harness.updates(shards.read(shard, parts)) == expected(EVERY_LENGTH * 2)
        some = shards.read(shard, parts, columns=["fine", "cents"])
        both = [((row[2], row[1]), time, diff, error) for row, time, diff, error in EVERY_LENGTH * 2]
        assert harness.updates(some) == expected(both)
    assert harness.updates(local.head(shard, parts[0], 100)) == expected(EVERY_LENGTH)
    merged = harness.shards.merge(shard, parts, 0, BatchId(3), ["whole"])
    doubled = [(row, time, 2 * diff, error) for row, time, diff, error in EVERY_LENGTH]
    assert harness.updates(harness.shards.read(shard, [batch(3, merged)])) == expected(doubled)


def stored(harness: Harness, shard: CollectionRow, one: Batch) -> list[pq.ParquetFile]:
    """Returns the files of a batch."""
    files = harness.shards.files(shard, [one])
    harness.place.check(shard.shard, files, shard.id)
    return [pq.ParquetFile(harness.place.root / shard.shard / file.path) for file in files]


@MOSTLY_LOCAL
def test_numerics_of_18_digits_are_integers_in_the_files(harness: Harness) -> None:
    shard = collection(NUMERICS)
    stats = harness.shards.append(shard, BatchId(1), harness.frame(NUMERICS, EVERY_LENGTH))
    present: Counter[str] = Counter()
    for file in stored(harness, shard, batch(1, stats)):
        types = {one.name: one.physical_type for one in map(file.schema.column, range(len(file.schema)))}
        shorts = [name for name in types if name.startswith("mz_short_") and name != "mz_short_cents"]
        assert {name: types[name] for name in shorts} == dict.fromkeys(shorts, "INT64")
        for name in shorts:
            present[name] += file.metadata.num_rows - file.read([name]).column(name).null_count
    # Of the eleven rows one has no value, and four have longer ones.
    assert present == {"mz_short_whole": 6, "mz_short_cents_": 6, "mz_short_fine": 6}


@MOSTLY_LOCAL
def test_a_table_from_before_has_its_numerics_in_one_column(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = collection(NUMERICS)
    with monkeypatch.context() as before:
        for module in ("numerics", "spark_shards"):
            before.setattr(f"mz_dagster.storage.{module}.short_names", lambda columns: {})
        one = harness.shards.append(shard, BatchId(1), harness.frame(NUMERICS, EVERY_LENGTH))
    local = harness.other()
    old = batch(1, one)
    for shards in (harness.shards, local):
        assert harness.updates(shards.read(shard, [old])) == expected(EVERY_LENGTH)
    assert harness.updates(local.head(shard, old, 100)) == expected(EVERY_LENGTH)
    two = harness.shards.append(shard, BatchId(2), harness.frame(NUMERICS, EVERY_LENGTH))
    for shards in (harness.shards, local):
        assert harness.updates(shards.read(shard, [old, batch(2, two)])) == expected(EVERY_LENGTH * 2)
    assert all("mz_short_whole" in file.schema_arrow.names for file in stored(harness, shard, batch(2, two)))


def test_a_write_beside_others_that_add_columns_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, shard = ShardFolder(tmp_path), collection()
    shards, others = LocalShards(place), LocalShards(place)
    shards.create(shard)
    add, names = local_shards._add, ["y", "z"]

    def beside(table: DeltaTable, data: pa.Table) -> None:
        if names and data.num_columns == narrow:
            wider = collection((*TWO, Column(names.pop(), INT4)))
            others.append(wider, BatchId(3 + len(names)), update_table(wider.columns, [((1, "x", 2), 5, 1)]))
        add(table, data)

    narrow = len(TWO) + 5  # with the time, diff and error of an update, its batch and its bucket
    monkeypatch.setattr(local_shards, "_add", beside)
    stats = shards.append(shard, BatchId(2), update_table(TWO, [((7, "y"), 5, 1)]))
    assert not names
    assert [(one["k"], one["v"]) for one in shards.read(shard, [batch(2, stats)]).to_pylist()] == [(7, "y")]
