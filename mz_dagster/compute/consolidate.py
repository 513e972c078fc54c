"""Consolidation: equal updates become one, whose diff is their sum, and those that sum to zero vanish.

Two updates are equal if all their data, their time and their error are; NULL equals NULL and NaN equals NaN. Spark's
grouping takes -0.0 for 0.0 and hands out either; here they are told apart, so that a row leaves as it came.

Cost: one shuffle of the frame by all its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from mz_dagster.compute.frame import DIFF, ERROR, META, TIME
from mz_dagster.storage.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def consolidate(frame: DataFrame) -> DataFrame:
    """Returns the frame's updates with equal ones summed and without those of diff 0; the columns stay as they are."""
    data = [(name, type_) for name, type_ in frame.dtypes if name not in META]
    floats = {name: f"mz_negative_zero_{i}" for i, (name, type_) in enumerate(data) if type_ in ("float", "double")}
    for name, flag in floats.items():
        column = sf.col(quoted(name))
        frame = frame.withColumn(flag, (column == 0.0) & sf.startswith(column.cast("string"), sf.lit("-")))
    keys = [sf.col(quoted(name)) for name, _ in data]
    keys += [sf.col(TIME), sf.col(ERROR), *(sf.col(flag) for flag in floats.values())]
    summed = frame.groupBy(*keys).agg(sf.sum(DIFF).alias(DIFF)).where(sf.col(DIFF) != 0)
    restored = [
        sf.when(sf.col(floats[name]), sf.lit(-0.0).cast(type_)).otherwise(sf.col(quoted(name))).alias(name)
        if name in floats
        else sf.col(quoted(name))
        for name, type_ in data
    ]
    return summed.select(*restored, sf.col(TIME), sf.col(DIFF), sf.col(ERROR))
