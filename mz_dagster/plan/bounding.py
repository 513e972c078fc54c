"""Predicates that bound a column by constants: storage skips the files in which no row can pass them.

A *bound* compares a column with a constant; conjunctions and disjunctions of bounds say something, too. Which of a
plan's predicates may be asked of storage before anything else is decided here: those that stand before every step that
can fail, so that no row is left out whose evaluation would have been an error. Whether the rows of a file can pass is
decided in storage, by its statistics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mz_dagster.plan.rewriting import can_fail
from mz_dagster.plan.scalar import Call, ColumnRef, Literal, Scalar, columns_of
from mz_dagster.plan.types import Kind

_STRINGS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR})
_TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
#: Of which kinds Delta's statistics can be relied on, though they may be rounded: not numeric and floats.
BOUNDED_KINDS = frozenset(
    {
        *(Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
        *(*_STRINGS, Kind.UUID),
    }
)


@dataclass(frozen=True, slots=True)
class Bound:
    """Is `column operation constant`, the operation being `eq`, `lt`, `le`, `gt` or `ge`."""

    column: int
    operation: str
    constant: Literal


def bound_of(predicate: Scalar) -> Bound | None:
    """Returns the bound that `predicate` is, or None if it is none.

    Example:
        >>> from mz_dagster.plan.types import BOOL, INT4
        >>> found = bound_of(Call("lt_int4", (Literal(5, INT4), ColumnRef(2, INT4)), BOOL))
        >>> (found.column, found.operation, found.constant.value) if found else None
        (2, 'gt', 5)
    """
    if not isinstance(predicate, Call) or len(predicate.arguments) != 2:
        return None
    operation = predicate.function.partition("_")[0]
    left, right = predicate.arguments
    if isinstance(left, Literal):
        left, right, operation = right, left, _TURNED.get(operation, "")
    if operation not in _TURNED or not isinstance(left, ColumnRef) or not isinstance(right, Literal):
        return None
    kinds = {left.type.kind, right.type.kind}
    if not kinds <= BOUNDED_KINDS or not (len(kinds) == 1 or kinds <= _STRINGS) or right.value is None:
        return None
    return Bound(left.position, operation, right)


def bounds_columns(predicate: Scalar) -> bool:
    """Returns whether something follows for the columns of a row that passes `predicate`: they are within bounds."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return any(bounds_columns(one) for one in predicate.arguments)
    if isinstance(predicate, Call) and predicate.function == "or":
        return all(bounds_columns(one) for one in predicate.arguments)
    return bound_of(predicate) is not None


def leading_bounds(steps: Iterable[tuple[str, Scalar]], arity: int) -> tuple[Scalar, ...]:
    """Returns the filters among `steps` that bound the first `arity` columns and stand before all that can fail."""
    found: list[Scalar] = []
    for kind, scalar in steps:
        if can_fail(scalar):
            break
        if kind == "filter" and bounds_columns(scalar) and max(columns_of(scalar)) < arity:
            found.append(scalar)
    return tuple(found)
