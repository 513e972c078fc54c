"""CREATE, DROP and ALTER in a session."""

from __future__ import annotations

from mz_dagster.adapter.definition import Definable, define, name_of
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.names import object_named
from mz_dagster.catalog import NameTaken, ObjectRow
from mz_dagster.errors import ProgrammingError
from mz_dagster.sql import (
    AlterRename,
    AlterRetainHistory,
    CreateIndex,
    CreateMaterializedView,
    CreateSource,
    CreateTable,
    CreateView,
    Drop,
    Name,
)
from mz_dagster.sql.errors import UndefinedTable

_TAGS = {
    CreateSource: "CREATE SOURCE",
    CreateTable: "CREATE TABLE",
    CreateView: "CREATE VIEW",
    CreateMaterializedView: "CREATE MATERIALIZED VIEW",
    CreateIndex: "CREATE INDEX",
}


def create(engine: Engine, statement: Definable) -> str:
    """Creates an object and, if it is maintained, hydrates it; returns the command tag.

    An object whose hydration fails exists all the same, and the next step tries again.

    Raises:
        NameTaken: The name denotes something already, and IF NOT EXISTS was not said.
    """
    tag = _TAGS[type(statement)]
    name = name_of(statement)
    if engine.catalog.resolve_name(name) is not None:
        if statement.if_not_exists:
            return tag
        raise NameTaken(name)
    indexed = isinstance(statement, CreateIndex) and _has_index(engine, statement)
    definition = define(
        statement, engine.definitions, default_timeline=engine.project.timeline, name=name, indexed=indexed
    )
    if definition.timeline is not None:
        engine.catalog.declare_timeline(definition.timeline)
    rows = engine.catalog.create_objects(engine.definitions.new_objects(definition))
    created = rows[-1]
    if definition.plan is not None and created.timeline is not None:
        engine.reach(created.timeline, engine.catalog.read_ts(created.timeline), frozenset({created.id}))
    return tag


def _has_index(engine: Engine, statement: CreateIndex) -> bool:
    """True if an index is the own order of what is to be indexed, so that a further one is a copy."""
    on = engine.definitions.resolve(statement.on.parts)
    return on is not None and any(
        row.kind == "index" and not row.has_collection and on.id in row.dependencies.values()
        for row in engine.catalog.objects("index")
    )


def drop(engine: Engine, statement: Drop) -> str:
    """Drops objects, all or none; returns the command tag.

    Raises:
        StillNeeded: Others depend on one of them, and CASCADE was not said.
    """
    found = [_named(engine, name, statement.kind, statement.if_exists) for name in statement.names]
    engine.catalog.drop_objects({row.id for row in found if row is not None}, cascade=statement.cascade)
    return f"DROP {statement.kind.upper()}"


def rename(engine: Engine, statement: AlterRename) -> str:
    """Gives an object another name; returns the command tag.

    Raises:
        NameTaken: The new name denotes something already.
    """
    row = _named(engine, statement.name, statement.kind, statement.if_exists)
    if row is not None:
        engine.catalog.rename_object(row.id, statement.new_name)
    return f"ALTER {statement.kind.upper()}"


def alter_retain_history(engine: Engine, statement: AlterRetainHistory) -> str:
    """Sets or resets how much history an object keeps; returns the command tag."""
    row = _named(engine, statement.name, statement.kind, statement.if_exists)
    if row is not None:
        if not row.has_collection:
            raise ProgrammingError(
                f'"{statement.name}" keeps no history of its own',
                hint="Alter what it reads.",
            )
        engine.catalog.set_retention(row.id, statement.retain_history_ms)
    return f"ALTER {statement.kind.upper()}"


def _named(engine: Engine, name: Name, kind: str, if_exists: bool) -> ObjectRow | None:
    try:
        return object_named(engine, name, kind)
    except UndefinedTable:
        if if_exists:
            return None
        raise
