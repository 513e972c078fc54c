"""`CREATE TABLE`: columns and a timeline."""

from __future__ import annotations

from mz_dagster.sql.cursor import Cursor
from mz_dagster.sql.errors import InvalidTableDefinition
from mz_dagster.sql.options import Common, parse_columns, parse_timeline, parse_with_options
from mz_dagster.sql.statements import CreateTable


def parse_create_table(cursor: Cursor, common: Common) -> CreateTable:
    """Moves past what follows `CREATE TABLE`."""
    if_not_exists = cursor.accepts("if", "not", "exists")
    name = cursor.name()
    if cursor.sees("as"):
        raise cursor.refuse("CREATE TABLE AS", "A table is filled by INSERT.", "Use CREATE MATERIALIZED VIEW.")
    if cursor.sees("from"):
        raise cursor.refuse("CREATE TABLE FROM SOURCE", "A source is a collection itself.", "Use CREATE SOURCE.")
    columns, key, key_offset = parse_columns(cursor)
    if key is not None:
        raise InvalidTableDefinition(
            "a table cannot have a primary key",
            detail="Writes are appended without looking up earlier rows, so uniqueness cannot be guaranteed.",
            hint="Leave the key away.",
            position=key_offset + 1,
        )
    timeline = parse_timeline(cursor)
    retain = parse_with_options(cursor)
    return CreateTable(*common, name, columns, timeline, retain, if_not_exists)
