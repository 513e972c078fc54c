"""Alembic's environment for the catalog: `env` runs the scripts in `versions`, `upgrade` calls it."""
