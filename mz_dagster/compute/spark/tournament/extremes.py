"""Least and greatest values of each bucket, and what its values' bits come to: `plan.physical.Extremes`.

NULLs do not count; a column without any other value is NULL. Multiplicities do not count either, but that an even one
leaves nothing of a value in `BIT_XOR`. NaN is the greatest number, text is compared by bytes, and of the two zeros the
result holds the positive one, also in the group's columns. The extreme of a group is that of its buckets' extremes.

Cost: one aggregation of the frame, without a shuffle if it is parted by bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF
from mz_dagster.compute.spark.tournament.versions import RowLayout, sign
from mz_dagster.errors import InternalError
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Extremes
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def extremes(frame: DataFrame, shape: RowLayout, function: Extremes, keys: Sequence[str], subject: Column) -> DataFrame:
    """Returns the rows that are not `subject`, and for each bucket of the others one row of multiplicity 1.

    The arguments are those of every function of a stage (`tournament`).
    """
    results: list[Column] = []
    for position, one in zip(shape.others, function.functions, strict=True):
        results.append(extreme(one, sf.col(f"c{position}")).alias(f"mz_result_{position}"))
    gathered = grouped_with_bystanders(frame, shape, keys, subject, results)
    data = [
        sf.when(subject, sf.col(f"mz_result_{position}")).otherwise(sf.col(f"mz_own_{position}")).alias(f"c{position}")
        if position in shape.others
        else sf.col(f"c{position}")
        for position in range(shape.arity)
    ]
    signs = [sf.col(sign(position)) for position in shape.floats]
    return gathered.select(*keys, *data, *signs, sf.col(DIFF))


def extreme(function: AggregateFunction, value: Column) -> Column:
    """Returns the aggregate of `value` over rows that have a diff; all functions but `BIT_XOR` do without."""
    match function:
        case AggregateFunction.MIN:
            return sf.min(value)
        case AggregateFunction.MAX:
            return sf.max(value)
        case AggregateFunction.BIT_AND:
            return sf.bit_and(value)
        case AggregateFunction.BIT_OR:
            return sf.bit_or(value)
        case AggregateFunction.BIT_XOR:
            return sf.bit_xor(sf.when(sf.pmod(sf.col(DIFF), sf.lit(2)) == 1, value).otherwise(value.bitwiseXOR(value)))
        case _:
            raise InternalError(f"{function.value} of a group is not that of its parts")


def grouped_with_bystanders(
    frame: DataFrame, shape: RowLayout, keys: Sequence[str], subject: Column, results: Sequence[Column]
) -> DataFrame:
    """Aggregates the subjects by bucket and version, and every other row by itself.

    Returns `keys`, the group's columns, `results`, each subject bucket's diff 1 or the row's own diff, the signs of
    floats (of subjects: positive) and, for each other column, `mz_own_{position}`: the row's own value, NULL in
    subjects.
    """
    own = [
        sf.when(~subject, sf.col(f"c{position}")).alias(f"mz_own_{position}")
        for position in shape.others
    ]  # fmt: skip
    signs = [sf.when(~subject, sf.col(sign(position))).alias(sign(position)) for position in shape.floats]
    diff = sf.when(subject, sf.lit(1).cast("bigint")).otherwise(sf.sum(DIFF)).alias(DIFF)
    return frame.groupBy(*keys, *shape.group_names, *own, *signs).agg(*results, diff)
