"""Input functions that run in Python, on Spark's workers: those of `input_functions` for what Spark cannot read.

A worker gets their code by value, as it does in `compute/spark/expressions/pure.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import INT4, INT8, Kind, ScalarType, array_of, dimensioned
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.late_pyspark import types as T
from mz_dagster.storage.source.input_functions import reader_of
from mz_dagster.storage.spark.schema import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

#: What moments are in their plain form.
_NUMBERED = {Kind.DATE: INT4, Kind.TIMESTAMP: INT8, Kind.TIMESTAMPTZ: INT8}


def read(text: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns the value that `text`, or a number, is of a type; NULL if it is none."""
    reader = _total(type_)

    def value(cell: str | None) -> Any:
        return reader(cell)[0]

    found = F.udf(value, spark_type(_returned(type_)), useArrow=True)(text.cast("string"))
    return found if _returned(type_) == type_ else _restored(found, type_)


def why_unread(text: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns `<SQLSTATE> <message>`: why `text` is not read."""
    reader = _total(type_)

    def error(cell: str | None) -> str | None:
        why: str | None = reader(cell)[1]
        return why

    return F.udf(error, T.StringType(), useArrow=True)(text.cast("string"))


def _total(type_: ScalarType) -> Callable[[str | None], tuple[Any, str | None]]:
    reader, failure = reader_of(type_), SqlFailure

    def total(cell: str | None) -> tuple[Any, str | None]:
        try:
            return (None if cell is None else reader(cell)), None
        except failure as error:
            return None, str(error)

    return total


def _returned(type_: ScalarType) -> ScalarType:
    """Returns the type of what a worker returns: the plain form of arrays of moments is one of numbers."""
    number = None if type_.array_element is None else _NUMBERED.get(type_.array_element.kind)
    if number is None:
        return type_
    return array_of(number) if type_.kind is Kind.ARRAY else dimensioned(number)


def _restored(value: SparkColumn, type_: ScalarType) -> SparkColumn:
    """Returns the array of moments whose numbers a worker returned."""
    assert type_.array_element is not None
    kind = type_.array_element.kind

    def moment(number: SparkColumn) -> SparkColumn:
        if kind is Kind.DATE:
            return F.date_from_unix_date(number)
        found = F.timestamp_micros(number)
        return found if kind is Kind.TIMESTAMPTZ else found.cast("timestamp_ntz")

    if type_.kind is Kind.ARRAY:
        return F.transform(value, moment)
    parts = [F.transform(value["f1"], moment).alias("f1"), value["f2"].alias("f2"), value["f3"].alias("f3")]
    return F.when(value.isNotNull(), F.struct(*parts))
