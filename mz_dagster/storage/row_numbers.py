"""Rows told apart by the values of some columns: a number for each, equal where they are, NULL being like NULL.

Numbers that are small are counted in arrays, and orders are found by sorting one integer a row, its place included:
NumPy's `unique`, `lexsort` and stable `argsort` sort row by row through an index, which took 10 to 20 times as
long. Measured as part of sorts, sums and joins: `bench/column_operators.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.budget import budget

#: Numbers of tuples are made small before they could pass it.
_MOST = 2**62
#: Up to so many times as many numbers as rows are counted in an array.
SPARSE = 4


def numbered(columns: Sequence[pa.Array], rows: int, *, signs: bool = True) -> tuple[NDArray[np.int64], int]:
    """Returns a number for each row, the same for rows of equal values, and a bound that all of them are below.

    Floats are told apart by their bits, but that all NaNs are one, also within lists and structs.

    Args:
        columns: Of so many rows.
        rows: How many.
        signs: Whether -0.0 is told from 0.0.

    Example:
        >>> numbers, bound = numbered([pa.array(["a", None, "a"]), pa.array([1, 1, 1])], 3)
        >>> int(numbers[0]) == int(numbers[2]) != int(numbers[1]), bound
        (True, 2)
        >>> [one.tolist() for one in (numbered([pa.array([[0.0, 1.0], [-0.0, 1.0]])], 2, signs=is_told)[0]
        ...                           for is_told in (True, False))]
        [[0, 1], [0, 0]]
    """
    numbers, bound = np.zeros(rows, np.int64), 1
    for column in columns:
        own, count = _numbered(column, signs=signs)
        if bound * count > _MOST:
            numbers, bound = compact(numbers)
        numbers, bound = numbers * count + own, bound * count
    return numbers, bound


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Returns a column in one piece: a copy, unless it is in one, which then is returned."""
    if column.num_chunks == 1:
        return column.chunk(0)
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def ranked(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the distinct values in their order, and for each value its place among them.

    Example:
        >>> [one.tolist() for one in ranked(np.array([7, -3, 7]))]
        [[-3, 7], [1, 0, 1]]
    """
    rows = len(values)
    if rows < budget().numbered_rows:
        return np.unique(values, return_inverse=True)
    low, bits = int(values.min()), (rows - 1).bit_length()
    span = int(values.max()) - low + 1
    if span <= SPARSE * rows:
        numbers = np.subtract(values, low, dtype=np.int64)
        is_there = np.zeros(span, np.bool_)
        is_there[numbers] = True
        return np.flatnonzero(is_there) + low, (np.cumsum(is_there) - 1)[numbers]
    if span << bits > _MOST:
        return np.unique(values, return_inverse=True)
    # Values with their places, which are sorted as one integer each.
    packed = np.sort(np.subtract(values, low, dtype=np.int64) << bits | np.arange(rows))
    ordered = packed >> bits
    is_first = np.append(True, ordered[1:] != ordered[:-1])
    places = np.empty(rows, np.int64)
    places[packed & ((1 << bits) - 1)] = np.cumsum(is_first) - 1
    return ordered[is_first] + low, places


def is_stored_as_integer(type_: pa.DataType) -> bool:
    """Returns whether `stored_integers` has numbers of a type's values, which are in their order."""
    is_moment = pa.types.is_date(type_) or pa.types.is_time(type_) or pa.types.is_timestamp(type_)
    return bool(pa.types.is_signed_integer(type_) or is_moment)


def stored_integers(values: pa.Array) -> NDArray[np.int64]:
    """Returns integers, dates or moments as numbers, those in the places of NULLs being any."""
    if not len(values):
        return np.zeros(0, np.int64)
    found = np.frombuffer(values.buffers()[1], np.dtype(f"i{values.type.bit_width // 8}"))
    return found[values.offset : values.offset + len(values)].astype(np.int64, copy=False)


def compact(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Returns numbers from 0 on without gaps in the same order, and how many there are.

    Example:
        >>> found, count = compact(np.array([7, 3, 7]))
        >>> found.tolist(), count
        ([1, 0, 1], 2)
    """
    distinct, found = ranked(numbers)
    return found, len(distinct)


def firsts(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns where each number is first, by number."""
    if not _are_small(numbers):
        ranks = compact(numbers)[0]
        return firsts(ranks) if _are_small(ranks) else np.unique(numbers, return_index=True)[1]
    places = np.full(int(numbers.max()) + 1, -1, np.int64)
    # Of what is assigned to one place the last stays.
    places[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return places[places >= 0]


def order_by(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Returns the places of rows in order of columns, of which the first counts most; equal rows stay as they are.

    Args:
        columns: One at least, of the same length.

    Example:
        >>> order_by([np.array([2, 1, 2]), np.array([5, 9, 4])]).tolist()
        [1, 2, 0]
    """
    rows = len(columns[0])
    if rows < budget().numbered_rows:
        return np.lexsort([*reversed(columns)])
    bits = (rows - 1).bit_length()
    numbers, bound = np.zeros(rows, np.int64), 1
    for column in columns:
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if span > SPARSE * rows and bound * span << bits > _MOST:
            column, span = compact(column)
            low = 0
        if bound * span << bits > _MOST:
            numbers, bound = compact(numbers)
            if bound == rows:
                break
        if bound * span << bits > _MOST:
            return np.lexsort([*reversed(columns)])
        numbers, bound = numbers * span + np.subtract(column, low, dtype=np.int64), bound * span
    found: NDArray[np.int64] = np.sort(numbers << bits | np.arange(rows)) & ((1 << bits) - 1)
    return found


def _are_small(numbers: NDArray[np.int64]) -> bool:
    """Returns whether numbers are many, and it pays to count them in an array."""
    return (
        len(numbers) >= budget().numbered_rows
        and int(numbers.min()) >= 0
        and int(numbers.max()) < SPARSE * len(numbers)
    )


def sums(numbers: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the sum of the values of each number, of numbers from 0 on."""
    found = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.add.at(found, numbers, values)
    return found


def distinct_rows(table: pa.Table, *, signs: bool = True) -> pa.Table:
    """Returns each row of a table once, the first of equal ones.

    Args:
        table: Rows of some columns.
        signs: Whether -0.0 is told from 0.0.
    """
    if not any(pa.types.is_nested(one.type) or pa.types.is_floating(one.type) for one in table.schema):
        return table.group_by(table.column_names, use_threads=False).aggregate([])
    numbers, _ = numbered([whole(one) for one in table.columns], len(table), signs=signs)
    return table.take(pa.array(np.sort(firsts(numbers))))


def equal_rows(left: pa.Array, right: pa.Array) -> NDArray[np.bool_]:
    """Returns where values of one type are equal, the two zeros being so, too, and NULL to NULL."""
    numbers, _ = numbered([pa.concat_arrays([left, right])], 2 * len(left), signs=False)
    same: NDArray[np.bool_] = numbers[: len(left)] == numbers[len(left) :]
    return same


def _numbered(column: pa.Array, *, signs: bool) -> tuple[NDArray[np.int64], int]:
    if pa.types.is_struct(column.type):
        return compact(numbered([column.is_valid(), *column.flatten()], len(column), signs=signs)[0])
    if pa.types.is_list(column.type):
        return _numbered_lists(column, signs=signs)
    column = floats_as_bits(column, signs=signs)
    if len(column) >= budget().numbered_rows and is_stored_as_integer(column.type):
        ends = pc.min_max(column.view(f"int{column.type.bit_width}"))
        low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
        if high - low < SPARSE * len(column):
            own = stored_integers(column) - low
            if column.null_count:
                own = np.where(column.is_valid(), own, high - low + 1)
            return own, high - low + 2
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def _numbered_lists(column: pa.ListArray, *, signs: bool) -> tuple[NDArray[np.int64], int]:
    ends = column.offsets.to_numpy()
    elements = _identified(column.values.slice(ends[0], ends[-1] - ends[0]), signs=signs)
    known: dict[bytes | None, int] = {}
    spans = zip(pairwise((ends - ends[0]).tolist()), column.is_valid().to_pylist(), strict=True)
    found = [known.setdefault(elements[i:j].tobytes() if there else None, len(known)) for (i, j), there in spans]
    return np.array(found, np.int64), max(1, len(known))


def _identified(values: pa.Array, *, signs: bool) -> NDArray[np.int64]:
    """Returns a number for each value, the same for equal ones; those of numbers without NULLs are their own bits."""
    values = floats_as_bits(values, signs=signs)
    if is_stored_as_integer(values.type) and not values.null_count:
        return stored_integers(values)
    return _numbered(values, signs=signs)[0]


def floats_as_bits(column: pa.Array, *, signs: bool) -> pa.Array:
    """Returns floats as their bits, all NaNs being one, and if they have no `signs`, the zeros; or what else it is."""
    if not pa.types.is_floating(column.type):
        return column
    is_nan = pc.is_nan(column)
    column = pc.if_else(is_nan, pa.scalar(math.nan, column.type), column) if pc.any(is_nan).as_py() else column
    column = column if signs else pc.add(column, pa.scalar(0.0, column.type))
    return column.view(f"int{column.type.bit_width}")
