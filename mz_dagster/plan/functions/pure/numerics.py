"""Functions of numerics that Spark has, too, with the scales of their arguments: quotients, remainders, rounding.

A numeric has 38 digits at most, of which its type's scale says how many come after the point.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from mz_dagster.plan.functions.pure.registry import SqlFailure

_DIGITS = Context(prec=200)
_MOST = 10**38
#: What rounds a numeric, by the function's name.
ROUNDINGS = {"round": ROUND_HALF_UP, "trunc": ROUND_DOWN, "ceil": ROUND_CEILING, "floor": ROUND_FLOOR}


def unscaled(value: Decimal, scale: int) -> int:
    """Returns a number of some decimals as that of units of the last."""
    return int(value.scaleb(scale, _DIGITS))


def scaled(units: int, scale: int) -> Decimal:
    """Returns what has so many units of the last of some decimals."""
    return Decimal(units).scaleb(-scale, _DIGITS)


def to_scale(value: Decimal, scale: int) -> Decimal:
    """Returns a numeric rounded half away from zero to so many digits after the point; zero has no sign."""
    units = int(value.scaleb(scale, _DIGITS).to_integral_value(ROUND_HALF_UP, _DIGITS))
    if abs(units) >= _MOST:
        raise _overflow()
    return scaled(units, scale)


def rounded(value: Decimal, digits: int, rounding: str) -> Decimal:
    """Returns a numeric rounded to so many digits after the point; before it, if they are negative.

    Example:
        >>> rounded(Decimal("-15.5"), -1, ROUND_HALF_UP), rounded(Decimal("1.29"), 1, ROUND_DOWN)
        (Decimal('-2E+1'), Decimal('1.2'))
    """
    return value.scaleb(digits, _DIGITS).to_integral_value(rounding, _DIGITS).scaleb(-digits, _DIGITS)


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """Returns what is left of a division whose quotient is an integer, with the sign of what is divided."""
    if not right:
        raise _by_zero()
    return _DIGITS.remainder(left, right)


def quotient(left: Decimal, right: Decimal, scales: tuple[int, int], scale: int) -> Decimal:
    """Returns a quotient, rounded half away from zero to the digits that PostgreSQL's `select_div_scale` shows.

    Args:
        left: What is divided.
        right: The divisor.
        scales: Those of the types of both.
        scale: That of the result's type; at least each of these.

    Raises:
        SqlFailure: For zero, a divisor of 38 digits, or what has more than 38 with one beyond `scale`.

    Example:
        >>> quotient(Decimal(2), Decimal("-3.0"), (0, 1), 20)
        Decimal('-0.66666666666666666667')
    """
    dividend, divisor = (abs(unscaled(one, own)) for one, own in zip((left, right), scales, strict=True))
    if not divisor:
        raise _by_zero()
    shift = scale + 1 - scales[0] + scales[1]
    units = dividend * 10**shift // divisor
    if divisor >= _MOST // 10 or units >= _MOST:
        raise _overflow()
    shown = min(scale, max(16 - 4 * _quotient_weight(left.copy_abs(), right.copy_abs()), *scales))
    value = rounded(scaled(units, scale + 1), shown, ROUND_HALF_UP)
    return to_scale(value.copy_negate() if (left < 0) != (right < 0) else value, scale)


def _quotient_weight(above: Decimal, below: Decimal) -> int:
    """Returns PostgreSQL's estimate of the quotient's weight, in digits to the base 10,000."""
    (first, first_digit), (second, second_digit) = _leading(above), _leading(below)
    return first - second - (first_digit <= second_digit)


def _leading(value: Decimal) -> tuple[int, int]:
    """Returns the weight of the first digit to the base 10,000, and the digit; 0 and 0 of zero."""
    if not value:
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(value.scaleb(-4 * weight, _DIGITS))


def _overflow() -> SqlFailure:
    return SqlFailure("22003", "numeric field overflow")


def _by_zero() -> SqlFailure:
    return SqlFailure("22012", "division by zero")
