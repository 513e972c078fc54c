"""Bound plans, evaluated by the reference, give what another engine gives for the same text and rows."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from mz_dagster.sql import BoundQuery, ordered_rows
from tests.plan.queries import QUERIES, VIEWS
from tests.plan.reference import Rows, rows_of
from tests.sql.project import Project, bind

TABLES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "t": (
        "a int, b int, c text, d decimal(38, 2), e date, f boolean",
        [
            (1, 2, "x", None, None, True),
            (2, None, "y", None, None, True),
            (3, 3, None, None, None, False),
            (4, 0, "x", None, None, None),
            (0, 1, "x", None, None, True),
            (5, 1, "x", None, None, True),
        ],
    ),
    "u": ("a bigint, x text, ts timestamp", [(1, "x", None), (1, "y", None), (2, "x", None), (4, None, None)]),
    "v": ("k int, a int, g double", [(1, 2, None), (2, 2, None), (3, 1, None), (5, None, None)]),
}
IDS = {"t": "u1", "u": "s2", "v": "u3"}
MORE = {
    "three_values": "SELECT a FROM t WHERE NOT (b = 1 AND f) OR (b > 2) IS NOT TRUE",
    "in_list": "SELECT a, b IN (1, 2), b NOT IN (1, NULL) FROM t",
    "between": "SELECT a FROM t WHERE b BETWEEN 1 AND a AND NOT a BETWEEN 4 AND 9",
    "precedence": "SELECT a < b IS NULL, NOT a = 1 AND f, a + 2 * 3 - 1, -a - -1 FROM t",
    "distinct_from": "SELECT t.a, y.a FROM t, t y WHERE t.b IS NOT DISTINCT FROM y.b",
    "comma_join": "SELECT t.a, v.k, u.x FROM t, u JOIN v ON u.a = v.a WHERE t.a = v.k",
    "nested_join": "SELECT t.a, v.k FROM t JOIN (u JOIN v ON u.a = v.k) ON t.a = v.a",
    "using_twice": "SELECT * FROM t JOIN u USING (a) JOIN v USING (a)",
    "values": "SELECT q.n + 1, q.s FROM (VALUES (1, 'x'), (2, NULL)) AS q (n, s)",
    "case_operand": "SELECT CASE b WHEN 1 THEN 'one' WHEN a THEN 'a' ELSE c END FROM t",
    "nullif": "SELECT nullif(a, 1), coalesce(b, a, 7) FROM t",
    "ordered": "SELECT a, b FROM t ORDER BY b DESC NULLS LAST, a LIMIT 3 OFFSET 1",
    "ordered_by_hidden": "SELECT c FROM t ORDER BY a, b LIMIT 2",
    "cte_shadows": "WITH t AS (SELECT k AS a FROM v), w AS (SELECT a FROM t) SELECT w.a, t.a FROM w JOIN t "
    "ON w.a = t.a",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, (columns, rows) in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" for _ in rows[0])
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        for name, query in VIEWS.items():
            connection.execute(f"CREATE VIEW {name} AS {query}")
        yield connection


def answer(bound: BoundQuery) -> list[tuple[object, ...]]:
    data: dict[str, Rows] = {IDS[name]: Counter(rows) for name, (_, rows) in TABLES.items()}
    return ordered_rows(list(rows_of(bound.relation, data).elements()), bound.finishing)


@pytest.mark.parametrize("name", [*QUERIES, *MORE])
def test_duckdb_gives_the_same_rows(engine: duckdb.DuckDBPyConnection, name: str) -> None:
    query = {**QUERIES, **MORE}[name]
    project = Project()
    for view, definition in VIEWS.items():
        project.add_view(view, definition)
    bound = bind(query, project=project)
    ours = answer(bound)
    theirs = engine.execute(query).fetchall()
    if bound.finishing.order:
        assert ours == theirs
    else:
        assert Counter(ours) == Counter(theirs)
    assert theirs or name in ("empty", "fuse_filters", "using_twice"), "the case says nothing"
