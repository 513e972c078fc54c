"""Which rows of two sides compare as is asked, where none of their columns must be equal.

A column of the one side is put in order; what rows of the other compare it with says from where to where in it their
matches are. So a join by ranges costs a sort and what it makes, not what a cross join would make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mz_dagster.compute.local.expressions.numbers import integers, nulls
from mz_dagster.compute.local.matching import spans
from mz_dagster.storage.row_numbers import order_by, whole

_Numbers = NDArray[np.int64]


class Ranges(NamedTuple):
    """Where in a column's order the matches of each row of the other side are.

    Attributes:
        rows: The numbers of the column's rows, in the order of its values; without those of NULLs.
        begin: By row of the other side: the place of its first match among them.
        counts: By row of the other side: how many matches it has.
    """

    rows: _Numbers
    begin: _Numbers
    counts: _Numbers

    @property
    def total(self) -> int:
        """How many pairs there are."""
        return int(self.counts.sum())

    def pairs(self, most: int) -> tuple[_Numbers, _Numbers]:
        """Returns the numbers of the rows of the other side, and of those that they meet.

        Raises:
            TooManyMade: The pairs are more than `most`.
        """
        asking, places = spans(self.counts, self.begin, most)
        return asking, self.rows[places]


def ranges(column: pa.ChunkedArray, asked: Sequence[tuple[str, pa.Array]]) -> Ranges:
    """Returns where the rows of a column are that compare as each row of another side asks, with all it has.

    Args:
        column: Integers, dates or moments.
        asked: `eq`, `lt`, `le`, `gt` or `ge`, and values of the column's type, by row of the other side.

    Example:
        >>> between = [("ge", pa.array([2, 9])), ("lt", pa.array([4, None]))]
        >>> found = ranges(pa.chunked_array([[3, None, 2, 4]]), between)
        >>> [numbers.tolist() for numbers in found.pairs(9)]
        [[0, 0], [2, 0]]
    """
    array = whole(column)
    values = integers(array)
    present = np.flatnonzero(~nulls(array)) if array.null_count else np.arange(len(array))
    rows = present[order_by([values[present]])] if len(present) else present
    ordered = values[rows]
    size = len(asked[0][1])
    begin, end = np.zeros(size, np.int64), np.full(size, len(rows))
    for operation, others in asked:
        bounds = integers(others)
        if operation in ("ge", "gt", "eq"):
            begin = np.maximum(begin, np.searchsorted(ordered, bounds, "right" if operation == "gt" else "left"))
        if operation in ("le", "lt", "eq"):
            end = np.minimum(end, np.searchsorted(ordered, bounds, "left" if operation == "lt" else "right"))
        if others.null_count:
            end = np.where(nulls(others), 0, end)
    return Ranges(rows, begin, np.maximum(end - begin, 0))
