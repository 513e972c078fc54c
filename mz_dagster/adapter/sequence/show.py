"""SHOW: lists of objects, columns and definitions, answered from the catalog."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mz_dagster.adapter.checking import CheckResult, check_results
from mz_dagster.adapter.names import Names
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.table_constraints import constraints_of
from mz_dagster.catalog import ObjectRow, Shapes
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Constant, Filter
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import TEXT, Column, RelationType
from mz_dagster.sql import Name, Show, bind_predicate
from mz_dagster.sql.schemas import PUBLIC, names_in
from mz_dagster.sql.table_text import type_text

Row = tuple[Any, ...]

_TITLES: Mapping[str, tuple[str, ...]] = {
    "columns": ("name", "nullable", "type"),
    "create": ("name", "create_sql"),
    "indexes": ("name", "on", "key"),
    "schemas": ("name",),
    "checks": ("name", "on", "severity", "blocking", "violations"),
}
_KINDS = {
    "tables": "table",
    "sources": "source",
    "views": "view",
    "materialized views": "materialized view",
    "indexes": "index",
    "types": "type",
    "sinks": "sink",
    "checks": "check",
    "connections": "connection",
    "secrets": "secret",
}


def show(context: Context, statement: Show, parameters: Sequence[object]) -> Result:
    """Returns columns and rows of a SHOW statement, ordered by the first column.

    Raises:
        UndefinedTable: It is about an object that does not exist.
    """
    columns, rows = shown_columns(statement), _listed(context.names, statement)
    if statement.pattern is not None:
        pattern = _like(statement.pattern)
        rows = [row for row in rows if row[0] is not None and pattern.fullmatch(row[0])]
    if statement.predicate is not None:
        type_ = RelationType(columns)
        cells = tuple(tuple(Literal(cell, TEXT) for cell in row) for row in rows)
        predicate = bind_predicate(type_, statement.predicate, params=parameters)
        rows = [*context.peeks.peek(Filter(Constant(cells, type_), (predicate,)), None)]
    shown = tuple(sorted(rows, key=lambda row: row[0] or ""))
    return Result("SHOW", columns, shown, len(shown))


def shown_columns(statement: Show) -> tuple[Column, ...]:
    """Returns the columns of a SHOW statement."""
    return tuple(Column(one, TEXT) for one in _TITLES.get(statement.what, ("name", "type")))


def _listed(names: Names, statement: Show) -> list[Row]:
    """Returns all rows."""
    match statement.what:
        case "columns":
            shown = names.object(_name(statement)).columns
            return [(one.name, "YES" if one.nullable else "NO", type_text(one.type)) for one in shown]
        case "create":
            row = names.object(_name(statement), statement.kind)
            return [(row.name, names.definition_text(row))]
        case "indexes":
            on = None if statement.name is None else names.object(statement.name).id
            indexes = ((row, *names.indexed(row)) for row in names.objects("index"))
            found = [_index(names, row, id, shapes) for row, id, shapes in indexes if on is None or on == id]
            tables = [one for one in names.objects("table") if on is None or on == one.id]
            return found + [
                (key.name, one.name, ", ".join(key.columns))
                for one in tables
                for key in constraints_of(one.sql).keys
                if key.is_index
            ]
        case "checks":
            checks = names.objects("check")
            return [_check(names, told) for one in checks for told in check_results(names.engine, [one], examples=0)]
        case "schemas":
            made = (names_in(str(row.name))[0] for row in names.schemas())
            return [(one,) for one in (PUBLIC, *made)]
        case _:
            return [(row.name, row.kind) for row in names.objects(_KINDS.get(statement.what))]


def _name(statement: Show) -> Name:
    assert statement.name is not None, "the parser gives a name to each SHOW that needs one"
    return statement.name


def _index(names: Names, row: ObjectRow, id: GlobalId, shapes: Shapes | None) -> Row:
    """Returns what is shown of an index on something, of whose shapes its key is."""
    on = names.as_named(names.engine.catalog.object(id))
    columns = dict(zip(on.places if shapes is None else shapes.places, on.relation_type.names, strict=True))
    return (row.name, on.name, ", ".join(columns[place] for place in row.options["key"]))


def _check(names: Names, one: CheckResult) -> Row:
    on = names.as_named(names.engine.catalog.object(one.about))
    violations = f"unknown: {one.reason}" if one.count is None else str(one.count)
    return (one.check.name, on.name, one.options.severity, "YES" if one.options.blocking else "NO", violations)


def _like(pattern: str) -> re.Pattern[str]:
    r"""Returns what a LIKE pattern means: `%` any text, `_` any character, and `\` takes their meaning away."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return re.compile("".join(wild.get(one) or re.escape(one[-1]) for one in parts), re.DOTALL)
