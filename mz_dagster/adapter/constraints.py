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
from numpy.typing import NDArray

from mz_dagster.adapter.dml import ColumnUpdates, Updates
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import REFERENCES, ObjectRow
from mz_dagster.compute import StoredRows, stored_values
from mz_dagster.plan.relation import Get, Relation
from mz_dagster.plan.representations import representation_of
from mz_dagster.plan.resolver import Resolver
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import RelationType
from mz_dagster.scalars.values import Interval, all_to_stored
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
from mz_dagster.sql.declared_keys import UniqueKey
from mz_dagster.sql.errors import CheckViolation, UniqueViolation
from mz_dagster.sql.schemas import last_of
from mz_dagster.storage.arrow_schema import arrow_type
from mz_dagster.storage.row_numbers import compact, firsts, numbered, whole

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
        return not (constraints or made or self.table.options.get(REFERENCES))

    def completed(self, rows: Sequence[Row], read: Read) -> list[Row]:
        """Returns rows of the table, and what may follow them, with what columns are computed of the others."""
        scalars, columns = self._computed() if rows else {}, self.columns
        if not scalars:
            return list(rows)
        given = [row[: columns.arity] for row in rows]
        found = [list(row) for row in rows]
        for place, scalar in scalars.items():
            for row, value in zip(found, values_of(scalar, columns, given, read), strict=True):
                row[place] = value
        return [*map(tuple, found)]

    def completed_columns(self, rows: StoredRows, read: Read) -> StoredRows:
        """Returns what `completed` does of rows in columns."""
        found = rows
        for place, scalar in self._computed().items() if rows else ():
            values = stored_values(scalar, rows)
            if values is None:
                cells = all_to_stored(_read_values(scalar, self.columns, rows, read), scalar.type)
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

    def reads(self) -> list[Relation]:
        """Returns the plans of what is read to enforce the constraints, whatever is written."""
        return [Get(self.table.id, self.columns, str(self.table.name))] if self.constraints.keys else []

    def enforce(self, updates: Updates, read: Read) -> None:
        """Returns if the table may come to hold what updates make of it.

        Raises:
            CheckViolation: A new row makes a condition false.
            UniqueViolation: A new row would be equal to another in a key.
        """
        new: Sequence[Row]
        gone: Sequence[Row]
        if isinstance(updates, ColumnUpdates):
            new, gone = updates.added or (), updates.removed or ()
        else:
            new = [row for row, diff in updates if diff > 0]
            gone = [row for row, diff in updates if diff < 0]
        if not new:
            return
        self.check(new, read)
        keys = [one for one in self.constraints.keys if not self._keeps(one, gone, new)]
        self._enforce_keys_among(keys, new, read)
        for key in keys:
            found = self.present(key, new, read)
            if isinstance(found, StoredRows) and (isinstance(gone, StoredRows) or not gone):
                number = _first_not_in(found, gone if isinstance(gone, StoredRows) else None)
                if number is not None:
                    place, *cells = found[number]
                    assert isinstance(place, int), "it is the given row's number"
                    raise self._twice(key, cells, place)
                continue
            left = Counter(map(repr, gone)) if found else Counter()
            for place, *old in sorted(found, key=itemgetter(0)):
                if not left[repr(tuple(old))]:
                    raise self._twice(key, old, place)
                left[repr(tuple(old))] -= 1

    def _keeps(self, key: UniqueKey, gone: Sequence[Row], new: Sequence[Row]) -> bool:
        """Returns whether rows take the places of others of the same key, one by one, as far as one look tells.

        Then no two of the table's are equal in it, as before.
        """
        places = self._places(key)
        if len(gone) != len(new):
            return False
        if isinstance(gone, StoredRows) and isinstance(new, StoredRows):
            return all(gone.table.column(place).equals(new.table.column(place)) for place in places)
        cells = ([[row[place] for place in places] for row in rows] for rows in (gone, new))
        return repr(next(cells)) == repr(next(cells))

    def enforce_among(self, rows: Sequence[Row], read: Read) -> None:
        """Returns if a table may consist of rows, which it does not have to before.

        Raises:
            CheckViolation: A row makes a condition false.
            UniqueViolation: Two rows are equal in a key, for which so there can be no index.
        """
        self.check(rows, read)
        for key in self.constraints.keys:
            number = self._first_twice(key, rows, read)
            if number is not None:
                raise self._unique_violation(
                    key, rows[number], number, f'could not create unique index "{key.name}"', "is duplicated"
                )

    def _enforce_keys_among(self, keys: Sequence[UniqueKey], rows: Sequence[Row], read: Read) -> None:
        for key in keys:
            number = self._first_twice(key, rows, read)
            if number is not None:
                raise self._twice(key, rows[number], number)

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
                error = CheckViolation(
                    f'new row for relation "{name}" violates check constraint "{check.name}"',
                    detail=f"Failing row contains {shown(rows[number])}.",
                )
                raise error.about(schema=self.table.schema, table=name, constraint=check.name).of_row(number)

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
        if isinstance(rows, StoredRows) and not self._is_in_several_ways(places):
            found: list[int] = _first_equal([whole(rows.table.column(place)) for place in places]).tolist()
            return found
        return self._first_equal_rows(key, places, rows, read)

    def _is_in_several_ways(self, places: Sequence[int]) -> bool:
        return any(representation_of(self.columns.columns[i].type) is not None for i in places)

    def _first_equal_rows(self, key: UniqueKey, places: Sequence[int], rows: Sequence[Row], read: Read) -> list[int]:
        found: list[int] = []
        first: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(rows):
            cells = tuple(hashable_cell(row[i]) for i in places)
            found.append(number if None in cells else first.setdefault(cells, number))
        if self._is_in_several_ways(places) and len(first) > 1:
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
        if not isinstance(rows, StoredRows) or self._is_in_several_ways(places):
            equal = self._first_equal_rows(key, places, rows, read)
            return next((number for number, first in enumerate(equal) if number != first), None)
        found = _first_equal([whole(rows.table.column(place)) for place in places])
        is_first = found == np.arange(len(found))
        return None if is_first.all() else int(np.argmin(is_first))

    def _present(self, key: UniqueKey, rows: Sequence[Row]) -> OverRows:
        cells = self._numbered(rows, self._places(key))
        return bind_present(key, str(self.table.name), self.columns, cells, self.resolver)

    def _places(self, key: UniqueKey) -> list[int]:
        return [self.columns.names.index(name) for name in key.columns]

    def _numbered(self, rows: Sequence[Row], places: Sequence[int]) -> Sequence[Row]:
        return _numbered(self.columns, rows, places)

    def _twice(self, key: UniqueKey, row: Sequence[Any], number: int) -> UniqueViolation:
        message = f'duplicate key value violates unique constraint "{key.name}"'
        return self._unique_violation(key, row, number, message, "already exists")

    def _unique_violation(
        self, key: UniqueKey, row: Sequence[Any], number: int, message: str, found: str
    ) -> UniqueViolation:
        values = tuple(row[place] for place in self._places(key))
        error = UniqueViolation(message, detail=f"Key ({', '.join(key.columns)})={shown(values)} {found}.")
        table = last_of(self.table.schema, str(self.table.name))
        return error.about(schema=self.table.schema, table=table, constraint=key.name).of_row(number)


