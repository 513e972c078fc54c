"""Results of numeric functions whose arguments are known when a call is resolved: their digits decide on its type."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from mz_dagster.functions.numbers.digits import places_of
from mz_dagster.functions.numbers.numerics import EXACT
from mz_dagster.functions.references import PURE
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.scalars.types import Kind

#: A quotient is computed with one digit more than it has.
_MOST_DIGITS = 37


def known_result(implementation: str, signature: Sequence[Kind], values: Sequence[object]) -> Decimal | None:
    """Returns what a function over unconstrained numerics makes of values; None if one is not known, or it fails.

    Example:
        >>> known_result("multiply_unconstrained", (Kind.UNCONSTRAINED,) * 2, (Decimal("1.5"), 2))
        Decimal('3.0')
    """
    arguments: list[object] = []
    for kind, value in zip(signature, values, strict=True):
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            return None
        arguments.append(f"{Decimal(value):f}" if kind is Kind.UNCONSTRAINED else value)
    try:
        found: str = PURE[implementation](*arguments)
        return Decimal(found)
    except SqlFailure:
        return None


def fits(value: Decimal, scale: int) -> bool:
    """Returns whether a number has no more digits than a numeric of a scale.

    Example:
        >>> fits(Decimal("1.25"), 2), fits(Decimal("1.25"), 1), fits(Decimal("1e30"), 20)
        (True, False, False)
    """
    if not value.is_finite():
        return False
    trimmed = value.normalize(EXACT)
    return places_of(trimmed) <= scale and value.adjusted() + 1 + scale <= _MOST_DIGITS
