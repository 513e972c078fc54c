"""Kernels of integers: arithmetic in 64 bits, of which what leaves its type's range is doubtful."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mz_dagster.compute.local.expressions.numbers import Integers, either, integers, product, total
from mz_dagster.compute.local.expressions.registry import Computed, Mask, Operand, strict
from mz_dagster.functions.literals import INTEGER_RANGES
from mz_dagster.scalars.scalar import Call
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.arrow_schema import arrow_type

KINDS = ("int2", "int4", "int8")
_LEAST = -(2**63)


def of_type(found: Integers, type_: ScalarType, doubtful: Mask | None = None) -> Computed:
    """Returns integers as those of a type; beyond its range they are doubtful."""
    least, most = INTEGER_RANGES[type_.kind]
    if type_.kind is not Kind.INT8 and found.size and (found.min() < least or found.max() > most):
        doubtful = either(doubtful, (found < least) | (found > most))
    own = arrow_type(type_)
    return Computed(pa.array(found.astype(own.to_pandas_dtype(), copy=False)), doubtful)


@strict(*(f"add_{kind}" for kind in KINDS))
def _add(call: Call, operands: Sequence[Operand]) -> Computed:
    return of_type(*_typed(call, total(*map(integers, operands))))


@strict(*(f"subtract_{kind}" for kind in KINDS))
def _subtract(call: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(integers, operands)
    found, doubtful = total(left, -right)
    return of_type(found, call.type, either(doubtful, _where(right == _LEAST)))


@strict(*(f"multiply_{kind}" for kind in KINDS))
def _multiply(call: Call, operands: Sequence[Operand]) -> Computed:
    return of_type(*_typed(call, product(*map(integers, operands))))


@strict(*(f"negate_{kind}" for kind in KINDS))
def _negate(call: Call, operands: Sequence[Operand]) -> Computed:
    (value,) = map(integers, operands)
    return of_type(-value, call.type, _where(value == _LEAST))


@strict(*(f"abs_{kind}" for kind in KINDS))
def _abs(call: Call, operands: Sequence[Operand]) -> Computed:
    (value,) = map(integers, operands)
    return of_type(np.abs(value), call.type, _where(value == _LEAST))


@strict(*(f"divide_{kind}" for kind in KINDS))
def _divide(call: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(integers, operands)
    doubtful = (right == 0) | ((right == -1) & (left == _LEAST))
    left, below = np.broadcast_arrays(left, np.where(doubtful, 1, right))
    # NumPy rounds down, and SQL towards zero.
    return of_type((left - np.fmod(left, below)) // below, call.type, _where(doubtful))


@strict(*(f"modulo_{kind}" for kind in KINDS))
def _modulo(call: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(integers, operands)
    # By -1 nothing is left, and processors divide the least integer by it no better than by 0.
    return of_type(np.fmod(left, np.where((right == 0) | (right == -1), 1, right)), call.type, _where(right == 0))


@strict(*(f"bit_{name}_{kind}" for name in ("and", "or", "xor") for kind in KINDS))
def _bits(call: Call, operands: Sequence[Operand]) -> Computed:
    left, right = map(integers, operands)
    match call.function.split("_")[1]:
        case "and":
            return of_type(left & right, call.type)
        case "or":
            return of_type(left | right, call.type)
        case _:
            return of_type(left ^ right, call.type)


@strict(*(f"bit_not_{kind}" for kind in KINDS))
def _bit_not(call: Call, operands: Sequence[Operand]) -> Computed:
    return of_type(~integers(operands[0]), call.type)


@strict("multiplicity_int8")
def _multiplicity(call: Call, operands: Sequence[Operand]) -> Computed:
    value = integers(operands[0])
    return of_type(value, call.type, _where(value < 0))


def _typed(call: Call, found: tuple[Integers, Mask | None]) -> tuple[Integers, ScalarType, Mask | None]:
    return found[0], call.type, found[1]


def _where(mask: Mask) -> Mask | None:
    return mask if mask.any() else None
