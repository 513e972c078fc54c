"""What names of columns mean at one place of a query.

Owns PostgreSQL's rules: an unqualified name is looked up among all columns that `*` would show, a qualified one
in the relation of that name, and a name that two relations offer is ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mz_dagster.scalars.scalar import ColumnRef
from mz_dagster.scalars.types import RelationType, ScalarType
from mz_dagster.sql.errors import (
    AmbiguousAlias,
    AmbiguousColumn,
    DuplicateAlias,
    UndefinedColumn,
    UndefinedTable,
    suggestion,
)


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that can be named, and its position in the relation below."""

    name: str
    position: int
    type: ScalarType
    nullable: bool

    @property
    def reference(self) -> ColumnRef:
        """The scalar that reads it."""
        return ColumnRef(self.position, self.type, self.nullable, self.name)

    def shifted(self, by: int) -> ScopeColumn:
        """Returns a copy `by` positions on."""
        return replace(self, position=self.position + by)

    def or_null(self) -> ScopeColumn:
        """Returns what it is where NULLs may stand for it."""
        return self if self.nullable else replace(self, nullable=True)


@dataclass(frozen=True, slots=True)
class ScopeTable:
    """A relation in FROM under the name by which its columns can be qualified; None if it has none.

    Attributes:
        name: Or None.
        columns: In order.
        is_value: Whether its row is the value of its one column: the rows of a function that returns no records.
        maybe_missing: Whether an outer join may have no row of it.
        fields: Of its row, what the alias of a table or view does not rename; by default the columns' names.
        schema: Of what has no alias: the schema, by which it can be qualified, too.
        present: Of what may be missing: which of the columns is not NULL if it is not; None if that cannot be told.
        keys: Of a table, its keys, by the places of their columns.
        hidden: Columns that can be named and that `*` does not show.
    """

    name: str | None
    columns: tuple[ScopeColumn, ...]
    is_value: bool = False
    maybe_missing: bool = False
    fields: tuple[str, ...] = ()
    schema: str | None = None
    present: int | None = None
    keys: tuple[frozenset[int], ...] = ()
    hidden: tuple[ScopeColumn, ...] = ()

    def is_called(self, name: str) -> bool:
        """Returns whether a name is its own, or that with its schema."""
        return name == self.name or (self.schema is not None and name == f"{self.schema}.{self.name}")

    def nullable(self) -> ScopeTable:
        """Returns a copy that may be missing."""
        if self.maybe_missing:
            return self
        present = next((i for i, column in enumerate(self.columns) if not column.nullable), None)
        columns = tuple(column.or_null() for column in self.columns)
        hidden = tuple(column.or_null() for column in self.hidden)
        return replace(self, columns=columns, maybe_missing=True, present=present, hidden=hidden)

    def shifted(self, by: int) -> ScopeTable:
        """Returns a copy whose columns stand `by` positions on."""
        columns, hidden = (tuple(one.shifted(by) for one in part) for part in (self.columns, self.hidden))
        return replace(self, columns=columns, hidden=hidden)


