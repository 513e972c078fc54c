"""Enforces what a table's definition demands of its rows: CHECK, PRIMARY KEY and UNIQUE.

A statement is judged by what it leaves: its new rows are checked, and looked up by each key in the table as it was
read. The write that follows is sealed only if the table is still as it was (`dml`), so of two writers that each add a
row of one key the later one reads again, and finds the other's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mz_dagster.adapter.dml import RowUpdate
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import ObjectRow
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.representations import representation_of
from mz_dagster.plan.resolver import Resolver
from mz_dagster.scalars.types import RelationType
from mz_dagster.scalars.values import Interval
from mz_dagster.sql import TableConstraints
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import (
    OverRows,
    bind_check,
    bind_computed,
    bind_equal,
    bind_present,
    evaluated,
    over_numbered,
    violations,
)
from mz_dagster.sql.errors import CheckViolation, UniqueViolation
from mz_dagster.sql.schemas import last_of
from mz_dagster.sql.statements import UniqueKey

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
        computed, columns = self.constraints.computed, self.columns
        if not computed or not rows:
            return list(rows)
        table, given = last_of(self.table.schema, str(self.table.name)), [row[: columns.arity] for row in rows]
        found = [list(row) for row in rows]
        for place, name in enumerate(columns.names):
            if name not in computed:
                continue
            scalar = bind_computed(table, columns, name, computed)
            values = evaluated(scalar, columns, given)
            if values is None:
                numbered: Iterable[Row] = read(OverRows(over_numbered(scalar, columns, given)))
            else:
                numbered = enumerate(values)
            for number, value in numbered:
                found[number][place] = value
        return [*map(tuple, found)]

    def reads(self) -> list[Relation]:
        """Returns the plans of what is read to enforce the constraints, whatever is written."""
        return [self._present(key, []).relation for key in self.constraints.keys]

    def enforce(self, updates: Sequence[RowUpdate], read: Read) -> None:
        """Returns if the table may come to hold what updates make of it.

        Raises:
            CheckViolation: A new row makes a condition false.
            UniqueViolation: A new row would be equal to another in a key.
        """
        new = [row for row, diff in updates if diff > 0]
        if not new:
            return
        self.enforce_among(new, read)
        gone = Counter(repr(row) for row, diff in updates if diff < 0)
        for key in self.constraints.keys:
            left = Counter(gone)
            for _, *old in self.present(key, new, read):
                if not left[repr(tuple(old))]:
                    raise self._twice(key, tuple(old))
                left[repr(tuple(old))] -= 1

    def enforce_among(self, rows: Sequence[Row], read: Read) -> None:
        """Returns if the table may hold rows, as far as these alone decide it; raises as `enforce`."""
        self.check(rows, read)
        for key in self.constraints.keys:
            for number, first in enumerate(self.first_equal(key, rows, read)):
                if number != first:
                    raise self._twice(key, rows[number])

    def check(self, rows: Sequence[Row], read: Read) -> None:
        """Returns if no row makes a condition of the table false.

        Raises:
            CheckViolation: One does.
        """
        name = last_of(self.table.schema, str(self.table.name))
        for check in self.constraints.checks if rows else ():
            predicate = bind_check(name, self.columns, check, self.circumstances)
            held = evaluated(predicate, self.columns, rows)
            if held is None:
                violating = read(OverRows(violations(predicate, self.columns, rows)))
            else:
                violating = [row for row, is_held in zip(rows, held, strict=True) if is_held is False]
            for row in violating[:1]:
                raise CheckViolation(
                    f'new row for relation "{name}" violates check constraint "{check.name}"',
                    detail=f"Failing row contains {shown(row)}.",
                ).about(schema=self.table.schema, table=name, constraint=check.name)

    def present(self, key: UniqueKey, rows: Sequence[Row], read: Read) -> Sequence[Row]:
        """Returns the table's rows that are equal to given ones in a key, each behind the given one's number."""
        return read(self._present(key, rows)) if rows else ()

    def first_equal(self, key: UniqueKey, rows: Sequence[Row], read: Read) -> list[int]:
        """Returns of each given row the number of the first that is equal to it in a key: its own, or an earlier's."""
        places = [self.columns.names.index(name) for name in key.columns]
        found: list[int] = []
        first: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(rows):
            cells = tuple(_hashable(row[i]) for i in places)
            found.append(number if None in cells else first.setdefault(cells, number))
        types = [self.columns.columns[i].type for i in places]
        in_several_ways = any(representation_of(one) is not None for one in types)
        if in_several_ways and len(first) > 1:
            distinct = sorted(first.values())
            pairs = read(bind_equal(key, self.columns, [rows[i] for i in distinct], self.resolver))
            earliest: dict[int, int] = {}
            for later, earlier in pairs:
                earliest[distinct[later]] = min(distinct[earlier], earliest.get(distinct[later], distinct[earlier]))
            found = [earliest.get(number, number) for number in found]
        return found

    def _present(self, key: UniqueKey, rows: Sequence[Row]) -> OverRows:
        return bind_present(key, str(self.table.name), self.columns, rows, self.resolver)

    def _twice(self, key: UniqueKey, row: Row) -> UniqueViolation:
        values = tuple(row[self.columns.names.index(name)] for name in key.columns)
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
