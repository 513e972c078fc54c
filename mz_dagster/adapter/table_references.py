"""Which tables refer to which, as a session sees them.

A foreign key is one as long as its other table, and that table's columns, are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mz_dagster.adapter.names import Names
from mz_dagster.adapter.table_constraints import foreign_keys_of
from mz_dagster.catalog import REFERENCES, ObjectRow, stands_for
from mz_dagster.scalars.types import Column
from mz_dagster.sql.declared_keys import SELF, ForeignKey
from mz_dagster.sql.schemas import last_of


def columns_of(row: ObjectRow, names: tuple[str, ...]) -> list[Column]:
    """Returns columns of a table, by their names."""
    return [row.columns[row.relation_type.names.index(one)] for one in names]


def name_in_schema(row: ObjectRow) -> str:
    """Returns what a table is called in its schema."""
    return last_of(row.schema, str(row.name))


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key with its two tables, which may be one.

    Attributes:
        key: The foreign key.
        child: The table whose rows refer.
        parent: The table whose rows are referred to.
    """

    key: ForeignKey
    child: ObjectRow
    parent: ObjectRow


class TableReferences:
    """The foreign keys of the tables that a session sees, as they are when they are first asked for.

    Where no table has ever referred to another, the tables are not looked at: a process that has just begun would read
    all of the catalog to write a row.

    Args:
        names: What names denote in it.
    """

    def __init__(self, names: Names) -> None:
        self._names = names

    @cached_property
    def _tables(self) -> list[ObjectRow]:
        return [*self._names.tables()]

    @cached_property
    def _referring(self) -> list[ObjectRow]:
        """The tables that refer to others; those that the session's block has made are not counted yet."""
        block = self._names.block()
        is_any = self._names.engine.catalog.number_of_references() or (block is not None and block.named)
        return [one for one in self._tables if one.options.get(REFERENCES)] if is_any else []

    def __iter__(self) -> Iterator[Link]:
        """Yields all of them."""
        if not self._referring:
            return
        standing = {stands_for(one): one for one in self._tables}
        for child in self._referring:
            for key in foreign_keys_of(child):
                parent = child if key.parent == SELF else standing.get(key.parent)
                if parent is not None and set(key.referenced) <= set(parent.relation_type.names):
                    yield Link(key, child, parent)

    def parent_of(self, key: ForeignKey, child: ObjectRow) -> ObjectRow | None:
        """Returns the table that a foreign key refers to; None if that is dropped."""
        if key.parent == SELF:
            return child
        return next((one for one in self._tables if stands_for(one) == key.parent), None)

    def of(self, table: ObjectRow) -> list[Link]:
        """Returns those that a table declares."""
        return [one for one in self if one.child.id == table.id]

    def to(self, table: ObjectRow) -> list[Link]:
        """Returns those that refer to a table's rows, its own among them."""
        return [one for one in self if one.parent.id == table.id]
