"""A connection to the catalog's database behind the catalog's back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, create_engine


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """Connects to a catalog's database; commits at the end."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA foreign_keys=ON")
            yield connection
    finally:
        engine.dispose()
