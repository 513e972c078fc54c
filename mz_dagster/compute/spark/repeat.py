"""Repeat: each diff times a column of the row. Linear, without a shuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def repeat(frame: DataFrame, count: int, arity: int) -> DataFrame:
    """Returns the frame with diffs multiplied by the column at `count`, which goes, of `arity` columns.

    Updates of the error part pass as they are; rows of count 0 vanish.
    """
    good = sf.col(ERROR).isNull()
    diff = sf.when(good, sf.col(DIFF) * sf.col(f"c{count}")).otherwise(sf.col(DIFF)).alias(DIFF)
    kept = [position for position in range(arity) if position != count]
    data = [sf.col(f"c{position}").alias(f"c{new}") for new, position in enumerate(kept)]
    return frame.select(*data, sf.col(TIME), diff, sf.col(ERROR)).where(sf.col(DIFF) != 0)
