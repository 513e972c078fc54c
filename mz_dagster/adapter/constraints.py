"""Enforces what a table's definition demands of its rows: CHECK, PRIMARY KEY and UNIQUE.

A statement is judged by what it leaves: its new rows are checked, and looked up by each key in the table as it was
read. The write that follows is sealed only if the table is still as it was (`dml`), so of two writers that each add a
row of one key the later one reads again, and finds the other's.

Rows that come in columns (`StoredRows`) stay there, and are judged column by column, as the others are row by row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.adapter.dml import RowUpdate
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import ObjectRow
from mz_dagster.compute import StoredRows, stored_values
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.representations import representation_of
from mz_dagster.plan.resolver import Resolver
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import RelationType
from mz_dagster.scalars.values import Interval, to_stored
from mz_dagster.sql import TableConstraints
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import (
    OverRows,
    bind_check,
    bind_computed,
    bind_equal,
    bind_present,
    evaluated,
    numbered_columns,
    over_numbered,
    violations,
)
from mz_dagster.sql.errors import CheckViolation, UniqueViolation
from mz_dagster.sql.schemas import last_of
from mz_dagster.sql.statements import UniqueKey
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.row_numbers import firsts, numbered, whole

Row = tuple[Any, ...]
#: Returns the rows of a bound plan, and of what it is given, at the time at which a statement reads.
Read = Callable[[OverRows], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Enforcement:
    """Holds a statement's updates against the constraints of the table it writes.

    Attributes:
        table: The table.
        constraints: What it demands.
        resolver: Answers names.
        circumstances: When and by whom it is executed.
    """

    table: ObjectRow
    constraints: TableConstraints
    resolver: Resolver
    circumstances: Circumstances

    @classmethod
    def of(cls, table: ObjectRow, resolver: Resolver, circumstances: Circumstances) -> Enforcement:
        """Returns that of a table."""
        return cls(table, constraints_of(table.sql), resolver, circumstances)

    @property
    def columns(self) -> RelationType:
        """The table's columns."""
        return self.table.relation_type

    @property
    def is_free(self) -> bool:
        """Whether the table demands nothing of its rows beside types and NOT NULL, and makes nothing of them."""
        constraints = self.constraints
        made = constraints.defaults or constraints.identities or constraints.by_chance or constraints.computed
        return not (constraints or made)

    def completed(self, rows: Sequence[Row], read: Read) -> list[Row]:
        """Returns rows of the table, and what may follow them, with what columns are computed of the others."""
        scalars, columns = self._computed() if rows else {}, self.columns
        if not scalars:
            return list(rows)
        given = [row[: columns.arity] for row in rows]
        found = [list(row) for row in rows]
        for place, scalar in scalars.items():
            values = evaluated(scalar, columns, given)
            for row, value in zip(
                found, self._read_values(scalar, given, read) if values is None else values, strict=True
            ):
                row[place] = value
        return [*map(tuple, found)]

    def completed_columns(self, rows: StoredRows, read: Read) -> StoredRows:
        """Returns what `completed` does of rows in columns."""
        found = rows
        for place, scalar in self._computed().items() if rows else ():
            values = stored_values(scalar, rows)
            if values is None:
                cells = [to_stored(one, scalar.type) for one in self._read_values(scalar, rows, read)]
                values = pa.chunked_array([pa.array(cells, arrow_type(scalar.type))])
            found = found.with_column(place, values)
        return found

    def _computed(self) -> dict[int, Scalar]:
        """Returns what columns are computed by, by their places."""
        columns, computed = self.columns, self.constraints.computed
        table = last_of(self.table.schema, str(self.table.name))
        return {
            place: bind_computed(table, columns, name, computed)
            for place, name in enumerate(columns.names)
            if name in computed
        }

    def _read_values(self, scalar: Scalar, rows: Sequence[Row], read: Read) -> list[Any]:
        """Returns what a scalar is for each of some rows, as a query computes it."""
        places = range(self.columns.arity)
        return [
            value
            for _, value in sorted(
                read(over_numbered(scalar, self.columns, self._numbered(rows, places))), key=itemgetter(0)
            )
        ]

    def reads(self) -> list[Relation]:
        """Returns the plans of what is read to enforce the constraints, whatever is written."""
        return [self._present(key, []).relation for key in self.constraints.keys]

    def enforce(self, updates: Sequence[RowUpdate] | StoredRows, read: Read) -> None:
        """Returns if the table may come to hold what updates make of it, or with rows in columns.

        Raises:
            CheckViolation: A new row makes a condition false.
            UniqueViolation: A new row would be equal to another in a key.
        """
        new: Sequence[Row]
        if isinstance(updates, StoredRows):
            new, gone = updates, Counter[str]()
        else:
            new = [row for row, diff in updates if diff > 0]
            gone = Counter(repr(row) for row, diff in updates if diff < 0)
        if not new:
            return
        self.enforce_among(new, read)
        for key in self.constraints.keys:
            left = Counter(gone)
            for _, *old in sorted(self.present(key, new, read), key=itemgetter(0)):
                if not left[repr(tuple(old))]:
                    raise self._twice(key, tuple(old))
                left[repr(tuple(old))] -= 1

    def enforce_among(self, rows: Sequence[Row], read: Read) -> None:
        """Returns if the table may hold rows, as far as these alone decide it; raises as `enforce`."""
        self.check(rows, read)
        for key in self.constraints.keys:
            number = self._first_twice(key, rows, read)
            if number is not None:
                raise self._twice(key, rows[number])

    def check(self, rows: Sequence[Row], read: Read) -> None:
        """Returns if no row makes a condition of the table false.

        Raises:
            CheckViolation: One does.
        """
        name = last_of(self.table.schema, str(self.table.name))
        for check in self.constraints.checks if rows else ():
            predicate = bind_check(name, self.columns, check, self.circumstances)
            number = self._first_false(predicate, rows, read)
            if number is not None:
                raise CheckViolation(
                    f'new row for relation "{name}" violates check constraint "{check.name}"',
                    detail=f"Failing row contains {shown(rows[number])}.",
                ).about(schema=self.table.schema, table=name, constraint=check.name)

    def _first_false(self, predicate: Scalar, rows: Sequence[Row], read: Read) -> int | None:
        """Returns the number of the first row that makes a condition false, if one does."""
        if isinstance(rows, StoredRows):
            found = stored_values(predicate, rows)
            if found is not None:
                place = int(pc.index(found, pa.scalar(False)).as_py())
                return None if place < 0 else place
        else:
            held = evaluated(predicate, self.columns, rows)
            if held is not None:
                return next((number for number, is_held in enumerate(held) if is_held is False), None)
        numbers = read(violations(predicate, self.columns, self._numbered(rows, range(self.columns.arity))))
        return min((number for (number,) in numbers), default=None)

    def present(self, key: UniqueKey, rows: Sequence[Row], read: Read) -> Sequence[Row]:
        """Returns the table's rows that are equal to given ones in a key, each behind the given one's number."""
        return read(self._present(key, rows)) if rows else ()

    def first_equal(self, key: UniqueKey, rows: Sequence[Row], read: Read) -> list[int]:
        """Returns of each given row the number of the first that is equal to it in a key: its own, or an earlier's."""
        places = self._places(key)
        found: list[int] = []
        first: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(rows):
            cells = tuple(_hashable(row[i]) for i in places)
            found.append(number if None in cells else first.setdefault(cells, number))
        types = [self.columns.columns[i].type for i in places]
        in_several_ways = any(representation_of(one) is not None for one in types)
        if in_several_ways and len(first) > 1:
            distinct = sorted(first.values())
            given = self._numbered([rows[i] for i in distinct], places)
            pairs = read(bind_equal(key, self.columns, given, self.resolver))
            earliest: dict[int, int] = {}
            for later, earlier in pairs:
                earliest[distinct[later]] = min(distinct[earlier], earliest.get(distinct[later], distinct[earlier]))
            found = [earliest.get(number, number) for number in found]
        return found

    def _first_twice(self, key: UniqueKey, rows: Sequence[Row], read: Read) -> int | None:
        """Returns the number of the first row that is equal to an earlier one in a key, if one is."""
        places = self._places(key)
        in_several_ways = any(representation_of(self.columns.columns[i].type) is not None for i in places)
        if not isinstance(rows, StoredRows) or in_several_ways:
            equal = self.first_equal(key, rows, read)
            return next((number for number, first in enumerate(equal) if number != first), None)
        columns = [whole(rows.table.column(place)) for place in places]
        numbers, _ = numbered(columns, len(rows), signs=False)
        is_first = np.zeros(len(rows), np.bool_)
        is_first[firsts(numbers)] = True
        for one in columns:
            if one.null_count:  # which equals nothing
                is_first |= one.is_null().to_numpy(zero_copy_only=False)
        return None if is_first.all() else int(np.argmin(is_first))

    def _present(self, key: UniqueKey, rows: Sequence[Row]) -> OverRows:
        cells = self._numbered(rows, self._places(key))
        return bind_present(key, str(self.table.name), self.columns, cells, self.resolver)

    def _places(self, key: UniqueKey) -> list[int]:
        return [self.columns.names.index(name) for name in key.columns]

    def _numbered(self, rows: Sequence[Row], places: Sequence[int]) -> Sequence[Row]:
        """Returns cells of rows, and behind them each row's number."""
        if not isinstance(rows, StoredRows):
            return [(*(row[i] for i in places), number) for number, row in enumerate(rows)]
        columns = numbered_columns([self.columns.columns[i] for i in places]).columns
        return StoredRows.of([*(rows.table.column(i) for i in places), pa.array(np.arange(len(rows)))], columns)

    def _twice(self, key: UniqueKey, row: Row) -> UniqueViolation:
        values = tuple(row[place] for place in self._places(key))
        return UniqueViolation(
            f'duplicate key value violates unique constraint "{key.name}"',
            detail=f"Key ({', '.join(key.columns)})={shown(values)} already exists.",
        ).about(
            schema=self.table.schema,
            table=last_of(self.table.schema, str(self.table.name)),
            constraint=key.name,
        )


def _hashable(cell: object) -> object:
    """Returns what is the same for cells that are equal, but for those that are stored in several ways."""
    if isinstance(cell, float) and cell != cell:
        return "NaN"
    return tuple(map(_hashable, cell)) if isinstance(cell, list | tuple) and not isinstance(cell, Interval) else cell


def shown(row: Row) -> str:
    """Returns a row as errors show it."""
    return f"({', '.join('null' if one is None else str(one) for one in row)})"
