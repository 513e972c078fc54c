"""CREATE UNIQUE INDEX, and what becomes of one: a table's definition has it, so that it is held as its keys are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.alter_table import alter_table
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import NameTaken, ObjectRow
from mz_dagster.notices import tell
from mz_dagster.sql import AlterRename, AlterTable, CreateUniqueIndex, Drop, Name
from mz_dagster.sql.declared_keys import UniqueKey
from mz_dagster.sql.errors import UndefinedColumn, WrongObjectKind, suggestion
from mz_dagster.sql.schemas import last_of
from mz_dagster.sql.statements import AlterAction, SqlText, Statement
from mz_dagster.sql.table_text import key_text


def create_unique_index(context: Context, statement: CreateUniqueIndex, _: Sequence[object]) -> Result:
    """Holds a table to having no two rows that are equal in some columns.

    Raises:
        NameTaken: Its name denotes something already, and IF NOT EXISTS was not said.
        WrongObjectKind: It is on something else than a table.
        UniqueViolation: Two rows are equal already.
    """
    names, position = context.names, statement.on.offset + 1
    on = names.object(statement.on)
    if on.kind != "table":
        raise WrongObjectKind(
            f'"{statement.on}" cannot have a unique index',
            detail=f"It is a {on.kind}: what it holds is computed, and not held to anything.",
            hint="CREATE INDEX makes an index; a check tells of rows that are equal, and holds sinks back.",
            position=position,
        )
    for column in statement.columns:
        if column not in on.relation_type.names:
            raise UndefinedColumn(
                f'column "{column}" does not exist',
                hint=suggestion(column, on.relation_type.names),
                position=position,
            )
    table = last_of(on.schema, str(on.name))
    if statement.name is None:
        name = base = "_".join((table, *statement.columns, "idx"))
        number = 0
        while _is_taken(context, on, name, position):
            number += 1
            name = f"{base}{number}"
    else:
        name = statement.name.last
        if _is_taken(context, on, name, position):
            if not statement.if_not_exists:
                raise NameTaken(name)
            tell(f'relation "{name}" already exists, skipping', "42P07")
            return Result("CREATE INDEX")
    key = UniqueKey(name, statement.columns, primary=False, is_index=True)
    text = SqlText(key_text(key), statement.on.offset)
    _alter(context, statement, statement.on, AlterAction("add constraint", "", statement.on.offset, text=text))
    return Result("CREATE INDEX")


def _is_taken(context: Context, on: ObjectRow, name: str, offset: int) -> bool:
    """Returns whether an index of a table could not have a name."""
    if any(one.name == name for one in constraints_of(on.sql).keys):
        return True
    try:
        schema = () if context.names.is_temporary(on.id) else (on.schema,)
        context.names.check_free(Name((*schema, name), offset), temporary=not schema)
    except NameTaken:
        return True
    return False


def is_unique_index(names: Names, name: Name) -> bool:
    """Returns whether a name is that of a unique index."""
    return names.find(name) is None and names.with_unique_index(name) is not None


def drop_unique_index(context: Context, statement: Drop, name: Name) -> None:
    """Drops a unique index, of those that a statement drops."""
    _change(context, statement, name, "drop index")


def rename_unique_index(context: Context, statement: AlterRename) -> None:
    """Gives a unique index another name.

    Raises:
        NameTaken: The new name denotes something already.
    """
    _change(context, statement, statement.name, "rename index", statement.new_name)


def _change(
    context: Context,
    statement: Statement,
    name: Name,
    kind: Literal["drop index", "rename index"],
    new_name: str | None = None,
) -> None:
    on = context.names.with_unique_index(name)
    assert on is not None, "it is one's name"
    if new_name is not None and _is_taken(context, on, new_name, name.offset):
        raise NameTaken(new_name)
    called = last_of(on.schema, str(on.name))
    parts = (called,) if context.names.is_temporary(on.id) else (on.schema, called)
    action = AlterAction(kind, name.last, name.offset, new_name=new_name)
    _alter(context, statement, Name(parts, name.offset), action)


def _alter(context: Context, statement: Statement, table: Name, action: AlterAction) -> None:
    whole = AlterTable(statement.text, statement.offset, statement.parameters, table, (action,), if_exists=False)
    alter_table(context, whole, ())
