"""What a session's settings promise to every operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from mz_dagster.compute.algebra.frame import ensure_exact
from mz_dagster.compute.spark.expressions import Emitter
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import INT4, TEXT, array_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_function_reads_the_input_beside_a_result_of_the_same_name(spark: SparkSession) -> None:
    """Spark binds a name in a lambda to what the same SELECT calls so, rather than to the input's column."""
    ensure_exact(spark)
    emitter = Emitter([sf.col("c0")])
    split = Call("string_to_array_by", (ColumnRef(0, TEXT), Literal(None, TEXT)), array_of(TEXT))
    values = (Call("left_text", (ColumnRef(0, TEXT), Literal(1, INT4)), TEXT), split)
    columns = [emitter.emit(one).value.alias(f"c{position}") for position, one in enumerate(values)]
    frame = emitter.stage(spark.createDataFrame([("a,b",)], "c0 string")).select(*columns)
    assert [tuple(row) for row in frame.collect()] == [("a", ["a", ",", "b"])]
