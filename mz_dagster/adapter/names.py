"""What a name in a statement denotes: the one place that looks it up for the statements that are no queries."""

from __future__ import annotations

from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import ObjectRow
from mz_dagster.sql import Name
from mz_dagster.sql.errors import UndefinedTable, WrongObjectKind


def object_named(engine: Engine, name: Name, kind: str | None = None) -> ObjectRow:
    """Returns the object that bears a name.

    Args:
        engine: The project.
        name: The name.
        kind: What the object must be; None for anything.

    Raises:
        UndefinedTable: Nothing bears the name.
        WrongObjectKind: What bears it is of another kind.
    """
    known = name.parts[:-1] in ((), ("public",))
    row = engine.catalog.resolve_name(name.last) if known else None
    position = name.offset + 1
    if row is None:
        raise UndefinedTable.named(str(name), engine.definitions.names(), position, kind=kind or "relation")
    if kind is not None and row.kind != kind:
        raise WrongObjectKind(f'"{name}" is not a {kind}', hint=f"It is a {row.kind}.", position=position)
    return row


def table_named(engine: Engine, name: Name) -> ObjectRow:
    """Returns the table that bears a name, which a statement writes.

    Raises:
        UndefinedTable: Nothing bears the name.
        WrongObjectKind: What bears it is no table.
    """
    row = object_named(engine, name)
    if row.kind != "table":
        raise WrongObjectKind(
            f'cannot change "{name}"',
            detail=f"It is a {row.kind}.",
            hint="Only tables are written by INSERT, UPDATE, DELETE and COPY.",
            position=name.offset + 1,
        )
    return row
