"""Functions of numerics that Spark has, too, with the scales of their arguments: quotients, remainders, rounding.

A numeric has 38 digits at most, of which its type's scale says how many come after the point.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from mz_dagster.functions.registry import SqlFailure

#: Has more digits than any number here has: nothing is rounded by the way.
EXACT = Context(prec=2000)
#: Has more than any number without a scale has.
ALL_DIGITS = Context(prec=400_000, Emax=999_999, Emin=-999_999)
#: The most digits after the point of a quotient, root or the like.
MOST_SHOWN = 1000
_MOST = 10**38
#: How many significant digits a result that is cut off at its scale has at least, unless it is exact: as a real has.
LEAST_DIGITS = 6
#: More digits than those of any number that is stored.
_MOST_DIGITS = 1_000
#: What rounds a numeric, by the function's name.
ROUNDINGS = {"round": ROUND_HALF_UP, "trunc": ROUND_DOWN, "ceil": ROUND_CEILING, "floor": ROUND_FLOOR}


def whole_number(text: str) -> int:
    """Returns the integer that `text` spells in decimal; of very many digits, one beyond all types.

    Python reads at most 4,300 digits, and takes time by their square.

    Example:
        >>> whole_number("-0012"), whole_number("-" + "9" * 5000) == -(10**1000)
        (-12, True)
    """
    if len(text) <= _MOST_DIGITS:
        return int(text)
    digits = text.strip()
    is_negative = digits.startswith("-")
    digits = digits.lstrip("+-").lstrip("0") or "0"
    value = int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
    return -value if is_negative else value


def unscaled(value: Decimal, scale: int) -> int:
    """Returns a number of some decimals as that of units of the last."""
    return int(value.scaleb(scale, EXACT))


def scaled(units: int, scale: int) -> Decimal:
    """Returns what has so many units of the last of some decimals."""
    return Decimal(units).scaleb(-scale, ALL_DIGITS)


def to_scale(value: Decimal, scale: int) -> Decimal:
    """Returns a numeric rounded half away from zero to so many digits after the point; zero has no sign."""
    units = int(value.scaleb(scale, EXACT).to_integral_value(ROUND_HALF_UP, EXACT))
    if abs(units) >= _MOST:
        raise _overflow()
    return scaled(units, scale)


def exactly(value: Decimal, scale: int) -> Decimal | None:
    """Returns a numeric with so many digits after the point; None if it has others, or too many then.

    Example:
        >>> exactly(Decimal("1.50"), 1), exactly(Decimal("1.55"), 1)
        (Decimal('1.5'), None)
    """
    units = value.scaleb(scale, EXACT)
    return scaled(int(units), scale) if units == int(units) and abs(units) < _MOST else None


def fitted(value: Decimal, shown: int, scale: int) -> Decimal:
    """Returns `value` rounded to the digits shown, and to `scale`.

    Raises:
        SqlFailure: It does not fit in 38 digits, or `scale` would cut off so many that hardly any is left.

    Example:
        >>> fitted(Decimal("1.26"), 1, 2), fitted(Decimal("0.0000001"), 16, 7)
        (Decimal('1.30'), Decimal('1E-7'))
    """
    if value and value.adjusted() > 40:
        raise _overflow()
    wanted = rounded(value, max(0, shown), ROUND_HALF_UP)
    found = to_scale(wanted, scale)
    if found != wanted:
        _check_digits(found, scale)
    return found


def rounded_root(value: Decimal, digits: int) -> Decimal:
    """Returns the square root of a number that is not negative, rounded half up to so many digits after the point.

    Cut off exactly behind the next digit: a root rounded before may lie at a half that the exact one does not reach.

    Example:
        >>> rounded_root(Decimal("0.99999"), 5)
        Decimal('0.99999')
    """
    units = int(value.scaleb(2 * digits + 2, ALL_DIGITS).to_integral_value(ROUND_DOWN, ALL_DIGITS))
    return scaled((math.isqrt(units) + 5) // 10, digits)


def _check_digits(found: Decimal, scale: int) -> None:
    if abs(unscaled(found, scale)) < 10 ** (LEAST_DIGITS - 1):
        raise SqlFailure("22003", "value out of range: underflow")


def rounded(value: Decimal, digits: int, rounding: str) -> Decimal:
    """Returns a numeric rounded to so many digits after the point; before it, if they are negative.

    Example:
        >>> rounded(Decimal("-15.5"), -1, ROUND_HALF_UP), rounded(Decimal("1.29"), 1, ROUND_DOWN)
        (Decimal('-2E+1'), Decimal('1.2'))
    """
    return value.scaleb(digits, EXACT).to_integral_value(rounding, EXACT).scaleb(-digits, EXACT)


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """Returns what is left of a division whose quotient is an integer, with the sign of what is divided."""
    if not right:
        raise _by_zero()
    return EXACT.remainder(left, right)


def quotient(left: Decimal, right: Decimal, scales: tuple[int, int], scale: int) -> Decimal:
    """Returns a quotient, rounded half away from zero to the digits that PostgreSQL's `select_div_scale` shows.

    Args:
        left: What is divided.
        right: The divisor.
        scales: Those of the types of both.
        scale: That of the result's type; at least each of these.

    Raises:
        SqlFailure: For zero, a divisor of 38 digits, or what has more than 38 with one beyond `scale`; or if `scale`
            cuts off so many digits that hardly any is left.

    Example:
        >>> quotient(Decimal(2), Decimal("-3.0"), (0, 1), 20)
        Decimal('-0.66666666666666666667')
    """
    dividend, divisor = (abs(unscaled(one, own)) for one, own in zip((left, right), scales, strict=True))
    if not divisor:
        raise _by_zero()
    shift = scale + 1 - scales[0] + scales[1]
    units, rest = divmod(dividend * 10**shift, divisor)
    if divisor >= _MOST // 10 or units >= _MOST:
        raise _overflow()
    shown = max(quotient_digits(left, right), *scales)
    found = fitted(scaled(-units if (left < 0) != (right < 0) else units, scale + 1), min(shown, scale), scale)
    if rest or units % 10:
        _check_digits(found, scale)
    return found


def quotient_digits(left: Decimal, right: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of a quotient, at least."""
    return 16 - 4 * _quotient_weight(left.copy_abs(), right.copy_abs())


def _quotient_weight(above: Decimal, below: Decimal) -> int:
    """Returns PostgreSQL's estimate of the quotient's weight, in digits to the base 10,000."""
    first, second = weight(above), weight(below)
    return first - second - (int(above.scaleb(-4 * first, ALL_DIGITS)) <= int(below.scaleb(-4 * second, ALL_DIGITS)))


def weight(value: Decimal) -> int:
    """Returns the weight of the first digit to the base 10,000; 0 of zero."""
    return value.adjusted() // 4 if value else 0


def _overflow() -> SqlFailure:
    return SqlFailure("22003", "numeric field overflow")


def _by_zero() -> SqlFailure:
    return SqlFailure("22012", "division by zero")
