"""Arrays and texts that are made of rows: `array_agg` and `string_agg`, of groups and of frames alike."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.algebra.gathering import MOST_BYTES, MOST_ELEMENTS
from mz_dagster.compute.local.declined import Declined


def arrays(values: pa.Array, row: NDArray[np.int64], lengths: NDArray[np.int64], type_: pa.DataType) -> pa.Array:
    """Returns arrays of values; NULL for none.

    Args:
        values: By row.
        row: Of all elements, one array after the other: which row it is of.
        lengths: How many elements each array has.
        type_: The arrays'.

    Raises:
        Declined: One has more elements than PostgreSQL could hold.
    """
    if lengths.max(initial=0) > MOST_ELEMENTS:
        raise Declined("an array would be too large, which is Spark's to tell")
    elements = values.take(pa.array(row)).cast(type_.value_type)
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=type_, mask=pa.array(lengths == 0))


def texts(
    values: pa.Array, separators: pa.Array, row: NDArray[np.int64], lengths: NDArray[np.int64], type_: pa.DataType
) -> pa.Array:
    """Returns texts or byteas of values that are not NULL, each but the first behind its separator; NULL for none.

    Args:
        values: By row.
        separators: By row; NULL is empty.
        row: Of all elements, one text after the other: which row it is of.
        lengths: How many elements each text has.
        type_: The texts'.

    Raises:
        Declined: One is very large.
    """
    empty: Any = b"" if pa.types.is_binary(type_) else ""
    own = values.take(pa.array(row)).to_pylist()
    before = separators.take(pa.array(row)).to_pylist()
    found: list[Any] = []
    for i, j in pairwise(np.append(0, np.cumsum(lengths)).tolist()):
        behind = [(before[n] or empty) + own[n] for n in range(i + 1, j)]
        found.append(empty.join([own[i], *behind]) if j > i else None)
    if any(one is not None and len(one) > MOST_BYTES // 4 for one in found):
        raise Declined("a text would be very large, which is Spark's to make or to tell")
    return pa.array(found, type_)
