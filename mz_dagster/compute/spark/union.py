"""Union: the updates of all inputs. Linear, without a shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.spark.balanced import balanced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """Returns the rows of all frames, at least one, which have the same columns in the same order."""
    return balanced(lambda one, other: one.unionAll(other), frames)
