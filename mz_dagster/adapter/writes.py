"""INSERT, UPDATE, DELETE and COPY: what each reads, decides and appends, for a session.

Each is one batch of its table and takes effect at one time. What reads before it writes reads all at one time, and the
table has not changed since when it is appended to; see `dml`. Of other collections that it reads only this is promised:
their content is of one time, not before any write that was acknowledged before the statement began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mz_dagster.adapter.dml import RowUpdate, append, append_columns, check_not_null, read_and_append
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.names import table_named
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.result import Result
from mz_dagster.catalog import CollectionRow, ObjectRow
from mz_dagster.errors import ProgrammingError
from mz_dagster.plan.relation import Constant
from mz_dagster.plan.scalar import Literal
from mz_dagster.plan.types import Column, RelationType
from mz_dagster.sql import (
    BoundChange,
    Copy,
    Delete,
    Insert,
    SqlText,
    Update,
    bind_delete,
    bind_insert_many,
    bind_returning,
    bind_update,
    ordered_rows,
)
from mz_dagster.sql.errors import DuplicateColumn, UndefinedColumn, suggestion
from mz_dagster.storage.copy_csv import read_csv
from mz_dagster.storage.copy_parquet import read_parquet

Row = tuple[Any, ...]
Parameters = Sequence[object]


class AmbiguousUpdate(ProgrammingError):
    """Reports an UPDATE whose FROM clause gives a row of the table several new values; nothing was written."""

    sqlstate = "21000"


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes tables, for a session.

    Attributes:
        engine: The project.
        peeks: What reads for it.
    """

    engine: Engine
    peeks: Peeks

    def insert(self, statement: Insert, many: Sequence[Parameters], clock: datetime) -> Result:
        """Inserts the rows that the statement says with each of the sets of parameters, as one batch.

        Rows that a set makes the statement read are those before any of the sets wrote.
        """
        row, table = self._table(statement)
        definitions = self.engine.definitions
        rows: list[Row] = []
        for bound in bind_insert_many(statement, row.relation_type, definitions, many, clock=clock):
            if isinstance(bound.relation, Constant):
                rows += (tuple(cell.value for cell in one) for one in bound.relation.rows)
            else:
                # Rows that were read are written strictly later; the table's own upper guards only the table, which is
                # enough as long as reads and the write may be ordered by their timestamps.
                rows += self.peeks.peek(bound.relation, None)
        check_not_null(table, statement.table.last, rows)
        called = statement.table.last
        columns, returned = self._returned(statement.returning, called, row, rows, many[0] if many else (), clock)
        if rows:
            append(self.engine, table.id, [(one, 1) for one in rows])
        return Result(f"INSERT 0 {len(rows)}", columns, returned, len(rows))

    def delete(self, statement: Delete, parameters: Parameters, clock: datetime) -> Result:
        """Deletes the rows that the statement says."""
        row, table = self._table(statement)
        bound = bind_delete(statement, row.relation_type, self.engine.definitions, params=parameters, clock=clock)

        def decide(now: CollectionRow) -> tuple[list[RowUpdate], list[Row]]:
            (old,) = self.peeks.peek_before([bound.old], now)
            return [(one, -1) for one in old], old

        return self._changed("DELETE", statement, row, table, decide, parameters, clock)

    def update(self, statement: Update, parameters: Parameters, clock: datetime) -> Result:
        """Updates the rows that the statement says."""
        row, table = self._table(statement)
        bound = bind_update(statement, row.relation_type, self.engine.definitions, params=parameters, clock=clock)

        def decide(now: CollectionRow) -> tuple[list[RowUpdate], list[Row]]:
            pairs = self._pairs(bound, now)
            new = [one for _, one in pairs]
            check_not_null(now, statement.table.last, new)
            return [(one, -1) for one, _ in pairs] + [(one, 1) for one in new], new

        return self._changed("UPDATE", statement, row, table, decide, parameters, clock)

    def copy(self, statement: Copy) -> Result:
        """Appends the rows of a file, as one batch."""
        row, table = self._table(statement)
        names = statement.columns or row.relation_type.names
        read = _columns(row.relation_type, names, statement)
        path = self.engine.project.root / Path(statement.path).expanduser()
        if (csv := statement.csv) is None:
            found = read_parquet(path, read)
        else:
            found = read_csv(path, read, header=csv.header, delimiter=csv.delimiter, quote=csv.quote,
                             escape=csv.escape, null=csv.null)  # fmt: skip
        count = len(found[0]) if found else 0
        append_columns(self.engine, table, statement.table.last, dict(zip(names, found, strict=True)), count)
        return Result(f"COPY {count}", rowcount=count)

    def _pairs(self, bound: BoundChange, table: CollectionRow) -> list[tuple[Row, Row]]:
        """Returns each row that an UPDATE changes with what takes its place, as often as the table has it."""
        assert bound.new is not None
        arity = len(table.columns)
        if not bound.joins:
            (found,) = self.peeks.peek_before([bound.new], table)
            return [(one[:arity], one[arity:]) for one in found]
        matches, old = self.peeks.peek_before([bound.new, bound.old], table)
        new: dict[str, Row] = {}  # by the old row as text: 0.0 is not -0.0 there, and NaN is NaN
        for one in matches:
            if repr(new.setdefault(repr(one[:arity]), one[arity:])) != repr(one[arity:]):
                raise AmbiguousUpdate(
                    "FROM gives a row of the table several new values",
                    detail=f"The row is {_shown(one[:arity])}.",
                    hint="Let each row match once, or aggregate what it matches.",
                )
        return [(one, new[repr(one)]) for one in old]

    def _changed(
        self,
        command: str,
        statement: Update | Delete,
        row: ObjectRow,
        table: CollectionRow,
        decide: Callable[[CollectionRow], tuple[list[RowUpdate], list[Row]]],
        parameters: Parameters,
        clock: datetime,
    ) -> Result:
        """Appends what `decide` makes of the table; it returns updates, and the rows that RETURNING is about."""
        count = 0
        called = statement.alias or statement.table.last
        columns, returned = self._returned(statement.returning, called, row, [], parameters, clock)

        def decided(now: CollectionRow) -> list[RowUpdate]:
            nonlocal count, columns, returned
            updates, rows = decide(now)
            count = len(rows)
            columns, returned = self._returned(statement.returning, called, row, rows, parameters, clock)
            return updates

        if table.upper.only > 0:
            read_and_append(self.engine, table.id, decided)
        return Result(f"{command} {count}", columns, returned, count)

    def _returned(
        self,
        returning: SqlText | None,
        called: str,
        row: ObjectRow,
        rows: Sequence[Row],
        parameters: Parameters,
        clock: datetime,
    ) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
        """Returns columns and rows of what RETURNING makes of written rows; nothing if it was not said."""
        if returning is None:
            return (), ()
        columns = row.relation_type.columns
        literals = (tuple(map(_literal, one, columns)) for one in rows)
        written = Constant(tuple(literals), RelationType(columns))
        definitions = self.engine.definitions
        bound = bind_returning(returning, called, written, definitions, params=parameters, clock=clock)
        return bound.relation_type.columns, tuple(ordered_rows(self.peeks.peek(bound.relation, None), bound.finishing))

    def _table(self, statement: Insert | Update | Delete | Copy) -> tuple[ObjectRow, CollectionRow]:
        row = table_named(self.engine, statement.table)
        return row, self.engine.catalog.collection(row.id)


def _literal(cell: Any, column: Column) -> Literal:
    return Literal(tuple(cell) if isinstance(cell, list) else cell, column.type)


def _columns(target: RelationType, names: Sequence[str], statement: Copy) -> list[Column]:
    position = statement.table.offset + 1
    for name in names:
        if name not in target.names:
            raise UndefinedColumn(
                f'column "{name}" of relation "{statement.table}" does not exist',
                hint=suggestion(name, target.names),
                position=position,
            )
        if names.count(name) > 1:
            raise DuplicateColumn(f'column "{name}" specified more than once', position=position)
    return [target.columns[target.names.index(name)] for name in names]


def _shown(row: Row) -> str:
    return f"({', '.join('NULL' if one is None else str(one) for one in row)})"
