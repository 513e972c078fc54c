"""COMMENT: what is said of an object or a column."""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.defined import refuse_in_block
from mz_dagster.sql import Comment
from mz_dagster.sql.errors import UndefinedColumn, suggestion


def comment(context: Context, statement: Comment, _: Sequence[object]) -> Result:
    """Says something of an object or a column.

    Raises:
        UndefinedColumn: There is no such column.
    """
    names = context.names
    row = names.object(statement.name, None if statement.column is not None else statement.kind)
    block = names.block()
    if block is not None and not block.has_made(row.id):
        refuse_in_block(names, "COMMENT on what was there before")
    if statement.column is not None and (statement.column not in row.relation_type.names or row.kind == "index"):
        raise UndefinedColumn(
            f'column "{statement.column}" of relation "{row.name}" does not exist',
            hint=suggestion(statement.column, row.relation_type.names),
            position=statement.name.offset + 1,
        )
    names.engine.catalog.set_comment(row.id, statement.column or "", statement.comment or None)
    return Result("COMMENT")
