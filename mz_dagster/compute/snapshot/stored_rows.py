"""Rows that were read, in the Arrow columns that they were computed in: made into Python's when somebody takes them.

A row is there as often as its multiplicity says, and all of them are good: errors and negative multiplicities are told
before there are any.

Cost: the columns, and Python's cells for as many rows as are taken at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.scalars.scalar import Literal, Value
from mz_dagster.scalars.types import Column, Kind, ScalarType
from mz_dagster.scalars.values import all_to_stored, from_stored, to_stored
from mz_dagster.storage.arrow_schema import arrow_type, update_schema
from mz_dagster.storage.plain_cells import moments_as_numbers

Row = tuple[Value, ...]

#: How many rows are made at once; so few are made when they are found.
AT_ONCE = 1024
#: How many bytes of columns are rearranged at once: a piece of texts has room for 2 GiB.
_PIECE = 1 << 28
#: What Arrow hands out in Python's form already.
_SAME = frozenset((
    *(Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.NUMERIC, Kind.UNCONSTRAINED),
    *(Kind.FLOAT4, Kind.FLOAT8, Kind.TEXT, Kind.VARCHAR, Kind.BYTEA, Kind.JSON, Kind.JSONB),
))  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows(Sequence[Row]):
    """Rows in Arrow columns, as stored.

    Attributes:
        table: The columns, by their positions.
        columns: What they are.
    """

    table: pa.Table
    columns: tuple[Column, ...]

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Value]], columns: Sequence[Column]) -> StoredRows:
        """Returns rows in Python's form as they are stored."""
        cells = zip(*rows, strict=True) if rows else ((),) * len(columns)
        return cls.of(
            [
                pa.array(all_to_stored(own, column.type), arrow_type(column.type))
                for own, column in zip(cells, columns, strict=True)
            ],
            columns,
        )

    @classmethod
    def of(cls, arrays: Sequence[pa.ChunkedArray | pa.Array], columns: Sequence[Column]) -> StoredRows:
        """Returns the rows of columns, whose moments may be numbers."""
        types = [arrow_type(one.type) for one in columns]
        cells = [one if one.type == own else one.cast(own) for one, own in zip(arrays, types, strict=True)]
        return cls(pa.Table.from_arrays(cells, [str(place) for place in range(len(cells))]), tuple(columns))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        places = range(len(self))[at]
        if isinstance(places, int):
            return self.rows(places, places + 1)[0]
        if places.step == 1:
            return self.rows(places.start, places.stop)
        return [self[place] for place in places]

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), AT_ONCE):
            yield from self.rows(start, start + AT_ONCE)

    def rows(self, start: int, stop: int) -> list[Row]:
        """Returns the rows from one place up to another, in Python's form."""
        part = self.table.slice(start, max(0, stop - start))
        cells = [python_form(part.column(place), one.type) for place, one in enumerate(self.columns)]
        return list(zip(*cells, strict=True))

    def taken(self, places: NDArray[np.int64]) -> StoredRows:
        """Returns the rows at some places, in their order."""
        at_once = max(1, len(self) * _PIECE // max(1, self.table.nbytes))
        pieces = [self.table.take(pa.array(places[at : at + at_once])) for at in range(0, len(places), at_once)]
        return StoredRows(pa.concat_tables(pieces) if pieces else self.table.slice(0, 0), self.columns)

    def updates(self, columns: Sequence[Column], time: int, diff: int = 1) -> pa.Table:
        """Returns the updates by which the rows are there from a time on, of columns of the same types.

        Or by which they are there no longer, if `diff` is -1.
        """
        times, diffs = (pa.repeat(pa.scalar(one, pa.int64()), len(self)) for one in (time, diff))
        data = [*self.table.columns, times, diffs, pa.nulls(len(self), pa.string())]
        return pa.Table.from_arrays(data, schema=update_schema(columns))

    def followed_by(self, others: StoredRows) -> StoredRows:
        """Returns the rows, and behind them others of columns of the same types."""
        return StoredRows(pa.concat_tables([self.table, others.table]), self.columns)

    def with_column(self, place: int, values: pa.Array | pa.ChunkedArray) -> StoredRows:
        """Returns the rows with other stored values, as many as there are rows, in the column at a place."""
        return StoredRows(self.table.set_column(place, str(place), values), self.columns)

    def arranged(self, cells: Sequence[int | Literal]) -> StoredRows:
        """Returns the rows made of some of their columns, and of constants."""
        if [*cells] == [*range(len(self.columns))]:
            return self
        own = [
            (self.table.column(one), self.columns[one])
            if isinstance(one, int)
            else (constant(one, len(self)), Column("", one.type))
            for one in cells
        ]
        return StoredRows.of([values for values, _ in own], [column for _, column in own])


def constant(literal: Literal, count: int) -> pa.Array:
    """Returns so many stored values that are the same."""
    one = pa.array([to_stored(literal.value, literal.type)], arrow_type(literal.type))
    return one.take(pa.array(np.zeros(count, np.int64)))


def python_form(values: pa.ChunkedArray, type_: ScalarType) -> list[Any]:
    """Returns stored cells as Python has them."""
    if type_.kind in _SAME:
        return list(values.to_pylist())
    return [from_stored(cell, type_) for cell in moments_as_numbers(values).to_pylist()]


def repeated(diffs: pa.ChunkedArray) -> NDArray[np.int64] | None:
    """Returns the place of each row, as often as its multiplicity says; None if each is there once."""
    if not len(diffs) or pc.all(pc.equal(diffs, 1)).as_py():
        return None
    return np.repeat(np.arange(len(diffs)), diffs.to_numpy())
