"""Consolidation: equal updates become one, whose diff is their sum, and those that sum to zero vanish.

Two updates are equal if all their data, their time and their error are; NULL equals NULL and NaN equals NaN. Spark's
grouping takes -0.0 for 0.0 and hands out either; here they are told apart, so that a row leaves as it came.

Cost: one shuffle of the frame by all its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from mz_dagster.compute.frame import DIFF, ERROR, TIME
from mz_dagster.plan.types import Column, Kind
from mz_dagster.storage.spark.schema import quoted, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)


def consolidate(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Returns the frame's updates with equal ones summed and without those of diff 0.

    Args:
        frame: Its columns are `columns`, under their names and in their order, then time, diff and error.
        columns: The data columns. Given, since asking Spark for them means that it analyzes the whole plan once more.
    """
    floats = {one.name: f"mz_negative_zero_{i}" for i, one in enumerate(columns) if one.type.kind in _FLOATS}
    for name, flag in floats.items():
        column = sf.col(quoted(name))
        frame = frame.withColumn(flag, (column == 0.0) & sf.startswith(column.cast("string"), sf.lit("-")))
    keys = [sf.col(quoted(one.name)) for one in columns]
    keys += [sf.col(TIME), sf.col(ERROR), *(sf.col(flag) for flag in floats.values())]
    summed = frame.groupBy(*keys).agg(sf.sum(DIFF).alias(DIFF)).where(sf.col(DIFF) != 0)
    restored = [
        sf.when(sf.col(floats[one.name]), sf.lit(-0.0).cast(spark_type(one.type)))
        .otherwise(sf.col(quoted(one.name)))
        .alias(one.name)
        if one.name in floats
        else sf.col(quoted(one.name))
        for one in columns
    ]
    return summed.select(*restored, sf.col(TIME), sf.col(DIFF), sf.col(ERROR))
