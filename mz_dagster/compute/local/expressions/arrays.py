"""Kernels of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.compute.local.expressions.registry import Computed, Operand, strict
from mz_dagster.scalars.scalar import Call


@strict("array_subscript")
def _subscript(_: Call, operands: Sequence[Operand]) -> Computed:
    arrays, places = operands
    place = integers(places)
    if isinstance(arrays, pa.Scalar):
        elements, begin, length = arrays.values, np.zeros(1, np.int64), np.array([len(arrays.values)])
    else:
        elements, offsets = arrays.values, np.asarray(arrays.offsets)
        begin, length = offsets[:-1], np.diff(offsets)
    is_there = (place >= 1) & (place <= length)
    return Computed(elements.take(pa.array(begin + place - 1, mask=np.broadcast_to(~is_there, is_there.shape))))
