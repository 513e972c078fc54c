"""Columns in the form in which they are kept in memory: in one piece, and on shared memory where all cells are equal.

Of the columns of a data file that are kept in memory many are such: each update of a file that was hydrated at once has
the same time, nearly every multiplicity is 1 and nearly no update is an error, and a number that is stored in its short
form has no long one. A quarter of what TPC-H's files take in memory goes that way.
"""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.storage.row_numbers import whole

#: Of how many values there is a column to share.
_MOST_VALUES = 8
_LEAST_ZEROS = 1 << 20
_MOST_BYTES_PER_CELL = 16
#: What texts of 32-bit offsets hold in one piece is a little more.
_MOST_IN_ONE_PIECE = 2**31 - 2**20

_lock = threading.Lock()
_zeros = pa.py_buffer(b"")
_ascending = pa.array([], pa.uint32())
_repeated: dict[tuple[pa.DataType, int], pa.Array] = {}


def compacted(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Returns a column with the same cells in one piece, and how many bytes of it are not shared with others.

    Whose cells are all NULL takes nothing, whatever its type; integers that are all equal take what the longest column
    of that value takes, once.

    Example:
        >>> [compacted(pa.chunked_array([pa.nulls(5_000, one)]))[1] for one in (pa.decimal128(38), pa.string())]
        [0, 0]
        >>> ones = pa.chunked_array([pa.array([1] * 5_000)])
        >>> [compacted(ones)[0].equals(ones), compacted(ones)[1]]
        [True, 0]
    """
    constant = constant_of(column)
    if constant is not None:
        if not constant.is_valid:
            return repeated(constant, len(column)), 0
        equal, new = _equal_integers(column.type, constant.as_py(), len(column))
        return pa.chunked_array([equal]), new
    if column.num_chunks != 1 and column.nbytes <= _MOST_IN_ONE_PIECE:
        column = pa.chunked_array([whole(column)])
    return column, column.nbytes


def constant_of(column: pa.ChunkedArray) -> pa.Scalar | None:
    """Returns what all cells of a column are, if that can be kept on shared memory: NULL or one integer.

    Example:
        >>> constant_of(pa.chunked_array([[1] * 5_000])), constant_of(pa.chunked_array([[1, 2] * 5_000]))
        (<pyarrow.Int64Scalar: 1>, None)
    """
    if len(column) < budget().narrowed_cells:
        return None
    if column.null_count == len(column):
        return pa.scalar(None, column.type) if _nulls(column.type, 0) is not None else None
    if column.null_count or not pa.types.is_integer(column.type) or column[0] != column[-1]:
        return None
    bounds = pc.min_max(column)
    return bounds["min"] if bounds["min"] == bounds["max"] else None


def repeated(value: pa.Scalar, count: int) -> pa.ChunkedArray:
    """Returns a column of so many times what `constant_of` returned.

    Example:
        >>> repeated(pa.scalar(7), 3).to_pylist()
        [7, 7, 7]
    """
    column = _equal_integers(value.type, value.as_py(), count)[0] if value.is_valid else _nulls(value.type, count)
    return pa.chunked_array([column])


def ascending(count: int) -> pa.Array:
    """Returns the numbers from 0 on, so many, on memory that all of them share.

    Example:
        >>> ascending(3).to_pylist()
        [0, 1, 2]
    """
    global _ascending
    with _lock:
        if len(_ascending) < count:
            _ascending = pa.array(np.arange(1 << count.bit_length(), dtype=np.uint32))
        return _ascending.slice(0, count)


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
