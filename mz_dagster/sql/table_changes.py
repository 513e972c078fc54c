"""What `ALTER TABLE` has to do to a table so that it is what another definition of it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mz_dagster.errors import Error
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.sql.altering import AlteredTable
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.statement_parser import parse
from mz_dagster.sql.statements import AlterTable, ColumnDefinition, CreateTable
from mz_dagster.sql.table_text import check_text, column_text, definition_text, key_text, same_table, type_text


def alteration_to(current: str, wanted: str) -> AlterTable | None:
    """Returns what makes a table's definition another, under whose name; None if that is not, or would lose values.

    The current text may name the table as it was called when it was created: its constraints may be named after that.
    Columns are added behind those that there are, and defaults and constraints change. A column that is missing may
    have been dropped or renamed, which only its author knows.

    Example:
        >>> alteration_to("CREATE TABLE t (a int)", "CREATE TABLE t (a int, b text DEFAULT 'x')").text
        "ALTER TABLE t ADD COLUMN b text DEFAULT 'x'"
        >>> alteration_to("CREATE TABLE t (a text)", "CREATE TABLE t (a varchar)").text
        'ALTER TABLE t ALTER COLUMN a TYPE character varying'
    """
    (now,), (then,) = parse(current), parse(wanted)
    assert isinstance(now, CreateTable)
    assert isinstance(then, CreateTable)
    types = {one.name: one.type for one in now.columns}
    if not all(_keeps_values(types[one.name], one.type) for one in then.columns if one.name in types):
        return None
    actions = [*_changes(now, then)]
    if not actions:
        return None
    (statement,) = parse(f"ALTER TABLE {'.'.join(map(quoted, then.name.parts))} {', '.join(actions)}")
    assert isinstance(statement, AlterTable)
    try:
        made = AlteredTable.of(now.name.last, now, statement.actions).definition
    except Error:
        return None
    altered = replace(
        now, name=then.name, columns=tuple(made.columns), keys=tuple(made.keys), checks=tuple(made.checks)
    )
    return statement if same_table(definition_text(altered), wanted) else None


_WIDER = {
    Kind.INT2: {Kind.INT4, Kind.INT8},
    Kind.INT4: {Kind.INT8},
    Kind.FLOAT4: {Kind.FLOAT8},
    Kind.VARCHAR: {Kind.TEXT},
}


def _keeps_values(old: ScalarType, new: ScalarType) -> bool:
    """Returns whether each value of a type is the same one of another."""
    if new.kind is old.kind is Kind.VARCHAR:
        return not new.length or (bool(old.length) and new.length >= old.length)
    return new == old or new.kind in _WIDER.get(old.kind, ())


def _changes(now: CreateTable, then: CreateTable) -> Iterator[str]:
    """Yields actions; constraints come last, when their columns are there, and go first."""
    said = {one.name for one in then.keys}
    held = [one for one in now.keys if not one.is_index or one.name in said]
    known, wanted = ({key_text(one): one.name for one in keys} for keys in (held, then.keys))
    known |= {check_text(one): one.name for one in now.checks}
    wanted |= {check_text(one): one.name for one in then.checks}
    yield from (f"DROP CONSTRAINT {quoted(name)}" for text, name in known.items() if text not in wanted)
    columns = {one.name: one for one in now.columns}
    for one in then.columns:
        if one.name in columns:
            yield from _changes_of(columns[one.name], one)
        else:
            yield f"ADD COLUMN {column_text(one)}"
    yield from (f"ADD {text}" for text in wanted if text not in known)


def _label(type_: ScalarType) -> str:
    """Returns what a type, or that of an array's elements, is told as that is another one's under its name."""
    return (type_.array_element or type_).label


def _changes_of(now: ColumnDefinition, then: ColumnDefinition) -> Iterator[str]:
    column = f"ALTER COLUMN {quoted(then.name)}"
    if now.type != then.type or _label(now.type) != _label(then.type):
        yield f"{column} TYPE {type_text(then.type)}"
    if now.computed is not None and then.computed is None:
        yield f"{column} DROP EXPRESSION"
    before, after = (None if one.default is None else one.default.text for one in (now, then))
    if before != after:
        yield f"{column} DROP DEFAULT" if after is None else f"{column} SET DEFAULT {after}"
    if now.nullable != then.nullable:
        yield f"{column} {'DROP' if then.nullable else 'SET'} NOT NULL"
