"""Spark's long division of numerics against the reference, with operands of any length."""

from __future__ import annotations

import random
from decimal import Context, Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.compute.spark.linear import linear
from mz_dagster.functions.numbers import numerics
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.physical import MapFilterProject
from mz_dagster.scalars.scalar import Call, ColumnRef
from mz_dagster.scalars.types import Column, numeric
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.spark import frame_of_rows
from mz_dagster.storage.spark_shards import update_schema as spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXACT = Context(prec=80)


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.deep) for one in range(1, 12))])
def test_quotients_on_spark_are_those_of_the_reference(seed: int, spark: SparkSession) -> None:
    random_ = random.Random(seed)
    scales = random_.choice([0, 2, 4, 10, 17]), random_.choice([0, 1, 2, 5, 9, 20])
    scale = max(*scales, random_.choice([10, 16, 20, 24]))

    def operand(scale: int, most: int) -> Decimal | None:
        digits = random_.randrange(1, most)
        near = random_.choice([0, 1, 10**digits - 1, 10 ** (digits - 1), -(10 ** (digits - 1))])
        value = random_.choice([random_.randrange(-(10**digits), 10**digits), near])
        return None if random_.random() < 0.02 else Decimal(value).scaleb(-scale, _EXACT)

    above = [operand(scales[0], random_.choice([19, 30, 39])) for _ in range(300)]
    below = [operand(scales[1], random_.choice([5, 13, 20, 32, 39])) for _ in range(300)]
    columns = [Column("c0", numeric(scales[0])), Column("c1", numeric(scales[1]))]
    meta = [pa.array(range(300), pa.int64()), pa.array([1] * 300, pa.int64()), pa.nulls(300, pa.string())]
    data = [pa.array(one, pa.decimal128(38, scale)) for one, scale in zip((above, below), scales, strict=True)]
    table = pa.Table.from_arrays([*data, *meta], schema=update_schema(columns))
    divide = Call("divide_numeric", (ColumnRef(0, columns[0].type), ColumnRef(1, columns[1].type)), numeric(scale))
    ensure_exact(spark)
    frame = frame_of_rows(spark, table, spark_schema(columns))
    found = linear(frame, MapFilterProject(2, (("map", divide),), (2,))).toArrow().sort_by("mz_timestamp").to_pylist()

    for left, right, row in zip(above, below, found, strict=True):
        wanted: tuple[Decimal | None, str | None] = None, None
        if left is not None and right is not None:
            try:
                wanted = numerics.quotient(left, right, scales, scale), None
            except SqlFailure as failure:
                wanted = None, str(failure)
        assert (None if row["mz_error"] else row["c0"], row["mz_error"]) == wanted, (left, right, scales, scale)
