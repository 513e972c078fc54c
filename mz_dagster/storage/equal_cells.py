"""Columns whose cells are all equal, on memory that all of them share.

Of the columns of a data file that are kept in memory many are such: each update of a file that was hydrated at once has
the same time, nearly every multiplicity is 1 and nearly no update is an error, and a number that is stored in its short
form has no long one. A quarter of what TPC-H's files take in memory goes that way.
"""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: A column of fewer cells is not looked at: it takes little.
_FEW = 1_000
#: Of how many values there is a column to share.
_MOST_VALUES = 8
_LEAST_ZEROS = 1 << 20
_MOST_BYTES_PER_CELL = 16

_lock = threading.Lock()
_zeros = pa.py_buffer(b"")
_repeated: dict[tuple[pa.DataType, int], pa.Array] = {}


def compacted(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Returns a column with the same cells, and how many bytes it takes that it does not share with others.

    Whose cells are all NULL takes nothing, whatever its type; integers that are all equal take what the longest column
    of that value takes, once.

    Example:
        >>> [compacted(pa.chunked_array([pa.nulls(5_000, one)]))[1] for one in (pa.decimal128(38), pa.string())]
        [0, 0]
        >>> ones = pa.chunked_array([pa.array([1] * 5_000)])
        >>> [compacted(ones)[0].equals(ones), compacted(ones)[1]]
        [True, 0]
    """
    if len(column) >= _FEW:
        if column.null_count == len(column):
            if (nulls := _nulls(column.type, len(column))) is not None:
                return pa.chunked_array([nulls]), 0
        elif not column.null_count and pa.types.is_integer(column.type):
            bounds = pc.min_max(column).as_py()
            if bounds["min"] == bounds["max"]:
                equal, new = _equal_integers(column.type, bounds["min"], len(column))
                return pa.chunked_array([equal]), new
    return column, column.nbytes


def _nulls(type_: pa.DataType, count: int) -> pa.Array | None:
    """Returns so many NULLs; None if the type has a layout of its own."""
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        buffers, width = 3, 4
    elif pa.types.is_primitive(type_) or pa.types.is_decimal(type_):
        buffers, width = 2, (type_.bit_width + 7) // 8
    else:
        return None
    if width > _MOST_BYTES_PER_CELL:
        return None
    # A bit that is not set says that a cell is NULL.
    return pa.Array.from_buffers(type_, count, [_zeros_for(count)] * buffers, null_count=count)


def _zeros_for(count: int) -> pa.Buffer:
    """Returns zeros for so many cells of any width, and the offset behind them; they take memory once they are read."""
    global _zeros
    size = (count + 1) * _MOST_BYTES_PER_CELL
    with _lock:
        if _zeros.size < size:
            _zeros = pa.py_buffer(np.zeros(max(_LEAST_ZEROS, 1 << size.bit_length()), np.uint8))
        return _zeros


def _equal_integers(type_: pa.DataType, value: int, count: int) -> tuple[pa.Array, int]:
    """Returns so many integers of a value, and how many bytes were taken for them."""
    with _lock:
        known = _repeated.pop((type_, value), None)
        new = 0
        if known is None or len(known) < count:
            known = pa.repeat(pa.scalar(value, type_), count)
            new = known.nbytes
        _repeated[type_, value] = known
        while len(_repeated) > _MOST_VALUES:
            del _repeated[next(iter(_repeated))]
    return known.slice(0, count), new