def values_of(scalar: Scalar, columns: RelationType, rows: Sequence[Row], read: Read) -> list[Any]:
    """Returns what a scalar over a table's columns is for each of some rows.

    Raises:
        DataError: It fails for one.
    """
    found = evaluated(scalar, columns, rows)
    return _read_values(scalar, columns, rows, read) if found is None else found


def _read_values(scalar: Scalar, columns: RelationType, rows: Sequence[Row], read: Read) -> list[Any]:
    """Returns what a scalar is for each of some rows, as a query computes it."""
    numbered_rows = _numbered(columns, rows, range(columns.arity))
    return [value for _, value in sorted(read(over_numbered(scalar, columns, numbered_rows)), key=itemgetter(0))]


def _numbered(columns: RelationType, rows: Sequence[Row], places: Sequence[int]) -> Sequence[Row]:
    """Returns cells of rows, and behind them each row's number."""
    if not isinstance(rows, StoredRows):
        return [(*(row[i] for i in places), number) for number, row in enumerate(rows)]
    types = numbered_columns([columns.columns[i] for i in places]).columns
    return StoredRows.of([*(rows.table.column(i) for i in places), pa.array(np.arange(len(rows)))], types)


def _first_equal(columns: Sequence[pa.Array]) -> NDArray[np.int64]:
    """Returns of each row of some columns the place of the first that is equal to it; a NULL equals nothing."""
    rows = len(columns[0])
    numbers, _ = compact(numbered(columns, rows, signs=False)[0])
    found = firsts(numbers)[numbers] if rows else numbers
    for one in columns:
        if one.null_count:
            found = np.where(one.is_null().to_numpy(zero_copy_only=False), np.arange(rows), found)
    return found


def _first_not_in(found: StoredRows, gone: StoredRows | None) -> int | None:
    """Returns the place of the numbered row of the least number that is none of those that go; None if all are.

    The rows are equal to one of a table in a key each, so none of them is there twice.
    """
    if not len(found):
        return None
    order = np.argsort(whole(found.table.column(0)).to_numpy(), kind="stable")
    if gone is None:
        return int(order[0])
    both = [
        pa.concat_arrays([whole(there), whole(going)])
        for there, going in zip(found.table.columns[1:], gone.table.columns, strict=True)
    ]
    numbers, _ = numbered(both, len(found) + len(gone))
    is_there = np.isin(numbers[: len(found)], numbers[len(found) :])[order]
    return None if is_there.all() else int(order[np.argmin(is_there)])


def hashable_cell(cell: object) -> object:
    """Returns what is the same for cells that are equal, but for those that are stored in several ways."""
    if isinstance(cell, float) and cell != cell:
        return "NaN"
    return (
        tuple(map(hashable_cell, cell)) if isinstance(cell, list | tuple) and not isinstance(cell, Interval) else cell
    )


def shown(row: Row) -> str:
    """Returns a row as errors show it."""
    return f"({', '.join('null' if one is None else str(one) for one in row)})"
