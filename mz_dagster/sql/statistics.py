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

#: The least and the most digits behind the point of the variance of a numeric.
_LEAST_SCALE, _MOST_SCALE = 20, 37


def variance(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns a variance or standard deviation.

    Args:
        expansion: Of the call.
        value: The argument, a number.
    """
    name = expansion.record.scalar
    if value.type.kind in (Kind.FLOAT4, Kind.FLOAT8):
        sums = (expansion.count(value), expansion.exact_sum(value), expansion.exact_sum(value, value))
        return Call(f"{name}_float8", sums, FLOAT8)
    if value.type.kind is Kind.UNCONSTRAINED:
        return unconstrained_variance(expansion, name, value)
    value = value if value.type.kind is Kind.NUMERIC else implicit(value, numeric(0))
    count, total, squares = expansion.count(value), expansion.sum(value), _squares(expansion, value)
    scale = min(max(_LEAST_SCALE, squares.type.scale), _MOST_SCALE)
    return Call(f"{name}_numeric", (count, total, squares, Literal(scale, INT4)), numeric(scale))


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


def regression(expansion: Expansion, y: Scalar, x: Scalar) -> Scalar:
    """Returns a function of pairs.

    Args:
        expansion: Of the call.
        y: The first argument, a double.
        x: The second argument, a double.
    """
    # Pairs that are not complete do not count.
    pair = {"x": _beside(expansion, x, y), "y": _beside(expansion, y, x)}
    record = expansion.record
    if record.terms and not record.scalar:
        return expansion.float_average(pair[record.terms[0]])
    count = expansion.count(pair["x"])
    if not record.terms:
        return count
    exact = (expansion.exact_sum(*(pair[factor] for factor in factors)) for factors in record.terms)
    return Call(record.scalar, (count, *exact), FLOAT8)


def _beside(expansion: Expansion, value: Scalar, other: Scalar) -> Scalar:
    if not other.nullable:
        return value
    return If(expansion.operator("is not null", other), value, Literal(None, FLOAT8))
