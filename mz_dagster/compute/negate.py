"""Negation: each update's diff changes its sign. Linear; errors are negated too, as everything that is subtracted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from mz_dagster.compute.frame import DIFF, ERROR, TIME, columns_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def negate(frame: DataFrame, arity: int) -> DataFrame:
    """Returns the frame with each diff negated."""
    return frame.select(*columns_at(arity), sf.col(TIME), sf.negate(sf.col(DIFF)).alias(DIFF), sf.col(ERROR))
