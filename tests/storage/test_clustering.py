"""The layout of large batches: a read by touched keys never loses a row of theirs, whoever wrote, merged and reads."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as sf

from mz_dagster.budget import Budget
from mz_dagster.catalog import Batch, BatchId, BatchState, BatchStats, Catalog, CollectionRow, NewObject, Seal
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Column,
    array_of,
    numeric,
)
from mz_dagster.storage import BatchWriter, LocalShards, Merge, compact, update_table
from mz_dagster.storage.clustering import (
    Bucket,
    TouchedHashes,
    bucket_count,
    bucket_of,
    bucket_prefix,
    layout_key,
)
from mz_dagster.storage.spark.hashing import hash_modulo
from mz_dagster.storage.spark_shards import SparkShards, update_schema
from tests.budgets import SetBudget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = dt.UTC
VALUES: list[tuple[Column, list[Any]]] = [
    (Column("b", BOOL), [True, False]),
    (Column("i2", INT2), [0, 1, -(2**15)]),
    (Column("i4", INT4), [0, 1, -1, 2**31 - 1]),
    (Column("i8", INT8), [0, 1, 2**62, -(2**63)]),
    (Column("f4", FLOAT4), [0.0, -0.0, math.nan, 0.5, math.inf]),
    (Column("f8", FLOAT8), [0.0, -0.0, math.nan, 1e300, 5e-324, -math.inf]),
    (Column("n2", numeric(2)), [Decimal("0.00"), Decimal("-1.50"), Decimal("9" * 36 + ".99")]),
    (Column("n38", numeric(38)), [Decimal("0." + "0" * 37 + "1"), Decimal("0.5")]),
    (Column("t", TEXT), ["", "a", "A", "ünï\n'x'", "a "]),
    (Column("d", DATE), [dt.date(1, 1, 1), dt.date(2024, 2, 29)]),
    (Column("ts", TIMESTAMP), [dt.datetime(1850, 1, 1, 0, 0, 0, 1), dt.datetime(2013, 3, 31, 2, 30)]),
    (Column("tz", TIMESTAMPTZ), [dt.datetime(2013, 3, 31, 2, 30, tzinfo=UTC), dt.datetime(1, 1, 2, tzinfo=UTC)]),
    (Column("a", array_of(FLOAT8)), [[], [0.0, None], [-0.0, None], [math.nan]]),
]
COLUMNS = tuple(column for column, _ in VALUES)
ALL = range(len(COLUMNS))
LOWER, UPPER = Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 100)

Row = tuple[Any, ...]


def collection(columns: tuple[Column, ...] = COLUMNS) -> CollectionRow:
    return CollectionRow(GlobalId("u1"), "t", LOWER, UPPER, columns, frozenset(), "shards/u1", None)


def listed(id: int, stats: BatchStats) -> Batch:
    return Batch(BatchId(id), GlobalId("u1"), LOWER, UPPER, BatchState.LIVE, stats)


def normal(value: Any) -> Any:
    """Returns what stands for all values that are equal to a value."""
    if isinstance(value, list):
        return tuple(map(normal, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.astimezone(UTC) if isinstance(value, dt.datetime) and value.tzinfo else value


def as_written_elsewhere(value: Any) -> Any:
    """Returns an equal value that is another one, where there is one."""
    if isinstance(value, list):
        return [as_written_elsewhere(one) for one in value]
    return -value if value == 0.0 and isinstance(value, float) else value


@given(st.integers(0, 2**63 - 1), st.integers(0, 10), st.integers(0, 10))
def test_a_hash_is_in_its_bucket_whatever_the_modulus(hash: int, buckets: int, modulus: int) -> None:
    touched = TouchedHashes((0,), 2**modulus, frozenset({hash % 2**modulus}))
    assert touched.may_be_in(Bucket((0,), 2**buckets, hash % 2**buckets))
    found = [number for number in range(2**buckets) if touched.may_be_in(Bucket((0,), 2**buckets, number))]
    assert len(found) == max(1, 2 ** (buckets - modulus))


@given(st.sets(st.integers(0, 99), min_size=1), st.integers(0, 10), st.data())
def test_a_partition_value_says_its_bucket(key: set[int], buckets: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, 2**buckets - 1))
    written = f"{bucket_prefix(layout_key(key), 2**buckets)}{number}"
    assert bucket_of(written) == Bucket(layout_key(key), 2**buckets, number)
    assert len(f"mz_bucket={written}") < 255  # a folder's name


@given(st.integers(0, 10**9))
def test_there_are_as_many_buckets_as_the_rows_want(rows: int) -> None:
    count = bucket_count(rows)
    assert count & (count - 1) == 0
    if rows <= Budget().clustered_rows:
        assert count == 1
    elif count < Budget().few_buckets:
        assert rows / count <= Budget().bucket_rows
    else:
        assert count == Budget().most_buckets or rows / count <= Budget().most_bucket_rows


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", [3, *(pytest.param(n, marks=pytest.mark.deep) for n in range(3))])
def test_a_read_by_touched_keys_loses_none_of_their_rows(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    chosen = random.Random(5)
    keys: list[tuple[int, ...]] = [
        *((position,) for position in sorted({*ALL[first::4], 3})),
        *(tuple(chosen.sample(ALL, k)) for k in (2, 3, 3)),
    ]
    shard, spark_shards, local = collection(), SparkShards(tmp_path, spark), LocalShards(tmp_path)

    def row() -> Row:
        return tuple(None if chosen.random() < 0.2 else chosen.choice(pool) for _, pool in VALUES)

    written: list[tuple[Row, int, int, str | None]] = [
        (row(), time, 1, chosen.choice([None, None, None, "22012 x"])) for time in range(200)
    ]
    frame = spark.createDataFrame(update_table(COLUMNS, written), update_schema(COLUMNS))
    sizes = [chosen.choice([2, 4, 32]) for _ in keys]
    batches: list[Batch] = []
    for id, (key, count) in enumerate(zip(keys, sizes, strict=True)):
        monkeypatch.setattr("mz_dagster.storage.spark_shards.bucket_count", lambda rows, count=count: count)
        stats = spark_shards.append(shard, BatchId(id), frame, key=key, rows=len(written))
        assert stats.rows == len(written)
        batches.append(listed(id, stats))
    monkeypatch.setattr("mz_dagster.storage.spark_shards.bucket_count", lambda rows: 8)
    merged = listed(50, spark_shards.merge(shard, batches[:2], 0, BatchId(50), ["i8"], key=(3,)))
    assert {file.bucket.count for file in spark_shards.files(shard, [merged]) if file.bucket} == {8}
    again = listed(51, local.merge(shard, [merged], 0, BatchId(51), ["i8"], key=(3,)))
    assert all(file.bucket is None for file in local.files(shard, [again]))
    every = [*zip(keys, batches, strict=True), ((3,), merged), ((3,), again)]

    # What the keys' hashes are, asked for keys that were never in the shard themselves.
    asked = [tuple(map(as_written_elsewhere, data)) for data, *_ in written]
    modulus = 16
    hashes = [hash_of(key, modulus).alias(f"h{n}") for n, key in enumerate(map(layout_key, keys))]
    numbered = spark.createDataFrame(
        update_table(COLUMNS, [(data, n, 1) for n, data in enumerate(asked)]), update_schema(COLUMNS)
    )
    known = {one[0]: one[1:] for one in numbered.select("mz_timestamp", *hashes).collect()}

    pruned = 0
    for key, batch in every:
        number = keys.index(key)
        wanted = chosen.sample(range(len(asked)), 3)
        touched = TouchedHashes(layout_key(key), modulus, frozenset(known[n][number] for n in wanted))
        values = {tuple(normal(asked[n][p]) for p in key) for n in wanted}
        complete = rows_of(local.read(shard, [batch]), key, values)
        assert complete
        found = local.read(shard, [batch], touched=[touched])
        assert rows_of(found, key, values) == complete, key
        pruned += found.num_rows < batch.stats.rows
        if batch is merged or number % 4 == 0:
            by_spark = spark_shards.read(shard, [batch], touched=[touched]).toArrow()
            assert rows_of(by_spark, key, values) == complete, key
            assert by_spark.num_rows == found.num_rows
        # Of a file that is laid out by another key, nothing is known.
        others = [TouchedHashes((99,), modulus, frozenset())]
        assert local.read(shard, [batch], touched=others).num_rows == batch.stats.rows
    assert pruned > len(every) // 2


def hash_of(key: Sequence[int], modulus: int) -> Any:
    columns = [COLUMNS[position] for position in key]
    return hash_modulo([sf.col(column.name) for column in columns], [column.type for column in columns], modulus)


def rows_of(table: Any, key: Sequence[int], values: set[Row]) -> int:
    """Returns how many rows have one of the keys."""
    lists = [table.column(COLUMNS[position].name).to_pylist() for position in key]
    return sum(tuple(map(normal, one)) in values for one in zip(*lists, strict=True))


@pytest.mark.timeout(600)
def test_a_large_batch_without_layout_gets_one_once(tmp_path: Path, spark: SparkSession, set_budget: SetBudget) -> None:
    columns = (Column("k", INT8), Column("v", INT8))
    with Catalog.open(f"sqlite:///{tmp_path}/catalog.sqlite") as catalog:
        catalog.declare_timeline("t")
        keyed = frozenset({frozenset({0})})
        id = catalog.create_object(NewObject("x", "table", "", "t", columns, keys=keyed)).id
        shards = SparkShards(tmp_path, spark)
        set_budget(clustered_rows=1000, bucket_rows=200)
        number = sf.col("id")
        meta = [sf.lit(0).cast("bigint"), sf.lit(1).cast("bigint"), sf.lit(None).cast("string")]
        names = ["k", "v", "mz_timestamp", "mz_diff", "mz_error"]
        frame = spark.range(3000).select(number, number % 7, *meta).toDF(*names)
        row = catalog.collection(id)
        with BatchWriter(catalog, holder="test") as writer:
            batch, stats = writer.write(shards, row, row.upper, Antichain.of(EPOCH_MS, 1), frame)
            catalog.seal([Seal(id, row.upper, Antichain.of(EPOCH_MS, 1), batch, stats)])
        assert {file.bucket for file in shards.files(row, catalog.live_batches([id])[id])} == {None}

        def run(of: Any) -> object:
            return compact(catalog, of, catalog.collection(id), holder="test")

        assert run(LocalShards(tmp_path)) is None  # which could not lay it out
        merge = run(shards)
        assert isinstance(merge, Merge)
        assert (merge.rows_read, merge.rows_written) == (3000, 3000)
        live = catalog.live_batches([id])[id]
        files = shards.files(row, live)
        assert sorted(file.bucket.number for file in files if file.bucket) == list(range(16))
        assert max(file.rows for file in files) < 400
        assert run(shards) is None
        keys = shards.read(row, live).select("k").toArrow().column("k").to_pylist()
        assert sorted(keys) == list(range(3000))
