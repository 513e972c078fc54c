"""Functions of unconstrained numerics: arithmetic, rounding, roots, powers and logarithms, as `numeric.c` has them.

Each has the one of numerics with a scale as its twin. A call means one of these if an argument is unconstrained, or if
the twin's result has no scale that is known; see `functions/resolution.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, localcontext

from mz_dagster.functions.function import Nullability
from mz_dagster.functions.numbers.decimals import bucket, check_buckets, check_logarithm
from mz_dagster.functions.numbers.digits import (
    exp_digits,
    ln_digits,
    log_digits,
    logarithm_weight,
    places_of,
    sqrt_digits,
)
from mz_dagster.functions.numbers.number_templates import numeric_text
from mz_dagster.functions.numbers.numerics import MOST_SHOWN, quotient_digits, rounded_root
from mz_dagster.functions.numbers.unconstrained import (
    EXACT,
    WHOLE_DIGITS,
    at_scale,
    comparable,
    overflow,
    text_of,
)
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

#: The most decimal places that a function shows, and that it is asked for.
_MOST_ASKED = 2000
#: How many significant digits are shown of what has no end, and to how many a logarithm is estimated beforehand.
_SIGNIFICANT, _ESTIMATED = 16, 8
#: The exponents of e from which on a power is too large.
_MOST_POWER = 3 * _MOST_ASKED
#: For what is not finite: NaN in place of an exception.
_QUIET = Context(traps=[])


def _by_zero() -> SqlFailure:
    return SqlFailure("22012", "division by zero")


# ---- arithmetic


@function("add_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.UNCONSTRAINED, sql="+", fallible=True)
def add(left: str, right: str) -> str:
    """Returns the sum.

    Example:
        >>> add("1.50", "2"), add("Infinity", "-Infinity")
        ('3.50', 'NaN')
    """
    return _computed(Context.add, left, right)


@function(
    "subtract_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.UNCONSTRAINED, sql="-", fallible=True
)
def subtract(left: str, right: str) -> str:
    """Returns the difference."""
    return _computed(Context.subtract, left, right)


@function(
    "multiply_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.UNCONSTRAINED, sql="*", fallible=True
)
def multiply(left: str, right: str) -> str:
    """Returns the product, with the decimal places of both factors.

    Example:
        >>> multiply("1.50", "-2.0"), multiply("Infinity", "0")
        ('-3.000', 'NaN')
    """
    return _computed(Context.multiply, left, right)


def _computed(operation: Callable[[Context, Decimal, Decimal], Decimal], left: str, right: str) -> str:
    """Returns what an operation makes of two numbers; what is not defined of infinities is NaN."""
    one, other = Decimal(left), Decimal(right)
    return text_of(operation(EXACT if one.is_finite() and other.is_finite() else _QUIET, one, other))


@function("divide_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.UNCONSTRAINED, sql="/", fallible=True)
def divide(left: str, right: str) -> str:
    """Returns the quotient, rounded to the digits of PostgreSQL's `select_div_scale`.

    Example:
        >>> divide("1", "3"), divide("12345678901234567890", "123"), divide("1", "Infinity")
        ('0.33333333333333333333', '100371373180768845', '0')
    """
    one, other = Decimal(left), Decimal(right)
    if not (one.is_finite() and other.is_finite()):
        return _quotient_with_special(one, other)
    if not other:
        raise _by_zero()
    return text_of(exact_quotient(one, other, max(quotient_digits(one, other), places_of(one), places_of(other))))


def exact_quotient(one: Decimal, other: Decimal, scale: int) -> Decimal:
    """Returns a quotient rounded half away from zero to so many decimal places."""
    scale = min(max(0, scale), MOST_SHOWN)
    with localcontext(EXACT):
        # Cut off one place behind the last one, what is exactly half is told from what is more by the rest alone.
        units = (one.copy_abs().scaleb(scale + 1)) // other.copy_abs()
        found = at_scale(units.scaleb(-scale - 1), scale)
    return found.copy_negate() if (one < 0) != (other < 0) and found else found


def _quotient_with_special(one: Decimal, other: Decimal) -> str:
    if one.is_nan() or other.is_nan() or (one.is_infinite() and other.is_infinite()):
        return "NaN"
    if other.is_infinite():
        return "0"
    if not other:
        raise _by_zero()
    return "Infinity" if (one > 0) == (other > 0) else "-Infinity"


@function(
    "modulo_unconstrained",
    (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED),
    Kind.UNCONSTRAINED,
    sql=("%", "mod"),
    fallible=True,
)
def modulo(left: str, right: str) -> str:
    """Returns what is left of a division whose quotient is an integer, with the sign of what is divided."""
    one, other = Decimal(left), Decimal(right)
    if one.is_nan() or other.is_nan():
        return "NaN"
    if not other:
        raise _by_zero()
    if one.is_infinite():
        return "NaN"
    if other.is_infinite():
        return left
    scale = max(places_of(one), places_of(other))
    return text_of(at_scale(EXACT.remainder(one, other), scale))


@function("div_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.UNCONSTRAINED, sql="div", fallible=True)
def div(left: str, right: str) -> str:
    """Returns the integer part of a quotient."""
    one, other = Decimal(left), Decimal(right)
    if not (one.is_finite() and other.is_finite()):
        return _quotient_with_special(one, other)
    if not other:
        raise _by_zero()
    return text_of(EXACT.divide_int(one, other))


@function("negate_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="-")
def negate(value: str) -> str:
    """Returns the number with its sign turned."""
    return text_of(Decimal(value).copy_negate())


@function("abs_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql=("@", "abs"))
def absolute(value: str) -> str:
    """Returns the number without its sign."""
    return value.lstrip("-")


@function("sign_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="sign")
def sign(value: str) -> str:
    """Returns the sign as -1, 0 or 1."""
    if value == "NaN":
        return value
    number = Decimal(value)
    return str((number > 0) - (number < 0))


@function("gcd_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.UNCONSTRAINED, sql="gcd")
def gcd(left: str, right: str) -> str:
    """Returns the greatest common divisor, which numbers with decimal places have, too."""
    return _of_units(math.gcd, left, right)


@function("lcm_unconstrained", (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED), Kind.UNCONSTRAINED, sql="lcm", fallible=True)
def lcm(left: str, right: str) -> str:
    """Returns the least common multiple."""
    return _of_units(math.lcm, left, right)


def _of_units(function: Callable[[int, int], int], left: str, right: str) -> str:
    one, other = Decimal(left), Decimal(right)
    if not (one.is_finite() and other.is_finite()):
        return "NaN"
    scale = max(places_of(one), places_of(other))
    units = function(int(one.scaleb(scale, EXACT)), int(other.scaleb(scale, EXACT)))
    return text_of(Decimal(units).scaleb(-scale, EXACT))


# ---- rounding and digits


@function("round_unconstrained_int4", (Kind.UNCONSTRAINED, Kind.INT4), Kind.UNCONSTRAINED, sql="round", fallible=True)
def rounded(value: str, digits: int) -> str:
    """Returns a number rounded half away from zero to so many digits after the point; before it, if negative.

    Example:
        >>> rounded("-15.5", -1), rounded("2.345", 2), rounded("2", 3), rounded("NaN", 1)
        ('-20', '2.35', '2.000', 'NaN')
    """
    return _rounded(value, digits, ROUND_HALF_UP)


@function("trunc_unconstrained_int4", (Kind.UNCONSTRAINED, Kind.INT4), Kind.UNCONSTRAINED, sql="trunc")
def truncated(value: str, digits: int) -> str:
    """Returns a number cut off after so many digits after the point; before it, if negative."""
    return _rounded(value, digits, ROUND_DOWN)


@function("round_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="round", fallible=True)
def to_integer(value: str) -> str:
    """Returns the nearest integer, of two the one farther from zero."""
    return _rounded(value, 0, ROUND_HALF_UP)


@function("trunc_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="trunc")
def without_fraction(value: str) -> str:
    """Returns the integer part."""
    return _rounded(value, 0, ROUND_DOWN)


@function("ceil_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql=("ceil", "ceiling"), fallible=True)
def ceiling(value: str) -> str:
    """Returns the least integer that is not less."""
    return _rounded(value, 0, ROUND_CEILING)


@function("floor_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="floor", fallible=True)
def floor(value: str) -> str:
    """Returns the greatest integer that is not greater."""
    return _rounded(value, 0, ROUND_FLOOR)


def _rounded(value: str, digits: int, rounding: str) -> str:
    number = Decimal(value)
    if not number.is_finite():
        return value
    return text_of(at_scale(number, min(max(digits, -_MOST_ASKED), _MOST_ASKED), rounding))


@function(
    "scale_unconstrained",
    (Kind.UNCONSTRAINED,),
    Kind.INT4,
    sql="scale",
    says="How many digits are behind the point.",
    example="scale(8.4100)",
    gives="4",
    nullability=Nullability.ALWAYS,
)
def scale(value: str) -> int | None:
    """Returns how many digits a number shows after the point; none of what is not finite."""
    number = Decimal(value)
    return places_of(number) if number.is_finite() else None


@function("min_scale_unconstrained", (Kind.UNCONSTRAINED,), Kind.INT4, sql="min_scale", nullability=Nullability.ALWAYS)
def min_scale(value: str) -> int | None:
    """Returns how many digits after the point a number needs; none of what is not finite."""
    return scale(comparable(value))


# ---- roots, powers, logarithms


def computed(value: Decimal, digits: int) -> str:
    """Returns the text of a result rounded to so many decimal places, as far as they are shown."""
    return text_of(at_scale(value, min(max(0, digits), MOST_SHOWN)))


def _working(digits: int, whole: float) -> Context:
    """Returns a context for results of so many decimal places and about so many digits before the point."""
    return Context(prec=max(40, int(digits) + int(whole) + 30), Emax=999_999, Emin=-999_999)


@function("sqrt_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="sqrt", fallible=True)
def sqrt(value: str) -> str:
    """Returns the square root.

    Example:
        >>> sqrt("2"), sqrt("Infinity")
        ('1.414213562373095', 'Infinity')
    """
    number = Decimal(value)
    if number.is_nan() or value == "Infinity":
        return value
    if number < 0:
        raise SqlFailure("2201F", "cannot take square root of a negative number")
    return text_of(rounded_root(number, min(sqrt_digits(number), MOST_SHOWN)))


@function("exp_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="exp", fallible=True)
def exp(value: str) -> str:
    """Returns e to the power of a number."""
    number = Decimal(value)
    if not number.is_finite():
        return "0" if value == "-Infinity" else value
    digits = min(exp_digits(max(Decimal(-4605), min(Decimal(4605), number))), MOST_SHOWN)
    digits = max(digits, places_of(number))
    if abs(number) >= _MOST_POWER:
        if number > 0:
            raise overflow()
        return computed(Decimal(0), digits)
    with localcontext(_working(digits, abs(float(number)))):
        return computed(number.exp(), digits)


@function("ln_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql="ln", fallible=True)
def ln(value: str) -> str:
    """Returns the natural logarithm."""
    number = Decimal(value)
    if number.is_nan():
        return value
    check_logarithm(number)
    if number.is_infinite():
        return value
    digits = ln_digits(number)
    with localcontext(_working(digits, 10)):
        return computed(number.ln(), digits)


@function("log_unconstrained", (Kind.UNCONSTRAINED,), Kind.UNCONSTRAINED, sql=("log", "log10"), fallible=True)
def log10(value: str) -> str:
    """Returns the logarithm to the base 10."""
    return log("10", value)


@function(
    "log_unconstrained_unconstrained",
    (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED),
    Kind.UNCONSTRAINED,
    sql="log",
    fallible=True,
)
def log(base: str, value: str) -> str:
    """Returns the logarithm of `value` to a base.

    Example:
        >>> log("2", "64"), log("Infinity", "10")
        ('6.0000000000000000', '0')
    """
    below, number = Decimal(base), Decimal(value)
    if below.is_nan() or number.is_nan():
        return "NaN"
    check_logarithm(below)
    check_logarithm(number)
    if below.is_infinite():
        return "NaN" if number.is_infinite() else "0"
    if number.is_infinite():
        return "Infinity"
    if below == 1:
        raise _by_zero()
    digits = log_digits(below, number)
    with localcontext(_working(digits, 20)):
        return computed(number.ln() / below.ln(), digits)


@function(
    "power_unconstrained",
    (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED),
    Kind.UNCONSTRAINED,
    sql=("^", "power", "pow"),
    fallible=True,
)
def power(base: str, exponent: str) -> str:
    """Returns `base` to the power of `exponent`.

    Example:
        >>> power("2", "100"), power("2", "-1"), power("1", "NaN")
        ('1267650600228229401496703205376.0000000000000000', '0.5000000000000000', '1')
    """
    below, above = Decimal(base), Decimal(exponent)
    if not (below.is_finite() and above.is_finite()):
        return _special_power(below, above)
    is_whole = above == at_scale(above, 0)
    if below == 0 and above < 0:
        raise SqlFailure("2201F", "zero raised to a negative power is undefined")
    if below < 0 and not is_whole:
        raise SqlFailure("2201F", "a negative number raised to a non-integer power yields a complex result")
    if below == 0:
        return computed(Decimal(int(above == 0)), 16)
    digits, weight = _power_digits(below, above)
    if weight + 1 < -digits:
        return computed(Decimal(0), digits)
    with localcontext(_working(digits, max(0.0, weight) + 20)):
        return computed(below ** (at_scale(above, 0) if is_whole else above), digits)


def _power_digits(below: Decimal, above: Decimal) -> tuple[int, float]:
    """Returns how many decimal places PostgreSQL shows of a power, and about which power of ten it is.

    Raises:
        SqlFailure: It is too large: of an exponent that is no integer of 32 bits, earlier.
    """
    shown = max(places_of(below), places_of(above))
    if above == at_scale(above, 0) and -(2**31) <= above < 2**31:
        weight = float(above) * float(below.copy_abs().log10(Context(prec=40)))
        if weight > WHOLE_DIGITS:
            raise overflow()
        return min(max(_SIGNIFICANT, shown), MOST_SHOWN), weight
    places = max(0, _ESTIMATED - logarithm_weight(below.copy_abs()))
    logarithm = at_scale(below.copy_abs().ln(_working(places, 10)), places)
    power = float(at_scale(EXACT.multiply(logarithm, above), places))
    if abs(power) >= _MOST_POWER:
        if power > 0:
            raise overflow()
        return MOST_SHOWN, -math.inf
    weight = power * 0.434294481903252
    return min(max(_SIGNIFICANT - int(weight), shown, 0), MOST_SHOWN), weight


def _special_power(below: Decimal, above: Decimal) -> str:
    """Returns a power of which one number is not finite, as POSIX has it."""
    if above == 0 or below == 1:
        return "1"
    if below.is_nan() or above.is_nan():
        return "NaN"
    if below.is_finite():
        if below == 0 and above < 0:
            raise SqlFailure("2201F", "zero raised to a negative power is undefined")
        if below.copy_abs() == 1:
            return "1"
        return "Infinity" if (below.copy_abs() > 1) == (above > 0) else "0"
    if below > 0:
        return "Infinity" if above > 0 else "0"
    if not above.is_infinite() and above != at_scale(above, 0):
        raise SqlFailure("2201F", "a negative number raised to a non-integer power yields a complex result")
    if above < 0:
        return "0"
    is_odd = not above.is_infinite() and EXACT.remainder(above, Decimal(2)) != 0
    return "-Infinity" if is_odd else "Infinity"


@function("to_char_unconstrained", (Kind.UNCONSTRAINED, Kind.TEXT), Kind.TEXT, sql="to_char", fallible=True)
def to_char(value: str, template: str) -> str:
    """Returns a number as a template says."""
    number = Decimal(value)
    if not number.is_finite():
        raise SqlFailure("0A000", "to_char of NaN and infinity is not supported")
    return numeric_text(number, template)


@function(
    "width_bucket_unconstrained",
    (Kind.UNCONSTRAINED, Kind.UNCONSTRAINED, Kind.UNCONSTRAINED, Kind.INT4),
    Kind.INT4,
    sql="width_bucket",
    fallible=True,
)
def width_bucket(value: str, low: str, high: str, count: int) -> int:
    """Returns the number of the bucket, of `count` of equal width, that a value falls into."""
    number, least, most = Decimal(value), Decimal(low), Decimal(high)
    check_buckets(count, equal=False)
    if number.is_nan() or least.is_nan() or most.is_nan():
        raise SqlFailure("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if least.is_infinite() or most.is_infinite():
        raise SqlFailure("2201G", "lower and upper bounds must be finite")
    check_buckets(count, equal=least == most)
    return bucket(number, least, most, count)
