"""Reads a catalog's database by its own driver: nothing of the engine is believed, nor of what it is built upon."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from sqlalchemy import make_url

READER = "independent reader"
"""The name under which PostgreSQL knows these connections."""


@contextmanager
def one_state(url: str) -> Iterator[Any]:
    """Yields a connection to a catalog's database, whose statements see one state of it and change nothing."""
    where = make_url(url)
    if where.get_backend_name() == "sqlite":
        assert where.database is not None
        with closing(sqlite3.connect(where.database, timeout=60, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            yield connection
        return
    options = r"-c default_transaction_isolation=repeatable\ read -c default_transaction_read_only=on"
    host = str(where.query["host"])
    with psycopg.connect(
        host=host, user=where.username, dbname=where.database, options=options, application_name=READER
    ) as server:
        yield server
