"""Keys of lookups: which buckets and ranges hold them, and that the rows found are those that have them."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as sf

from mz_dagster.budget import Budget
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    UUID,
    Column,
    ScalarType,
    array_of,
    dimensioned,
    numeric,
)
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.clustering import Bucket
from mz_dagster.storage.shards import StoredFile
from mz_dagster.storage.skipping import Bounds
from mz_dagster.storage.spark.hashing import hash_modulo
from mz_dagster.storage.spark_shards import update_schema
from tests.budgets import SetBudget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: By type: what makes values, some of which are equal, of small numbers.
VALUES: dict[ScalarType, Callable[[int], Any]] = {
    **dict.fromkeys((INT2, INT4, INT8), lambda n: n),
    DATE: lambda n: dt.date(1960, 1, 1) + dt.timedelta(n * 1500),
    TEXT: lambda n: "xü"[: n % 3] * n,
    BOOL: lambda n: n % 2 == 0,
    TIMESTAMP: lambda n: dt.datetime(1969, 12, 31, 23, 59, 59, 5) + dt.timedelta(microseconds=n * 500_000),
    UUID: lambda n: f"00000000-0000-0000-0000-00000000000{n}",
    numeric(2): lambda n: Decimal(n - 3) / 4,
}
TYPES = tuple(VALUES)


def keys(column: Column, values: list[Any]) -> LookupKeys:
    return LookupKeys.of({0: column}, [pa.table({"k": pa.array(values, arrow_type(column.type))})])


def file(rows: int, bounds: tuple[int, int] | None, key: tuple[int, ...] = (0,), count: int = 8) -> StoredFile:
    known = {} if bounds is None else {"x": Bounds(*bounds, all_null=False)}
    return StoredFile("f", rows, 0, 1, None, Bucket(key, count, 0), known)


@given(st.lists(st.one_of(st.none(), st.integers(-(10**6), 10**6)), max_size=60))
def test_every_key_is_within_the_ranges_of_which_there_are_few(values: list[int | None]) -> None:
    found = keys(Column("x", INT8), values).ranges(0)
    assert found is not None
    assert len(found) <= 16
    present = {one for one in values if one is not None}
    assert all(any(a <= one <= b for a, b in found) for one in present)
    assert all(a <= b for a, b in found)
    assert {one for ends in found for one in ends} <= present


def test_keys_that_lie_apart_are_parted_and_others_are_not() -> None:
    together = [*range(1000, 1100), *range(50_000, 50_100)]
    assert keys(Column("x", INT4), together).ranges(0) == [(1000, 1099), (50_000, 50_099)]
    assert keys(Column("x", INT4), list(range(0, 4000, 3))).ranges(0) == [(0, 3999)]
    assert keys(Column("x", TEXT), ["a"]).ranges(0) is None


def test_equal_keys_are_one_and_null_is_a_key() -> None:
    found = LookupKeys.of(
        {1: Column("a", INT4), 3: Column("b", TEXT)},
        [pa.table({"x": [1, 1, None], "y": ["p", "p", None]}), pa.table({"z": [None, 1], "w": [None, "q"]})],
    )
    assert {tuple(row.values()) for row in found.table.to_pylist()} == {(1, "p"), (1, "q"), (None, None)}
    assert len(found) == 3


def test_buckets_are_asked_for_where_some_are_likely_not_touched() -> None:
    few, many = keys(Column("x", INT4), [1, 2, 3]), keys(Column("x", INT4), list(range(100)))
    (touched,) = few.hashes_in([file(10, None)])
    assert touched.modulus == 8
    assert 1 <= len(touched.hashes) <= 3
    assert many.hashes_in([file(10, None)]) == []
    assert few.hashes_in([file(10, None, key=(0, 1))]) == [], "the layout asks for a column more"


def test_pages_are_left_out_where_most_can_be(spark: SparkSession) -> None:
    assert spark, "columns of Spark are made by a session"
    found = keys(Column("x", INT4), [5, 6, 7])
    assert found.within([file(1000, (0, 999))] * 8) is not None
    assert found.within([file(1000, (4, 9))] * 8) is None, "half of it would be read"
    assert found.within([file(1000, None)]) is None, "nobody knows its bounds"
    assert found.within([file(1000, (0, 999), key=(1,))]) is None, "it is not sorted by the column"
    assert found.within([]) is None


def test_keys_that_lie_apart_are_looked_for_one_by_one(spark: SparkSession) -> None:
    column = Column("x", INT4)
    wanted = [*range(0, 1_000_000, 5000), None]
    apart, many = keys(column, wanted), keys(column, list(range(0, 1_000_000, 2000)))
    files = [file(1_000_000, (0, 999_999))] * 2
    assert many.within(files) is None, "no page is without one"
    assert keys(column, wanted[:-1]).within([file(200_000, (0, 999_999))]) is None, "half of it would be read"
    predicate = apart.within(files)
    assert predicate is not None
    table = pa.table({"x": pa.array([*wanted, 1, 2, 4999, 999_999], pa.int32())})
    found = spark.createDataFrame(table).where(predicate).toArrow().column("x").to_pylist()
    assert Counter(found) == Counter(wanted)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_rows_found_are_those_of_the_keys(spark: SparkSession, type_: Any) -> None:
    chosen = random.Random(str(type_))
    column = Column("x y", type_)
    kind = arrow_type(type_)

    def column_of(rows: int, null: float) -> pa.Array:
        values = [None if chosen.random() < null else VALUES[type_](chosen.randrange(6)) for _ in range(rows)]
        return pa.array(values, pa.decimal128(38, 2) if pa.types.is_decimal(kind) else kind)

    rows = pa.table({"x y": column_of(40, 0.1), "n": pa.array(range(40), pa.int64())})
    schema = update_schema([column, Column("n", INT8)])
    frame = spark.createDataFrame(rows, schema.__class__(schema.fields[:2]))
    for null in (0.0, 0.5):
        table = pa.table({"k": column_of(3, null)})
        found = LookupKeys.of({0: column}, [table])
        wanted = set(table.column("k").to_pylist())
        matching = found.matching(spark, frame, ["x y"]).select("n").collect()
        expected = [n for n, one in enumerate(rows.column("x y").to_pylist()) if one in wanted]
        assert sorted(row[0] for row in matching) == expected
        (touched,) = found.hashes_in([file(10, None, count=16)])
        hashes = frame.where(sf.col("n").isin(expected or [-1])).select(
            hash_modulo([sf.col("`x y`")], [type_], 16).alias("h")
        )
        assert {row[0] for row in hashes.collect()} <= touched.hashes


def test_a_column_of_a_page_filter_keeps_null_where_it_is_a_key(spark: SparkSession) -> None:
    column = Column("x", DATE)
    days = [dt.date(2024, 1, 1) + dt.timedelta(n) for n in range(300)]
    frame = spark.createDataFrame(pa.table({"x": pa.array([*days, None], pa.date32())}))
    first = (days[0] - dt.date(1970, 1, 1)).days
    sorted_file = file(300, (first, first + 299))
    cases: list[tuple[list[Any], int]] = [([days[3]], 1), ([days[3], None], 2), ([days[3], days[299]], 2)]
    cases.append(([pa.scalar(10**7, pa.int32()).cast(pa.date32()), days[3]], 1))  # Python has no such date
    for asked, wanted in cases:
        within = keys(column, asked).within([sorted_file])
        assert within is not None
        assert frame.where(within).count() == wanted


def test_floats_and_what_nests_are_each_once_and_looked_up_by_their_hashes_alone() -> None:
    for type_, values in (
        (FLOAT8, [0.0, -0.0, 1.5, float("nan"), float("nan"), None]),
        (dimensioned(FLOAT8), [((x,), (1,), (1,)) for x in (0.0, -0.0, None, float("nan"), float("nan"))] + [None]),
        (array_of(FLOAT8), [[0.0], [-0.0], [None], [float("nan")], [float("nan")], None]),
    ):
        found = keys(Column("x", type_), values)
        assert len(found) == 4
        assert found.condition([Column("x", type_)]) is None


def test_keys_are_few_by_number_and_by_size(set_budget: SetBudget) -> None:
    found = [keys(Column("x", INT8), list(range(n))) for n in (99, 100)]
    assert [one.are_few for one in found] == [True, True]
    set_budget(key_bytes=99 * 8)
    assert [one.are_few for one in found] == [True, False]
    set_budget(Budget(), keys=99)
    assert [one.are_few for one in found] == [True, False]


def test_spark_is_told_within_which_bounds_to_read(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.range(100_000).withColumnRenamed("id", "x").coalesce(1).write.parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")
    assert pq.ParquetFile(path).metadata.num_row_groups == 4, "of 32,768 rows"
    within = keys(Column("x", INT8), list(range(70_000, 70_006))).within([file(100_000, (0, 99_999))])
    assert within is not None
    frame = spark.read.parquet(str(path)).where(within)
    assert frame.count() == 6
    frame.explain()
    pushed = next(line for line in capsys.readouterr().out.splitlines() if "PushedFilters" in line)
    assert "GreaterThanOrEqual(x,70000)" in pushed
    assert "LessThanOrEqual(x,70005)" in pushed
