"""generate_series over numbers: the elements as an array.

How many there are is reckoned first, in a type in which nothing overflows; the n-th is then `start + n * step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.emitted import Invocation, Outcome, all_present, call, number, strict
from mz_dagster.functions.arrays.limits import SERIES_ROWS, TOO_MANY_ROWS, ZERO_STEP
from mz_dagster.functions.errors import NUMERIC_OVERFLOW
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_KINDS = ("int4", "int8", "numeric")


@strict(*(f"generate_series_{kind}" for kind in _KINDS), *(f"generate_series_{kind}_by_1" for kind in _KINDS))
def _series(invocation: Invocation) -> Outcome:
    element = invocation.type.element
    assert element is not None
    # Integers of the kind themselves may be too small for what lies between two of them.
    wide = "bigint" if element.kind is Kind.INT4 else f"decimal(38,{element.scale})"
    counted = "bigint" if element.kind is Kind.INT4 else "decimal(10,0)"
    start, stop, *given = [value.try_cast(wide) for value in invocation.values]
    step = given[0] if given else number(1, wide)
    start, stop, step = invocation.share(start, stop, step)
    present = all_present(invocation.values)
    (count,) = invocation.share(_count(start, stop, step, number(SERIES_ROWS, counted)))
    elements = sf.transform(
        sf.array_repeat(sf.lit(0), sf.when(count <= SERIES_ROWS, count).cast("int")),
        lambda _, n: sf.try_add(start, sf.try_multiply(step, n.cast(counted)).try_cast(wide)).try_cast(
            spark_type(element)
        ),
    )
    error = (
        sf.when(present & (step == 0), sf.lit(ZERO_STEP))
        .when(present & count.isNull(), sf.lit(NUMERIC_OVERFLOW))
        .when(present & (count > SERIES_ROWS), sf.lit(TOO_MANY_ROWS))
    )
    return sf.when(present & (step != 0) & (count <= SERIES_ROWS), elements), error


def _count(start: Column, stop: Column, step: Column, limit: Column) -> Column:
    """Returns how many elements there are, one more than are allowed if there are more; NULL if the span overflows."""
    away = (stop != start) & ((stop > start) != (step > 0))
    span = sf.try_subtract(stop, start)
    most = sf.try_multiply(_magnitude(step), limit)
    # A product too large for its type is larger than any span.
    fits = sf.when(span.isNotNull(), sf.coalesce(_magnitude(span) < most, sf.lit(True)))
    steps = call("div", sf.when(fits, span), sf.when(step != 0, step))
    return sf.when(away, number(0, "bigint")).when(fits, steps + 1).when(~fits, SERIES_ROWS + 1)


def _magnitude(value: Column) -> Column:
    """Returns the absolute value; Spark's own rounds a decimal of 38 digits to 34."""
    return sf.when(value < 0, sf.try_subtract(sf.lit(0), value)).otherwise(value)
