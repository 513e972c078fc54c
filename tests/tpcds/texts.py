"""TPC-DS's tables and queries, as DuckDB's extension has them; none of their text is in this repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import duckdb
import duckdb_extension_tpcds


def connected() -> duckdb.DuckDBPyConnection:
    """Returns a database in memory with the extension, which its package brings along: nothing is downloaded."""
    folder = Path(duckdb_extension_tpcds.__file__).parent / "extensions"
    (path,) = folder.glob("*/tpcds.duckdb_extension")
    connection = duckdb.connect()
    connection.load_extension(str(path))
    return connection


@cache
def tables() -> dict[str, str]:
    """Returns a CREATE TABLE statement for each table."""
    with connected() as connection:
        connection.execute("CALL dsdgen(sf = 0)")  # the tables, empty
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "ORDER BY table_name, ordinal_position"
        ).fetchall()
    found: dict[str, list[str]] = {}
    for table, column, type_ in columns:
        found.setdefault(table, []).append(f'"{column}" {type_}')
    return {table: f"CREATE TABLE {table} ({', '.join(each)})" for table, each in found.items()}


@cache
def queries() -> dict[str, str]:
    """Returns the 99 queries by their names, `q01` to `q99`."""
    with connected() as connection:
        rows = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    return {f"q{number:02}": str(text).strip().rstrip(";") for number, text in rows}
