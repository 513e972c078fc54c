"""What a plan filters by and does not need never leaves the files: Spark's scan takes both from the linear operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mz_dagster.compute.algebra.frame import spark_schema, with_positions
from mz_dagster.compute.spark.linear import linear
from mz_dagster.plan.physical import MapFilterProject
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import BOOL, INT4, TEXT, Column, RelationType

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

WIDE = RelationType((Column("a", INT4), Column("b", INT4), Column("c", TEXT), Column("d", TEXT)))


def test_a_scan_reads_the_needed_columns_and_skips_by_the_predicates(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = spark_schema(WIDE, WIDE.names)
    rows = [(1, 2, "x", "y", 0, 1, None), (2, 9, "x", "y", 0, 1, None), (None, None, None, None, 0, 1, "22012 e")]
    spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(tmp_path / "updates"))
    frame = with_positions(spark.read.schema(schema).parquet(str(tmp_path / "updates")), WIDE)
    predicate = Call("gt_int4", (ColumnRef(1, INT4), Literal(3, INT4)), BOOL)
    found = linear(frame, MapFilterProject(4, (("filter", predicate),), (0,)))
    assert sorted(tuple(row) for row in found.collect() if row[-1] is None) == [(2, 0, 1, None)]
    assert [row[-1] for row in found.collect() if row[-1] is not None] == ["22012 e"]
    found.explain()
    plan = capsys.readouterr().out
    scan = next(line for line in plan.splitlines() if "FileScan" in line)
    assert "GreaterThan(b,3)" in scan
    assert "ReadSchema: struct<a:int,b:int,mz_timestamp:bigint,mz_diff:bigint,mz_error:string>" in scan
