"""The registry of kernels: what evaluates calls of a function over Arrow columns, by the function's name.

A kernel is called with a call and the values of its arguments: arrays of one length, or scalars, one array at least.
It returns the values of the call, in their stored form and of any layout of the call's type; and, if it cannot vouch
for some of the rows, which these are: the exact evaluator then has them, value or error. A kernel that cannot be exact
for such arguments at all returns None.

A kernel of a strict function need not look at rows with a NULL among the arguments: what it returns for them is
replaced by NULL. It never raises for what the data hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.functions.moments.calendar import AFTER, BEFORE
from mz_dagster.functions.moments.infinite import RULES
from mz_dagster.scalars.scalar import Call

#: Values of an argument: a `pa.Array`, or a `pa.Scalar` if it is the same for all rows.
Operand: TypeAlias = pa.Array | pa.Scalar
#: True for some rows of a batch.
Mask: TypeAlias = NDArray[np.bool_]


class Computed(NamedTuple):
    """What a kernel made of a batch.

    Attributes:
        values: Of the call.
        doubtful: The rows whose values mean nothing, None if there are none of them.
    """

    values: pa.Array
    doubtful: Mask | None = None


Kernel: TypeAlias = Callable[[Call, Sequence[Operand]], Computed | None]

#: Kernels of strict functions: NULL for NULL.
STRICT: dict[str, Kernel] = {}
#: Kernels of functions of which NULL is an argument like others.
LENIENT: dict[str, Kernel] = {}


def strict(*names: str) -> Callable[[Kernel], Kernel]:
    """Registers the decorated kernel for strict functions of these names, which is not asked about what is infinite."""

    def register(kernel: Kernel) -> Kernel:
        STRICT.update({name: _finite(kernel, RULES[name].units) if name in RULES else kernel for name in names})
        return kernel

    return register


def _finite(kernel: Kernel, units: Sequence[int]) -> Kernel:
    """Returns a kernel that doubts rows with an infinite date or timestamp among the arguments."""

    def computed(call: Call, operands: Sequence[Operand]) -> Computed | None:
        found = kernel(call, operands)
        if found is None:
            return None
        doubtful = found.doubtful
        for operand, unit in zip(operands, units, strict=False):
            if unit and (infinite := _are_infinite(operand, unit)) is not None:
                doubtful = infinite if doubtful is None else doubtful | infinite
        return Computed(found.values, doubtful)

    return computed


def _are_infinite(operand: Operand, unit: int) -> Mask | None:
    numbers = operand.cast(pa.int32() if pa.types.is_date(operand.type) else pa.int64())
    least, greatest = BEFORE * unit, AFTER * unit
    if isinstance(numbers, pa.Scalar):
        return np.array([True]) if numbers.as_py() in (least, greatest) else None
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or (least < bounds["min"] and bounds["max"] < greatest):
        return None
    infinite = pc.is_in(numbers, pa.array([least, greatest], numbers.type))
    return np.asarray(infinite.to_numpy(zero_copy_only=False), np.bool_)


def lenient(*names: str) -> Callable[[Kernel], Kernel]:
    """Registers the decorated kernel for functions of these names that are not strict."""

    def register(kernel: Kernel) -> Kernel:
        LENIENT.update(dict.fromkeys(names, kernel))
        return kernel

    return register


def are_constant(operands: Sequence[Operand]) -> bool:
    """Returns whether all of the values are known, and not NULL."""
    return all(isinstance(one, pa.Scalar) and one.is_valid for one in operands)
