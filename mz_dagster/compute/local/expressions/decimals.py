"""Kernels of numerics, as integers of units of their last digits, of 64 bits.

What passes beyond these is computed once more with Python's integers, which takes a tenth of a microsecond for a row,
or rounded by Arrow; of what has no room in 38 digits the exact evaluator has the row. So nothing is ever rounded that
should not be, and no digit is lost. Rounding is half away from zero, as everywhere in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.local.expressions.numbers import (
    Integers,
    WideIntegers,
    are_too_many,
    decimals,
    either,
    negated,
    of_halves,
    product,
    product_of_halves,
    shifted,
    total,
    units,
    wide_decimals,
    wide_units,
)
from mz_dagster.compute.local.expressions.registry import Computed, Kernel, Mask, Operand, are_constant, strict
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.numerics import halves

_LEAST = -(2**63)
#: The unit of the high part of a sum.
_HIGH_UNIT = 10**19
#: With what is 10^19 units as 1.
_MOVED = pa.decimal128(38, 19)
#: No numeric has so many units.
TOO_MANY = 10**38
#: Of what has more in its upper half 9 * 10^37 units are not far.
_HIGH = 9 * 10**37 >> 64
#: What Arrow calls a rounding.
_ROUNDINGS = {"round": "half_towards_infinity", "trunc": "towards_zero", "ceil": "up", "floor": "down"}


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


#: Computes units from those of the arguments, whatever their size.
_Wide: TypeAlias = Callable[[Call, Sequence[ScalarType], Sequence[WideIntegers]], WideIntegers]


def beyond_64_bits(wide: _Wide) -> Callable[[Kernel], Kernel]:
    """Has what a kernel doubts computed by `wide`; what that makes of 38 digits and more stays doubtful."""

    def extended(kernel: Kernel) -> Kernel:
        def computed(call: Call, operands: Sequence[Operand]) -> Computed | None:
            found = kernel(call, operands)
            if found is None or found.doubtful is None or not found.doubtful.any():
                return found
            doubtful = np.broadcast_to(found.doubtful, len(found.values))
            chosen = pa.array(doubtful)
            few = [one.filter(chosen) if isinstance(one, pa.Array) else one for one in operands]
            types = [one.type for one in operands]
            total = np.broadcast_to(wide(call, types, [wide_units(one) for one in few]), int(doubtful.sum()))
            is_large = np.abs(total) >= TOO_MANY
            values = wide_decimals(np.where(is_large, 0, total), found.values.type)
            left = doubtful.copy()
            left[doubtful] = is_large
            return Computed(pc.replace_with_mask(found.values, chosen, values), left if left.any() else None)

        return computed

    return extended


def _wide_sum(call: Call, types: Sequence[ScalarType], found: Sequence[WideIntegers]) -> WideIntegers:
    left, right = (one * 10 ** (call.type.scale - type_.scale) for one, type_ in zip(found, types, strict=True))
    total: WideIntegers = left - right if call.function == "subtract_numeric" else left + right
    return total


def _wide_product(_: Call, __: Sequence[ScalarType], found: Sequence[WideIntegers]) -> WideIntegers:
    total: WideIntegers = found[0] * found[1]
    return total


def _wide_signed(call: Call, _: Sequence[ScalarType], found: Sequence[WideIntegers]) -> WideIntegers:
    return -found[0] if call.function == "negate_numeric" else np.abs(found[0])


@strict("add_numeric", "subtract_numeric")
@beyond_64_bits(_wide_sum)
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
@beyond_64_bits(_wide_product)
def _product(call: Call, operands: Sequence[Operand]) -> Computed:
    (left, left_large), (right, right_large) = map(units, operands)
    found, doubtful = product(left, right)
    return of_type(found, call.type, left_large, right_large, doubtful)


@strict("negate_numeric", "abs_numeric")
@beyond_64_bits(_wide_signed)
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
def _cast(call: Call, operands: Sequence[Operand]) -> Computed | None:
    value, large = units(operands[0])
    digits = call.type.scale - operands[0].type.scale
    if large is not None and digits < 0:
        return _rounded_whole(operands[0], call.type.scale, "round", call.type)
    found, doubtful = rescaled(value, digits)
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
    if large is not None:
        return _rounded_whole(operands[0], kept, call.function.partition("_")[0], call.type) if kept >= 0 else None
    found = cut(value, scale - kept, call.function.partition("_")[0]) if kept < scale else value
    found, doubtful = shifted(found, call.type.scale - kept)
    return of_type(found, call.type, large, doubtful)


def _rounded_whole(values: Operand, digits: int, rounding: str, type_: ScalarType) -> Computed | None:
    """Returns numerics of any size rounded to so many digits after the point; None if one has no room for them.

    Arrow makes 0 of what is rounded up to 10^38 units.
    """
    _, high = halves(values if isinstance(values, pa.Array) else pa.repeat(values, 1))
    try:
        return Computed(pc.round(values, digits, _ROUNDINGS[rounding]).cast(arrow_type(type_)), np.abs(high) > _HIGH)
    except pa.ArrowInvalid:
        return None


@strict("low_part_numeric", "high_part_numeric")
def _part(call: Call, operands: Sequence[Operand]) -> Computed:
    """Returns the parts of which sums are kept; 10^19 units, the unit of the high ones, are beyond 64 bits."""
    value, large = units(operands[0])
    is_low = call.function == "low_part_numeric"
    if large is None:
        return of_type(value if is_low else np.zeros_like(value), call.type)
    # Arrow cuts digits off.
    array = operands[0] if isinstance(operands[0], pa.Array) else pa.repeat(operands[0], 1)
    moved = pa.Array.from_buffers(_MOVED, len(array), array.buffers(), array.null_count, array.offset)
    cut_off = moved.cast(pa.decimal128(38, 0), safe=False)
    high, upper = halves(cut_off)
    if not is_low:
        return Computed(of_halves(high, upper, arrow_type(call.type)))
    low, is_below = value - high * np.uint64(_HIGH_UNIT).view(np.int64), halves(array)[1] < 0
    return Computed(of_halves(low, np.where(is_below & (low != 0), -1, 0), arrow_type(call.type)))


@strict("whole_numeric")
def _whole(call: Call, operands: Sequence[Operand]) -> Computed:
    """Returns numerics of their parts; of those whose high part is beyond 64 bits it is not known."""
    arrays = [one if isinstance(one, pa.Array) else pa.repeat(one, 1) for one in operands]
    (high, large), (low, over) = units(arrays[0]), np.broadcast_arrays(*halves(arrays[1]))
    high, low, over = np.broadcast_arrays(high, low, over)
    upper, lower = (one.view(np.int64) for one in product_of_halves(np.abs(high).astype(np.uint64), _HIGH_UNIT))
    minus_lower, minus_upper = negated(lower, upper)
    lower, upper = np.where(high < 0, minus_lower, lower), np.where(high < 0, minus_upper, upper)
    total = lower + low
    upper = upper + over + (total.view(np.uint64) < lower.view(np.uint64))
    # 9 * 10^18 of the high part's units and a low part that is a numeric do not leave 128 bits.
    far = (np.abs(high) > 9 * 10**18) | (high == _LEAST)
    return Computed(of_halves(total, upper, arrow_type(call.type)), either(large, far, are_too_many(total, upper)))
