"""Sums over frames, as sums of parts that cannot overflow on the way.

Integers are added up as numerics of 38 digits, numerics by their high and low parts (see `scalar/accumulation.py`).
What the sum's own type cannot hold is an error of the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions import Emitter
from mz_dagster.compute.spark.tournament.versions import RowLayout
from mz_dagster.errors import InternalError
from mz_dagster.functions.errors import NUMERIC_OVERFLOW, out_of_range
from mz_dagster.plan.relation import WindowFunction
from mz_dagster.scalars.scalar import Call, ColumnRef
from mz_dagster.scalars.types import Kind, ScalarType, high_part_type, numeric
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)


def sum_types(shape: RowLayout, function: WindowFunction) -> dict[str, ScalarType]:
    """Returns the names and types of the parts of a sum."""
    type_ = shape.relation_type.columns[function.arguments[0]].type
    if type_.kind in _INTEGERS:
        return {"low": numeric(0)}
    if type_.kind is not Kind.NUMERIC or function.type != type_:
        raise InternalError(f"a sum of {type_} as {function.type}")
    return {"high": high_part_type(type_.scale), "low": type_}


def sum_parts(shape: RowLayout, function: WindowFunction) -> dict[str, Column]:
    """Returns the parts of the argument."""
    position = function.arguments[0]
    value, type_ = sf.col(f"c{position}"), shape.relation_type.columns[position].type
    if type_.kind in _INTEGERS:
        return {"low": value.cast(spark_type(numeric(0)))}
    emitter = Emitter([value], shares=False)
    return {
        name: emitter.emit(Call(f"{name}_part_numeric", (ColumnRef(0, type_),), part)).value
        for name, part in sum_types(shape, function).items()
    }


def summed(
    frame: DataFrame, shape: RowLayout, function: WindowFunction, number: int
) -> tuple[DataFrame, Column, Column]:
    """Returns the sum and its error over `frame`, which may have got columns that they share.

    Args:
        frame: With `mz_sum_count_{number}`, how many values there are, and `mz_sum_{part}_{number}`.
        shape: Of the rows.
        function: The sum.
        number: The function's.
    """
    some, type_ = sf.col(f"mz_sum_count_{number}") > 0, function.type
    parts = [
        (sf.col(f"mz_sum_{name}_{number}").cast(spark_type(part)), part)
        for name, part in sum_types(shape, function).items()
    ]
    if len(parts) == 1:
        value = parts[0][0].try_cast(spark_type(type_))
        overflow = NUMERIC_OVERFLOW if type_.kind is Kind.NUMERIC else out_of_range(type_.kind)
        return frame, sf.when(some, value), sf.when(some & value.isNull(), overflow)
    emitter = Emitter([column for column, _ in parts], prefix=f"mz_whole_{number}")
    arguments = tuple(ColumnRef(i, part) for i, (_, part) in enumerate(parts))
    whole = emitter.emit(Call("whole_numeric", arguments, type_))
    assert whole.error is not None
    return emitter.stage(frame), sf.when(some, whole.value), sf.when(some, whole.error)
