"""Kernels of floating-point numbers: NumPy's operations are IEEE 754's, each rounded once, in both precisions.

What overflows, underflows or is divided by zero is doubtful: an error, or what the exact evaluator says. Every NaN that
leaves is the one NaN, so that rows which hold one are the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.expressions.integers import KINDS as INTEGERS
from mz_dagster.compute.local.expressions.numbers import integers, nulls
from mz_dagster.compute.local.expressions.outcome import as_mask
from mz_dagster.compute.local.expressions.registry import Computed, Mask, Operand, strict
from mz_dagster.functions.aggregates.sums import BITS
from mz_dagster.functions.literals import INTEGER_RANGES
from mz_dagster.functions.numbers.float_evaluation import (
    EXPONENT_OF_ZERO,
    INFINITY,
    LEAST,
    MANTISSA,
    NAN,
    NEGATIVE_INFINITY,
)
from mz_dagster.scalars.scalar import Call, Literal
from mz_dagster.scalars.types import Kind
from mz_dagster.storage.arrow_schema import arrow_type

#: Floating-point numbers, or one for all rows.
Floats: TypeAlias = NDArray[Any]

_KINDS = ("float4", "float8")
_FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def floats(values: Operand) -> Floats:
    """Returns floating-point numbers, those in the places of NULLs being any.

    Example:
        >>> floats(pa.array([1.5, None]))[0], floats(pa.scalar(2.0)).tolist()
        (np.float64(1.5), [2.0])
    """
    array = pa.repeat(values, 1) if isinstance(values, pa.Scalar) else values
    found: Floats = np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())
    return found[array.offset : array.offset + len(array)]


def _one_form(found: Floats) -> Floats:
    """Returns numbers of which every NaN is the one."""
    is_nan = np.isnan(found)
    return np.where(is_nan, found.dtype.type(np.nan), found) if is_nan.any() else found


def _without_signs(found: Floats) -> Floats:
    """Returns numbers of which every zero is without a sign."""
    return np.where(found == 0, found.dtype.type(0), found)


def _numbers(found: Floats, doubtful: Mask | None = None) -> Computed:
    return Computed(pa.array(_one_form(found)), doubtful)


@strict(*(f"{name}_{kind}" for name in ("add", "subtract", "multiply", "divide") for kind in _KINDS))
def _arithmetic(call: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(floats, operands)
    name = call.function.partition("_")[0]
    is_finite = ~(np.isinf(left) | np.isinf(right))
    with np.errstate(all="ignore"):
        match name:
            case "add":
                found = left + right
                doubtful = np.isinf(found) & is_finite
            case "subtract":
                found = left - right
                doubtful = np.isinf(found) & is_finite
            case "multiply":
                found = left * right
                doubtful = (np.isinf(found) & is_finite) | ((found == 0) & (left != 0) & (right != 0))
            case _:
                found = left / right
                vanished = (found == 0) & (left != 0) & ~np.isinf(right)
                doubtful = (right == 0) | (np.isinf(found) & ~np.isinf(left)) | vanished
    return _numbers(found, doubtful)


@strict(*(f"{name}_{kind}" for name in _COMPARISONS for kind in _KINDS))
def _compared(call: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(floats, operands)
    name = call.function.partition("_")[0]
    # NaN equals itself and is greater than every number.
    is_nan, other_is_nan = np.isnan(left), np.isnan(right)
    if name in ("eq", "ne"):
        is_equal = (left == right) | (is_nan & other_is_nan)
        return Computed(pa.array(is_equal if name == "eq" else ~is_equal))
    is_less = (left < right) | (~is_nan & other_is_nan)
    is_greater = (left > right) | (is_nan & ~other_is_nan)
    found = {"lt": is_less, "ge": ~is_less, "gt": is_greater, "le": ~is_greater}[name]
    return Computed(pa.array(found))


@strict(*(f"negate_{kind}" for kind in _KINDS))
def _negated(_: Call, operands: Sequence[Operand]) -> Computed:
    return _numbers(-floats(operands[0]))


@strict(*(f"abs_{kind}" for kind in _KINDS))
def _magnitude(_: Call, operands: Sequence[Operand]) -> Computed:
    return _numbers(np.abs(floats(operands[0])))


@strict(*(f"unsigned_zero_{kind}" for kind in _KINDS))
def _unsigned_zero(_: Call, operands: Sequence[Operand]) -> Computed:
    return _numbers(_without_signs(floats(operands[0])))


@strict("represented_floats")
def _represented(call: Call, operands: Sequence[Operand]) -> Computed | None:
    """Returns numbers beside whether each is -0.0; what holds numbers is left to the exact evaluator."""
    if call.arguments[0].type.kind not in _FLOATS:
        return None
    numbers = floats(operands[0])
    values = _one_form(_without_signs(numbers))
    return Computed(_record(call, [pa.array(values), pa.array((numbers == 0) & np.signbit(numbers))]))


@strict("restored_floats")
def _restored(call: Call, operands: Sequence[Operand]) -> Computed | None:
    if call.type.kind not in _FLOATS or isinstance(operands[0], pa.Scalar):
        return None
    values, is_minus_zero = operands[0].flatten()
    numbers = floats(values)
    return _numbers(np.where(as_mask(is_minus_zero), -numbers, numbers))


@strict("unsigned_zeros")
def _unsigned_zeros(call: Call, operands: Sequence[Operand]) -> Computed | None:
    """Returns records of which numbers are fields, without the signs of zeros; what nests deeper is left as above."""
    fields = [type_ for _, type_ in call.type.fields]
    if call.type.kind is not Kind.RECORD or any(one.parts for one in fields) or isinstance(operands[0], pa.Scalar):
        return None
    parts = []
    for part, type_ in zip(operands[0].flatten(), fields, strict=True):
        if type_.kind not in _FLOATS:
            parts.append(part)
            continue
        values = _one_form(_without_signs(floats(part)))
        parts.append(pa.array(values, mask=nulls(part) if part.null_count else None))
    return Computed(_record(call, parts))


def _record(call: Call, parts: Sequence[pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays(parts, fields=list(arrow_type(call.type)))


@strict("round_float8", "ceil_float8", "floor_float8", "trunc_float8")
def _whole(call: Call, operands: Sequence[Operand]) -> Computed:
    function = {"round": np.rint, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc}
    return _numbers(function[call.function.partition("_")[0]](floats(operands[0])))


@strict("sign_float8")
def _sign(_: Call, operands: Sequence[Operand]) -> Computed:
    found = floats(operands[0])
    return _numbers((found > 0).astype(np.float64) - (found < 0))


@strict("sqrt_float8")
def _root(_: Call, operands: Sequence[Operand]) -> Computed:
    found = floats(operands[0])
    with np.errstate(all="ignore"):
        return _numbers(np.sqrt(found), found < 0)


@strict("cast_float4_to_float8")
def _widened(_: Call, operands: Sequence[Operand]) -> Computed:
    return _numbers(floats(operands[0]).astype(np.float64))


@strict("cast_float8_to_float4")
def _narrowed(_: Call, operands: Sequence[Operand]) -> Computed:
    value = floats(operands[0])
    with np.errstate(all="ignore"):
        found = value.astype(np.float32)
    return _numbers(found, (np.isinf(found) & ~np.isinf(value)) | ((found == 0) & (value != 0)))


@strict(*(f"cast_{one}_to_{other}" for one in INTEGERS for other in _KINDS))
def _of_integer(call: Call, operands: Sequence[Operand]) -> Computed:
    return Computed(pa.array(integers(operands[0]).astype(arrow_type(call.type).to_pandas_dtype())))


@strict(*(f"cast_{one}_to_{other}" for one in _KINDS for other in INTEGERS))
def _to_integer(call: Call, operands: Sequence[Operand]) -> Computed:
    found, (least, most) = np.rint(floats(operands[0]).astype(np.float64)), INTEGER_RANGES[call.type.kind]
    is_in_range = (found >= least) & (found < float(most + 1))  # the greatest bigint is no double
    own = np.where(is_in_range, found, 0).astype(arrow_type(call.type).to_pandas_dtype())
    return Computed(pa.array(own), ~is_in_range)


# The digits of exact sums: `functions/numbers/float_evaluation.py` has them for one number.


def _exponents(value: Floats) -> NDArray[np.int64]:
    found = np.maximum(0, np.frexp(value)[1].astype(np.int64) - MANTISSA - LEAST)
    return np.where(value == 0, EXPONENT_OF_ZERO, found)


@strict("limb_float8")
def _limb(_: Call, operands: Sequence[Operand]) -> Computed:
    value = floats(operands[0])
    is_finite = np.isfinite(value)
    limb = _exponents(np.where(is_finite, value, 0)) // BITS
    special = np.where(np.isnan(value), NAN, np.where(value > 0, INFINITY, NEGATIVE_INFINITY))
    return Computed(pa.array(np.where(is_finite, limb, special).astype(np.int32)))


@strict("digit_float8")
def _digit(call: Call, operands: Sequence[Operand]) -> Computed | None:
    place = call.arguments[1]
    if not isinstance(place, Literal) or not isinstance(place.value, int):
        return None
    value = floats(operands[0])
    finite = np.where(np.isfinite(value), value, 0)
    exponents, mask = _exponents(finite), (1 << BITS) - 1
    mantissa = np.ldexp(np.abs(finite), (-LEAST - exponents).astype(np.int32)).astype(np.int64)
    shift = exponents % BITS
    # The mantissa's bits in three portions, each moved by less than a digit, so that no bit is lost.
    low, middle, high = (
        (mantissa & mask) << shift,
        (mantissa >> BITS & mask) << shift,
        mantissa >> 2 * BITS << shift,
    )
    digits = (low & mask, (low >> BITS) + (middle & mask), (middle >> BITS) + (high & mask), high >> BITS)
    found = digits[place.value]
    return Computed(pa.array(np.where(finite < 0, -found, found)))
