"""Rows as codes of their values, which have the order of these, so that what compares rows compares integers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.compute.local.keys import whole

#: The code of NULL: after all values.
NULL = 2**62

#: For each column its value's code.
Row: TypeAlias = tuple[int, ...]


class CodedRows:
    """Rows as codes of their values, which have the order of these, NULL being last.

    Args:
        table: Rows.
        size: How many; of rows without columns the table does not know it.

    Attributes:
        table: They.
        size: How many rows there are.
        columns: For each column, the codes of its values; -0.0 is before 0.0, and NaN after all numbers.
        compared: The same, but that equal values have one code: those that a query orders by.
    """

    def __init__(self, table: pa.Table, size: int) -> None:
        self.table = table
        self.size = size
        self._sorted: list[pa.Array] = []
        self.columns: list[NDArray[np.int64]] = []
        self.compared: list[NDArray[np.int64]] = []
        for column in table.columns:
            if pa.types.is_floating(column.type):
                self._add_floats(whole(column))
                continue
            encoded = column.combine_chunks().dictionary_encode()
            order = pc.array_sort_indices(encoded.dictionary)
            self._sorted.append(encoded.dictionary.take(order))
            codes = pc.array_sort_indices(order).take(encoded.indices).cast(pa.int64())
            self.columns.append(integers(pc.fill_null(codes, NULL)))
            self.compared.append(self.columns[-1])

    def _add_floats(self, column: pa.Array) -> None:
        is_known = column.is_valid().to_numpy(zero_copy_only=False)
        values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
        bits = values.view(f"i{values.itemsize}")
        # The bits of negative numbers have the opposite order.
        ordered = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
        distinct, first, codes = np.unique(ordered[is_known], return_index=True, return_inverse=True)
        found = np.full(len(values), NULL, np.int64)
        found[is_known] = codes
        self.columns.append(found)
        self._sorted.append(pa.array(values[is_known][first]))
        both_zeros = np.searchsorted(distinct, [-1, 0])
        has_both = np.isin([-1, 0], distinct).all()
        self.compared.append(np.where(found == both_zeros[0], both_zeros[1], found) if has_both else found)

    @property
    def sorted_by(self) -> list[NDArray[np.int64]]:
        """The codes by which rows are in their one order: what all columns compare by, then what tells zeros apart."""
        pairs = zip(self.columns, self.compared, strict=True)
        return [*self.compared, *(codes for codes, compared in pairs if codes is not compared)]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows, coded."""
        return list(zip(*(one.tolist() for one in self.columns), strict=True)) or [()] * self.size

    def decoded(self, position: int, codes: NDArray[np.int64]) -> pa.Array:
        """Returns the values of a column that have some codes."""
        return self._sorted[position].take(pa.array(codes, mask=codes == NULL))

    def arrays(self, cells: Iterable[NDArray[np.int64]]) -> list[pa.Array]:
        """Returns the values of columns of codes."""
        return [self.decoded(position, codes) for position, codes in enumerate(cells)]

    def values(self, rows: Iterable[Row]) -> list[pa.Array]:
        """Returns the columns of coded rows."""
        cells = list(zip(*rows, strict=True)) or [()] * len(self._sorted)
        return [
            values.take(pa.array([None if code == NULL else code for code in codes], pa.int64()))
            for values, codes in zip(self._sorted, cells, strict=True)
        ]