@dataclass(frozen=True, slots=True)
class Scope:
    """What can be named.

    Attributes:
        tables: For qualified names.
        visible: For unqualified names and `*`, in order: merged columns of USING stand for both sides.
    """

    tables: tuple[ScopeTable, ...] = ()
    visible: tuple[ScopeColumn, ...] = ()

    @classmethod
    def of(cls, name: str | None, relation_type: RelationType, names: tuple[str, ...] | None = None) -> Scope:
        """Returns the scope of one relation; `names` may rename its first columns, and hide those behind them."""
        shown = relation_type.names if names is None else names
        columns = tuple(
            ScopeColumn(shown[i], i, column.type, column.nullable)
            for i, column in enumerate(relation_type.columns[: len(shown)])
        )
        return cls((ScopeTable(name, columns),), columns)

    def with_fields(self, fields: tuple[str, ...]) -> Scope:
        """Returns the scope of a relation whose row has fields of these names."""
        return replace(self, tables=tuple(replace(table, fields=fields) for table in self.tables))

    def of_schema(self, schema: str) -> Scope:
        """Returns the scope of what begins with a relation of a schema that has no alias."""
        first, *others = self.tables
        return replace(self, tables=(replace(first, schema=schema), *others))

    def with_hidden(self, relation_type: RelationType) -> Scope:
        """Returns the scope of a relation of which the columns behind those that are shown can be named, too."""
        (table,) = self.tables
        behind = range(len(table.columns), relation_type.arity)
        columns = [(i, relation_type.columns[i]) for i in behind]
        hidden = tuple(ScopeColumn(one.name, i, one.type, one.nullable) for i, one in columns)
        return replace(self, tables=(replace(table, hidden=hidden),))

    def with_keys(self, keys: Iterable[frozenset[int]]) -> Scope:
        """Returns the scope of a table that has these keys."""
        return replace(self, tables=tuple(replace(table, keys=tuple(keys)) for table in self.tables))

    def of_values(self) -> Scope:
        """Returns the scope of a function's rows that are values: a whole row is then its one value."""
        return replace(self, tables=tuple(replace(table, is_value=True) for table in self.tables))

    def beside(self, right: Scope, by: int, position: int) -> Scope:
        """Returns the scope over this relation's columns followed by `right`'s, `by` positions on.

        Raises:
            DuplicateAlias: Both have a relation of one name; blamed at `position`.
        """
        for table in right.tables:
            self._check_untaken(table.name, position, table.schema)
        return Scope(
            self.tables + tuple(table.shifted(by) for table in right.tables),
            self.visible + tuple(column.shifted(by) for column in right.visible),
        )

    def with_table(self, name: str, columns: Sequence[ScopeColumn], position: int) -> Scope:
        """Returns the scope with one more name by which these of its columns can be qualified.

        Raises:
            DuplicateAlias: A relation has the name; blamed at `position`.
        """
        self._check_untaken(name, position)
        return replace(self, tables=(*self.tables, ScopeTable(name, tuple(columns))))

    def nullable(self) -> Scope:
        """Returns the scope of the side of an outer join that NULLs may stand for."""
        return Scope(
            tuple(table.nullable() for table in self.tables),
            tuple(column.or_null() for column in self.visible),
        )

    def offers(self, table: str | None, name: str) -> bool:
        """Returns whether a name is this scope's to explain: it has the relation `table`, or without one the column."""
        if table is not None:
            return any(one.is_called(table) for one in self.tables)
        return any(column.name == name for column in (*self.visible, *self._hidden))

    @property
    def _hidden(self) -> tuple[ScopeColumn, ...]:
        return tuple(column for table in self.tables for column in table.hidden)

    def owner(self, name: str) -> str:
        """Returns the name of a relation that has the column `name`."""
        owners = [one.name for one in self.tables if one.name and any(c.name == name for c in one.columns)]
        return owners[0] if owners else "?"

    def named(self, table: str | None, name: str, position: int) -> ColumnRef:
        """Returns the scalar that reads the column which `name`, or `table.name`, means."""
        found = self.column(name, position) if table is None else self.qualified_column(table, name, position)
        return found.reference

    def column(self, name: str, position: int) -> ScopeColumn:
        """Returns the column that the unqualified `name` means."""
        found = [column for column in self.visible if column.name == name]
        found = found or [column for column in self._hidden if column.name == name]
        if len(found) > 1:
            tables = [table.name for table in self.tables if any(c.name == name for c in table.columns + table.hidden)]
            candidates = ", ".join(f"{table}.{name}" for table in tables if table)
            raise AmbiguousColumn(
                f'column reference "{name}" is ambiguous',
                hint=f"Qualify it: {candidates}." if candidates else None,
                position=position,
            )
        if not found:
            hint = suggestion(name, [column.name for column in self.visible])
            raise UndefinedColumn(f'column "{name}" does not exist', hint=hint, position=position)
        return found[0]

    def qualified_column(self, table: str, name: str, position: int) -> ScopeColumn:
        """Returns the column that `table.name` means."""
        found = [column for column in self.table(table, position).columns if column.name == name]
        found = found or [column for column in self.table(table, position).hidden if column.name == name]
        if len(found) > 1:
            raise AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position)
        if not found:
            hint = suggestion(name, [column.name for column in self.table(table, position).columns])
            raise UndefinedColumn(f"column {table}.{name} does not exist", hint=hint, position=position)
        return found[0]

    def _check_untaken(self, name: str | None, position: int, schema: str | None = None) -> None:
        same = [table.schema for table in self.tables if name is not None and table.name == name]
        if any(None in (schema, other) or schema == other for other in same):
            raise DuplicateAlias(f'table name "{name}" specified more than once', position=position)

    def table(self, name: str, position: int) -> ScopeTable:
        """Returns the relation that `name` qualifies by."""
        found = [table for table in self.tables if table.is_called(name)]
        if len(found) > 1:
            raise AmbiguousAlias(f'table reference "{name}" is ambiguous', position=position)
        if not found:
            hint = suggestion(name, [table.name for table in self.tables if table.name])
            raise UndefinedTable(f'missing FROM-clause entry for table "{name}"', hint=hint, position=position)
        return found[0]
