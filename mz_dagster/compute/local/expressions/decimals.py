"""Kernels of numerics, as integers of units of their last digits; what passes beyond 64 bits is doubtful.

So nothing is ever rounded that should not be, and no digit is lost: with 18 digits and more, the exact evaluator has
the row. Rounding is half away from zero, as everywhere in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mz_dagster.compute.local.expressions.numbers import Integers, decimals, either, product, shifted, total, units
from mz_dagster.compute.local.expressions.registry import Computed, Mask, Operand, are_constant, strict
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.arrow_schema import arrow_type

_LEAST = -(2**63)


def of_type(found: Integers, type_: ScalarType, *doubtful: Mask | None) -> Computed:
    """Returns units as numerics of a type."""
    return Computed(decimals(found, arrow_type(type_)), either(*doubtful))


def rescaled(found: Integers, digits: int) -> tuple[Integers, Mask | None]:
    """Returns units as those of so many digits more, or less, and which are doubtful.

    Example:
        >>> rescaled(np.array([125, -125, 124]), -1)[0].tolist()
        [13, -13, 12]
    """
    return shifted(found, digits) if digits >= 0 else (cut(found, -digits, "round"), None)


def cut(found: Integers, digits: int, rounding: str) -> Integers:
    """Returns units as those of so many digits less: `round`, `trunc`, `ceil` or `floor`."""
    down: Integers
    if digits > 18:  # more than 64 bits hold
        down, rest = np.where(found < 0, -1, 0), found
        half = 5 * 10**18 if digits == 19 else None
        is_more = found < 0 if half is None else np.where(found < 0, found > -half, found >= half)
    else:
        unit = 10**digits
        down = found // unit
        rest = found - down * unit
        # Half of a negative number goes down, of a positive one up.
        is_more = np.where(found < 0, rest > unit // 2, rest >= (unit + 1) // 2)
    up = {"floor": np.zeros_like(found), "ceil": rest != 0, "trunc": (rest != 0) & (found < 0), "round": is_more}[
        rounding
    ]
    found = down + up.astype(np.int64)
    return found


@strict("add_numeric", "subtract_numeric")
def _sum(call: Call, operands: Sequence[Operand]) -> Computed:
    scale = call.type.scale
    (left, left_large), (right, right_large) = map(units, operands)
    left, first = shifted(left, scale - operands[0].type.scale)
    right, second = shifted(right, scale - operands[1].type.scale)
    third: Mask | None = None
    if call.function == "subtract_numeric":
        third, right = right == _LEAST, -right
    found, fourth = total(left, right)
    return of_type(found, call.type, left_large, right_large, first, second, third, fourth)


@strict("multiply_numeric")
def _product(call: Call, operands: Sequence[Operand]) -> Computed:
    (left, left_large), (right, right_large) = map(units, operands)
    found, doubtful = product(left, right)
    return of_type(found, call.type, left_large, right_large, doubtful)


@strict("negate_numeric", "abs_numeric")
def _signed(call: Call, operands: Sequence[Operand]) -> Computed:
    value, large = units(operands[0])
    found = -value if call.function == "negate_numeric" else np.abs(value)
    return of_type(found, call.type, large, value == _LEAST)


@strict("sign_numeric")
def _sign(call: Call, operands: Sequence[Operand]) -> Computed:
    value, large = units(operands[0])
    return of_type(np.sign(value), call.type, large)


@strict("modulo_numeric")
def _remainder(call: Call, operands: Sequence[Operand]) -> Computed:
    scale = call.type.scale
    (left, left_large), (right, right_large) = map(units, operands)
    left, first = shifted(left, scale - operands[0].type.scale)
    right, second = shifted(right, scale - operands[1].type.scale)
    found = np.fmod(left, np.where((right == 0) | (right == -1), 1, right))
    return of_type(found, call.type, left_large, right_large, first, second, right == 0)


@strict("cast_numeric_to_numeric", "widened_numeric")
def _cast(call: Call, operands: Sequence[Operand]) -> Computed:
    value, large = units(operands[0])
    found, doubtful = rescaled(value, call.type.scale - operands[0].type.scale)
    return of_type(found, call.type, large, doubtful)


@strict("bounded_numeric")
def _bounded(call: Call, operands: Sequence[Operand]) -> Computed | None:
    value, large = units(operands[0])
    if not are_constant(operands[1:]):
        return None
    return of_type(value, call.type, large, np.abs(value) >= 10 ** min(18, operands[1].as_py()))


@strict("round_numeric", "trunc_numeric", "ceil_numeric", "floor_numeric", "round_numeric_int4", "trunc_numeric_int4")
def _rounded(call: Call, operands: Sequence[Operand]) -> Computed | None:
    value, large = units(operands[0])
    scale = operands[0].type.scale
    if not are_constant(operands[1:]):
        return None
    digits: int = operands[1].as_py() if len(operands) > 1 else 0
    kept = min(digits, scale)
    found = cut(value, scale - kept, call.function.partition("_")[0]) if kept < scale else value
    found, doubtful = shifted(found, call.type.scale - kept)
    return of_type(found, call.type, large, doubtful)


@strict("low_part_numeric", "high_part_numeric")
def _part(call: Call, operands: Sequence[Operand]) -> Computed:
    """Returns the parts of which sums are kept; 10^19 units, the unit of the high ones, are beyond 64 bits."""
    value, large = units(operands[0])
    return of_type(value if call.function == "low_part_numeric" else np.zeros_like(value), call.type, large)


@strict("whole_numeric")
def _whole(call: Call, operands: Sequence[Operand]) -> Computed:
    (high, high_large), (low, low_large) = map(units, operands)
    found, high = np.broadcast_arrays(low, high)
    return of_type(found, call.type, high_large, low_large, high != 0)
