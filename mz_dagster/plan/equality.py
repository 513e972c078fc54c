"""Equalities as a join can look them up: two scalars of one type that are equal exactly where the predicate is true.

Numerics compare by value whatever their scales. So the coarser side is brought to the scale of the finer one by
`widened_numeric`, which is NULL where the value has too many digits for that: it then equals nothing of that scale.
"""

from __future__ import annotations

from mz_dagster.functions import Cast, cast
from mz_dagster.scalars.scalar import Call, Scalar
from mz_dagster.scalars.types import TEXT, Kind

_STRINGS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR})


def is_equality(scalar: Scalar) -> bool:
    """Returns whether `scalar` compares two scalars for equality, NULL being equal to nothing."""
    return isinstance(scalar, Call) and scalar.function.startswith("eq_") and len(scalar.arguments) == 2


def equated(scalar: Scalar) -> tuple[Scalar, Scalar] | None:
    """Returns what `scalar`, an equality, says is equal, in one type; None if there is no such type.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import BOOL, numeric
        >>> price, limit = ColumnRef(0, numeric(2)), ColumnRef(1, numeric(0))
        >>> _, found = equated(Call("eq_numeric", (price, limit), BOOL))
        >>> found.function, str(found.type)
        ('widened_numeric', 'numeric(38,2)')
    """
    if not is_equality(scalar):
        return None
    assert isinstance(scalar, Call)
    left, right = scalar.arguments
    if left.type == right.type:
        return left, right
    if {left.type.kind, right.type.kind} <= _STRINGS:
        # As they are stored, strings of all kinds are equal where their texts are.
        return _as_text(left), _as_text(right)
    if left.type.kind is not Kind.NUMERIC or right.type.kind is not Kind.NUMERIC:
        return None
    if left.type.scale < right.type.scale:
        return Call("widened_numeric", (left,), right.type), right
    return left, Call("widened_numeric", (right,), left.type)


def _as_text(scalar: Scalar) -> Scalar:
    found = cast(scalar.type, TEXT)
    assert isinstance(found, Cast)
    return found.apply(scalar)
