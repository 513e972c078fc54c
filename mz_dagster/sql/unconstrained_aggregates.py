"""Aggregates of unconstrained numerics: sums that are exact, and what is computed from them.

Distinct values are added up without zeros at their end; how many digits the sum shows is what all values say.
"""

from __future__ import annotations

from mz_dagster.functions.aggregates.algebra import AggregateFunction, Spelling
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BYTEA, INT4, INT8, UNCONSTRAINED
from mz_dagster.sql.aggregate_expansion import Expansion
from mz_dagster.sql.collected_calls import Core


def unconstrained_total(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns the sum or the average."""
    total = unconstrained_sum(expansion, value)
    if expansion.record.spelling is Spelling.SUM:
        return total
    count = expansion.count(value)
    average = expansion.operator("/", total, count)
    return If(expansion.operator("=", count, Literal(0, INT8)), Literal(None, UNCONSTRAINED), average)


def unconstrained_sum(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns the sum of a value, as the call says: of all, or of the distinct ones."""
    total = expansion.sum(value)
    if not expansion.call.distinct:
        return total
    scale = expansion.guarded(Call("scale_unconstrained", (value,), INT4))
    most = expansion.sink(Core(AggregateFunction.MAX, (scale,), INT4))
    shown = Call("coalesce", (most, Literal(0, INT4)), INT4, False)
    return Call("rescaled_unconstrained", (total, shown), UNCONSTRAINED)


def unconstrained_extreme(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns the least or the greatest value; of equal ones, the one with the least or the greatest scale."""
    ordered = Call("ordered_unconstrained", (value,), BYTEA, value.nullable)
    return Call("restored_unconstrained", (expansion.extreme(ordered),), UNCONSTRAINED)


def unconstrained_variance(expansion: Expansion, function: str, value: Scalar) -> Scalar:
    """Returns a variance or deviation, which a function computes from a count, the sum and that of the squares."""
    square = expansion.operator("*", value, value)
    sums = (expansion.count(value), expansion.sum(value), expansion.sum(square))
    return Call(f"{function}_unconstrained", sums, UNCONSTRAINED)
