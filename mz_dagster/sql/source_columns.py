"""`ALTER SOURCE ... ADD COLUMN`: what it adds (what becomes of the source: `source_changes`).

Columns come behind those that there are, and may be NULL: what was read before does not have them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.sql.column_definitions import Columns, parse_column
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.sql.options import Common
from mz_dagster.sql.statements import ColumnDefinition, Name, Statement


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """One column of `ALTER SOURCE ... ADD COLUMN`, and whether nothing is to be done about one that is there."""

    column: ColumnDefinition
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class AlterSource(Statement):
    """`ALTER SOURCE name ADD [COLUMN] [IF NOT EXISTS] column type [, ...]`."""

    name: Name
    columns: tuple[AddedColumn, ...]
    if_exists: bool


def parse_alter_source(cursor: TokenCursor, common: Common, name: Name, if_exists: bool) -> AlterSource:
    """Moves past `ADD [COLUMN] [IF NOT EXISTS] column type [, ...]`.

    Raises:
        InvalidTableDefinition: A column may not be NULL, or bears a reserved name.
    """
    columns = [_added(cursor, name)]
    while cursor.accepts_symbol(","):
        columns.append(_added(cursor, name))
    return AlterSource(*common, name, tuple(columns), if_exists)


def _added(cursor: TokenCursor, name: Name) -> AddedColumn:
    cursor.expects("add")
    cursor.accepts("column")
    if_not_exists = cursor.accepts("if", "not", "exists")
    found = Columns(name.last)
    column = parse_column(cursor, found, only_keys=True)
    if found.keys or not column.nullable:
        raise InvalidTableDefinition(
            f'column "{column.name}" is added to a source, and has to be one that may be NULL',
            detail="It is NULL in all that the source has read.",
            hint="Leave PRIMARY KEY and NOT NULL away; a view may leave out rows in which it is NULL.",
            position=column.offset + 1,
        )
    return AddedColumn(column, if_not_exists)
