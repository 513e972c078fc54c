"""What the conformance suite cannot say of Spark's shards: commits, concurrency, late evaluation, the other's files."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as sf

from mz_dagster.budget import Budget
from mz_dagster.catalog import NO_ROWS, Batch, BatchId, BatchState, BatchStats, Catalog, CollectionRow
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
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
    Column,
    numeric,
)
from mz_dagster.storage.arrow_schema import update_table
from mz_dagster.storage.foreign import only_our_errors
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shards import BatchIncomplete, FileDamaged
from mz_dagster.storage.spark import frame_of_rows, reporting_lost_spark
from mz_dagster.storage.spark_shards import SparkShards, update_schema
from tests.budgets import SetBudget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVERY_TYPE = tuple(
    Column(f"c{position}", scalar)
    for position, scalar in enumerate(
        (BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8, TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, MZ_TIMESTAMP, numeric(2))
    )
)
ROWS: list[tuple[tuple[Any, ...], int, int, str | None]] = [
    (
        (
            True,
            -3,
            7,
            2**62,
            0.5,
            -0.0,
            "ünïcode 'quoted'\n",
            dt.date(1, 1, 1),
            dt.datetime(1850, 1, 1, 1, 2, 3, 456789),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
            2**40,
            Decimal("12345678901234567890123456789012345.67"),
        ),
        5,
        1,
        None,
    ),
    ((None,) * 12, 6, -2, None),
    ((None,) * 12, 7, 1, "22012 division by zero"),
]


def row_of(name: str, columns: Sequence[Column]) -> CollectionRow:
    return CollectionRow(
        id=GlobalId(name),
        timeline="t",
        since=Antichain.of(EPOCH_MS, 0),
        upper=Antichain.of(EPOCH_MS, 100),
        columns=tuple(columns),
        keys=frozenset(),
        shard=f"shards/{name}",
        failure=None,
    )


def listed(collection: CollectionRow, number: int, stats: BatchStats) -> Batch:
    lower, upper = Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 100)
    return Batch(BatchId(number), collection.id, lower, upper, BatchState.LIVE, stats)


def frame_of(spark: SparkSession, columns: Sequence[Column], rows: Sequence[Any]) -> DataFrame:
    return spark.createDataFrame([(*data, *rest) for data, *rest in rows], update_schema(columns))


def numbers(spark: SparkSession, count: int, start: int = 0) -> DataFrame:
    number = sf.col("id")
    return spark.range(start, start + count).select(
        number.alias("k"),
        sf.concat(sf.lit("name "), number).alias("name"),
        sf.lit(5).cast("bigint").alias("mz_timestamp"),
        sf.lit(1).cast("bigint").alias("mz_diff"),
        sf.lit(None).cast("string").alias("mz_error"),
    )


PAIR = (Column("k", INT8), Column("name", TEXT))
#: Names of folders with all that means something to Spark, or to Hadoop, in a path.
ODD = ("what?x star* b{r,s}ace", "100% ha#sh ünïcode🎉 'q\"uo;te' $HOME c:o=l,on <x>`y`&+")


@pytest.fixture
def shards(tmp_path: Path, spark: SparkSession) -> SparkShards:
    return SparkShards(tmp_path, spark)


def test_append_is_one_commit_and_an_empty_one_is_none(
    tmp_path: Path, shards: SparkShards, spark: SparkSession
) -> None:
    collection = row_of("u1", PAIR)
    shards.create(collection)
    table = DeltaTable(str(tmp_path / collection.shard))
    version = table.version()
    assert shards.append(collection, BatchId(1), numbers(spark, 0)) == NO_ROWS
    assert shards.append(collection, BatchId(2), numbers(spark, 10).where("k > 100")) == NO_ROWS
    table.update_incremental()
    assert table.version() == version
    stats = shards.append(collection, BatchId(3), numbers(spark, 10).coalesce(1))
    table.update_incremental()
    assert table.version() == version + 1
    assert (stats.rows, stats.errors, stats.files) == (10, 0, 1)
    assert stats.bytes > 0


def test_a_first_write_goes_on_from_the_summary_of_the_empty_table(
    tmp_path: Path, shards: SparkShards, spark: SparkSession
) -> None:
    told = {}
    for name in ("summarized", "reconstructed"):
        collection = row_of(name, PAIR)
        shards.create(collection)
        log = tmp_path / collection.shard / "_delta_log"
        if name == "reconstructed":
            (log / f"{0:020d}.crc").unlink()
        assert shards.append(collection, BatchId(1), numbers(spark, 10).coalesce(1)).files == 1
        told[name] = json.loads((log / f"{1:020d}.crc").read_text())
    found, expected = told["summarized"], told["reconstructed"]
    # Only who has looked at all files knows how large they are.
    assert expected.pop("fileSizeHistogram")
    for one in told.values():
        del one["txnId"], one["metadata"]["id"], one["metadata"]["createdTime"]
    assert found == expected
    assert (found["numFiles"], found["numMetadata"], found["numProtocol"]) == (1, 1, 1)


def test_each_implementation_reads_what_the_other_wrote(
    tmp_path: Path, shards: SparkShards, spark: SparkSession
) -> None:
    local = LocalShards(tmp_path)
    collection = row_of("u2", EVERY_TYPE)
    expected = update_table(EVERY_TYPE, ROWS)
    by_spark = listed(collection, 1, shards.append(collection, BatchId(1), frame_of(spark, EVERY_TYPE, ROWS)))
    by_local = listed(collection, 2, local.append(collection, BatchId(2), expected))
    assert by_spark.stats.rows == by_local.stats.rows == 3
    assert by_spark.stats.errors == by_local.stats.errors == 1
    for batch in (by_spark, by_local):
        assert local.read(collection, [batch]).sort_by("mz_timestamp").equals(expected)
        found = shards.read(collection, [batch]).orderBy("mz_timestamp")
        assert found.schema == update_schema(EVERY_TYPE)
        assert found.toArrow().to_pylist() == expected.to_pylist()
        assert math.copysign(1, found.collect()[0].c5) == -1


@pytest.mark.deep
def test_parallel_appends_to_one_and_to_many_shards_lose_nothing(shards: SparkShards, spark: SparkSession) -> None:
    collections = [row_of(f"p{number}", PAIR) for number in range(3)]
    for collection in collections:
        shards.create(collection)

    def append(task: tuple[int, int]) -> Batch:
        number, batch = task
        collection = collections[number]
        stats = shards.append(collection, BatchId(batch), numbers(spark, 100, start=batch * 100))
        return listed(collection, batch, stats)

    for collection in collections:
        append((collections.index(collection), 1))
    start = time.monotonic()
    append((0, 2))
    one = time.monotonic() - start
    start = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, [(number, 3) for number in range(3)]))
        many = time.monotonic() - start
        racing = list(pool.map(append, [(0, batch) for batch in range(10, 14)]))
    print(f"append: one {one:.2f} s, three shards {many:.2f} s, four to one {time.monotonic() - start:.2f} s")
    keys = {row.k for row in shards.read(collections[0], racing).select("k").collect()}
    assert keys == set(range(1000, 1400))


def test_frame_evaluated_after_its_batch_was_swept_fails(shards: SparkShards, spark: SparkSession) -> None:
    collection = row_of("u3", PAIR)
    first = listed(collection, 1, shards.append(collection, BatchId(1), numbers(spark, Budget().handed_rows)))
    second = listed(collection, 2, shards.append(collection, BatchId(2), numbers(spark, Budget().handed_rows)))
    early = shards.read(collection, [first, second])
    assert early.count() == 2 * Budget().handed_rows
    later = shards.read(collection, [first, second])
    shards.delete(collection, [first.id])
    for frame in (early, later):
        with pytest.raises(OperationalError, match="removed while it was read"), reporting_lost_spark():
            frame.agg(sf.sum("k")).collect()
    with pytest.raises(BatchIncomplete):
        shards.read(collection, [first, second])
    assert shards.read(collection, [second]).count() == Budget().handed_rows


def test_batch_whose_file_is_gone_from_the_disk_is_incomplete(
    tmp_path: Path, shards: SparkShards, spark: SparkSession
) -> None:
    collection = row_of("u4", PAIR)
    batch = listed(collection, 1, shards.append(collection, BatchId(1), numbers(spark, 10)))
    shutil.rmtree(tmp_path / collection.shard / "mz_batch=1")
    with pytest.raises(BatchIncomplete):
        shards.read(collection, [batch])


def test_merge_is_laid_out_by_key_and_tells_zeros_apart(shards: SparkShards, spark: SparkSession) -> None:
    columns = (Column("k", INT8), Column("x", FLOAT8))
    collection = row_of("u5", columns)
    nan = float("nan")
    rows: list[Any] = [((5, 0.0), 1, 1, None), ((5, -0.0), 1, 1, None), ((3, nan), 1, 1, None), ((1, None), 1, 1, None)]
    more: list[Any] = [((5, 0.0), 4, -1, None), ((3, -nan), 9, 2, None), ((1, None), 12, 1, None)]
    parts = [
        listed(collection, number, shards.append(collection, BatchId(number), frame_of(spark, columns, part)))
        for number, part in ((1, rows), (2, more))
    ]
    merged = listed(collection, 3, shards.merge(collection, parts, 10, BatchId(3), ["k"]))
    assert merged.stats.files == 1
    found = [(row.k, row.x, row.mz_timestamp, row.mz_diff) for row in shards.read(collection, [merged]).collect()]
    assert [key for key, *_ in found] == [1, 1, 3, 5]
    assert found[0] == (1, None, 10, 1)
    assert found[1] == (1, None, 12, 1)
    assert math.isnan(found[2][1])
    assert found[2][2:] == (10, 3)
    assert math.copysign(1, found[3][1]) == -1
    assert found[3][2:] == (10, 1)


def test_merge_of_what_cancels_is_empty(shards: SparkShards, spark: SparkSession) -> None:
    collection = row_of("u6", PAIR)
    retracted = numbers(spark, 10).withColumn("mz_diff", -sf.col("mz_diff"))
    parts = [
        listed(collection, 1, shards.append(collection, BatchId(1), numbers(spark, 10))),
        listed(collection, 2, shards.append(collection, BatchId(2), retracted)),
    ]
    assert shards.merge(collection, parts, 10, BatchId(3), ["k"]) == NO_ROWS
    assert shards.read(collection, []).collect() == []
    assert shards.read(collection, [listed(collection, 3, NO_ROWS)], columns=["name"]).columns == [
        "name",
        "mz_timestamp",
        "mz_diff",
        "mz_error",
    ]


@pytest.mark.deep
def test_large_merge_has_bounded_files_of_disjoint_keys(
    shards: SparkShards, spark: SparkSession, set_budget: SetBudget
) -> None:
    set_budget(file_rows=1000)
    collection = row_of("u7", PAIR)
    parts = [
        listed(
            collection, number, shards.append(collection, BatchId(number), numbers(spark, 2000, start=2000 * number))
        )
        for number in (1, 2)
    ]
    start = time.monotonic()
    merged = listed(collection, 3, shards.merge(collection, parts, 0, BatchId(3), ["k"]))
    print(f"merge of 4,000 rows into {merged.stats.files} files: {time.monotonic() - start:.2f} s")
    assert merged.stats.rows == 4000
    assert merged.stats.files >= 4
    ranges = (
        shards.read(collection, [merged])
        .withColumn("file", sf.input_file_name())
        .groupBy("file")
        .agg(sf.min("k").alias("low"), sf.max("k").alias("high"), sf.count("k").alias("rows"))
        .orderBy("low")
        .collect()
    )
    assert all(row.rows <= 1000 for row in ranges)
    assert all(left.high < right.low for left, right in pairwise(ranges))


def test_read_prunes_and_bounds(shards: SparkShards, spark: SparkSession) -> None:
    collection = row_of("u8", PAIR)
    frame = numbers(spark, 100).withColumn("mz_timestamp", sf.col("k"))
    batch = listed(collection, 1, shards.append(collection, BatchId(1), frame))
    start = time.monotonic()
    rows = shards.read(collection, [batch], lower=10, upper=13, columns=["name"]).orderBy("mz_timestamp").collect()
    print(f"read: {time.monotonic() - start:.2f} s")
    assert [tuple(row) for row in rows] == [(f"name {key}", key, 1, None) for key in (10, 11, 12)]


def test_errors_cost_nothing_where_there_are_none(
    shards: SparkShards, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = row_of("u9", PAIR)
    good = listed(collection, 1, shards.append(collection, BatchId(1), numbers(spark, Budget().handed_rows + 1)))
    failed = numbers(spark, 1).withColumn("mz_error", sf.lit("22012 division by zero"))
    bad = listed(collection, 2, shards.append(collection, BatchId(2), failed))
    for batches, errors in (([good], 0), ([good, bad], 1)):
        found = shards.read(collection, batches).where(sf.col("mz_error").isNotNull())
        assert found.count() == errors
        found.explain()
        assert ("FileScan" in capsys.readouterr().out) == bool(errors)


def test_few_rows_are_handed_over_and_large_ones_left_in_their_files(
    shards: SparkShards, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = row_of("u10", PAIR)
    for batch, name, is_handed in ((1, "short", True), (2, "x" * 2_000_000, False)):  # which compresses well
        frame = numbers(spark, 3).withColumn("name", sf.lit(name))
        stored = listed(collection, batch, shards.append(collection, BatchId(batch), frame))
        found = shards.read(collection, [stored])
        assert [tuple(row) for row in found.orderBy("k").collect()] == [(k, name, 5, 1, None) for k in range(3)]
        found.explain()
        assert ("FileScan" not in capsys.readouterr().out) == is_handed


def test_what_spark_reads_is_what_was_written(tmp_path: Path, shards: SparkShards, spark: SparkSession) -> None:
    """By the file's hash before Spark is asked; and by its pages' checksums, as they are read."""
    collection = row_of("flipped", (Column("k", INT8), Column("name", TEXT)))
    stats = shards.append(collection, BatchId(1), numbers(spark, 5000))
    assert stats.file_list is not None
    path = tmp_path / collection.shard / stats.file_list[0].path
    with pq.ParquetFile(path) as parquet:
        column = parquet.metadata.row_group(0).column(0)
    with open(path, "r+b") as file:  # within the values of `k`
        file.seek((column.data_page_offset or 0) + column.total_compressed_size - 100)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's own, which nothing keeps with the file
    assert sorted(k for (k,) in spark.read.parquet(str(path)).select("k").collect()) != list(range(5000))
    with pytest.raises(FileDamaged, match=path.name):
        shards.read(collection, [listed(collection, 1, stats)])
    unhashed = [listed(collection, 1, replace(stats, file_list=None))]
    with pytest.raises(FileDamaged, match="is damaged") as told, only_our_errors():
        shards.read(collection, unhashed).collect()
    assert (told.value.path, told.value.collection) == (path, "flipped")
    assert "doctor" in str(told.value.hint)
    with pytest.raises(FileDamaged, match=r"(?i)crc"):
        LocalShards(tmp_path).read(collection, unhashed)


@pytest.mark.deep
def test_shards_are_read_and_written_whatever_their_folder_is_called(
    tmp_path: Path, spark: SparkSession, set_budget: SetBudget
) -> None:
    set_budget(handed_rows=0)
    wrong = {}
    for name in ODD:
        shards, collection = SparkShards(tmp_path / name, spark), row_of("u1", PAIR)
        try:
            first = listed(collection, 1, shards.append(collection, BatchId(1), numbers(spark, 3)))
            local = update_table(PAIR, [((9, name), 5, 1)])
            second = listed(collection, 2, LocalShards(tmp_path / name).append(collection, BatchId(2), local))
            merged = listed(collection, 3, shards.merge(collection, [first, second], 7, BatchId(3), ["k"]))
            rows = sorted(tuple(row) for row in shards.read(collection, [merged]).select("k", "name").collect())
            assert rows == [(0, "name 0"), (1, "name 1"), (2, "name 2"), (9, name)]
        except Exception as error:
            wrong[name] = str(error)[:300]
    assert not wrong
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(ODD)


def test_inlined_batches_are_read_beside_files_however_many_they_are(
    tmp_path: Path, spark: SparkSession, set_budget: SetBudget
) -> None:
    set_budget(handed_rows=10, handed_bytes=500)  # so that they are handed in many parts
    collection, updates = row_of("u1", PAIR), [((n, None), n % 7, 1) for n in range(300)]
    with Catalog.open(f"sqlite:///{tmp_path}/catalog.sqlite") as catalog:
        local = LocalShards(tmp_path, catalog)
        shards = SparkShards(tmp_path, spark, local)
        batches = []
        for number, part in enumerate((updates[:100], updates[100:200]), 1):
            stats = local.inline(collection, update_table(PAIR, part))
            assert stats is not None
            batches.append(listed(collection, number, stats))
        assert shards.read(collection, batches).count() == 200
        stored = local.append(collection, BatchId(3), update_table(PAIR, updates[200:]))
        batches.append(listed(collection, 3, stored))
        found = shards.read(collection, batches, lower=2, upper=5)
        expected = [one for one in updates if 2 <= one[1] < 5]
        assert sorted(row["mz_timestamp"] for row in found.collect()) == sorted(time for _, time, _ in expected)
        assert shards.merge(collection, batches, 6, BatchId(4), ["k"]).rows == 300


def test_rows_of_this_process_are_sent_without_asking_the_server(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Any = spark.client
    table = update_table(EVERY_TYPE, ROWS)
    schema = update_schema(EVERY_TYPE)
    as_pyspark_does = spark.createDataFrame(table, schema)
    monkeypatch.setattr(client, "get_config_dict", lambda *_: pytest.fail("asked for settings"))
    frame = frame_of_rows(spark, table, schema)
    monkeypatch.undo()
    assert frame.schema == as_pyspark_does.schema
    assert frame.toArrow().equals(as_pyspark_does.toArrow())
    assert frame_of_rows(spark, table.slice(0, 0), schema).schema == schema
