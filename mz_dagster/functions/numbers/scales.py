"""The rules for the scale of numeric results: what a function's record says of its result beside the kind.

Those of arithmetic and rounding are in `functions/table.py`. Numerics have PostgreSQL's digits, as far as the result's
scale holds them:

| operation | scale of the result |
|---|---|
| `sqrt`, `exp` | 18, or the argument's if that is greater; of literals as many as PostgreSQL shows, if these are more |
| `ln`, `log` | 30, or the greatest of the arguments'; of literals likewise |
| `power` | 16, or the greatest of the arguments'; of literals likewise |
| `div`, `factorial`; `gcd`, `lcm` | 0; the greater scale |
| `to_number` | the digits behind the template's point; it must be a literal |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import ScaleRule
from mz_dagster.functions.numbers.numerics import quotient_digits
from mz_dagster.scalars.types import ScalarType


def digits_of_known(least: int, values: Sequence[object], shown: Callable[..., int] | None, most: int = 38) -> int:
    """Returns the scale of a result: `least`, or what `shown` says of its arguments if all are known to be numbers.

    What `shown` raises is said when the result is computed.
    """
    if (
        shown is None
        or not values
        or not all(isinstance(one, int | Decimal) and not isinstance(one, bool) for one in values)
    ):
        return least
    try:
        return min(most, max(least, shown(*(Decimal(str(one)) for one in values))))
    except (ArithmeticError, ValueError):
        return least


def greater_scale(types: Sequence[ScalarType], _: Sequence[object]) -> int | Failure:
    """Returns the greater scale of the arguments'."""
    return max(one.scale for one in types)


def sum_of_scales(types: Sequence[ScalarType], _: Sequence[object]) -> int | Failure:
    """Returns the sum of the arguments' scales, or why there is none."""
    scale = sum(one.scale for one in types)
    if scale > 38:
        return Failure(
            "0A000",
            f"the product's scale, {scale}, exceeds 38 digits",
            "Cast a factor to a numeric of smaller scale, or round it.",
        )
    return scale


#: The least scale of a quotient.
QUOTIENT_SCALE = 20


def quotient_scale(types: Sequence[ScalarType], values: Sequence[object]) -> int | Failure:
    """Returns the scale of a quotient, or why there is none."""
    scale = max(QUOTIENT_SCALE, *(one.scale for one in types))
    if scale <= 37:
        scale = digits_of_known(scale, values, quotient_digits, most=37)
    if scale > 37:
        return Failure(
            "0A000", "a quotient of numerics of scale 38 is not supported", "Cast them to a numeric of smaller scale."
        )
    return scale


def first_scale(types: Sequence[ScalarType], _: Sequence[object]) -> int | Failure:
    """Returns the first argument's scale."""
    return types[0].scale


def no_scale(types: Sequence[ScalarType], _: Sequence[object]) -> int | Failure:
    """Returns the scale of whole numbers."""
    return 0


def literal_scale(types: Sequence[ScalarType], values: Sequence[object]) -> int | Failure:
    """Returns the scale that a literal, the second argument, says."""
    digits = values[1] if len(values) > 1 else None
    if not isinstance(digits, int):
        return Failure("0A000", "the number of digits to round to must be an integer literal")
    if not -38 <= digits <= 38:
        return Failure("0A000", f"rounding to {digits} digits is not supported", "At most 38 digits are kept.")
    return max(0, digits)


def at_least(scale: int, shown: Callable[..., int] | None = None) -> ScaleRule:
    """Returns the rule of a result with so many digits, or with those that PostgreSQL shows of what is known."""

    def rule(types: Sequence[ScalarType], values: Sequence[object]) -> int | Failure:
        return digits_of_known(max(scale, *(one.scale for one in types)), values, shown)

    return rule
