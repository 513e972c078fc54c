"""Arithmetic on integers and floating-point numbers, and on dates.

Exactness: integers never pass through a double (Spark's `/` would); every operation that can overflow is Spark's `try_`
form or is guarded by its operands, never by control flow alone. Floating-point results that overflow or underflow
are errors as in PostgreSQL, although Spark would go on with infinity or zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.emitted import (
    Invocation,
    Outcome,
    all_present,
    call,
    failing,
    number,
    strict,
    try_cast,
)
from mz_dagster.functions.errors import (
    DATE_OUT_OF_RANGE,
    DIVISION_BY_ZERO,
    FLOAT_OVERFLOW,
    FLOAT_UNDERFLOW,
    out_of_range,
)
from mz_dagster.functions.moments.calendar import FIRST_DAY, LAST_DAY
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

_TRIED = ("add", "subtract", "multiply")


@strict(*(f"{name}_{kind}" for name in _TRIED for kind in ("int2", "int4", "int8")))
def _integer(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    value: Column = getattr(sf, f"try_{invocation.function.partition('_')[0]}")(left, right)
    return failing(value, [left, right], out_of_range(invocation.type.kind))


@strict("divide_int2", "divide_int4", "divide_int8", heavy=True)
def _integer_quotient(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    type_ = spark_type(invocation.type)
    zero = number(0, type_)
    # The divisor is never 0 or -1: the least integer divided by -1 would overflow.
    safe = sf.when((right != 0) & (right != -1), right)
    value = sf.when(right == -1, sf.try_subtract(zero, left)).otherwise(call("div", left, safe))
    value = value.try_cast(type_)
    overflow = sf.when(value.isNull() & all_present([left, right]), sf.lit(out_of_range(invocation.type.kind)))
    return value, sf.when((right == 0) & left.isNotNull(), sf.lit(DIVISION_BY_ZERO)).otherwise(overflow)


@strict("modulo_int2", "modulo_int4", "modulo_int8", heavy=True)
def _integer_remainder(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    type_ = spark_type(invocation.type)
    # x % -1 is 0, which Spark's implementation need not be trusted with.
    safe = sf.when((right != 0) & (right != -1), right)
    value = sf.when((right == -1) & left.isNotNull(), number(0, type_)).otherwise(sf.try_mod(left, safe))
    return failing(value.cast(type_), [left, right], DIVISION_BY_ZERO)


@strict("negate_int2", "negate_int4", "negate_int8")
def _integer_negation(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    negated = sf.try_subtract(number(0, spark_type(invocation.type)), value)
    return failing(negated, [value], out_of_range(invocation.type.kind))


@strict("abs_int2", "abs_int4", "abs_int8", heavy=True)
def _integer_magnitude(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    negated = sf.try_subtract(number(0, spark_type(invocation.type)), value)
    return failing(sf.when(value < 0, negated).otherwise(value), [value], out_of_range(invocation.type.kind))


def is_infinite(value: Column) -> Column:
    """Returns whether a floating-point number is positive or negative infinity."""
    return sf.abs(value) == sf.lit(float("inf"))


@strict(
    *(f"{name}_{kind}" for name in ("add", "subtract", "multiply", "divide") for kind in ("float4", "float8")),
    heavy=True,
)
def _float(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    name = invocation.function.partition("_")[0]
    finite = ~is_infinite(left) & ~is_infinite(right)
    match name:
        case "add":
            value, underflow = left + right, None
        case "subtract":
            value, underflow = left - right, None
        case "multiply":
            value = left * right
            underflow = (left != 0) & (right != 0)
        case _:
            type_ = spark_type(invocation.type)
            divisor = sf.when(right != 0, right)
            # Only NaN may be divided by zero. Spark divides floats as doubles, which rounds to the same float.
            value = sf.when(sf.isnan(left) & right.isNotNull(), left).otherwise((left / divisor).cast(type_))
            finite = ~is_infinite(left)
            underflow = (left != 0) & ~is_infinite(right)
    overflow = is_infinite(value) & finite
    error = sf.when(overflow, sf.lit(FLOAT_OVERFLOW))
    if underflow is not None:
        error = error.when((value == 0) & underflow, sf.lit(FLOAT_UNDERFLOW))
    if name == "divide":
        error = sf.when((right == 0) & ~sf.isnan(left) & left.isNotNull(), sf.lit(DIVISION_BY_ZERO)).otherwise(error)
    return sf.when(error.isNull(), value), error


@strict("negate_float4", "negate_float8")
def _float_negation(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return sf.negate(value), None


@strict("abs_float4", "abs_float8")
def _float_magnitude(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return sf.abs(value), None


@strict("round_float8")
def _float_round(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return sf.rint(value), None


def _ceiling(value: Column) -> Column:
    # Spark's own goes through a bigint, which saturates. The sum keeps the sign of zero.
    near = sf.rint(value)
    return sf.when(near < value, near + 1.0).otherwise(near)


def _floor(value: Column) -> Column:
    near = sf.rint(value)
    return sf.when(near > value, near - 1.0).otherwise(near)


@strict("ceil_float8", heavy=True)
def _float_ceiling(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    # -1 < x < -0.5 rounds to -1, and -1 + 1 is +0; the ceiling is -0.
    return sf.when((value < 0) & (value > -1), sf.lit(-0.0)).otherwise(_ceiling(value)), None


@strict("floor_float8", heavy=True)
def _float_floor(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return sf.when((value > 0) & (value < 1), sf.lit(0.0)).otherwise(_floor(value)), None


@strict("trunc_float8", heavy=True)
def _float_truncation(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    small = sf.when((value < 0) & (value > -1), sf.lit(-0.0)).when((value > 0) & (value < 1), sf.lit(0.0))
    return sf.coalesce(small, sf.when(value < 0, _ceiling(value)).otherwise(_floor(value))), None


@strict("sign_float8", heavy=True)
def _float_sign(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    sign = sf.when(sf.isnan(value), sf.lit(0.0)).when(value > 0, sf.lit(1.0)).when(value < 0, sf.lit(-1.0))
    return sf.when(value.isNotNull(), sf.coalesce(sign, sf.lit(0.0))), None


@strict("sqrt_float8", heavy=True)
def _root(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    error = sf.when(value < 0, sf.lit("2201F cannot take square root of a negative number"))
    return sf.when(value < 0, sf.lit(None)).otherwise(sf.sqrt(value)), error


@strict("add_date_int4", "add_int4_date", "subtract_date_int4", heavy=True)
def _shifted_date(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    day, days = (right, left) if invocation.function == "add_int4_date" else (left, right)
    shift = days.cast("bigint")
    target = sf.unix_date(day).cast("bigint") + (-shift if invocation.function == "subtract_date_int4" else shift)
    inside = sf.when((target >= FIRST_DAY) & (target <= LAST_DAY), target).cast("int")
    return failing(sf.date_from_unix_date(inside), [left, right], DATE_OUT_OF_RANGE)


@strict("subtract_date_date")
def _days_between(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    return sf.unix_date(left) - sf.unix_date(right), None


@strict("cast_float8_to_float4", heavy=True)
def _narrowed(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    narrow = value.cast("float")
    error = sf.when(is_infinite(narrow) & ~is_infinite(value), sf.lit(FLOAT_OVERFLOW)).when(
        (narrow == 0) & (value != 0), sf.lit(FLOAT_UNDERFLOW)
    )
    return sf.when(error.isNull(), narrow), error


@strict(*(f"cast_{f}_to_{i}" for f in ("float4", "float8") for i in ("int2", "int4", "int8")), heavy=True)
def _rounded_to_integer(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    kind = invocation.type.kind
    bits = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}[kind]
    near = sf.rint(value.cast("double"))
    # Spark's cast saturates at 2^63; NaN is greater than every number.
    inside = sf.when((near >= -(2.0**bits)) & (near < 2.0**bits), near)
    return failing(try_cast(inside, spark_type(invocation.type)), [value], out_of_range(kind))
