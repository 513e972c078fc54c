"""Constants: rows that are there from the first time on.

Their updates stand at time 0, the first time, and at no other: `updates` has them only in an interval that contains 0,
a history always, and a snapshot at its `as_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mz_dagster.compute.algebra.frame import meta_columns, positional
from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.spark.expressions.pure import plain_type, restored
from mz_dagster.functions.plain import to_plain
from mz_dagster.plan.physical import ConstantRows
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def constant(session: SparkSession, node: ConstantRows, time: int = FIRST_TIME) -> DataFrame:
    """Returns the rows as updates at `time`, each with diff 1."""
    names = positional(node.relation_type.arity)
    types = [column.type for column in node.relation_type.columns]
    # They travel in the plain form: timestamps as Python objects would pass through the client's time zone.
    schema = [f"{name} {plain_type(type_).simpleString()}" for name, type_ in zip(names, types, strict=True)]
    rows = [(*(_cell(cell) for cell in row), time, 1, None) for row in node.rows]
    frame = session.createDataFrame(
        rows, ", ".join([*schema, "mz_timestamp bigint", "mz_diff bigint", "mz_error string"])
    )
    data = [restored(sf.col(name), type_).alias(name) for name, type_ in zip(names, types, strict=True)]
    return frame.select(*data, *meta_columns())


def _cell(cell: Literal) -> Any:
    if cell.type.kind in (Kind.FLOAT4, Kind.FLOAT8) and cell.value is not None:
        return float(cell.value)  # type: ignore[arg-type]
    return to_plain(cell.value, cell.type)
