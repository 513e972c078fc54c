"""Least and greatest values of each bucket, and what its values' bits come to: `plan.physical.Extremes`.

NULLs do not count; a column without any other value is NULL. Multiplicities do not count either, but that an even one
leaves nothing of a value in `BIT_XOR`. NaN is the greatest number, text is compared by bytes, and of the two zeros the
result holds the positive one, also in the group's columns. The extreme of a group is that of its buckets' extremes.

Cost: one aggregation of the frame, without a shuffle if it is parted by bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mz_dagster.compute.algebra.frame import DIFF
from mz_dagster.compute.spark.expressions.pure import plain_form, plain_type, restored
from mz_dagster.compute.spark.tournament.versions import RowLayout, sign
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Extremes
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec


def extremes(frame: DataFrame, shape: RowLayout, function: Extremes, keys: Sequence[str], subject: Column) -> DataFrame:
    """Returns the rows that are not `subject`, and for each bucket of the others one row of multiplicity 1.

    The arguments are those of every function of a stage (`tournament`).
    """
    results: list[Column] = []
    for position, one in zip(shape.others, function.functions, strict=True):
        found = extreme(one, sf.col(f"c{position}"), shape.relation_type.columns[position].type)
        results.append(found.alias(f"mz_result_{position}"))
    gathered = grouped_with_bystanders(frame, shape, keys, subject, results)
    data = [
        sf.when(subject, sf.col(f"mz_result_{position}")).otherwise(sf.col(f"mz_own_{position}")).alias(f"c{position}")
        if position in shape.others
        else sf.col(f"c{position}")
        for position in range(shape.arity)
    ]
    signs = [sf.col(sign(position)) for position in shape.floats]
    return gathered.select(*keys, *data, *signs, sf.col(DIFF))


#: What aggregates a column over rows that have a diff; of an aggregate that is not here workers do, by its algebra.
KERNELS: dict[AggregateFunction, Callable[[Column], Column]] = {
    AggregateFunction.MIN: lambda value: sf.min(value),
    AggregateFunction.MAX: lambda value: sf.max(value),
    AggregateFunction.BIT_AND: lambda value: sf.bit_and(value),
    AggregateFunction.BIT_OR: lambda value: sf.bit_or(value),
    # An even number leaves nothing of a value, which is 0 if there is one.
    AggregateFunction.BIT_XOR: lambda value: sf.bit_xor(
        sf.when(sf.pmod(sf.col(DIFF), sf.lit(2)) == 1, value).otherwise(value.bitwiseXOR(value))
    ),
}


def extreme(function: AggregateFunction, value: Column, type_: ScalarType, over: WindowSpec | None = None) -> Column:
    """Returns the aggregate of `value`, of a type, over rows that have a diff; of a group, or of a window's frame."""
    kernel = KERNELS.get(function)
    if kernel is not None:
        return kernel(value) if over is None else kernel(value).over(over)
    algebra = function.record.of_type(type_)
    row = sf.struct(plain_form(value, type_).alias("value"), sf.col(DIFF).alias("times"))
    listed = sf.collect_list(sf.when(value.isNotNull(), row))
    listed = listed if over is None else listed.over(over)

    def aggregated(rows: Sequence[Any]) -> Any:
        return algebra.value([((one["value"],), one["times"]) for one in rows])

    return restored(sf.udf(aggregated, plain_type(type_), useArrow=True)(listed), type_)


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
