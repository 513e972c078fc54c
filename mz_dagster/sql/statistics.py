"""Binds variances, deviations, covariances and regressions: scalars over counts and sums.

Integers and numerics are added up as numerics, as in PostgreSQL, and their squares, too. Floats, and all arguments of
the functions of two, are doubles whose sums, and sums of products, are exact; see `functions/aggregates/statistics.py`.
"""

from __future__ import annotations

from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import FLOAT8, INT4, INT8, Kind, numeric
from mz_dagster.sql.aggregate_expansion import Expansion
from mz_dagster.sql.coercions import implicit
from mz_dagster.sql.unconstrained_aggregates import unconstrained_variance

#: SQL names and what computes them; the type of the argument is appended.
VARIANCES = {
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
    "stddev": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
}
#: Of the sums of pairs, what each function of (y, x) is computed from, besides their number.
_SUMS = {
    "regr_sxx": ("regr_sxx_float8", ("x", "xx")),
    "regr_syy": ("regr_sxx_float8", ("y", "yy")),
    "regr_sxy": ("regr_sxy_float8", ("x", "y", "xy")),
    "covar_pop": ("covar_pop_float8", ("x", "y", "xy")),
    "covar_samp": ("covar_samp_float8", ("x", "y", "xy")),
    "corr": ("corr_float8", ("x", "y", "xx", "yy", "xy")),
    "regr_r2": ("regr_r2_float8", ("x", "y", "xx", "yy", "xy")),
    "regr_slope": ("regr_slope_float8", ("x", "y", "xx", "xy")),
    "regr_intercept": ("regr_intercept_float8", ("x", "y", "xx", "xy")),
}
REGRESSIONS = ("regr_count", "regr_avgx", "regr_avgy", *_SUMS)
#: The least and the most digits behind the point of the variance of a numeric.
_LEAST_SCALE, _MOST_SCALE = 20, 37


def variance(expansion: Expansion, name: str, value: Scalar) -> Scalar:
    """Returns a variance or standard deviation.

    Args:
        expansion: Of the call.
        name: One of `VARIANCES`.
        value: The argument, a number.
    """
    if value.type.kind in (Kind.FLOAT4, Kind.FLOAT8):
        sums = (expansion.count(value), expansion.exact_sum(value), expansion.exact_sum(value, value))
        return Call(f"{VARIANCES[name]}_float8", sums, FLOAT8)
    if value.type.kind is Kind.UNCONSTRAINED:
        return unconstrained_variance(expansion, VARIANCES[name], value)
    value = value if value.type.kind is Kind.NUMERIC else implicit(value, numeric(0))
    count, total, squares = expansion.count(value), expansion.sum(value), _squares(expansion, value)
    scale = min(max(_LEAST_SCALE, squares.type.scale), _MOST_SCALE)
    return Call(f"{VARIANCES[name]}_numeric", (count, total, squares, Literal(scale, INT4)), numeric(scale))


def _squares(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns the sum of the squares; of distinct values by their signs, each of which squares one to one."""
    square = expansion.operator("*", value, value)
    if not expansion.call.distinct:
        return expansion.sum(square)
    null, zero = Literal(None, square.type), Literal(0, INT8)
    parts: list[Scalar] = []
    for sign in (">=", "<"):
        part = expansion.sum(If(expansion.operator(sign, value, zero), square, null))
        absent = expansion.operator("is null", part)
        parts.append(If(absent, implicit(zero, square.type), part))
    return expansion.operator("+", *parts)


def regression(expansion: Expansion, name: str, y: Scalar, x: Scalar) -> Scalar:
    """Returns a function of pairs.

    Args:
        expansion: Of the call.
        name: One of `REGRESSIONS`.
        y: The first argument, a double.
        x: The second argument, a double.
    """
    # Pairs that are not complete do not count.
    pair = {"x": _beside(expansion, x, y), "y": _beside(expansion, y, x)}
    if name in ("regr_avgx", "regr_avgy"):
        return expansion.float_average(pair[name[-1]])
    count = expansion.count(pair["x"])
    if name == "regr_count":
        return count
    function, sums = _SUMS[name]
    exact = (expansion.exact_sum(*(pair[factor] for factor in factors)) for factors in sums)
    return Call(function, (count, *exact), FLOAT8)


def _beside(expansion: Expansion, value: Scalar, other: Scalar) -> Scalar:
    if not other.nullable:
        return value
    return If(expansion.operator("is not null", other), value, Literal(None, FLOAT8))
