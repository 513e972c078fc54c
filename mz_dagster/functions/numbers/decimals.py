"""Functions of numerics that are computed to a number of digits, and functions of integers.

Each numeric result has the digits that PostgreSQL shows, at least 16 significant ones, as far as the scale of its type
holds them; it is computed with many more, and rounded half away from zero.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

from mz_dagster.functions.numbers.numerics import (
    ALL_DIGITS,
    EXACT,
    MOST_SHOWN,
    fitted,
    quotient_digits,
    rounded_root,
    scaled,
    unscaled,
    weight,
)
from mz_dagster.functions.registry import SqlFailure, pure

#: Enough for 38 digits that are right, whatever is lost on the way.
_PRECISION = 60
_LIMITS = {"int2": 2**15, "int4": 2**31, "int8": 2**63}
#: SQL's names of integer types.
INTEGER_NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint"}


def places_of(value: Decimal) -> int:
    """Returns the decimal places of a finite number."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


@pure("sqrt_numeric", scaled=True)
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


def sqrt_digits(value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `sqrt(value)`."""
    return max(16 - ((weight(value) + 1) * 2 - 1), places_of(value))


@pure("exp_numeric", scaled=True)
def exp(value: Decimal, scale: int) -> Decimal:
    """Returns e to the power of `value`."""
    if value > 100:
        raise SqlFailure("22003", "numeric field overflow")
    if value < -6000:
        return fitted(Decimal(0), 0, scale)
    with localcontext(Context(prec=_PRECISION)):
        return fitted(value.exp(), exp_digits(value), scale)


def exp_digits(value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `exp(value)`."""
    return max(16 - int(float(value) * 0.434294481903252), places_of(value))


def check_logarithm(value: Decimal) -> None:
    """Returns if a number has a logarithm."""
    if value == 0:
        raise SqlFailure("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise SqlFailure("2201E", "cannot take logarithm of a negative number")


def logarithm_weight(value: Decimal) -> int:
    """Returns PostgreSQL's estimate of the decimal weight of a natural logarithm."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        return (value - 1).adjusted() if value != 1 else 0
    return int(math.log10(abs(float(value.ln(Context(prec=17))))))


@pure("ln_numeric", scaled=True)
def ln(value: Decimal, scale: int) -> Decimal:
    """Returns the natural logarithm."""
    check_logarithm(value)
    with localcontext(Context(prec=_PRECISION)):
        return fitted(value.ln(), ln_digits(value), scale)


def ln_digits(value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `ln(value)`, of a number that has one."""
    return max(16 - logarithm_weight(value), places_of(value))


@pure("log_numeric", scaled=True)
def log10(value: Decimal, scale: int) -> Decimal:
    """Returns the logarithm to the base 10."""
    return log(Decimal(10), value, scale)


@pure("log_numeric_numeric", scaled=True)
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
    with localcontext(Context(prec=_PRECISION)):
        return fitted(value.ln() / base.ln(), log_digits(base, value), scale)


def log_digits(base: Decimal, value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `log(base, value)`, of numbers that have one."""
    return max(16 - (logarithm_weight(value) - logarithm_weight(base)), places_of(base), places_of(value))


@pure("power_numeric", scaled=True)
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
    with localcontext(Context(prec=_PRECISION)):
        weight = _power_weight(base, exponent)
        if weight > 40:
            raise SqlFailure("22003", "numeric field overflow")
        if weight < -1001:
            return fitted(Decimal(0), 0, scale)
        shown = power_digits(base, exponent)
        return fitted(base ** (exponent.to_integral_value() if whole else exponent), shown, scale)


def power_digits(base: Decimal, exponent: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `power(base, exponent)`, of a base other than zero."""
    whole = exponent == exponent.to_integral_value()
    return max(16 if whole else 16 - int(_power_weight(base, exponent)), places_of(base), places_of(exponent))


def _power_weight(base: Decimal, exponent: Decimal) -> float:
    return float(exponent) * float(base.copy_abs().log10(Context(prec=_PRECISION)))


@pure("div_numeric", scaled=True)
def div(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Returns the integer part of a quotient."""
    if right == 0:
        raise SqlFailure("22012", "division by zero")
    with localcontext(EXACT):
        return fitted(left // right, 0, scale)


@pure("gcd_numeric", scaled=True)
def gcd(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Returns the greatest common divisor, which numbers with decimal places have, too."""
    return fitted(scaled(math.gcd(unscaled(left, scale), unscaled(right, scale)), scale), scale, scale)


@pure("lcm_numeric", scaled=True)
def lcm(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Returns the least common multiple."""
    return fitted(scaled(math.lcm(unscaled(left, scale), unscaled(right, scale)), scale), scale, scale)


@pure("factorial_int8", scaled=True)
def factorial(value: int, scale: int) -> Decimal:
    """Returns the factorial."""
    if value < 0:
        raise SqlFailure("22003", "factorial of a negative number is undefined")
    if value > 33:
        raise SqlFailure("22003", "numeric field overflow")
    return Decimal(math.factorial(value))


@pure("min_scale_numeric")
def min_scale(value: Decimal) -> int:
    """Returns how many decimal places a value needs."""
    return places_of(value.normalize(EXACT))


def bounded(value: int, kind: str) -> int:
    """Returns an integer that a type holds: `int2`, `int4` or `int8`."""
    if not -_LIMITS[kind] <= value < _LIMITS[kind]:
        raise SqlFailure("22003", f"{INTEGER_NAMES[kind]} out of range")
    return value


@pure("gcd_int4")
def gcd_int4(left: int, right: int) -> int:
    """Returns the greatest common divisor."""
    return bounded(math.gcd(left, right), "int4")


@pure("gcd_int8")
def gcd_int8(left: int, right: int) -> int:
    """Returns the greatest common divisor."""
    return bounded(math.gcd(left, right), "int8")


@pure("lcm_int4")
def lcm_int4(left: int, right: int) -> int:
    """Returns the least common multiple."""
    return bounded(math.lcm(left, right), "int4")


@pure("lcm_int8")
def lcm_int8(left: int, right: int) -> int:
    """Returns the least common multiple."""
    return bounded(math.lcm(left, right), "int8")


def _wrapped(value: int, bits: int) -> int:
    half = 1 << bits - 1
    return (value + half & (1 << bits) - 1) - half


@pure("shift_left_int2")
def shift_left_int2(value: int, count: int) -> int:
    """Returns the bits moved to the left, computed with 32 bits, as PostgreSQL's machines do."""
    return _wrapped(value << (count & 31), 16)


@pure("shift_left_int4")
def shift_left_int4(value: int, count: int) -> int:
    """Returns the bits moved to the left."""
    return _wrapped(value << (count & 31), 32)


@pure("shift_left_int8")
def shift_left_int8(value: int, count: int) -> int:
    """Returns the bits moved to the left."""
    return _wrapped(value << (count & 63), 64)


@pure("shift_right_int2", "shift_right_int4")
def shift_right(value: int, count: int) -> int:
    """Returns the bits moved to the right; the sign stays."""
    return value >> (count & 31)


@pure("shift_right_int8")
def shift_right_int8(value: int, count: int) -> int:
    """Returns the bits moved to the right; the sign stays."""
    return value >> (count & 63)


def check_buckets(count: int, *, equal: bool) -> None:
    """Returns if there are buckets, and bounds between which they lie."""
    if count <= 0:
        raise SqlFailure("2201G", "count must be greater than zero")
    if equal:
        raise SqlFailure("2201G", "lower bound cannot equal upper bound")


@pure("width_bucket_numeric")
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


@pure("width_bucket_float8")
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
