"""Negation: each row's diff changes its sign. Linear.

The error part passes as it is: an error of what is subtracted is an error of the difference. Were it negated, it would
cancel the same error on its other way into the result, as in `A + default - default for each row of A`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME, columns_at
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def negate(frame: DataFrame, arity: int) -> DataFrame:
    """Returns the frame with each row's diff negated, and each error's as it was."""
    diff = sf.when(sf.col(ERROR).isNull(), sf.negate(sf.col(DIFF))).otherwise(sf.col(DIFF))
    return frame.select(*columns_at(arity), sf.col(TIME), diff.alias(DIFF), sf.col(ERROR))
