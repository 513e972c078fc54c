"""Arrays and texts that are made of rows: `array_agg` and `string_agg`, of groups and of frames alike.

What PostgreSQL could not hold is an error in the place of the value, and none of it is made.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.algebra.gathering import MOST_BYTES, MOST_ELEMENTS
from mz_dagster.compute.local.declined import Declined


def are_too_long(part: NDArray[np.int64], copies: NDArray[np.int64], parts: int) -> NDArray[np.bool_]:
    """Returns of which parts, of so many, the elements are too many for an array.

    Args:
        part: Of each row: which part it is of.
        copies: How often it is there.
        parts: How many there are.
    """
    lengths = np.bincount(part, copies.astype(np.float64), minlength=parts)
    return np.asarray(lengths > MOST_ELEMENTS, np.bool_)


def are_too_large(
    part: NDArray[np.int64],
    copies: NDArray[np.int64],
    parts: int,
    row: NDArray[np.int64],
    values: pa.ChunkedArray,
    separators: pa.ChunkedArray,
) -> NDArray[np.bool_]:
    """Returns of which parts, of so many, the values and separators are too much for a text or a bytea.

    As Spark reckons: an element has one byte at least, and a byte of a bytea counts twice, being put together as
    hexadecimal text there. Nothing is copied for it.

    Args:
        part: Of each element: which part it is of.
        copies: How often it is there.
        parts: How many there are.
        row: Of each element: which row it is of.
        values: By row; those of elements are not NULL.
        separators: By row; NULL is empty.
    """
    width = 2 if pa.types.is_binary(values.type) else 1
    own, before = (pc.fill_null(pc.binary_length(one), 0).to_numpy()[row] for one in (values, separators))
    sizes = copies.astype(np.float64) * width * np.maximum(own.astype(np.float64) + before, 1)
    return np.asarray(np.bincount(part, sizes, minlength=parts) > MOST_BYTES, np.bool_)


def arrays(values: pa.Array, row: NDArray[np.int64], lengths: NDArray[np.int64], type_: pa.DataType) -> pa.Array:
    """Returns arrays of values; NULL for none.

    Args:
        values: By row.
        row: Of all elements, one array after the other: which row it is of.
        lengths: How many elements each array has.
        type_: The arrays'.
    """
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
        Declined: Together they are more than a column holds in one piece.
    """
    empty: Any = b"" if pa.types.is_binary(type_) else ""
    own = values.take(pa.array(row)).to_pylist()
    before = separators.take(pa.array(row)).to_pylist()
    found: list[Any] = []
    for i, j in pairwise(np.append(0, np.cumsum(lengths)).tolist()):
        behind = [(before[n] or empty) + own[n] for n in range(i + 1, j)]
        found.append(empty.join([own[i], *behind]) if j > i else None)
    made = pa.array(found, type_)
    if isinstance(made, pa.ChunkedArray):
        raise Declined("texts of more than 2 GB are put together at once")
    return made
