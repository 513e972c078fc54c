"""A map, filter and project in Python, on Spark's workers: `linear` where the scalars are too many for a plan.

Spark's planner walks a plan a hundred times, and once more for each stage of shared columns. Of hundreds of columns, or
of functions nested twenty deep, that takes minutes, and a heap; then what would run does not fit into a method of the
JVM. A function in Python is one column, whatever it computes; it is the one that evaluates few updates here
(`local.linear`), so that rows are the same.

Cost: a microsecond for each row and function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, positional
from mz_dagster.compute.spark.expressions.emitter import opaque
from mz_dagster.compute.spark.expressions.pure import plain_form, plain_type, restored
from mz_dagster.functions.evaluation import Evaluate, compiled
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.physical import MapFilterProject
from mz_dagster.scalars.scalar import ColumnRef, walk
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.late_pyspark import types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OUTCOME = "mz_outcome"


def linear_by_workers(frame: DataFrame, mfp: MapFilterProject) -> DataFrame:
    """Returns the updates that `mfp`, of which all scalars are evaluable in Python, makes of those of `frame`."""
    asked = {
        one.position: one.type
        for _, scalar in mfp.steps
        for one in walk(scalar)
        if isinstance(one, ColumnRef) and one.position < mfp.arity
    }
    mapped = [scalar.type for kind, scalar in mfp.steps if kind == "map"]
    kept = sorted({position - mfp.arity for position in mfp.projection if position >= mfp.arity})
    fields = [types.StructField(f"v{n}", plain_type(mapped[n])) for n in kept]
    returned = [
        *fields,
        types.StructField("error", types.StringType()),
        types.StructField("passes", types.BooleanType()),
    ]
    steps = [(kind == "map", compiled(scalar)) for kind, scalar in mfp.steps]
    evaluate = sf.udf(worker_of_rows(steps, list(asked), mfp.arity, kept), types.StructType(returned), useArrow=True)
    arguments = [plain_form(sf.col(f"c{position}"), type_) for position, type_ in asked.items()]
    # A row that failed before has no data to look at.
    outcome = evaluate(sf.col(ERROR).isNotNull(), *arguments)
    frame = frame.select("*", opaque(outcome).alias(_OUTCOME)).where(sf.col(f"{_OUTCOME}.passes"))

    def cell(position: int) -> Column:
        if position < mfp.arity:
            return sf.col(f"c{position}")
        return restored(sf.col(f"{_OUTCOME}.v{position - mfp.arity}"), mapped[position - mfp.arity])

    names = positional(len(mfp.projection))
    data = [cell(position).alias(name) for position, name in zip(mfp.projection, names, strict=True)]
    error = sf.coalesce(sf.col(ERROR), sf.col(f"{_OUTCOME}.error")).alias(ERROR)
    return frame.select(*data, TIME, DIFF, error).select(*names, *META)


def worker_of_rows(
    steps: Sequence[tuple[bool, Evaluate]], asked: Sequence[int], arity: int, kept: Sequence[int]
) -> Callable[..., tuple[Any, ...]]:
    """Returns what makes of a row's cells the mapped ones, an error, and whether the row stays."""
    failure, nothing = SqlFailure, (None,) * len(kept)

    def evaluate(has_failed: bool, *cells: Any) -> tuple[Any, ...]:
        if has_failed:
            return *nothing, None, True
        row = dict(zip(asked, cells, strict=True))
        width = arity
        try:
            for is_map, step in steps:
                value = step(row)
                if is_map:
                    row[width] = value
                    width += 1
                elif value is not True:
                    return *nothing, None, False
        except failure as error:
            return *nothing, str(error), True
        return *(row[arity + n] for n in kept), None, True

    return evaluate
