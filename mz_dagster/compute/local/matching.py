"""Which rows of two tables have equal keys: the inside of a join, as numbers of rows.

What is not asked for is left out first; keys of what is left become small integers (`keys.numbered`), so that what is
looked up is an array, not a hash table: how many rows of the other side a key has, and where they begin once those are
in order. So it is known how many pairs there are before they are made. NULL is like NULL; who does not want it so
leaves these rows out.

Arrow's own join, with its count of pairs, is slower; Polars' is faster by milliseconds in steps of seconds, for which
it would be a dependency (`docs/performance.md`).

Memory: an integer or two for each row, and two for each pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.local.declined import TooManyMade
from mz_dagster.compute.local.expressions.outcome import as_mask
from mz_dagster.storage.row_numbers import compact, numbered, whole

#: Up to so many times as many numbers as rows are counted in an array.
_SPARSE = 4


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """The values of a column in order, to be looked up in more than once.

    Attributes:
        values: They, ascending.
        rows: Where each is in the column; of equal ones in the column's order.
    """

    values: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> SortedKeys | None:
        """Returns a column's values in order; None if it has NULLs, or is not of integers, dates or moments."""
        values = _integers(column)
        if values is None:
            return None
        rows = np.argsort(values, kind="stable")
        return cls(values[rows], rows)


def sorted_matches(
    asked: pa.ChunkedArray, keys: SortedKeys, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Returns what `matches` does of one pair of columns, one of which is in order; None if the other has NULLs.

    Args:
        asked: The one column, of the type of the keys.
        keys: The other.
        most: How many pairs of rows may be made.

    Raises:
        TooManyMade: There are more.

    Example:
        >>> keys = SortedKeys.of(pa.chunked_array([[2, 7, 2]]))
        >>> [found.tolist() for found in sorted_matches(pa.chunked_array([[1, 2]]), keys, 9)]
        [[1, 1], [0, 2]]
    """
    values = _integers(asked)
    if values is None:
        return None
    begin = np.searchsorted(keys.values, values, "left")
    count = np.searchsorted(keys.values, values, "right") - begin
    lefts, places = _pairs(count, begin, most)
    return lefts, keys.rows[places]


def _integers(column: pa.ChunkedArray) -> NDArray[np.int64] | None:
    """Returns a column's values as integers that are equal and in order as they are; None if they have no such form."""
    if column.null_count:
        return None
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif not pa.types.is_signed_integer(kind):
        return None
    found: NDArray[np.int64] = column.to_numpy()
    return found


def _pairs(
    count: NDArray[np.int64], begin: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns pairs of numbers: i, as often as it counts, with those from where it begins on."""
    total = int(count.sum())
    if total > most:
        raise TooManyMade("too many rows are joined")
    lefts = np.repeat(np.arange(len(count)), count)
    return lefts, np.arange(total) + np.repeat(begin - np.cumsum(count) + count, count)


def matches(
    pairs: Sequence[tuple[pa.ChunkedArray, pa.ChunkedArray]], left: int, right: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the numbers of the rows on both sides of each pair whose keys are equal.

    Args:
        pairs: The columns of both sides that must be equal, of one type each.
        left: How many rows the one side has.
        right: How many the other has.
        most: How many pairs may be made.

    Raises:
        TooManyMade: There are more.

    Example:
        >>> one, other = pa.chunked_array([[1, 2, None]]), pa.chunked_array([[2, None, 2]])
        >>> [found.tolist() for found in matches([(one, other)], 3, 3, 9)]
        [[1, 1, 2], [0, 2, 1]]
    """
    met = np.arange(right)
    if left and right > left:  # most of what is much is not asked for, and hashing it is what costs
        plain = [pair for pair in pairs if not pa.types.is_nested(pair[0].type)]
        is_met = [pc.is_in(other, one.unique()) for one, other in plain]
        if is_met:
            met = np.flatnonzero(as_mask(whole(reduce(pc.and_, is_met))))
    few = [(one, other.take(pa.array(met)) if len(met) < right else other) for one, other in pairs]
    columns = [pa.concat_arrays([whole(one), whole(other)]) for one, other in few]
    numbers, bound = numbered(columns, left + len(met))
    if bound > _SPARSE * len(numbers) + 1:
        numbers, bound = compact(numbers)
    asked, keys = numbers[:left], numbers[left:]
    count = np.bincount(keys, minlength=bound)
    begin = np.cumsum(count) - count
    lefts, places = _pairs(count[asked], begin[asked], most)
    return lefts, met[np.argsort(keys, kind="stable")][places]
