"""Foreign keys that a project's files declare, each bound to the table that it refers to.

Files define tables in any order, and tables refer to each other and to themselves. So a foreign key is no part of what
defines its table: that is bound, compared and created without, as the catalog keeps it, and its foreign keys are looked
at behind all tables. What is wrong with one is its own fault, and not that of its table.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.adapter.definition import Definition
from mz_dagster.adapter.file_ids import file_id
from mz_dagster.adapter.reference_columns import ReferencedTable, referring_to
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.errors import ProgrammingError
from mz_dagster.sql.declared_keys import SELF, ForeignKey
from mz_dagster.sql.schemas import last_of, written
from mz_dagster.sql.table_text import declared_foreign_key


@dataclass(frozen=True, slots=True)
class FileReference:
    """A foreign key that a file declares.

    Attributes:
        key: The foreign key, which tells the other table by its file's id (`file_ids`), or by `SELF`; as it was written
            if it is wrong.
        text: What declares it, in a statement; empty if it is wrong.
        line: The line on which it stands, counted from 1.
        error: What is wrong with it; None if nothing is.
    """

    key: ForeignKey
    text: str
    line: int
    error: ProgrammingError | None = None

    @property
    def name(self) -> str:
        """The constraint's name."""
        return self.key.name


def bound_reference(key: ForeignKey, line: int, child: Definition, parent: Definition) -> FileReference:
    """Returns a foreign key of a table that refers to another.

    Args:
        key: The foreign key, as it was written.
        line: The line on which it stands.
        child: Its table.
        parent: The table that it refers to, which may be its own.

    Raises:
        ProgrammingError: It cannot be, with its position.
    """
    told = SELF if parent.name == child.name else file_id(parent.name)
    keys = constraints_of(parent.text).keys
    table = ReferencedTable(last_of(parent.schema, parent.name), parent.relation_type, keys)
    bound = referring_to(key, child.relation_type, told, table)
    return FileReference(bound, declared_foreign_key(bound, written(parent.schema, parent.name)), line)
