"""What the definition of a table demands of its rows."""

from __future__ import annotations

from functools import lru_cache

from mz_dagster.catalog import REFERENCES, ObjectRow
from mz_dagster.sql import CreateTable, TableConstraints, parse
from mz_dagster.sql.declared_keys import ForeignKey


@lru_cache(maxsize=256)
def constraints_of(sql: str) -> TableConstraints:
    """Returns what the definition of a table demands of its rows."""
    (statement,) = parse(sql)
    assert isinstance(statement, CreateTable)
    return TableConstraints.of(statement)


def has_unique_index(sql: str, name: str) -> bool:
    """Returns whether the definition of a table has a unique index of a name.

    Example:
        >>> has_unique_index("CREATE TABLE t (a int, UNIQUE INDEX i (a))", "i")
        True
    """
    if "index" not in sql.lower():  # which is sooner told than parsed
        return False
    return any(one.is_index and one.name == name for one in constraints_of(sql).keys)


def foreign_keys_of(row: ObjectRow) -> tuple[ForeignKey, ...]:
    """Returns the foreign keys that a table declares."""
    return tuple(ForeignKey.of_json(one) for one in row.options.get(REFERENCES, ()))
