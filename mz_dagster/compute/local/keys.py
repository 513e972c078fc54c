"""Rows told apart by the values of some columns: a number for each, equal where they are, NULL being like NULL."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: Numbers of tuples are made small before they could pass it.
_MOST = 2**62


def numbered(columns: Sequence[pa.Array], rows: int) -> tuple[NDArray[np.int64], int]:
    """Returns a number for each row, the same for rows of equal values, and a bound that all of them are below.

    Floats are told apart by their bits, but that all NaNs are one; of lists and the like all are taken to differ.

    Args:
        columns: Of so many rows.
        rows: How many.

    Example:
        >>> numbers, bound = numbered([pa.array(["a", None, "a"]), pa.array([1, 1, 1])], 3)
        >>> int(numbers[0]) == int(numbers[2]) != int(numbers[1]), bound
        (True, 2)
    """
    numbers, bound = np.zeros(rows, np.int64), 1
    for column in columns:
        own, count = _numbered(column)
        if bound * count > _MOST:
            numbers, bound = compact(numbers)
        numbers, bound = numbers * count + own, bound * count
    return numbers, bound


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Returns a column in one piece."""
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def compact(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Returns numbers from 0 on without gaps, and how many there are."""
    distinct, found = np.unique(numbers, return_inverse=True)
    return found, len(distinct)


def firsts(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns where each number is first, by number."""
    found: NDArray[np.int64] = np.unique(numbers, return_index=True)[1]
    return found


def sums(numbers: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the sum of the values of each number, of numbers from 0 on."""
    found = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.add.at(found, numbers, values)
    return found


def _numbered(column: pa.Array) -> tuple[NDArray[np.int64], int]:
    if pa.types.is_struct(column.type):
        return numbered([column.is_valid(), *column.flatten()], len(column))
    if pa.types.is_nested(column.type):
        return np.arange(len(column)), max(1, len(column))
    if pa.types.is_floating(column.type):
        column = _with_one_nan(column).view(pa.int64() if column.type.bit_width == 64 else pa.int32())
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def _with_one_nan(column: pa.Array) -> pa.Array:
    is_nan = pc.is_nan(column)
    return pc.if_else(is_nan, pa.scalar(math.nan, column.type), column) if pc.any(is_nan).as_py() else column
