"""What an expression is over a batch: for each row a value, NULL or an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.local.expressions.registry import Mask, Operand


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The values of an expression, and its errors.

    Attributes:
        values: In their stored form; NULL for rows with an error. A scalar, if it is the same for all rows.
        errors: Each row's error, its SQLSTATE and message, or NULL; None if no row has one.
    """

    values: Operand
    errors: pa.Array | None = None

    def array(self, rows: int) -> pa.Array:
        """Returns the values as an array of so many."""
        if not isinstance(self.values, pa.Scalar):
            return self.values
        # Arrow repeats no list zero times.
        return pa.repeat(self.values, rows) if rows else pa.nulls(0, self.values.type)

    @property
    def is_failed(self) -> Mask | None:
        """Which rows have an error; None if none has."""
        return None if self.errors is None else as_mask(self.errors.is_valid())


class RowBatch:
    """Rows of columns, of which each is made only when it is asked for.

    Args:
        rows: How many there are.
        column: Returns the column at a position.

    Example:
        >>> batch = RowBatch(3, {0: pa.array([1, 2, 3])}.__getitem__)
        >>> few = batch.where(np.array([True, False, True]))
        >>> few.rows, few.at(0).to_pylist()
        (2, [1, 3])
    """

    def __init__(self, rows: int, column: Callable[[int], pa.Array]) -> None:
        self.rows = rows
        self._column = column
        self._found: dict[int, pa.Array] = {}

    def at(self, position: int) -> pa.Array:
        """Returns the column at a position."""
        if position not in self._found:
            self._found[position] = self._column(position)
        return self._found[position]

    def with_column(self, position: int, values: pa.Array) -> RowBatch:
        """Returns a copy with one more column."""
        found = RowBatch(self.rows, self.at)
        found._found[position] = values
        return found

    def where(self, mask: Mask) -> RowBatch:
        """Returns the rows for which the mask is true."""
        chosen = pa.array(np.flatnonzero(mask))
        return RowBatch(len(chosen), lambda position: self.at(position).take(chosen))


def as_mask(values: pa.Array) -> Mask:
    """Returns which rows are true."""
    filled = pc.fill_null(values, False) if values.null_count else values
    found: Mask = np.asarray(filled.to_numpy(zero_copy_only=False), np.bool_)
    return found


def first_errors(outcomes: Sequence[Evaluated]) -> pa.Array | None:
    """Returns for each row the error of the first outcome that has one."""
    errors = [one.errors for one in outcomes if one.errors is not None]
    return None if not errors else errors[0] if len(errors) == 1 else pc.coalesce(*errors)


def scattered(rows: int, parts: Sequence[tuple[Mask, Evaluated]], type_: pa.DataType) -> Evaluated:
    """Returns the outcome over a batch of which each part has the rows of its mask; others are NULL.

    Example:
        >>> odd = np.array([True, False, True])
        >>> scattered(3, [(odd, Evaluated(pa.array([1, 3])))], pa.int64()).values.to_pylist()
        [1, None, 3]
    """
    sizes = [int(mask.sum()) for mask, _ in parts]
    number = np.full(rows, -1, np.int64)
    start = 0
    for size, (mask, _) in zip(sizes, parts, strict=True):
        number[mask] = np.arange(start, start + size)
        start += size
    places = pa.array(number, mask=number < 0)
    values = [one.array(size) for size, (_, one) in zip(sizes, parts, strict=True)]
    taken = pa.concat_arrays([pa.array([], type_), *values]).take(places)
    if all(one.errors is None for _, one in parts):
        return Evaluated(taken)
    errors = [
        pa.nulls(size, pa.string()) if one.errors is None else one.errors
        for size, (_, one) in zip(sizes, parts, strict=True)
    ]
    return Evaluated(taken, pa.concat_arrays(errors).take(places))
