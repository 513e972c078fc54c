"""Constants: rows that are there from the first time on.

Their updates stand at time 0, the first time, and at no other: `updates` has them only in an interval that contains 0,
a history always, and a snapshot at its `as_of`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from mz_dagster.compute.frame import meta_columns, positional, spark_type
from mz_dagster.plan.physical import ConstantRows
from mz_dagster.plan.scalar import Literal
from mz_dagster.plan.types import Kind
from mz_dagster.plan.values import to_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The first time of every timeline.
FIRST_TIME = 0

_EPOCH = datetime(1970, 1, 1)
_MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def constant(session: SparkSession, node: ConstantRows, time: int = FIRST_TIME) -> DataFrame:
    """Returns the rows as updates at `time`, each with diff 1."""
    names = positional(node.relation_type.arity)
    kinds = [column.type.kind for column in node.relation_type.columns]
    types = [spark_type(column.type) for column in node.relation_type.columns]
    # Timestamps travel as microseconds: as Python objects they would pass through the client's time zone.
    wire = ["bigint" if kind in _MOMENTS else type_ for kind, type_ in zip(kinds, types, strict=True)]
    schema = [f"{name} {type_}" for name, type_ in zip(names, wire, strict=True)]
    rows = [(*(_cell(cell) for cell in row), time, 1, None) for row in node.rows]
    frame = session.createDataFrame(
        rows, ", ".join([*schema, "mz_timestamp bigint", "mz_diff bigint", "mz_error string"])
    )
    data = [
        sf.timestamp_micros(sf.col(name)).cast(type_).alias(name) if kind in _MOMENTS else sf.col(name)
        for name, kind, type_ in zip(names, kinds, types, strict=True)
    ]
    return frame.select(*data, *meta_columns())


def _cell(cell: Literal) -> Any:
    if cell.type.kind in _MOMENTS and isinstance(cell.value, datetime):
        utc = cell.value.replace(tzinfo=None) - (cell.value.utcoffset() or timedelta())
        return (utc - _EPOCH) // timedelta(microseconds=1)
    if cell.type.kind in (Kind.FLOAT4, Kind.FLOAT8) and cell.value is not None:
        return float(cell.value)  # type: ignore[arg-type]
    return to_stored(cell.value, cell.type)
