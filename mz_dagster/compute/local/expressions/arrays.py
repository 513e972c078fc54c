"""Kernels of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.compute.local.expressions.registry import Computed, Operand, lenient, strict
from mz_dagster.scalars.scalar import Call
from mz_dagster.storage.arrow_schema import arrow_type


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


@lenient("array")
def _listed(call: Call, operands: Sequence[Operand]) -> Computed | None:
    type_, width = arrow_type(call.type), len(operands)
    rows = max(len(one) for one in operands if isinstance(one, pa.Array))
    if width * rows >= 2**31 or any(one.type != type_.value_type for one in operands):
        return None
    columns = [one if isinstance(one, pa.Array) else pa.repeat(one, rows) for one in operands]
    places = np.arange(width * rows).reshape(width, rows).T.ravel()
    elements = pa.concat_arrays(columns).take(pa.array(places))
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    return Computed(pa.ListArray.from_arrays(pa.array(offsets), elements, type=type_))
