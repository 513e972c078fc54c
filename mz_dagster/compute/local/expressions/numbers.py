"""Integers and the units of decimals as NumPy has them, and back.

A decimal of 128 bits is an integer of units of its last digit. Of those that 64 bits hold, which are most, the upper
half is the sign, so that the lower one is the number: no digit is looked at. What does not fit is told.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.expressions.registry import Mask, Operand
from mz_dagster.storage.numerics import halves
from mz_dagster.storage.row_numbers import stored_integers

#: 64-bit integers, or one for all rows.
Integers: TypeAlias = NDArray[np.int64]
#: Python's integers, of any size.
WideIntegers: TypeAlias = NDArray[np.object_]
#: The greatest.
MOST = 2**63 - 1
#: The upper and the lower 64 bits of 10^38.
_ENDS = divmod(10**38, 2**64)


def integers(values: Operand) -> Integers:
    """Returns integers, dates or timestamps as numbers, those in the places of NULLs being any.

    Example:
        >>> integers(pa.array([1, None, 3], pa.int16())).dtype, integers(pa.scalar(7)).tolist()
        (dtype('int64'), [7])
    """
    return stored_integers(pa.repeat(values, 1) if isinstance(values, pa.Scalar) else values)


def units(values: Operand) -> tuple[Integers, Mask | None]:
    """Returns the units of decimals, and which are beyond 64 bits, so that they are not there; None if none are.

    Example:
        >>> from decimal import Decimal
        >>> units(pa.array([Decimal("1.25")], pa.decimal128(38, 2)))
        (array([125]), None)
    """
    array = pa.repeat(values, 1) if isinstance(values, pa.Scalar) else values
    low, high = halves(array)
    large = high != low >> 63
    if array.null_count:
        large &= ~nulls(array)
    return low, large if large.any() else None


def decimals(found: Integers, type_: pa.DataType) -> pa.Array:
    """Returns decimals of so many units.

    Example:
        >>> decimals(np.array([125, -1]), pa.decimal128(38, 2)).to_pylist()
        [Decimal('1.25'), Decimal('-0.01')]
    """
    both = np.empty((len(found), 2), np.int64)
    both[:, 0] = found
    both[:, 1] = found >> 63
    return pa.Array.from_buffers(type_, len(found), [None, pa.py_buffer(both)])


def wide_units(values: Operand) -> WideIntegers:
    """Returns the units of decimals of any size, as Python's integers; a scalar's as an array of one.

    Example:
        >>> from decimal import Decimal
        >>> wide_units(pa.array([Decimal("-1" + 30 * "0"), Decimal(7)], pa.decimal128(38, 0))).tolist()
        [-1000000000000000000000000000000, 7]
    """
    low, high = halves(pa.repeat(values, 1) if isinstance(values, pa.Scalar) else values)
    return np.asarray((high.astype(object) << 64) + low.astype(np.uint64).astype(object), object)


def of_halves(low: Integers, high: Integers, type_: pa.DataType) -> pa.Array:
    """Returns decimals of units whose lower and upper 64 bits these are, as `halves` returns them.

    Example:
        >>> of_halves(np.array([5, -5]), np.array([0, -1]), pa.decimal128(38, 0)).to_pylist()
        [Decimal('5'), Decimal('-5')]
    """
    both = np.stack([low, high], 1)
    return pa.Array.from_buffers(type_, len(low), [None, pa.py_buffer(both)])


def are_too_many(low: Integers, high: Integers) -> Mask:
    """Returns which units, by halves, are 10^38 or more, or that far below zero.

    Example:
        >>> ends = pa.array([10**38 - 1, -10**38 + 1], pa.decimal128(38, 0))
        >>> low, high = halves(ends)
        >>> are_too_many(low, high).tolist(), are_too_many(low + [1, -1], high).tolist()
        ([False, False], [True, True])
    """
    minus_low, minus_high = negated(low, high)
    size = np.where(high < 0, minus_high, high)
    below = np.where(high < 0, minus_low, low).view(np.uint64)
    found: Mask = (size > _ENDS[0]) | ((size == _ENDS[0]) & (below >= np.uint64(_ENDS[1])))
    return found


def negated(low: Integers, high: Integers) -> tuple[Integers, Integers]:
    """Returns the halves of what has the other sign."""
    return -low, ~high + (low == 0)


def product_of_halves(found: NDArray[np.uint64], factor: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the upper and the lower 64 bits of products, from those of their halves of 32 bits."""
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    factors = np.uint64(factor & (2**32 - 1)), np.uint64(factor >> 32)
    first, second = found & mask, found >> half
    low, across = first * factors[0], first * factors[1]
    over = second * factors[0]
    middle = (low >> half) + (across & mask) + (over & mask)
    upper = second * factors[1] + (across >> half) + (over >> half) + (middle >> half)
    return upper, (low & mask) | (middle << half)


def wide_decimals(found: WideIntegers, type_: pa.DataType) -> pa.Array:
    """Returns decimals of so many units, below 2^127 in size."""
    both = np.empty((len(found), 2), np.uint64)
    both[:, 0] = found & (2**64 - 1)
    both[:, 1] = (found >> 64) & (2**64 - 1)
    return pa.Array.from_buffers(type_, len(found), [None, pa.py_buffer(both)])


def nulls(values: pa.Array) -> Mask:
    """Returns which of the values are NULL."""
    found: Mask = np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)
    return found


def either(*masks: Mask | None) -> Mask | None:
    """Returns where any of the masks is true; None if none is there."""
    found: Mask | None = None
    for one in masks:
        if one is not None:
            found = one if found is None else found | one
    return found


def magnitude(found: Integers) -> int:
    """Returns the greatest absolute value, 0 of none."""
    return max(-int(found.min()), int(found.max())) if found.size else 0


def product(left: Integers, right: Integers) -> tuple[Integers, Mask | None]:
    """Returns products, and which may be beyond 64 bits.

    Example:
        >>> product(np.array([2, 2**62]), np.array([3, 2]))[1].tolist()
        [False, True]
    """
    with np.errstate(over="ignore"):
        found = left * right
    if magnitude(left) * magnitude(right) <= MOST:
        return found, None
    # A double is wrong by a part in 2^52, far less than what is left of 2^63 here.
    return found, np.abs(left.astype(np.float64) * right.astype(np.float64)) > 2.0**62


def total(left: Integers, right: Integers) -> tuple[Integers, Mask | None]:
    """Returns sums, and which are beyond 64 bits."""
    with np.errstate(over="ignore"):
        found = left + right
    if magnitude(left) + magnitude(right) <= MOST:
        return found, None
    return found, ((left ^ found) & (right ^ found)) < 0


def shifted(found: Integers, digits: int) -> tuple[Integers, Mask | None]:
    """Returns units as those of so many digits more, and which may be beyond 64 bits."""
    if digits == 0:
        return found, None
    if digits > 18:
        return np.zeros_like(found), found != 0
    return product(found, np.array([10**digits], np.int64))
