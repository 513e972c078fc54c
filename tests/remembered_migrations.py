"""New catalogs on SQLite without Alembic: the statements that its first run in this process made.

A test run makes some thousand catalogs, and to render what makes one takes ten times as long as to execute it. What
there was before, and PostgreSQL, is migrated as ever.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, event, inspect

import mz_dagster.catalog.upgrade as upgrade_module

_migrate = upgrade_module._run_migrations
_statements: list[tuple[str, Any]] = []


def remember() -> None:
    """Has this process remember."""
    upgrade_module._run_migrations = _run_migrations


def _run_migrations(connection: Connection) -> None:
    if connection.dialect.name != "sqlite" or inspect(connection).get_table_names():
        _migrate(connection)
        return
    if _statements:
        for statement, parameters in _statements:
            connection.exec_driver_sql(statement, parameters)
        return
    made: list[tuple[str, Any]] = []

    def note(_: Connection, cursor: object, statement: str, parameters: Any, *others: object) -> None:
        if not statement.startswith(("SELECT", "PRAGMA")):
            made.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        _migrate(connection)
    finally:
        event.remove(connection, "before_cursor_execute", note)
    _statements[:] = made
