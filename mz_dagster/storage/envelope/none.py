"""ENVELOPE NONE: every record is a row, for good.

The collection is append-only, `monotonic` in the plan's word: `updates` never retracts. A malformed record is a
row of the error part, and stays one until errors are dropped (`dropped_errors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def updates(records: DataFrame, *, columns: Sequence[str]) -> DataFrame:
    """Returns `+1` for every record, at its tick. Linear: no shuffle, no state."""
    return records.select(
        *(F.col(quoted(name)) for name in columns),
        "mz_timestamp",
        F.lit(1).cast("bigint").alias("mz_diff"),
        "mz_error",
    )
