"""Runs migrations on the connection that `upgrade` provides, inside its transaction."""

from __future__ import annotations

from alembic import context

from mz_dagster.catalog.schema import METADATA

# SQLite's DDL is transactional once sqlite3 leaves transactions to us, which Alembic cannot know.
context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
