"""How many digits PostgreSQL shows of numeric results, which depends on the values of the arguments."""

from __future__ import annotations

import math
from decimal import Context, Decimal

from mz_dagster.functions.numbers.numerics import weight

#: Enough for 38 digits that are right, whatever is lost on the way.
PRECISION = 60


def places_of(value: Decimal) -> int:
    """Returns the decimal places of a finite number."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def sqrt_digits(value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `sqrt(value)`."""
    return max(16 - ((weight(value) + 1) * 2 - 1), places_of(value))


def exp_digits(value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `exp(value)`."""
    return max(16 - int(float(value) * 0.434294481903252), places_of(value))


def logarithm_weight(value: Decimal) -> int:
    """Returns PostgreSQL's estimate of the decimal weight of a natural logarithm."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        return (value - 1).adjusted() if value != 1 else 0
    return int(math.log10(abs(float(value.ln(Context(prec=17))))))


def ln_digits(value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `ln(value)`, of a number that has one."""
    return max(16 - logarithm_weight(value), places_of(value))


def log_digits(base: Decimal, value: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `log(base, value)`, of numbers that have one."""
    return max(16 - (logarithm_weight(value) - logarithm_weight(base)), places_of(base), places_of(value))


def power_digits(base: Decimal, exponent: Decimal) -> int:
    """Returns how many decimal places PostgreSQL shows of `power(base, exponent)`, of a base other than zero."""
    whole = exponent == exponent.to_integral_value()
    return max(16 if whole else 16 - int(power_weight(base, exponent)), places_of(base), places_of(exponent))


def power_weight(base: Decimal, exponent: Decimal) -> float:
    """Returns the decimal weight of a power, of a base other than zero."""
    return float(exponent) * float(base.copy_abs().log10(Context(prec=PRECISION)))
