"""What a statement will return and of which types its parameters are, found out without executing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mz_dagster.adapter.config_calls import SETTING_COLUMNS, setting_column
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.sequence.show import shown_columns
from mz_dagster.adapter.subscriptions import subscribed_columns
from mz_dagster.adapter.system_catalogs.shown import named_columns
from mz_dagster.functions import OpenParameter
from mz_dagster.scalars.types import TEXT, Column, RelationType
from mz_dagster.sql import (
    Delete,
    Explain,
    Insert,
    Select,
    Show,
    ShowSetting,
    Statement,
    Subscribe,
    Update,
    bind_delete,
    bind_insert,
    bind_query,
    bind_returning,
    bind_update,
)
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.errors import NullNotAllowed

#: The columns of a result; None if there is no result set.
Columns = tuple[Column, ...] | None


def describe(names: Names, statement: Statement, parameters: Sequence[object], circumstances: Circumstances) -> Columns:
    """Returns the columns of what a statement returns; what it takes open parameters to be is noted in them.

    Args:
        names: What names denote.
        statement: The statement.
        parameters: A value for each `?`, or an `OpenParameter`.
        circumstances: When and by whom it is executed.

    Raises:
        ProgrammingError: It does not bind.
    """
    context: dict[str, Any] = {"params": parameters, "circumstances": circumstances}
    match statement:
        case Select():
            return named_columns(bind_query(statement.query, names, **context).relation_type.columns)
        case Subscribe():
            return subscribed_columns(names, statement, circumstances)
        case Insert():
            insert = statement
            return _written(names, insert, context, lambda target: bind_insert(insert, target, names, **context))
        case Update():
            update = statement
            return _written(names, update, context, lambda target: bind_update(update, target, names, **context))
        case Delete():
            delete = statement
            return _written(names, delete, context, lambda target: bind_delete(delete, target, names, **context))
        case Explain():
            return (Column("plan", TEXT, False),)
        case ShowSetting(name=str(name)):
            return (setting_column(name),)
        case ShowSetting():
            return SETTING_COLUMNS
        case Show():
            return shown_columns(statement)
        case _:
            return None


def _written(
    names: Names,
    statement: Insert | Update | Delete,
    context: dict[str, Any],
    bind: Callable[[RelationType], object],
) -> Columns:
    if statement.returning is None and not any(isinstance(one, OpenParameter) for one in context["params"]):
        return None
    row = names.table(statement.table)
    with suppress(NullNotAllowed):  # an open parameter is NULL for the time being
        bind(row.relation_type)
    if statement.returning is None:
        return None
    return bind_returning(statement, row.relation_type, [], names, **context).relation_type.columns
