"""The tables of a damaged catalog, moved out of the way in the database where they are; nothing is deleted."""

from __future__ import annotations

import secrets

from sqlalchemy import inspect, text
from sqlalchemy.schema import CreateSchema

from mz_dagster.catalog.database import Database
from mz_dagster.catalog.schema import METADATA
from mz_dagster.catalog.url import CatalogUrl
from mz_dagster.clock import Clock

#: What its triggers execute (`following`).
_FUNCTIONS = text(
    "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = current_schema()::regnamespace "
    "AND prorettype = 'trigger'::regtype AND starts_with(proname, 'note_')"
)


def move_tables_aside(url: CatalogUrl, clock: Clock) -> str:
    """Moves all tables of a catalog on PostgreSQL into a new schema, in one transaction, and returns its name.

    Raises:
        CatalogUnavailable: The database failed, and nothing was changed.
    """
    database = Database(url, clock)
    name = f"damaged_{secrets.token_hex(4)}"
    try:
        with database.migrate() as connection:
            there = set(inspect(connection).get_table_names())
            connection.execute(CreateSchema(name))
            for table in sorted(there & {*METADATA.tables, "alembic_version"}):
                connection.exec_driver_sql(f"ALTER TABLE {table} SET SCHEMA {name}")
            for function in connection.execute(_FUNCTIONS).scalars().all():
                connection.exec_driver_sql(f"ALTER FUNCTION {function} SET SCHEMA {name}")
    finally:
        database.close()
    return name
