"""Input functions that run in Python, on Spark's workers: those of `functions.references` for what Spark cannot read.

A worker gets their code by value, as it does in `compute/spark/expressions/pure.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import INTERVAL, TEXT, TIME, TIMETZ, Kind, ScalarType
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.late_pyspark import types as T
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

#: Kinds read in Python, with their input functions and what these return.
_READERS: dict[Kind, tuple[str, ScalarType]] = {
    Kind.JSON: ("cast_text_to_json", TEXT),
    Kind.JSONB: ("cast_text_to_jsonb", TEXT),
    Kind.UNCONSTRAINED: ("cast_text_to_unconstrained", TEXT),
    Kind.TIME: ("cast_text_to_time", TIME),
    Kind.TIMETZ: ("cast_text_to_timetz", TIMETZ),
    Kind.INTERVAL: ("cast_text_to_interval", INTERVAL),
}


def read(text: SparkColumn, kind: Kind) -> SparkColumn:
    """Returns the value that `text`, or a number, is of `kind`; NULL if it is none."""
    reader, type_ = _reader(kind)

    def value(cell: str | None) -> Any:
        return reader(cell)[0]

    return F.udf(value, type_, useArrow=True)(text.cast("string"))


def why_unread(text: SparkColumn, kind: Kind) -> SparkColumn:
    """Returns `<SQLSTATE> <message>`: why `text` is not read."""
    reader, _ = _reader(kind)

    def error(cell: str | None) -> str | None:
        why: str | None = reader(cell)[1]
        return why

    return F.udf(error, T.StringType(), useArrow=True)(text.cast("string"))


def _reader(kind: Kind) -> tuple[Callable[[str | None], tuple[Any, str | None]], T.DataType]:
    name, type_ = _READERS[kind]
    function, failure = PURE[name], SqlFailure

    def total(cell: str | None) -> tuple[Any, str | None]:
        try:
            return (None if cell is None else function(cell)), None
        except failure as error:
            return None, str(error)

    return total, spark_type(type_)
