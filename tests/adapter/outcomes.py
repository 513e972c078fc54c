"""What a statement does, told alike of a session here and of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from mz_dagster.errors import Error


def outcome(connection: Any, statement: str) -> tuple[str | int, list[str]]:
    """Returns how many rows a statement wrote, or its error; and the rows it returned."""
    try:
        cursor = connection.execute(statement)
    except (Error, psycopg.Error) as error:
        return error.sqlstate or "", []
    rows = sorted(map(repr, cursor.fetchall())) if cursor.description else []
    count = cursor.rowcount
    return -1 if statement.startswith(("CREATE TABLE IF", "ALTER", "DROP", "COMMENT")) else count, rows


def contents(connection: Any, table: str) -> list[str] | str:
    """Returns a table's rows, or its error, which does not fail a block that is open."""
    in_block = outcome(connection, "SAVEPOINT looked")[0] not in ("25P01", "25P02")
    try:
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [one[0] for one in cursor.description]
        return sorted(repr(dict(zip(names, row, strict=True))) for row in cursor.fetchall())
    except (Error, psycopg.Error) as error:
        return error.sqlstate or ""
    finally:
        if in_block:
            connection.execute("ROLLBACK TO looked")
            connection.execute("RELEASE looked")


def compare(ours: Any, theirs: Any, statements: Iterable[str]) -> None:
    """Executes statements here and in PostgreSQL, and holds each one's outcome, and two tables behind it, equal."""
    for statement in statements:
        found = outcome(ours, statement), contents(ours, "t"), contents(ours, "u")
        assert found == (outcome(theirs, statement), contents(theirs, "t"), contents(theirs, "u")), statement
