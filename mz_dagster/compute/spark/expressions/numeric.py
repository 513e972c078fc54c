"""Arithmetic on numerics of a fixed scale.

Exactness: a session has `allowPrecisionLoss` off, so sums, products and remainders are exact or NULL by their `try_`
form. Spark's quotient keeps too few digits; ours is a long division (see `_quotient`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import spark_type
from mz_dagster.compute.spark.expressions.emitted import (
    Invocation,
    Outcome,
    Share,
    all_present,
    decimal,
    failing,
    strict,
    try_cast,
)
from mz_dagster.functions.errors import DIVISION_BY_ZERO, NUMERIC_OVERFLOW, NUMERIC_UNDERFLOW, out_of_range
from mz_dagster.functions.numbers.numerics import LEAST_DIGITS
from mz_dagster.scalars.scalar import Literal
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

#: How many digits of a quotient are worked out at once: times a remainder below 10^19 these are an integer of 37.
_GROUP = 18


def rounded(value: Column, scale: int) -> Column:
    """Returns a decimal rounded half away from zero to `scale` digits; NULL where it does not fit."""
    return try_cast(value, f"decimal(38,{scale})")


@strict("add_numeric", "subtract_numeric", "multiply_numeric")
def _sum_or_product(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    name = invocation.function.partition("_")[0]
    operation = {"add": sf.try_add, "subtract": sf.try_subtract, "multiply": sf.try_multiply}[name]
    return failing(rounded(operation(left, right), invocation.type.scale), [left, right], NUMERIC_OVERFLOW)


@strict("modulo_numeric", heavy=True)
def _remainder(invocation: Invocation) -> Outcome:
    left, right = invocation.values
    zero = decimal("0", invocation.scalars[1].type.scale)
    value = rounded(sf.try_mod(left, sf.when(right != zero, right)), invocation.type.scale)
    overflow = sf.when(value.isNull() & all_present([left, right]), sf.lit(NUMERIC_OVERFLOW))
    return value, sf.when((right == zero) & left.isNotNull(), sf.lit(DIVISION_BY_ZERO)).otherwise(overflow)


def _negated(value: Column, scale: int) -> Column:
    # Spark's own negate and abs round to 34 digits.
    return rounded(sf.try_subtract(decimal("0", scale), value), scale)


def _absolute(value: Column, scale: int) -> Column:
    return sf.when(value < decimal("0", scale), _negated(value, scale)).otherwise(value)


@strict("negate_numeric")
def _negation(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return _negated(value, invocation.type.scale), None


@strict("abs_numeric", heavy=True)
def _magnitude(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return _absolute(value, invocation.type.scale), None


@strict("sign_numeric", heavy=True)
def _sign(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    zero = decimal("0", invocation.scalars[0].type.scale)
    sign = sf.when(value > zero, sf.lit(1)).when(value < zero, sf.lit(-1)).when(value == zero, sf.lit(0))
    return sign.cast("decimal(38,0)"), None


@strict("round_numeric")
def _round(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return failing(rounded(value, 0), [value], NUMERIC_OVERFLOW)


@strict("round_numeric_int4", heavy=True)
def _round_to(invocation: Invocation) -> Outcome:
    value = invocation.values[0]
    digits = _digits(invocation)
    if digits >= 0:
        return failing(rounded(value, digits), [value], NUMERIC_OVERFLOW)
    unit = decimal(f"1{'0' * -digits}" if digits > -38 else "0", 0)
    half = decimal(f"5{'0' * (-digits - 1)}", 0)
    whole = sf.try_add(rounded(sf.floor(_absolute(value, invocation.scalars[0].type.scale)), 0), half)
    near = sf.try_subtract(whole, sf.try_mod(whole, unit)) if digits > -38 else decimal("0", 0)
    negative = value < decimal("0", invocation.scalars[0].type.scale)
    near = rounded(sf.when(negative, _negated(near, 0)).when(value.isNotNull(), near), 0)
    return failing(near, [value], NUMERIC_OVERFLOW)


@strict("trunc_numeric", heavy=True)
def _truncation(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    negative = value < decimal("0", invocation.scalars[0].type.scale)
    return rounded(sf.when(negative, sf.ceil(value)).otherwise(sf.floor(value)), 0), None


@strict("trunc_numeric_int4", heavy=True)
def _truncation_to(invocation: Invocation) -> Outcome:
    value = invocation.values[0]
    digits, scale = _digits(invocation), invocation.scalars[0].type.scale
    if digits >= scale:
        return failing(rounded(value, digits), [value], NUMERIC_OVERFLOW)
    if digits <= -38:
        return sf.when(value.isNotNull(), decimal("0", 0)), None
    unit = decimal(f"1e{-digits}", max(0, digits))
    cut = sf.try_subtract(value, sf.try_mod(value, unit))
    return failing(rounded(cut, max(0, digits)), [value], NUMERIC_OVERFLOW)


@strict("ceil_numeric", heavy=True)
def _ceiling(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return failing(rounded(sf.ceil(value), 0), [value], NUMERIC_OVERFLOW)


@strict("floor_numeric", heavy=True)
def _floor(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return failing(rounded(sf.floor(value), 0), [value], NUMERIC_OVERFLOW)


def _digits(invocation: Invocation) -> int:
    scalar = invocation.scalars[1]
    assert isinstance(scalar, Literal)
    assert isinstance(scalar.value, int)
    return scalar.value


@strict("divide_numeric", heavy=True)
def _quotient(invocation: Invocation) -> Outcome:
    """Divides as on paper.

    With S digits after the point wanted, a and b are the integers of the operands' digits: the integer part is a div b,
    and each next group of k digits is (r * 10^k) div b for the remainder r so far. All of it is exact, as long as
    b * 10^k has at most 38 digits: k is 18 for divisors of at most 19 digits, or 1 for others; those of 38 are refused
    as overflow. The truncated quotient with S + 1 digits is then rounded, half away from zero, to the digits that
    PostgreSQL's `select_div_scale` shows.
    """
    left, right = invocation.values
    left_scale, right_scale = (scalar.type.scale for scalar in invocation.scalars)
    scale = invocation.type.scale
    left_zero, right_zero = decimal("0", left_scale), decimal("0", right_scale)
    above, below = invocation.share(_absolute(left, left_scale), _absolute(right, right_scale))
    dividend, divisor = invocation.share(
        _unscaled(above, left_scale), _unscaled(sf.when(below != right_zero, below), right_scale)
    )
    digits = scale + 1 - left_scale + right_scale
    quotient, rest = _long_division(dividend, divisor, digits, invocation.share)
    cut = (rest != decimal("0", 0)) | (sf.try_mod(quotient, decimal("10", 0)) != decimal("0", 0))
    unit = decimal(f"1e-{scale + 1}", scale + 1)
    quotient, shown = invocation.share(
        sf.try_multiply(quotient, unit),
        16 - 4 * _quotient_weight(_weight(dividend, left_scale), _weight(divisor, right_scale)),
    )
    (value,) = invocation.share(_rounded_to(quotient, shown, max(left_scale, right_scale), scale))
    underflow = sf.when(cut & (value < decimal(f"1e{LEAST_DIGITS - 1 - scale}", scale)), sf.lit(NUMERIC_UNDERFLOW))
    value = sf.when(underflow.isNull(), value)
    value = sf.when((left < left_zero) != (right < right_zero), _negated(value, scale)).otherwise(value)
    overflow = sf.when(value.isNull() & all_present([left, right]), sf.lit(NUMERIC_OVERFLOW))
    by_zero = sf.when((right == right_zero) & left.isNotNull(), sf.lit(DIVISION_BY_ZERO))
    return value, sf.coalesce(by_zero, underflow, overflow)


def _unscaled(value: Column, scale: int) -> Column:
    """Returns the integer of a decimal's digits.

    By its text: the product with 10^scale would be declared with digits after the point that it has not.
    """
    if scale == 0:
        return value
    return try_cast(sf.replace(value.cast("string"), sf.lit("."), sf.lit("")), "decimal(38,0)")


def _divided(dividend: Column, remainder: Column, divisor: Column) -> Column:
    return try_cast(sf.try_divide(sf.try_subtract(dividend, remainder), divisor), "decimal(38,0)")


def _whole(dividend: Column, divisor: Column) -> Column:
    """Returns dividend div divisor, of integers of any size.

    Spark's decimal quotient has room for 20 digits before the point: a longer one is worked out in two halves, the
    divisor then being below 10^19.
    """
    ten = decimal("1e19", 0)
    short = sf.when(divisor < ten, divisor)
    low = sf.try_mod(dividend, ten)
    high = _divided(dividend, low, ten)
    high_left = sf.try_mod(high, short)
    rest = sf.try_add(sf.try_multiply(high_left, ten), low)
    halves = sf.try_add(
        sf.try_multiply(_divided(high, high_left, short), ten), _divided(rest, sf.try_mod(rest, short), short)
    )
    return sf.when(divisor < ten, halves).otherwise(_divided(dividend, sf.try_mod(dividend, divisor), divisor))


def _long_division(dividend: Column, divisor: Column, digits: int, share: Share) -> tuple[Column, Column]:
    """Returns dividend * 10^digits div divisor, of integers, and whether there is a remainder: one that is not 0.

    NULL if the quotient has more than 38 digits. By groups of digits where these fit, else a digit at a time.
    """
    (remainder,) = share(sf.try_mod(dividend, divisor))
    quotient = _divided(dividend, remainder, sf.when(divisor < decimal("1e19", 0), divisor))
    rest = remainder
    for done in range(0, digits, _GROUP):
        ten = decimal(f"1e{min(_GROUP, digits - done)}", 0)
        shifted = sf.try_multiply(rest, ten)
        quotient, shifted, rest = share(quotient, shifted, sf.try_mod(shifted, divisor))
        quotient = sf.try_add(sf.try_multiply(quotient, ten), _divided(shifted, rest, divisor))
    (quotient,) = share(quotient)
    slow = sf.when(quotient.isNull(), _slow_division(dividend, remainder, divisor, digits))
    (slow,) = share(slow)
    return sf.coalesce(quotient, slow["q"]), sf.when(quotient.isNull(), slow["r"]).otherwise(rest)


def _slow_division(dividend: Column, remainder: Column, divisor: Column, digits: int) -> Column:
    """Returns the quotient `q`, and the remainder `r`, a digit at a time, for divisors below 10^37."""
    ten = decimal("10", 0)

    def next_digit(state: Column, _: Column) -> Column:
        shifted = sf.try_multiply(state["r"], ten)
        left = sf.try_mod(shifted, divisor)
        digit = sf.try_add(sf.try_multiply(state["q"], ten), _divided(shifted, left, divisor))
        return sf.struct(digit.alias("q"), left.alias("r"))

    start = sf.struct(_whole(dividend, divisor).alias("q"), remainder.alias("r"))
    steps = sf.sequence(sf.lit(1), sf.lit(digits))
    return sf.when(divisor < decimal("1e37", 0), sf.aggregate(steps, start, next_digit))


def _quotient_weight(above: Column, below: Column) -> Column:
    """Returns PostgreSQL's estimate of the quotient's weight, in digits to the base 10,000, from `_weight`'s codes."""
    ten_thousand = sf.lit(10000)
    # The weight is the code's quotient by 10,000, rounded down, and the first digit the remainder.
    smaller = sf.pmod(above, ten_thousand) <= sf.pmod(below, ten_thousand)
    weights = [((code - sf.pmod(code, ten_thousand)) / ten_thousand).cast("int") for code in (above, below)]
    return weights[0] - weights[1] - smaller.cast("int")


