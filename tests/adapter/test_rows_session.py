"""Table functions, arrays and rows in a session: maintained under inserts, updates and deletes, with errors as data."""

from __future__ import annotations

from typing import Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error


def rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(sql).fetchall(), key=repr)


def test_table_functions_are_maintained_and_their_errors_retracted(connection: Connection) -> None:
    for statement in (
        "CREATE TABLE orders (id int NOT NULL, n int, step int, tags text[], prices numeric(38, 2)[])",
        "CREATE MATERIALIZED VIEW days AS SELECT id, d, i FROM orders, "
        "generate_series(1, n, step) WITH ORDINALITY AS s (d, i)",
        "CREATE MATERIALIZED VIEW tagged AS SELECT tag, count(*) AS orders, array_agg(id) AS ids "
        "FROM orders, unnest(tags) AS tag GROUP BY tag",
        "CREATE MATERIALIZED VIEW cheap AS SELECT id, tags[1] AS first, prices FROM orders WHERE 1.50 = ANY (prices)",
        "INSERT INTO orders VALUES (1, 3, 1, ARRAY['a', 'b'], '{1.5,2}'), (2, 5, 2, '{a,NULL}', NULL), "
        "(3, 0, 1, '{}', '{}')",
    ):
        connection.execute(statement)
    assert rows(connection, "SELECT * FROM days") == [(1, 1, 1), (1, 2, 2), (1, 3, 3), (2, 1, 1), (2, 3, 2), (2, 5, 3)]
    assert rows(connection, "SELECT * FROM tagged") == [("a", 2, [1, 2]), ("b", 1, [1]), (None, 1, [2])]
    assert rows(connection, "SELECT id, first, prices::text FROM cheap") == [(1, "a", "{1.50,2.00}")]
    connection.execute("INSERT INTO orders VALUES (4, 1, 0, ARRAY[NULL, 'c'], ARRAY[1.50])")
    with pytest.raises(Error, match="step size cannot equal zero"):
        connection.execute("SELECT * FROM days")
    connection.execute("UPDATE orders SET step = 1, tags = tags || ARRAY['d'] WHERE id = 4")
    connection.execute("DELETE FROM orders WHERE id = 1")
    assert rows(connection, "SELECT * FROM days") == [(2, 1, 1), (2, 3, 2), (2, 5, 3), (4, 1, 1)]
    assert rows(connection, "SELECT * FROM tagged") == [("a", 1, [2]), ("c", 1, [4]), ("d", 1, [4]), (None, 2, [2, 4])]
    assert rows(connection, "SELECT id, first FROM cheap") == [(4, None)]


def test_arrays_and_records_are_grouped_ordered_and_shown(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a int, b double precision, c text[])")
    values = "(1, 0.0, '{x}'), (1, '-0', '{x}'), (2, NULL, '{x,NULL}'), (NULL, 1, '{x,y}')"
    connection.execute(f"INSERT INTO t VALUES {values}")
    connection.execute("CREATE MATERIALIZED VIEW g AS SELECT ARRAY[b] AS bs, count(*) AS n FROM t GROUP BY ARRAY[b]")
    connection.execute("CREATE MATERIALIZED VIEW last AS SELECT c FROM t ORDER BY c DESC LIMIT 1")
    assert rows(connection, "SELECT * FROM g") == [([0.0], 2), ([1.0], 1), ([None], 1)]
    assert connection.execute("SELECT c FROM last").fetchall() == [(["x", None],)]
    assert connection.execute("SELECT c FROM t ORDER BY c DESC").fetchall() == [
        (["x", None],), (["x", "y"],), (["x"],), (["x"],),
    ]  # fmt: skip
    assert connection.execute("SELECT t, (t).a, ROW(1, 'x')::text FROM t WHERE a = 2").fetchall() == [
        ((2, None, ["x", None]), 2, "(1,x)")
    ]
