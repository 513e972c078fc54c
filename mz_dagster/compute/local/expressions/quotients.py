"""The kernel of quotients of numerics: divided as on paper, some digits at a time, all rows at once.

With S digits after the point wanted, the quotient of the operands' units has S + 1, cut off, and is rounded half away
from zero to the digits that PostgreSQL's `select_div_scale` shows. It is two numbers below 10^18: each step multiplies
both by 10^k, and the remainder, of which the next k digits are; k is so small that nothing passes 64 bits. Rows with
more digits than that has room for, as what is divided by an average has, are computed once more with Python's integers,
in two microseconds a row, a quarter of what the exact evaluator takes, which has those that may be errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mz_dagster.compute.local.expressions.decimals import TOO_MANY, beyond_64_bits
from mz_dagster.compute.local.expressions.numbers import Integers, WideIntegers, either, product_of_halves, units
from mz_dagster.compute.local.expressions.registry import Computed, Mask, Operand, strict
from mz_dagster.functions.numbers.numerics import LEAST_DIGITS
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import ScalarType
from mz_dagster.storage.arrow_schema import arrow_type

_POWERS = np.array([10**digits for digits in range(19)], np.int64)
#: The greatest divisor whose remainders have room for some more digits.
_GREATEST = 10**12
#: The unit of the greater of the two numbers.
_LIMB = 10**18
#: Powers of ten as Python's integers: of products of numerics, and what a quotient of these has more.
_WIDE_POWERS = np.array([10**digits for digits in range(240)], object)


def _wide_quotient(call: Call, types: Sequence[ScalarType], found: Sequence[WideIntegers]) -> WideIntegers:
    left, right = np.broadcast_arrays(*found)
    left_scale, right_scale = (one.scale for one in types)
    scale = call.type.scale
    above, below = np.abs(left), np.abs(right)
    unfit = (below == 0) | (below >= TOO_MANY // 10)
    below = np.where(unfit, 1, below)
    dividends = above * 10 ** (scale + 1 - left_scale + right_scale)
    quotients = dividends // below
    first, first_digit = wide_weight(above, left_scale)
    second, second_digit = wide_weight(below, right_scale)
    shown = 16 - 4 * (first - second - (first_digit <= second_digit))
    shown = np.clip(shown, max(left_scale, right_scale), scale)
    unit = _WIDE_POWERS[scale + 1 - shown]
    total = (quotients + unit // 2) // unit * unit // 10
    inexact = (quotients * below != dividends) | (quotients % 10 != 0)
    unfit |= (quotients >= TOO_MANY) | inexact & (total < 10 ** (LEAST_DIGITS - 1))  # the latter maybe an underflow
    return np.where(unfit, TOO_MANY, np.where((left < 0) != (right < 0), -total, total))


def wide_powers(digits: Integers) -> WideIntegers:
    """Returns powers of ten, of so many zeros."""
    return _WIDE_POWERS[digits]


def wide_weight(found: WideIntegers, scale: int) -> tuple[Integers, WideIntegers]:
    """Returns the weight of the first digit to the base 10,000, 0 of zero, and that digit; of any size."""
    digits = np.searchsorted(_WIDE_POWERS, found, side="right")
    weight: Integers = np.where(found == 0, 0, (digits - 1 - scale) // 4)
    behind = scale + 4 * weight
    first = found // _WIDE_POWERS[np.maximum(behind, 0)] * _WIDE_POWERS[np.maximum(-behind, 0)]
    return weight, first


@strict("divide_numeric")
@beyond_64_bits(_wide_quotient)
def _quotient(call: Call, operands: Sequence[Operand]) -> Computed:
    (left, left_large), (right, right_large) = map(units, operands)
    left, right = np.broadcast_arrays(left, right)
    negative = (left < 0) != (right < 0)
    above, below = np.abs(left), np.abs(right)
    unfit = (right == 0) | (below < 0) | (below > _GREATEST) | (above < 0)
    above, below = np.where(unfit, 0, above), np.where(unfit, 1, below)
    left_scale, right_scale = (one.type.scale for one in operands)
    scale = call.type.scale
    high, low, rest, beyond = _divided(above, below, scale + 1 - left_scale + right_scale)
    shown = 16 - 4 * _quotient_weight(above, left_scale, below, right_scale)
    shown = np.clip(shown, max(left_scale, right_scale), scale)
    inexact = (rest != 0) | (low % 10 != 0)
    high, low, far = _rounded(high, low, scale + 1 - shown)
    few = inexact & (high == 0) & (low < 10**LEAST_DIGITS)  # maybe an underflow
    values = _decimals(high, low // 10, negative, arrow_type(call.type))
    return Computed(values, either(left_large, right_large, unfit, beyond, far, few))


def _divided(above: Integers, below: Integers, digits: int) -> tuple[Integers, Integers, Integers, Mask]:
    """Returns `above * 10^digits` divided by `below` as high * 10^18 + low, the rest, and where that has no room."""
    most = int(below.max(initial=1))
    at_once = min(9, 18 - len(str(most)))
    found, rest = np.divmod(above, below)
    high, low = np.divmod(found, _LIMB)
    beyond = np.zeros(len(found), np.bool_)
    for step in [digits % at_once, *[at_once] * (digits // at_once)]:
        unit, room = 10**step, 10 ** (18 - step)
        beyond |= high >= room
        high = np.where(beyond, 0, high)
        more, rest = np.divmod(rest * unit, below)
        carried, low = np.divmod(low, room)
        high, low = high * unit + carried, low * unit + more
    return high, low, rest, beyond


def _quotient_weight(above: Integers, above_scale: int, below: Integers, below_scale: int) -> Integers:
    """Returns PostgreSQL's estimate of the quotient's weight, in digits to the base 10,000."""
    (first, first_digit), (second, second_digit) = _weight(above, above_scale), _weight(below, below_scale)
    found: Integers = first - second - (first_digit <= second_digit)
    return found


def _weight(found: Integers, scale: int) -> tuple[Integers, Integers]:
    """Returns the weight of the first digit to the base 10,000, 0 of zero, and that digit."""
    digits = np.searchsorted(_POWERS, found, side="right")
    weight: Integers = np.where(found == 0, 0, (digits - 1 - scale) // 4)
    behind = scale + 4 * weight
    first = np.where(behind >= 0, found // _POWERS[np.clip(behind, 0, 18)], found * _POWERS[np.clip(-behind, 0, 4)])
    return weight, np.where(behind > 18, 0, first)


def _rounded(high: Integers, low: Integers, digits: Integers) -> tuple[Integers, Integers, Mask]:
    """Returns high * 10^18 + low with so many last digits rounded off, to zeros, and where there are too many."""
    far: Mask = digits > 18
    unit = _POWERS[np.minimum(digits, 18)]
    raised = low + unit // 2
    carried, low = np.divmod(raised, _LIMB)
    return high + carried, low - low % unit, far


def _decimals(high: Integers, low: Integers, negative: Mask, type_: pa.DataType) -> pa.Array:
    """Returns decimals of high * 10^17 + low units, below zero where they are negative."""
    upper, lower = product_of_halves(high.astype(np.uint64), 10**17)
    total = lower + low.astype(np.uint64)
    upper = upper + (total < lower).astype(np.uint64)
    both = np.empty((len(high), 2), np.uint64)
    both[:, 0] = np.where(negative, ~total + np.uint64(1), total)
    both[:, 1] = np.where(negative, ~upper + (total == 0).astype(np.uint64), upper)
    return pa.Array.from_buffers(type_, len(high), [None, pa.py_buffer(both)])
