"""ORDER BY, LIMIT and OFFSET of rows in Arrow columns, as `sql.finishing` defines them for rows in Python.

Each column that rows are ordered by becomes numbers that have its order. Arrow numbers what it compares as we do;
of floats, whose zeros and NaNs it does not, their bits are the numbers; what nests is compared in Python, a column at a
time.

Cost: a number for each row and column that the order needs; ties of the keys take all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute import StoredRows
from mz_dagster.scalars.types import Column, ScalarType
from mz_dagster.sql.finishing import RowSetFinishing, signs, sort_key, stored_key

Numbers = NDArray[np.int64]


def finished_rows(rows: StoredRows, finishing: RowSetFinishing) -> StoredRows:
    """Returns rows as `finishing` hands them out: those that `sql.finishing.ordered_rows` does."""
    stop = len(rows) if finishing.limit is None else min(len(rows), finishing.offset + finishing.limit)
    if finishing.is_ordered:
        rows = rows.taken(_order(rows, finishing)[finishing.offset : stop])
    return rows.arranged(finishing.project)


def _order(rows: StoredRows, finishing: RowSetFinishing) -> Numbers:
    """Returns the places of the rows, in their order."""
    keys: list[Numbers] = []
    for one in finishing.order:
        keys += _key(rows.table.column(one.position), finishing.types[one.position], one.descending, one.nulls_first)
    order = _sorted(keys, len(rows))
    if _has_ties(keys, order):
        ties = [_ties(rows.table.column(place), type_) for place, type_ in enumerate(finishing.types)]
        order = _sorted(
            [*keys, *(own for own, _ in ties), *(zeros for _, zeros in ties if zeros is not None)], len(rows)
        )
    return order


def _sorted(keys: Sequence[Numbers], count: int) -> Numbers:
    """Returns the places of so many rows in the order of keys, most significant first."""
    return np.lexsort([*reversed(keys)]) if keys else np.arange(count)


def _has_ties(keys: Sequence[Numbers], order: Numbers) -> bool:
    same = np.ones(max(0, len(order) - 1), np.bool_)
    for key in keys:
        there = key[order]
        same &= there[1:] == there[:-1]
    return bool(same.any())


def _key(values: pa.ChunkedArray, type_: ScalarType, descending: bool, nulls_first: bool) -> list[Numbers]:
    """Returns numbers that have the order of a key: whether it is NULL, and which value it is."""
    numbers, _ = _numbers(values, type_, partial(sort_key, type_=type_))
    is_null = values.is_null().to_numpy().astype(np.int64)
    numbers[is_null == 1] = 0
    return [-is_null if nulls_first else is_null, -numbers if descending else numbers]


def _ties(values: pa.ChunkedArray, type_: ScalarType) -> tuple[Numbers, Numbers | None]:
    """Returns numbers that have the order of a column among ties, NULL last, and of the signs of its zeros, if any."""
    numbers, zeros = _numbers(values, type_, partial(stored_key, type_=type_))
    numbers[values.is_null().to_numpy()] = np.iinfo(np.int64).max
    return numbers, zeros


def _numbers(values: pa.ChunkedArray, type_: ScalarType, key: Callable[[Any], Any]) -> tuple[Numbers, Numbers | None]:
    """Returns numbers that have the order of values, NULL anywhere, and of the signs of their zeros, if they have any.

    Args:
        values: As stored.
        type_: Of what type.
        key: What orders those that Arrow does not, in Python's form.
    """
    if pa.types.is_floating(values.type):
        return _of_floats(values)
    if pa.types.is_nested(values.type):
        cells = [cell for (cell,) in StoredRows.of([values], [Column("", type_)])]
        return _of_keys(cells, key), _of_keys(cells, signs)
    return pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64), None


def _of_floats(values: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """Returns the numbers of floats by their bits: NaN above all, and the zeros one."""
    floats = values.cast(pa.float64()).to_numpy()
    bits = np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.int64)
    numbers = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    return numbers, ~((floats == 0) & np.signbit(floats))


def _of_keys(cells: Sequence[Any], key: Callable[[Any], Any]) -> Numbers:
    """Returns the numbers of cells that are compared by a key; 0 for NULL."""
    keys = {place: key(cell) for place, cell in enumerate(cells) if cell is not None}
    numbers, number, before = np.zeros(len(cells), np.int64), 0, None
    for place in sorted(keys, key=keys.__getitem__):
        number += not number or keys[place] != before
        numbers[place], before = number, keys[place]
    return numbers
