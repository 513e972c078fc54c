"""Consolidation: equal updates become one, whose diff is their sum, and those that sum to zero vanish.

Two updates are equal if all their data, their time and their error are; NULL equals NULL and NaN equals NaN. Spark's
grouping takes -0.0 for 0.0 and hands out either; here they are told apart, so that a row leaves as it came.

Cost: one shuffle of the frame by all its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME
from mz_dagster.scalars.types import Column
from mz_dagster.storage.spark.schema import quoted
from mz_dagster.storage.spark_shards import summed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def consolidate(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """Returns the frame's updates with equal ones summed and without those of diff 0.

    Args:
        frame: Its columns are `columns`, under their names and in their order, then time, diff and error.
        columns: The data columns. Given, since asking Spark for them means that it analyzes the whole plan once more.
    """
    names = [quoted(one.name) for one in columns]
    return summed(frame, columns, [TIME, ERROR]).select(*names, TIME, DIFF, ERROR)
