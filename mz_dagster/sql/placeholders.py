"""Stand-ins for what an expression holds but its relation has no column for yet.

While the expressions of a SELECT are bound over its FROM clause, an aggregate, a window function or one that returns
rows is a column at a
position beyond all real ones; once the plan has the column, the reference is replaced. Invariant: no placeholder is
left in a finished plan, whose nodes refuse positions out of range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mz_dagster.scalars.scalar import ColumnRef, Scalar, rewrite, walk

#: From here on a position is that of an aggregate, of a window function, of a function that returns rows.
AGGREGATE_BASE = 1 << 20
WINDOW_BASE = 1 << 21
SET_BASE = 1 << 22


def is_aggregate(scalar: Scalar) -> bool:
    """Returns whether `scalar` stands for an aggregate."""
    return isinstance(scalar, ColumnRef) and AGGREGATE_BASE <= scalar.position < WINDOW_BASE


def is_window(scalar: Scalar) -> bool:
    """Returns whether `scalar` stands for a window function."""
    return isinstance(scalar, ColumnRef) and WINDOW_BASE <= scalar.position < SET_BASE


def is_set(scalar: Scalar) -> bool:
    """Returns whether `scalar` stands for the rows of a function."""
    return isinstance(scalar, ColumnRef) and scalar.position >= SET_BASE


def has_aggregate(scalars: Iterable[Scalar]) -> bool:
    """Returns whether any of `scalars` depends on an aggregate."""
    return any(is_aggregate(part) for scalar in scalars for part in walk(scalar))


def has_window(scalars: Iterable[Scalar]) -> bool:
    """Returns whether any of `scalars` depends on a window function."""
    return any(is_window(part) for scalar in scalars for part in walk(scalar))


def has_set(scalars: Iterable[Scalar]) -> bool:
    """Returns whether any of `scalars` depends on a function that returns rows."""
    return any(is_set(part) for scalar in scalars for part in walk(scalar))


def sets_in(scalars: Iterable[Scalar]) -> set[int]:
    """Returns which functions that return rows `scalars` depend on, by their numbers."""
    parts = (part for scalar in scalars for part in walk(scalar))
    return {part.position - SET_BASE for part in parts if isinstance(part, ColumnRef) and is_set(part)}


def replaced(scalar: Scalar, columns: Mapping[int, ColumnRef]) -> Scalar:
    """Returns `scalar` with the references at the positions in `columns` replaced."""
    return rewrite(scalar, lambda reference: columns.get(reference.position, reference))
