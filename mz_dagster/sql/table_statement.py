"""`CREATE TABLE`: columns, constraints and a timeline; or a query."""

from __future__ import annotations

from mz_dagster.sql.column_definitions import parse_columns
from mz_dagster.sql.cursor import TokenCursor
from mz_dagster.sql.options import Common, parse_timeline, parse_with_options
from mz_dagster.sql.query_clauses import query_text, with_data
from mz_dagster.sql.statements import CreateTable, CreateTableAs, Name


def parse_create_table(cursor: TokenCursor, common: Common, *, temporary: bool = False) -> CreateTable | CreateTableAs:
    """Moves past what follows `CREATE TABLE`."""
    if_not_exists = cursor.accepts("if", "not", "exists")
    name = cursor.name()
    temporary = temporary or name.is_temporary
    if names := _names_of_query(cursor):
        return _as(cursor, common, name, names[0], if_not_exists, temporary)
    if cursor.sees("from"):
        raise cursor.refuse("CREATE TABLE FROM SOURCE", "A source is a collection itself.", "Use CREATE SOURCE.")
    columns = parse_columns(cursor, name.last)
    timeline = parse_timeline(cursor)
    retain = parse_with_options(cursor)
    _on_commit(cursor)
    return CreateTable(
        *common,
        name,
        tuple(columns.columns),
        timeline,
        retain,
        if_not_exists,
        tuple(columns.keys),
        tuple(columns.checks),
        temporary,
        tuple(columns.references),
    )


def _names_of_query(cursor: TokenCursor) -> tuple[tuple[str, ...]] | None:
    """Moves past `[(column, ...)]` if a query follows it, which has no columns with types; returns the names."""
    start = cursor.at
    if cursor.current.is_symbol("("):
        cursor.skip_balanced()
    follows = cursor.sees("as|in|with|on") and cursor.index_of("as") < len(cursor.tokens)
    cursor.at = start
    if not follows:
        return None
    return (cursor.names_in_parentheses() if cursor.current.is_symbol("(") else (),)


def _as(
    cursor: TokenCursor, common: Common, name: Name, columns: tuple[str, ...], if_not_exists: bool, temporary: bool
) -> CreateTableAs:
    timeline = parse_timeline(cursor)
    retain = parse_with_options(cursor)
    _on_commit(cursor)
    cursor.expects("as")
    wanted, stop = with_data(cursor)
    query = query_text(cursor, stop)
    cursor.at = len(cursor.tokens)
    return CreateTableAs(*common, name, columns, query, timeline, retain, if_not_exists, wanted, temporary)


def _on_commit(cursor: TokenCursor) -> None:
    """Moves past `ON COMMIT PRESERVE ROWS`, if it is there."""
    if not cursor.accepts("on", "commit"):
        return
    if cursor.sees("drop") or cursor.sees("delete", "rows"):
        raise cursor.refuse(
            f"ON COMMIT {cursor.current.value.upper()}", "A temporary table is there until its session ends.",
            "Drop or truncate it when it is no longer needed.",
        )  # fmt: skip
    cursor.expects("preserve", "rows")
