"""Functions of numerics that are computed to a number of digits, and functions of integers.

Each numeric result has the digits that PostgreSQL shows, at least 16 significant ones, as far as the scale of its type
holds them; it is computed with many more, and rounded half away from zero.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import partial

from mz_dagster.functions.numbers.digits import (
    PRECISION,
    exp_digits,
    ln_digits,
    log_digits,
    places_of,
    power_digits,
    power_weight,
    sqrt_digits,
)
from mz_dagster.functions.numbers.numerics import (
    ALL_DIGITS,
    EXACT,
    MOST_SHOWN,
    fitted,
    quotient_digits,
    rounded_root,
    scaled,
    unscaled,
)
from mz_dagster.functions.numbers.scales import at_least, greater_scale, no_scale
from mz_dagster.functions.registry import Named, SqlFailure, function
from mz_dagster.scalars.types import Kind

_LIMITS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
#: SQL's names of integer types.
INTEGER_NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint"}


@function(
    "sqrt_numeric",
    (Kind.NUMERIC,),
    Kind.NUMERIC,
    sql="sqrt",
    says="The square root.",
    example="sqrt(2::float8)",
    gives="1.4142135623730951",
    fallible=True,
    scale=at_least(18, sqrt_digits),
    scaled=True,
)
def sqrt(value: Decimal, scale: int) -> Decimal:
    """Returns the square root.

    Example:
        >>> sqrt(Decimal(2), 18)
        Decimal('1.414213562373095000')
    """
    if value < 0:
        raise SqlFailure("2201F", "cannot take square root of a negative number")
    if not value:
        return fitted(value, 0, scale)
    digits = sqrt_digits(value)
    return fitted(rounded_root(value, digits), digits, scale)


@function(
    "exp_numeric",
    (Kind.NUMERIC,),
    Kind.NUMERIC,
    sql="exp",
    says="e to the power of a number.",
    example="exp(1::float8)",
    gives="2.718281828459045",
    fallible=True,
    scale=at_least(18, exp_digits),
    scaled=True,
)
def exp(value: Decimal, scale: int) -> Decimal:
    """Returns e to the power of `value`."""
    if value > 100:
        raise SqlFailure("22003", "numeric field overflow")
    if value < -6000:
        return fitted(Decimal(0), 0, scale)
    with localcontext(Context(prec=PRECISION)):
        return fitted(value.exp(), exp_digits(value), scale)


def check_logarithm(value: Decimal) -> None:
    """Returns if a number has a logarithm."""
    if value == 0:
        raise SqlFailure("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise SqlFailure("2201E", "cannot take logarithm of a negative number")


@function(
    "ln_numeric",
    (Kind.NUMERIC,),
    Kind.NUMERIC,
    sql="ln",
    says="The natural logarithm.",
    example="ln(2::float8)",
    gives="0.6931471805599453",
    fallible=True,
    scale=at_least(30, ln_digits),
    scaled=True,
)
def ln(value: Decimal, scale: int) -> Decimal:
    """Returns the natural logarithm."""
    check_logarithm(value)
    with localcontext(Context(prec=PRECISION)):
        return fitted(value.ln(), ln_digits(value), scale)


@function(
    "log_numeric",
    (Kind.NUMERIC,),
    Kind.NUMERIC,
    sql="log",
    says="The logarithm to the base 10, or to the first argument.",
    example="log(100::float8)",
    gives="2",
    also=(Named("log10", "The logarithm to the base 10.", "log10(1000)", "3"),),
    fallible=True,
    scale=at_least(30, partial(log_digits, Decimal(10))),
    scaled=True,
)
def log10(value: Decimal, scale: int) -> Decimal:
    """Returns the logarithm to the base 10."""
    return log(Decimal(10), value, scale)


@function(
    "log_numeric_numeric",
    (Kind.NUMERIC, Kind.NUMERIC),
    Kind.NUMERIC,
    sql="log",
    fallible=True,
    scale=at_least(30, log_digits),
    scaled=True,
)
def log(base: Decimal, value: Decimal, scale: int) -> Decimal:
    """Returns the logarithm of `value` to a base.

    Example:
        >>> log(Decimal(2), Decimal(64), 20)
        Decimal('6.00000000000000000000')
    """
    check_logarithm(base)
    check_logarithm(value)
    if base == 1:
        raise SqlFailure("22012", "division by zero")
    with localcontext(Context(prec=PRECISION)):
        return fitted(value.ln() / base.ln(), log_digits(base, value), scale)


@function(
    "power_numeric",
    (Kind.NUMERIC, Kind.NUMERIC),
    Kind.NUMERIC,
    sql="^",
    says="The first number to the power of the second.",
    example="2.0 ^ 0.5",
    gives="1.4142135623730950",
    also=(
        Named("power", "The first number to the power of the second; also `pow`.", "power(2, 10)", "1024"),
        Named("pow", "The same as `power`.", "pow(9::float8, 0.5)", "3"),
    ),
    fallible=True,
    scale=at_least(16, power_digits),
    scaled=True,
)
def power(base: Decimal, exponent: Decimal, scale: int) -> Decimal:
    """Returns `base` to the power of `exponent`.

    Example:
        >>> power(Decimal("1.5"), Decimal(3), 16), power(Decimal(2), Decimal("0.5"), 16)
        (Decimal('3.3750000000000000'), Decimal('1.4142135623730950'))
    """
    whole = exponent == exponent.to_integral_value()
    if base == 0 and exponent < 0:
        raise SqlFailure("2201F", "zero raised to a negative power is undefined")
    if base < 0 and not whole:
        raise SqlFailure("2201F", "a negative number raised to a non-integer power yields a complex result")
    if base == 0:
        return fitted(Decimal(int(exponent == 0)), 16, scale)
    with localcontext(Context(prec=PRECISION)):
        weight = power_weight(base, exponent)
        if weight > 40:
            raise SqlFailure("22003", "numeric field overflow")
        if weight < -1001:
            return fitted(Decimal(0), 0, scale)
        shown = power_digits(base, exponent)
        return fitted(base ** (exponent.to_integral_value() if whole else exponent), shown, scale)


@function(
    "div_numeric",
    (Kind.NUMERIC, Kind.NUMERIC),
    Kind.NUMERIC,
    sql="div",
    says="The whole part of a quotient.",
    example="div(9, 4)",
    gives="2",
    fallible=True,
    scale=no_scale,
    scaled=True,
)
def div(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Returns the integer part of a quotient."""
    if right == 0:
        raise SqlFailure("22012", "division by zero")
    with localcontext(EXACT):
        return fitted(left // right, 0, scale)


@function(
    "gcd_numeric",
    (Kind.NUMERIC, Kind.NUMERIC),
    Kind.NUMERIC,
    sql="gcd",
    says="The greatest common divisor.",
    example="gcd(1071, 462)",
    gives="21",
    fallible=True,
    scale=greater_scale,
    scaled=True,
)
def gcd(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Returns the greatest common divisor, which numbers with decimal places have, too."""
    return fitted(scaled(math.gcd(unscaled(left, scale), unscaled(right, scale)), scale), scale, scale)


@function(
    "lcm_numeric",
    (Kind.NUMERIC, Kind.NUMERIC),
    Kind.NUMERIC,
    sql="lcm",
    says="The least common multiple.",
    example="lcm(1071, 462)",
    gives="23562",
    fallible=True,
    scale=greater_scale,
    scaled=True,
)
def lcm(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Returns the least common multiple."""
    return fitted(scaled(math.lcm(unscaled(left, scale), unscaled(right, scale)), scale), scale, scale)


@function(
    "factorial_int8",
    (Kind.INT8,),
    Kind.NUMERIC,
    sql="factorial",
    says="The product of the whole numbers up to one.",
    example="factorial(5)",
    gives="120",
    fallible=True,
    scale=no_scale,
    scaled=True,
)
def factorial(value: int, scale: int) -> Decimal:
    """Returns the factorial."""
    if value < 0:
        raise SqlFailure("22003", "factorial of a negative number is undefined")
    if value > 33:
        raise SqlFailure("22003", "numeric field overflow")
    return Decimal(math.factorial(value))


@function(
    "min_scale_numeric",
    (Kind.NUMERIC,),
    Kind.INT4,
    sql="min_scale",
    says="How many digits behind the point are needed.",
    example="min_scale(8.4100)",
    gives="2",
)
def min_scale(value: Decimal) -> int:
    """Returns how many decimal places a value needs."""
    return places_of(value.normalize(EXACT))


def bounded(value: int, kind: str) -> int:
    """Returns an integer that a type holds: `int2`, `int4` or `int8`."""
    if not -_LIMITS[kind] <= value < _LIMITS[kind]:
        raise SqlFailure("22003", f"{INTEGER_NAMES[kind]} out of range")
    return value


@function("gcd_int4", (Kind.INT4, Kind.INT4), Kind.INT4, sql="gcd", fallible=True)
def gcd_int4(left: int, right: int) -> int:
    """Returns the greatest common divisor."""
    return bounded(math.gcd(left, right), "int4")


@function("gcd_int8", (Kind.INT8, Kind.INT8), Kind.INT8, sql="gcd", fallible=True)
def gcd_int8(left: int, right: int) -> int:
    """Returns the greatest common divisor."""
    return bounded(math.gcd(left, right), "int8")


@function("lcm_int4", (Kind.INT4, Kind.INT4), Kind.INT4, sql="lcm", fallible=True)
def lcm_int4(left: int, right: int) -> int:
    """Returns the least common multiple."""
    return bounded(math.lcm(left, right), "int4")


@function("lcm_int8", (Kind.INT8, Kind.INT8), Kind.INT8, sql="lcm", fallible=True)
def lcm_int8(left: int, right: int) -> int:
    """Returns the least common multiple."""
    return bounded(math.lcm(left, right), "int8")


def _wrapped(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half & (1 << bits) - 1) - half


@function(
    "to_hex_int4",
    (Kind.INT4,),
    Kind.TEXT,
    sql="to_hex",
    says="The hexadecimal digits of an integer.",
    example="to_hex(2147483647)",
    gives="7fffffff",
)
def to_hex_int4(value: int) -> str:
    """Returns the hexadecimal digits of an integer's bits."""
    return f"{value % 2**32:x}"


@function("to_hex_int8", (Kind.INT8,), Kind.TEXT, sql="to_hex")
def to_hex_int8(value: int) -> str:
    """Returns the hexadecimal digits of an integer's bits."""
    return f"{value % 2**64:x}"


@function(
    "shift_left_int2",
    (Kind.INT2, Kind.INT4),
    Kind.INT2,
    sql="<<",
    says="Bits shifted to the left.",
    example="1 << 4",
    gives="16",
)
def shift_left_int2(value: int, count: int) -> int:
    """Returns the bits moved to the left, computed with 32 bits, as PostgreSQL's machines do."""
    return _wrapped(value << (count & 31), 16)


@function("shift_left_int4", (Kind.INT4, Kind.INT4), Kind.INT4, sql="<<")
def shift_left_int4(value: int, count: int) -> int:
    """Returns the bits moved to the left."""
    return _wrapped(value << (count & 31), 32)


@function("shift_left_int8", (Kind.INT8, Kind.INT4), Kind.INT8, sql="<<")
def shift_left_int8(value: int, count: int) -> int:
    """Returns the bits moved to the left."""
    return _wrapped(value << (count & 63), 64)


@function(
    "shift_right_int2",
    (Kind.INT2, Kind.INT4),
    Kind.INT2,
    sql=">>",
    says="Bits shifted to the right.",
    example="8 >> 2",
    gives="2",
)
@function("shift_right_int4", (Kind.INT4, Kind.INT4), Kind.INT4, sql=">>")
def shift_right(value: int, count: int) -> int:
    """Returns the bits moved to the right; the sign stays."""
    return value >> (count & 31)


@function("shift_right_int8", (Kind.INT8, Kind.INT4), Kind.INT8, sql=">>")
def shift_right_int8(value: int, count: int) -> int:
    """Returns the bits moved to the right; the sign stays."""
    return value >> (count & 63)


def check_buckets(count: int, *, equal: bool) -> None:
    """Returns if there are buckets, and bounds between which they lie."""
    if count <= 0:
        raise SqlFailure("2201G", "count must be greater than zero")
    if equal:
        raise SqlFailure("2201G", "lower bound cannot equal upper bound")


@function(
    "width_bucket_numeric",
    (Kind.NUMERIC, Kind.NUMERIC, Kind.NUMERIC, Kind.INT4),
    Kind.INT4,
    sql="width_bucket",
    says="In which of so many buckets of one width, between two bounds, a number lies.",
    example="width_bucket(5.35, 0.024, 10.06, 5)",
    gives="3",
    fallible=True,
)
def width_bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """Returns the number of the bucket, of `count` of equal width, that a value falls into.

    Example:
        >>> width_bucket(Decimal("5.35"), Decimal("0.024"), Decimal("10.06"), 5)
        3
    """
    check_buckets(count, equal=low == high)
    return bucket(value, low, high, count)


def bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """Returns the number of the bucket between bounds that differ.

    The quotient is rounded as any other before it is cut off, as PostgreSQL does, so that what lies just below the
    upper bound may be in a bucket behind the last.
    """
    if low > high:
        value, low, high = value.copy_negate(), low.copy_negate(), high.copy_negate()
    if value < low:
        return 0
    if value >= high:
        return bounded(count + 1, "int4")
    with localcontext(ALL_DIGITS):
        above, below = (value - low) * count, high - low
        digits = min(max(quotient_digits(above, below), places_of(above), places_of(below)), MOST_SHOWN)
        units = int(above.scaleb(digits + 1) // below)
    return bounded((units + 5) // 10 // 10**digits + 1, "int4")


@function(
    "width_bucket_float8",
    (Kind.FLOAT8, Kind.FLOAT8, Kind.FLOAT8, Kind.INT4),
    Kind.INT4,
    sql="width_bucket",
    fallible=True,
)
def width_bucket_float8(value: float, low: float, high: float, count: int) -> int:
    """Returns the number of the bucket, of `count` of equal width, that a value falls into."""
    if count <= 0:
        raise SqlFailure("2201G", "count must be greater than zero")
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        raise SqlFailure("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(low) or math.isinf(high):
        raise SqlFailure("2201G", "lower and upper bounds must be finite")
    check_buckets(count, equal=low == high)
    falling = low > high
    if value > low if falling else value < low:
        return 0
    if value <= high if falling else value >= high:
        return bounded(count + 1, "int4")
    above, below = count * abs(value - low), abs(high - low)
    if math.isinf(above) or math.isinf(below):
        # What PostgreSQL 15 makes of these is no bucket.
        raise SqlFailure("22003", "value out of range: overflow")
    return bounded(int(above / below + 1), "int4")
