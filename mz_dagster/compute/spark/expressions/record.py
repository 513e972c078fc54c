"""Records: structs of the fields `f1`, `f2`, ...."""

from __future__ import annotations

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.emitted import Emitted, Invocation, Outcome, leftmost, lenient, strict
from mz_dagster.compute.spark.expressions.emitter import emit
from mz_dagster.functions.output import output_of
from mz_dagster.scalars.scalar import ColumnRef, Literal
from mz_dagster.storage.late_pyspark import functions as sf


@lenient("record")
def _record(invocation: Invocation) -> Outcome:
    fields = [value.alias(f"f{i}") for i, value in enumerate(invocation.values, 1)]
    return sf.struct(*fields).cast(spark_type(invocation.type)), None


@strict("field")
def _field(invocation: Invocation) -> Outcome:
    number = invocation.scalars[1]
    assert isinstance(number, Literal)
    assert isinstance(number.value, int)
    return invocation.values[0].getField(f"f{number.value + 1}"), None


@strict("record_output")
def _output(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    texts: list[Emitted] = []
    for number, (_, type_) in enumerate(invocation.scalars[0].type.fields, 1):
        texts.append(emit(output_of(ColumnRef(0, type_)), [value.getField(f"f{number}")]))
    error = leftmost([one.error for one in texts])
    return sf.when(value.isNotNull(), sf.array(*(one.value for one in texts)).cast("array<string>")), error
