"""What the definition of a table demands of its rows."""

from __future__ import annotations

from functools import lru_cache

from mz_dagster.sql import CreateTable, TableConstraints, parse


@lru_cache(maxsize=256)
def constraints_of(sql: str) -> TableConstraints:
    """Returns what the definition of a table demands of its rows."""
    (statement,) = parse(sql)
    assert isinstance(statement, CreateTable)
    return TableConstraints.of(statement)
