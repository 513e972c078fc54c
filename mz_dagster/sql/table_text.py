"""The text of a table's definition: what the catalog stores of a table whose statement is not its definition.

`CREATE TABLE AS` takes its columns from a query, and `ALTER TABLE` leaves others than were written. What parses from
the text is what it was made of; expressions stand in it as their user wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mz_dagster.scalars.type_ids import ids_of
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.sql.cursor import quoted
from mz_dagster.sql.declared_keys import ForeignKey, ReferenceAction, UniqueKey
from mz_dagster.sql.identity import identity_text, serial_text
from mz_dagster.sql.lexer import tokens_of
from mz_dagster.sql.schemas import names_in
from mz_dagster.sql.statement_parser import parse
from mz_dagster.sql.statements import CheckConstraint, ColumnDefinition, CreateTable, Name


def type_text(type_: ScalarType) -> str:
    """Returns a type as a column's definition names it.

    Example:
        >>> type_text(ScalarType(Kind.CHAR)), type_text(ScalarType(Kind.NUMERIC, 2))
        ('bpchar', 'numeric(38,2)')
    """
    if type_.array_element is not None:
        brackets = "[]" if type_.element is not None else "[][]"
        return f"{type_text(type_.array_element)}{brackets}"
    if type_.enumeration is not None and type_.enumeration.members is None:  # its parts, as they were written
        return ".".join(map(quoted, names_in(type_.enumeration.name)))
    if type_.label:
        return ids_of(type_).shown
    return "bpchar" if type_.kind is Kind.CHAR and not type_.length else str(type_)


def table_text(
    name: str | tuple[str, ...],
    columns: Sequence[ColumnDefinition],
    *,
    keys: Sequence[UniqueKey] = (),
    checks: Sequence[CheckConstraint] = (),
    timeline: str | None = None,
    retain_history_ms: int | None = None,
) -> str:
    """Returns the `CREATE TABLE` statement that says all that.

    Args:
        name: The table's name, or its parts.
        columns: Its columns.
        keys: Its keys, under their names.
        checks: Its conditions, under their names.
        timeline: The timeline that it names, if any.
        retain_history_ms: The history that it keeps, if it says so.
    """
    parts = [*map(column_text, columns), *map(key_text, keys), *map(check_text, checks)]
    named = ".".join(map(quoted, (name,) if isinstance(name, str) else name))
    text = f"CREATE TABLE {named} (\n    " + ",\n    ".join(parts) + "\n)"
    if timeline is not None:
        text += f" IN TIMELINE {quoted(timeline)}"
    if retain_history_ms is not None:
        text += f" WITH (RETAIN HISTORY = FOR '{retain_history_ms} ms')"
    return text


def definition_text(table: CreateTable) -> str:
    """Returns the statement that creates a table, without its foreign keys."""
    return table_text(
        table.name.parts,
        table.columns,
        keys=table.keys,
        checks=table.checks,
        timeline=table.timeline,
        retain_history_ms=table.retain_history_ms,
    )


def without_foreign_keys(statement: CreateTable) -> CreateTable:
    """Returns what defines a table without its foreign keys, which are kept beside the text of its definition."""
    if not statement.references:
        return statement
    return replace(statement, text=definition_text(statement), references=())


def with_foreign_keys(text: str, keys: Sequence[str]) -> str:
    r"""Returns the definition of a table with foreign keys, as they are said there, behind all else in it.

    Example:
        >>> with_foreign_keys("CREATE TABLE t (a int -- one\n)", ["CONSTRAINT k FOREIGN KEY (a) REFERENCES t (a)"])
        'CREATE TABLE t (a int,\n    CONSTRAINT k FOREIGN KEY (a) REFERENCES t (a) -- one\n)'
    """
    depth, end = 0, 0
    for token in tokens_of(text) if keys else ():
        depth += token.is_symbol("(") - token.is_symbol(")")
        if token.is_symbol(")") and depth == 0:
            return text[:end] + "".join(f",\n    {one}" for one in keys) + text[end:]
        end = token.end
    assert not keys, "a table has columns in parentheses"
    return text


def same_table(one: str, other: str) -> bool:
    """Returns whether two definitions of tables say the same, whatever words and constraints of columns they say it by.

    Unique indexes that the first alone has are none of its definition: they were made since, and stay.

    Example:
        >>> same_table("CREATE TABLE t (a int PRIMARY KEY)", "CREATE TABLE t (a integer, PRIMARY KEY (a))")
        True
    """
    table, said = _table(one), _table(other)
    kept = tuple(key for key in table.keys if not key.is_index or key.name in {each.name for each in said.keys})
    return _normal(replace(table, keys=kept)) == _normal(said)


def _table(text: str) -> CreateTable:
    (table,) = parse(text)
    assert isinstance(table, CreateTable)
    return table


def _normal(table: CreateTable) -> str:
    keys = tuple(sorted(table.keys, key=lambda one: one.name))
    checks = tuple(sorted(table.checks, key=lambda one: one.name))
    return definition_text(replace(table, name=Name((table.name.last,)), keys=keys, checks=checks))


def column_text(column: ColumnDefinition) -> str:
    """Returns a column as a table's definition says it."""
    return " ".join(_column_parts(column))


