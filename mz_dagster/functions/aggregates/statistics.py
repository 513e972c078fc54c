"""Variances, deviations and regressions from sums that are exact.

PostgreSQL adds up as rows come, so the last digits of its results for floats depend on their order. Here the sums are
exact (`sums.py`), a result is computed from them as a fraction, and rounded once, or twice if it is a root: it depends
on the rows alone, and lies within the rounding of PostgreSQL's. As there, a value that is not finite makes the spread
of its side NaN, and a spread that is too large for a double is `22003 value out of range: overflow`.

With N rows and Sx, Sxx, ... the sums of x, x * x, ... the spread of x is Sxx - Sx * Sx / N.

Numerics: digits as PostgreSQL's `numeric_stddev_internal` chooses them, as far as the result's scale holds them.

Invariant: whatever the numbers are, there is a result or a `SqlFailure`. A step joins sums of different times, and what
comes of these, a spread below zero for example, cancels out later.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

from mz_dagster.functions.aggregates.sums import nearest, parsed
from mz_dagster.functions.numbers.numerics import rounded_root
from mz_dagster.functions.registry import SqlFailure, function
from mz_dagster.scalars.types import Kind

#: What a spread is if a value is not finite.
_NAN = math.nan


@function("var_pop_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def var_pop(n: int, total: str, squares: str) -> float | None:
    """Returns the variance of a population.

    Example:
        >>> var_pop(2, "3p0", "5p0")
        0.25
    """
    return _shared(_spread(n, total, total, squares), n)


@function("var_samp_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def var_samp(n: int, total: str, squares: str) -> float | None:
    """Returns the variance of a sample; none for a single value."""
    return _shared(_spread(n, total, total, squares), n - 1)


@function("stddev_pop_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def stddev_pop(n: int, total: str, squares: str) -> float | None:
    """Returns the standard deviation of a population."""
    return _root(var_pop(n, total, squares))


@function("stddev_samp_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def stddev_samp(n: int, total: str, squares: str) -> float | None:
    """Returns the standard deviation of a sample; none for a single value."""
    return _root(var_samp(n, total, squares))


@function("regr_sxx_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def spread(n: int, total: str, squares: str) -> float | None:
    """Returns the sum of the squared distances from the mean."""
    return _shared(_spread(n, total, total, squares), 1)


@function("regr_sxy_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def joint_spread(n: int, xs: str, ys: str, products: str) -> float | None:
    """Returns the sum of the products of the distances from the means."""
    return _shared(_spread(n, xs, ys, products), 1)


@function("covar_pop_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def covar_pop(n: int, xs: str, ys: str, products: str) -> float | None:
    """Returns the covariance of a population."""
    return _shared(_spread(n, xs, ys, products), n)


@function("covar_samp_float8", (Kind.INT8, Kind.TEXT, Kind.TEXT, Kind.TEXT), Kind.FLOAT8, fallible=True, internal=True)
def covar_samp(n: int, xs: str, ys: str, products: str) -> float | None:
    """Returns the covariance of a sample; none for a single pair."""
    return _shared(_spread(n, xs, ys, products), n - 1)


@function(
    "corr_float8",
    (Kind.INT8, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.FLOAT8,
    fallible=True,
    internal=True,
)
def corr(n: int, xs: str, ys: str, xxs: str, yys: str, xys: str) -> float | None:
    """Returns the correlation coefficient; none if x or y is the same in all pairs."""
    sxx, syy, sxy = _spread(n, xs, xs, xxs), _spread(n, ys, ys, yys), _spread(n, xs, ys, xys)
    if sxx == 0 or syy == 0:
        return None
    if isinstance(sxx, float) or isinstance(syy, float) or isinstance(sxy, float):
        return _NAN
    root = math.sqrt(nearest(abs(sxy * sxy / (sxx * syy))))
    return math.copysign(root, sxy) if sxy else 0.0


@function(
    "regr_r2_float8",
    (Kind.INT8, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.FLOAT8,
    fallible=True,
    internal=True,
)
def regr_r2(n: int, xs: str, ys: str, xxs: str, yys: str, xys: str) -> float | None:
    """Returns the square of the correlation coefficient; 1 if y is the same in all pairs, none if x is."""
    sxx, syy, sxy = _spread(n, xs, xs, xxs), _spread(n, ys, ys, yys), _spread(n, xs, ys, xys)
    if sxx == 0:
        return None
    if syy == 0:
        return 1.0
    if isinstance(sxx, float) or isinstance(syy, float) or isinstance(sxy, float):
        return _NAN
    return nearest(sxy * sxy / (sxx * syy))


@function(
    "regr_slope_float8",
    (Kind.INT8, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.FLOAT8,
    fallible=True,
    internal=True,
)
def regr_slope(n: int, xs: str, ys: str, xxs: str, xys: str) -> float | None:
    """Returns the slope of the line that fits best; none if it is vertical."""
    sxx, sxy = _spread(n, xs, xs, xxs), _spread(n, xs, ys, xys)
    if sxx == 0:
        return None
    return _NAN if isinstance(sxx, float) or isinstance(sxy, float) else nearest(sxy / sxx)


@function(
    "regr_intercept_float8",
    (Kind.INT8, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.TEXT),
    Kind.FLOAT8,
    fallible=True,
    internal=True,
)
def regr_intercept(n: int, xs: str, ys: str, xxs: str, xys: str) -> float | None:
    """Returns where the line that fits best meets the y-axis; none if it is vertical."""
    sxx, sxy, sx, sy = _spread(n, xs, xs, xxs), _spread(n, xs, ys, xys), parsed(xs), parsed(ys)
    if sxx == 0:
        return None
    if isinstance(sxx, float) or isinstance(sxy, float) or isinstance(sx, float) or isinstance(sy, float):
        return _NAN
    return nearest((sy - sx * sxy / sxx) / n)


def _spread(n: int, xs: str, ys: str, products: str) -> Fraction | float:
    """Returns the exact joint spread, or NaN."""
    x, y, xy = parsed(xs), parsed(ys), parsed(products)
    if n <= 0 or isinstance(x, float) or isinstance(y, float) or isinstance(xy, float):
        return _NAN
    found = xy - x * y / n
    for one in (x, y, found):
        # Too large for PostgreSQL's doubles on the way, whatever is made of it.
        nearest(one)
    return found


def _shared(total: Fraction | float, n: int) -> float | None:
    if n <= 0:
        return None
    return nearest(total / n) if isinstance(total, Fraction) else total


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(abs(value))


@function(
    "var_pop_numeric", (Kind.INT8, Kind.NUMERIC, Kind.NUMERIC, Kind.INT4), Kind.NUMERIC, fallible=True, internal=True
)
def numeric_var_pop(n: int, total: Decimal, squares: Decimal, scale: int) -> Decimal | None:
    """Returns the variance of a population of numerics, to `scale` digits.

    Example:
        >>> numeric_var_pop(2, Decimal(3), Decimal(5), 20)
        Decimal('0.25000000000000000000')
    """
    return _numeric(n, n, total, squares, scale, root=False)


@function(
    "var_samp_numeric", (Kind.INT8, Kind.NUMERIC, Kind.NUMERIC, Kind.INT4), Kind.NUMERIC, fallible=True, internal=True
)
def numeric_var_samp(n: int, total: Decimal, squares: Decimal, scale: int) -> Decimal | None:
    """Returns the variance of a sample of numerics; none for a single one."""
    return _numeric(n, n - 1, total, squares, scale, root=False)


@function(
    "stddev_pop_numeric", (Kind.INT8, Kind.NUMERIC, Kind.NUMERIC, Kind.INT4), Kind.NUMERIC, fallible=True, internal=True
)
def numeric_stddev_pop(n: int, total: Decimal, squares: Decimal, scale: int) -> Decimal | None:
    """Returns the standard deviation of a population of numerics."""
    return _numeric(n, n, total, squares, scale, root=True)


@function(
    "stddev_samp_numeric",
    (Kind.INT8, Kind.NUMERIC, Kind.NUMERIC, Kind.INT4),
    Kind.NUMERIC,
    fallible=True,
    internal=True,
)
def numeric_stddev_samp(n: int, total: Decimal, squares: Decimal, scale: int) -> Decimal | None:
    """Returns the standard deviation of a sample of numerics; none for a single one."""
    return _numeric(n, n - 1, total, squares, scale, root=True)


def _numeric(n: int, others: int, total: Decimal, squares: Decimal, scale: int, *, root: bool) -> Decimal | None:
    if others <= 0:
        return None
    with localcontext() as context:
        context.prec = 400
        above, below = n * squares - total * total, Decimal(n * others)
        if above <= 0:
            return Decimal(0).quantize(Decimal(1).scaleb(-scale))
        digits = max(_shown(above, below), -int(squares.as_tuple().exponent))
        value = (above / below).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
        if root:
            value = rounded_root(value, digits)
        value = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        if abs(value) >= Decimal(10) ** (38 - scale):
            raise SqlFailure("22003", "numeric field overflow")
        return value


def _shown(above: Decimal, below: Decimal) -> int:
    """Returns how many digits behind the point PostgreSQL's `select_div_scale` gives a quotient; 16 are significant."""
    (weight, first), (other_weight, other_first) = _leading(above), _leading(below)
    return max(0, 16 - 4 * (weight - other_weight - (first <= other_first)))


def _leading(value: Decimal) -> tuple[int, int]:
    """Returns the weight and the first digit of a number above zero to the base 10,000."""
    weight = value.adjusted() // 4
    return weight, int(value.scaleb(-4 * weight))