def _weight(digits: Column, scale: int) -> Column:
    """Returns 10,000 * w + d, for the first digit d other than 0 to the base 10,000 and its weight w; 0 for zero.

    Args:
        digits: The integer of a decimal's digits.
        scale: How many of them are after the point.
    """
    text = digits.cast("string")
    exponent = sf.length(text) - (1 + scale)
    beside = sf.pmod(exponent, sf.lit(4))
    first = sf.rpad(text, beside + 1, "0").cast("int")
    return sf.when(digits > decimal("0", 0), 2500 * (exponent - beside) + first).otherwise(sf.lit(0))


def _rounded_to(value: Column, shown: Column, least: int, most: int) -> Column:
    """Returns `value` rounded to `shown` digits, a multiple of 4, but to `least` at least and `most` at most."""
    target = f"decimal(38,{most})"
    result = sf.when(shown <= least, try_cast(rounded(value, least), target))
    for digits in range(0, most, 4):
        if digits > least:
            result = result.when(shown == digits, try_cast(rounded(value, digits), target))
    return result.otherwise(rounded(value, most))


@strict(*(f"cast_{source}_to_numeric" for source in ("int2", "int4", "int8", "numeric")))
def _to_numeric(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return failing(rounded(value, invocation.type.scale), [value], NUMERIC_OVERFLOW)


@strict("bounded_numeric")
def _bounded(invocation: Invocation) -> Outcome:
    value, scale = invocation.values[0], invocation.type.scale
    precision = invocation.scalars[1]
    assert isinstance(precision, Literal)
    assert isinstance(precision.value, int)
    limit = decimal(f"{Decimal(10) ** (precision.value - scale):f}", scale)
    bounded = sf.when(_absolute(value, scale) < limit, value)
    return failing(bounded, [value], NUMERIC_OVERFLOW)


@strict("cast_numeric_to_int2", "cast_numeric_to_int4", "cast_numeric_to_int8")
def _to_integer(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    whole = try_cast(rounded(value, 0), spark_type(invocation.type))
    return failing(whole, [value], out_of_range(invocation.type.kind))


@strict("cast_numeric_to_float4", "cast_numeric_to_float8")
def _to_float(invocation: Invocation) -> Outcome:
    (value,) = invocation.values
    return value.cast(spark_type(invocation.type)), None
