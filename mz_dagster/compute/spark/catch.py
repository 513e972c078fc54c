"""Catch: errors become rows, with the error in a column of its own. Linear, without a shuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME, columns_at, without_error_data
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def catch(frame: DataFrame, arity: int) -> DataFrame:
    """Returns the frame, of `arity` columns, without an error part: errors are rows, the text of each behind NULLs."""
    error = sf.col(ERROR).alias(f"c{arity}")
    none = sf.lit(None).cast("string").alias(ERROR)
    return without_error_data(frame, arity).select(*columns_at(arity), error, sf.col(TIME), sf.col(DIFF), none)