def _column_parts(column: ColumnDefinition) -> Iterator[str]:
    identity = column.identity
    is_serial = identity is not None and identity.generated == "serial"
    yield f"{quoted(column.name)} {serial_text(column.type) if is_serial else type_text(column.type)}"
    if identity is not None and not is_serial:
        yield identity_text(identity)
    if column.computed is not None:
        yield f"GENERATED ALWAYS AS ({column.computed.text}) STORED"
    if column.default is not None:
        yield f"DEFAULT {column.default.text}"
    if not column.nullable:
        yield "NOT NULL"


def key_text(key: UniqueKey) -> str:
    """Returns a key as a table's definition says it."""
    if key.is_index:
        return f"UNIQUE INDEX {quoted(key.name)} ({', '.join(map(quoted, key.columns))})"
    kind = "PRIMARY KEY" if key.primary else "UNIQUE"
    return f"CONSTRAINT {quoted(key.name)} {kind} ({', '.join(map(quoted, key.columns))})"


ACTIONS: Mapping[ReferenceAction, str] = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL"}
"""What becomes of rows whose referenced row goes, as statements say it."""


def foreign_key_text(key: ForeignKey, referenced: str) -> str:
    """Returns a foreign key as PostgreSQL writes one, without its name.

    Example:
        >>> foreign_key_text(ForeignKey("k", ("a",), on_delete="c"), "t(id)")
        'FOREIGN KEY (a) REFERENCES t(id) ON DELETE CASCADE'
    """
    text = f"FOREIGN KEY ({', '.join(map(quoted, key.columns))}) REFERENCES {referenced}"
    text += " MATCH FULL" if key.is_full else ""
    text += f" ON UPDATE {ACTIONS[key.on_update]}" if key.on_update != "a" else ""
    text += f" ON DELETE {ACTIONS[key.on_delete]}" if key.on_delete != "a" else ""
    text += " DEFERRABLE" if key.is_deferrable else ""
    text += " INITIALLY DEFERRED" if key.is_deferred else ""
    return text if key.is_enforced else f"{text} NOT ENFORCED"


def declared_foreign_key(key: ForeignKey, table: str) -> str:
    """Returns a foreign key as a table's definition says it, whose other table is written so.

    Example:
        >>> declared_foreign_key(ForeignKey("k", ("a",), referenced=("id",)), "s.t")
        'CONSTRAINT k FOREIGN KEY (a) REFERENCES s.t (id)'
    """
    referenced = f"{table} ({', '.join(map(quoted, key.referenced))})"
    return f"CONSTRAINT {quoted(key.name)} {foreign_key_text(key, referenced)}"


def check_text(check: CheckConstraint) -> str:
    """Returns a condition as a table's definition says it."""
    return f"CONSTRAINT {quoted(check.name)} CHECK ({check.predicate.text})"
