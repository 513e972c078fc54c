"""Which tables refer to which, as a session sees them.

A foreign key is one as long as its other table, and that table's columns, are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from mz_dagster.adapter.names import Names
from mz_dagster.adapter.table_constraints import foreign_keys_of
from mz_dagster.catalog import CatalogState, ObjectRow, stands_for
from mz_dagster.formalism import GlobalId
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
    def _state(self) -> CatalogState:
        return self._names.engine.catalog.state()

    @cached_property
    def _is_any(self) -> bool:
        """Whether there may be some; those of tables that the session's block has made are not counted yet."""
        block = self._names.block()
        return bool(self._names.engine.catalog.number_of_references() or (block is not None and block.named))

    def _seen(self, ids: Iterable[GlobalId]) -> Iterator[ObjectRow]:
        """Yields those of some tables that the session sees."""
        return self._names.named(map(self._state.object, ids))

    def __iter__(self) -> Iterator[Link]:
        """Yields all of them."""
        if self._is_any:
            referring = self._state.referring.values()
            for child in self._seen(dict.fromkeys(chain.from_iterable(referring))):
                yield from self.of(child)

    def parent_of(self, key: ForeignKey, child: ObjectRow) -> ObjectRow | None:
        """Returns the table that a foreign key refers to; None if that is dropped."""
        return child if key.parent == SELF else next(self._seen(self._state.standing(key.parent)), None)

    def of(self, table: ObjectRow) -> list[Link]:
        """Returns those that a table declares."""
        parents = ((key, self.parent_of(key, table)) for key in foreign_keys_of(table))
        return [
            Link(key, table, parent)
            for key, parent in parents
            if parent is not None and set(key.referenced) <= set(parent.relation_type.names)
        ]

    def named(self, child: str, name: str) -> list[Link]:
        """Returns the one of a name, if it is there, of the table that stands for a key (`stands_for`)."""
        children = self._seen(self._state.standing(child))
        return [link for one in children for link in self.of(one) if link.key.name == name]

    def to(self, table: ObjectRow) -> list[Link]:
        """Returns those that refer to a table's rows, its own among them."""
        if not self._is_any:
            return []
        others = self._seen(self._state.referring.get(stands_for(table), ()))
        children = [table, *(one for one in others if one.id != table.id)]
        return [link for one in children for link in self.of(one) if link.parent.id == table.id]
