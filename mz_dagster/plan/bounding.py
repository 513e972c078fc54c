"""Predicates that bound a column by constants: storage skips the files in which no row can pass them.

A *bound* compares a column with a constant; conjunctions and disjunctions of bounds say something, too. Which of a
plan's predicates may be asked of storage before anything else is decided here: those that stand before every step that
can fail, so that no row is left out whose evaluation would have been an error. Whether the rows of a file can pass is
decided in storage, by its statistics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mz_dagster.functions.membership import AMONG, constants_of
from mz_dagster.plan.representations import sortable
from mz_dagster.plan.rewriting import can_fail
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar, columns_of
from mz_dagster.scalars.types import Kind

_STRINGS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR})
#: How a value compares with one that compares so with it.
TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
#: Of which kinds Delta's statistics can be relied on, though they may be rounded: not numeric and floats.
BOUNDED_KINDS = frozenset(
    {
        *(Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID),
        *_STRINGS,
    }
)


#: Of which kinds the plain forms are integers.
NUMBERED_KINDS = BOUNDED_KINDS - _STRINGS - {Kind.UUID}
#: Of which kinds values compare as what they are sorted by does (`representations.sortable`).
_SORTED_KINDS = BOUNDED_KINDS | {
    *(Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.UNCONSTRAINED, Kind.TIME, Kind.INTERVAL, Kind.BYTEA),
}


@dataclass(frozen=True, slots=True)
class Bound:
    """`column operation constant`, the operation being `eq`, `lt`, `le`, `gt` or `ge`."""

    column: int
    operation: str
    constant: Literal


def bound_of(predicate: Scalar) -> Bound | None:
    """Returns the bound that `predicate` is, or None if it is none.

    Example:
        >>> from mz_dagster.scalars.types import BOOL, INT4
        >>> found = bound_of(Call("lt_int4", (Literal(5, INT4), ColumnRef(2, INT4)), BOOL))
        >>> (found.column, found.operation, found.constant.value) if found else None
        (2, 'gt', 5)
    """
    if not isinstance(predicate, Call) or len(predicate.arguments) != 2:
        return None
    operation = predicate.function.partition("_")[0]
    left, right = predicate.arguments
    if isinstance(left, Literal):
        left, right, operation = right, left, TURNED.get(operation, "")
    if operation not in TURNED or not isinstance(left, ColumnRef) or not isinstance(right, Literal):
        return None
    kinds = {left.type.kind, right.type.kind}
    if not kinds <= BOUNDED_KINDS or not (len(kinds) == 1 or kinds <= _STRINGS) or right.value is None:
        return None
    return Bound(left.position, operation, right)


def bounds_among(predicate: Scalar) -> tuple[Bound, Bound] | None:
    """Returns the least and the greatest value that a column has which is among constants; None if nothing follows."""
    if not isinstance(predicate, Call) or predicate.function != AMONG:
        return None
    value, array = predicate.arguments
    constants = constants_of(predicate)
    if not isinstance(value, ColumnRef) or array.type.element is None or not constants:
        return None
    if value.type.kind not in BOUNDED_KINDS or value.type.kind is not array.type.element.kind:
        return None
    least, greatest = (Literal(find(constants), array.type.element) for find in (min, max))
    return Bound(value.position, "ge", least), Bound(value.position, "le", greatest)


def bounds_columns(predicate: Scalar) -> bool:
    """Returns whether something follows for the columns of a row that passes `predicate`: they are within bounds."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return any(bounds_columns(one) for one in predicate.arguments)
    if isinstance(predicate, Call) and predicate.function == "or":
        return all(bounds_columns(one) for one in predicate.arguments)
    return bound_of(predicate) is not None or bounds_among(predicate) is not None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`scalar operation other`, of a row: what some of its columns come to with what others do, as in `Bound`.

    Attributes:
        null_passes: Whether a row passes, too, of which `other` is NULL.
    """

    scalar: Scalar
    operation: str
    other: Scalar
    null_passes: bool = False


def leading_comparisons(steps: Iterable[tuple[str, Scalar]], arity: int) -> tuple[Comparison, ...]:
    """Returns what filters among `steps` ask of some of the first `arity` columns, compared with others of them.

    Each is there both ways, by what is sorted as the values are that it compares. Without a row that does not pass one,
    no error is lost if what it compares does not fail: these filters stand before all else that can.

    Example:
        >>> from mz_dagster.scalars.types import BOOL, INT4
        >>> less = Call("lt_int4", (ColumnRef(0, INT4), ColumnRef(1, INT4)), BOOL)
        >>> [(one.scalar.position, one.operation) for one in leading_comparisons([("filter", less)], 2)]
        [(0, 'lt'), (1, 'gt')]
    """
    found: list[Comparison] = []
    for kind, scalar in steps:
        if kind == "filter":
            found += _comparisons(scalar, arity)
        if can_fail(scalar):
            break
    return tuple(found)


def _comparisons(predicate: Scalar, arity: int) -> list[Comparison]:
    """Returns what a predicate compares; of `a < b OR b IS NULL` only what is compared with `b`."""
    nullable: ColumnRef | None = None
    match predicate:
        case Call("or", (Call() as one, Call("is_null", (ColumnRef() as nullable,)))):
            pass
        case Call("or", (Call("is_null", (ColumnRef() as nullable,)), Call() as one)):
            pass
        case Call():
            one = predicate
        case _:
            return []
    operation = one.function.partition("_")[0]
    if operation not in TURNED or len(one.arguments) != 2 or not _compares(*one.arguments, arity):
        return []
    left, right = map(sortable, one.arguments)
    both = [Comparison(left, operation, right), Comparison(right, TURNED[operation], left)]
    if nullable is None:
        return both
    return [replace(each, null_passes=True) for each in both if columns_of(each.other) == {nullable.position}]


def _compares(left: Scalar, right: Scalar, arity: int) -> bool:
    """Returns whether a row that does not pass a comparison is told by columns of two parts of it."""
    positions = columns_of(left), columns_of(right)
    if not all(positions) or not positions[0].isdisjoint(positions[1]) or max(max(one) for one in positions) >= arity:
        return False
    kinds = {left.type.kind, right.type.kind}
    return kinds <= _SORTED_KINDS and (len(kinds) == 1 or kinds <= _STRINGS - {Kind.CHAR})


def leading_bounds(steps: Iterable[tuple[str, Scalar]], arity: int) -> tuple[Scalar, ...]:
    """Returns the filters among `steps` that bound the first `arity` columns and stand before all that can fail."""
    found: list[Scalar] = []
    for kind, scalar in steps:
        if can_fail(scalar):
            break
        if kind == "filter" and bounds_columns(scalar) and max(columns_of(scalar)) < arity:
            found.append(scalar)
    return tuple(found)
