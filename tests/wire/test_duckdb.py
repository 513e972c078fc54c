"""DuckDB's scanner of PostgreSQL: a project attached as a database, read and written by its own SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import duckdb_extension_postgres_scanner
import psycopg
import pytest

from mz_dagster.wire import Server
from tests.wire.conftest import dsn


@pytest.fixture
def attached(served: Server) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = Path(duckdb_extension_postgres_scanner.__file__).parent / "extensions"
    (path,) = folder.glob("*/postgres_scanner.duckdb_extension")
    with duckdb.connect() as connection:  # which brings no extension from elsewhere
        connection.execute("SET autoinstall_known_extensions = false")
        connection.load_extension(str(path))
        connection.execute(f"ATTACH '{dsn(served)}' AS shop (TYPE postgres)")
        yield connection


def test_what_there_is_is_read_by_its_types(served: Server, attached: duckdb.DuckDBPyConnection) -> None:
    with psycopg.connect(dsn(served), autocommit=True) as connection:
        for one in (
            "CREATE TYPE mood AS ENUM ('sad', 'ok')",
            "CREATE TABLE t (a integer PRIMARY KEY, b numeric(10, 2), c text, d date, e float8, f boolean, g bigint, "
            "h uuid, i text[], j mood)",
            "INSERT INTO t VALUES (1, 2.5, 'x', '2020-01-02', 0.5, true, 7, '00000000-0000-0000-0000-000000000007', "
            "'{a,b}', 'ok'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
            "CREATE VIEW v AS SELECT a, b FROM t",
            "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t",
        ):
            connection.execute(one.encode())
    first = (1, Decimal("2.50"), "x", date(2020, 1, 2), 0.5, True, 7, UUID(int=7), ["a", "b"], "ok")
    assert attached.execute("SELECT * FROM shop.t ORDER BY a").fetchall() == [first, (2, *[None] * 9)]
    assert attached.execute("SELECT b FROM shop.v WHERE a = 1").fetchall() == [(Decimal("2.50"),)]
    assert attached.execute("SELECT m.n, t.c FROM shop.m, shop.t WHERE t.a < 2").fetchall() == [(2, "x")]
    asked = "SELECT * FROM postgres_query('shop', 'SELECT sum(a) AS s FROM t')"
    assert attached.execute(asked).fetchall() == [(3,)]


def test_tables_are_made_filled_and_dropped(attached: duckdb.DuckDBPyConnection) -> None:
    attached.execute("CREATE TABLE shop.numbers AS SELECT range AS n FROM range(5)")
    attached.execute("BEGIN")
    attached.execute("INSERT INTO shop.numbers VALUES (100)")
    attached.execute("ROLLBACK")
    attached.execute("INSERT INTO shop.numbers VALUES (5), (NULL)")
    assert attached.execute("SELECT count(*), sum(n) FROM shop.numbers").fetchall() == [(7, 15)]
    with pytest.raises(duckdb.Error, match='column "ctid" does not exist'):  # by which it names rows to change
        attached.execute("DELETE FROM shop.numbers WHERE n = 1")
    attached.execute("CALL postgres_execute('shop', 'DELETE FROM numbers WHERE n = 1')")
    assert attached.execute("SELECT count(*) FROM shop.numbers").fetchall() == [(6,)]
    attached.execute("DROP TABLE shop.numbers")
