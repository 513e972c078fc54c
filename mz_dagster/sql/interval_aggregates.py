"""Aggregates of intervals.

A sum is those of the three numbers, which can be maintained one by one; an average is PostgreSQL's quotient of the sum.
Extremes are those of bytes that have the order of intervals, so that of equal ones, `1 mon` and `30 days`, it does not
depend on the order of the rows which is shown.
"""

from __future__ import annotations

from mz_dagster.functions.aggregates.algebra import Spelling
from mz_dagster.scalars.scalar import Call, If, Literal, Scalar
from mz_dagster.scalars.types import BYTEA, FLOAT8, INT8, INTERVAL, numeric
from mz_dagster.sql.aggregate_expansion import Expansion
from mz_dagster.sql.coercions import implicit
from mz_dagster.sql.errors import UnsupportedForm


def interval_total(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns the sum or the average of an interval.

    Raises:
        UnsupportedForm: Of distinct ones.
    """
    call = expansion.call
    if call.distinct:
        raise UnsupportedForm(
            f"DISTINCT in {call.name}() of intervals is not supported",
            detail="Its sums are kept for single rows, not for distinct values.",
            hint="Select the distinct intervals in a derived table.",
            position=call.position,
        )
    parts = [Call(f"{name}_interval", (value,), INT8, value.nullable) for name in ("months", "days", "microseconds")]
    sums = [expansion.sum(part) for part in parts[:2]]
    sums.append(expansion.sum(implicit(parts[2], numeric(0))))
    total = Call("whole_interval", tuple(sums), INTERVAL)
    if expansion.record.spelling is Spelling.SUM:
        return total
    count = expansion.count(value)
    average = expansion.operator("/", total, implicit(count, FLOAT8))
    return If(expansion.operator("=", count, Literal(0, INT8)), Literal(None, INTERVAL), average)


def interval_extreme(expansion: Expansion, value: Scalar) -> Scalar:
    """Returns the least or the greatest interval."""
    ordered = Call("ordered_interval", (value,), BYTEA, value.nullable)
    return Call("restored_interval", (expansion.extreme(ordered),), INTERVAL)
