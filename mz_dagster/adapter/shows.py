"""SHOW: lists of objects, columns and definitions, answered from the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mz_dagster.adapter.engine import Engine
from mz_dagster.catalog import ObjectRow
from mz_dagster.plan.types import TEXT, Column
from mz_dagster.sql import Name, Show
from mz_dagster.sql.errors import UndefinedTable, suggestion

Shown = tuple[tuple[Column, ...], tuple[tuple[str | None, ...], ...]]

_KINDS = {
    "tables": "table",
    "sources": "source",
    "views": "view",
    "materialized views": "materialized view",
    "indexes": "index",
}


def show(engine: Engine, statement: Show) -> Shown:
    """Returns columns and rows of a SHOW statement.

    Raises:
        UndefinedTable: It is about an object that does not exist.
    """
    match statement.what:
        case "columns":
            row = _named(engine, statement.name)
            shown = ((one.name, "YES" if one.nullable else "NO", str(one.type)) for one in row.columns)
            return _table(("name", "nullable", "type"), shown, statement)
        case "create":
            row = _named(engine, statement.name)
            return _table(("name", "create_sql"), [(row.name, row.sql)], statement)
        case "indexes":
            on = None if statement.name is None else _named(engine, statement.name).id
            indexes = ((row, _indexed(engine, row)) for row in engine.catalog.objects("index"))
            found = (_index(row, indexed) for row, indexed in indexes if on is None or on == indexed.id)
            return _table(("name", "on", "key"), found, statement)
        case _:
            kind = _KINDS.get(statement.what)
            rows = [row for row in engine.catalog.objects(kind) if row.name is not None]
            return _table(("name", "type"), ((row.name, row.kind) for row in rows), statement)


def _indexed(engine: Engine, row: ObjectRow) -> ObjectRow:
    """Returns what an index is on. Its dependencies do not tell: the collections that its plan reads are among them."""
    on = engine.definitions.definition(row.id).on
    assert on is not None, "every index is on something"
    return engine.catalog.object(on.id)


def _index(row: ObjectRow, on: ObjectRow) -> tuple[str | None, ...]:
    names = row.relation_type.names
    return (row.name, on.name, ", ".join(names[position] for position in row.options["key"]))


def _named(engine: Engine, name: Name | None) -> ObjectRow:
    assert name is not None, "the parser gives a name to each SHOW that needs one"
    row = engine.catalog.resolve_name(name.last)
    if row is None:
        raise UndefinedTable(
            f'relation "{name}" does not exist',
            hint=suggestion(name.last, engine.definitions.names()),
            position=name.offset + 1,
        )
    return row


def _table(names: tuple[str, ...], rows: Iterable[tuple[str | None, ...]], statement: Show) -> Shown:
    pattern = None if statement.pattern is None else _like(statement.pattern)
    kept = [row for row in rows if pattern is None or (row[0] is not None and pattern.fullmatch(row[0]))]
    return tuple(Column(name, TEXT) for name in names), tuple(sorted(kept, key=lambda row: row[0] or ""))


def _like(pattern: str) -> re.Pattern[str]:
    parts = (".*" if one == "%" else "." if one == "_" else re.escape(one) for one in pattern)
    return re.compile("".join(parts), re.DOTALL)
