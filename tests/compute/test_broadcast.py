"""What is sent to all tasks is little, in rows and in bytes; what is not fails, and is told from other failures."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from mz_dagster.compute.spark.broadcast import broadcast, is_too_large_to_broadcast
from mz_dagster.scalars.types import INT8, TEXT, ScalarType, array_of
from tests.budgets import SetBudget

TYPES = {"id": INT8, "t": TEXT, "a": array_of(TEXT)}


def sent(spark: SparkSession, rows: int, width: int, types: dict[str, ScalarType]) -> int:
    text = sf.repeat(sf.lit("x"), width)
    one = spark.range(0, rows, 1, 1).select("id", text.alias("t"), sf.array(text).alias("a"))
    return broadcast(one, types).select(sf.octet_length("t"), sf.size("a")).count()


def test_rows_of_many_bytes_are_not_sent(spark: SparkSession, set_budget: SetBudget) -> None:
    set_budget(sent_rows=1_000, sent_bytes=100_000)
    assert sent(spark, 100, 100, TYPES) == 100
    assert sent(spark, 1_000, 40, TYPES) == 1_000
    for rows, width, types in ((1_001, 1, {}), (100, 1_100, {"t": TEXT}), (100, 1_100, {"a": array_of(TEXT)})):
        with pytest.raises(Exception, match="too many") as raised:
            sent(spark, rows, width, types)
        assert is_too_large_to_broadcast(raised.value)
