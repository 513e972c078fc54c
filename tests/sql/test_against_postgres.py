"""Bound plans, evaluated naively, say what PostgreSQL says: groups, windows, set operations, limits; so do errors."""

import random
from pathlib import Path

import pytest

from mz_dagster.errors import Error
from tests.postgres_server import Postgres
from tests.sql.against_postgres import Data, bind, differences, script, tables
from tests.sql.random_queries import Queries

QUERIES = [
    line
    for line in Path(__file__).with_name("against_postgres.sql").read_text().splitlines()
    if not line.startswith("--")
]


def filled(postgres: Postgres, seed: int) -> Data:
    data = tables(seed)
    postgres.run("DROP TABLE IF EXISTS t, v, z;" + script(data))
    return data


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_queries_say_what_postgres_says(postgres: Postgres, seed: int) -> None:
    pairs = [(ours.strip(), theirs.strip() or ours) for ours, _, theirs in (one.partition("|||") for one in QUERIES)]
    assert differences(postgres, filled(postgres, seed), pairs) == []


@pytest.mark.parametrize("count", [200, pytest.param(400, marks=pytest.mark.deep)])
def test_random_queries_say_what_postgres_says(postgres: Postgres, count: int) -> None:
    queries = Queries(random.Random(1))
    assert differences(postgres, filled(postgres, 1), [queries.query() for _ in range(count)]) == []


@pytest.mark.deep
def test_many_random_queries_say_what_postgres_says(postgres: Postgres) -> None:
    for seed in range(2, 14):
        queries = Queries(random.Random(seed))
        assert differences(postgres, filled(postgres, seed), [queries.query() for _ in range(400)]) == []


#: Queries, the position PostgreSQL blames, and its SQLSTATE; the message is compared with the server's.
WRONG = [
    ("SELECT a FROM t WHERE count(*) > 1", 23, "42803"),
    ("SELECT a, b FROM t GROUP BY a", 11, "42803"),
    ("SELECT a, b FROM t GROUP BY ROLLUP (a)", 11, "42803"),
    ("SELECT grouping(b) FROM t GROUP BY a", 17, "42803"),
    ("SELECT grouping(a) FROM t", 17, "42803"),
    ("SELECT a FROM t WHERE grouping(a) = 0 GROUP BY a", 23, "42803"),
    ("SELECT count(*) FROM t GROUP BY CUBE (a, b, c, d, e, f, a+1, a+2, a+3, a+4, a+5, a+6, a+7)", 39, "54011"),
    ("SELECT count(*) FROM t GROUP BY CUBE (a, b, c, d, e, f, s), CUBE (a, b, c, d, e, f)", 67, "54001"),
    ("SELECT a, count(*) FROM t", 8, "42803"),
    ("SELECT * FROM t GROUP BY a", 8, "42803"),
    ("SELECT t.a + t.b FROM t GROUP BY t.a", 14, "42803"),
    ("SELECT x.b FROM t x GROUP BY x.a", 8, "42803"),
    ("SELECT a FROM t GROUP BY a HAVING b > 1", 35, "42803"),
    ("SELECT a FROM t GROUP BY a ORDER BY b", 37, "42803"),
    ("SELECT a FROM t HAVING a > 1", 8, "42803"),
    ("SELECT sum(sum(a)) FROM t", 12, "42803"),
    ("SELECT sum(count(*) + 1) FROM t", 12, "42803"),
    ("SELECT count(*) FROM t GROUP BY 1", 8, "42803"),
    ("SELECT count(*) FROM t GROUP BY count(*)", 33, "42803"),
    ("SELECT a FROM t GROUP BY 3", 26, "42P10"),
    ("SELECT a FROM t GROUP BY 'x'", 26, "42601"),
    ("SELECT a FROM t GROUP BY 1.5", 26, "42601"),
    ("SELECT a FROM t ORDER BY 'x'", 26, "42601"),
    ("SELECT a FROM t ORDER BY -1", 26, "42P10"),
    ("SELECT a AS x, b AS x FROM t GROUP BY x", 39, "42702"),
    ("SELECT a FROM t GROUP BY zz", 26, "42703"),
    ("SELECT sum(c) FROM t", 8, "42883"),
    ("SELECT (a, b) IN (0, 1) FROM t", 8, "42883"),
    ("SELECT id FROM t WHERE (a, b) IN ((1, 2), c)", 24, "42883"),
    ("SELECT sum(e) FROM t", 8, "42883"),
    ("SELECT avg(f) FROM t", 8, "42883"),
    ("SELECT sum('1')", 8, "42725"),
    ("SELECT min(f) FROM t", 8, "42883"),
    ("SELECT bool_and(a) FROM t", 8, "42883"),
    ("SELECT string_agg(a, ',') FROM t", 8, "42883"),
    ("SELECT string_agg(c) FROM t", 8, "42883"),
    ("SELECT count(a, b) FROM t", 8, "42883"),
    ("SELECT count(DISTINCT a, b) FROM t", 8, "42883"),
    ("SELECT count() FROM t", 8, "42809"),
    ("SELECT sum() FROM t", 8, "42883"),
    ("SELECT sum(*) FROM t", 8, "42883"),
    ("SELECT min(a, b) FROM t", 8, "42883"),
    ("SELECT string_agg(DISTINCT c, ',' ORDER BY a) FROM t", 44, "42P10"),
    ("SELECT sum(DISTINCT a ORDER BY b) FROM t", 32, "42P10"),
    ("SELECT sum(a) FILTER (WHERE b) FROM t", 29, "42804"),
    ("SELECT sum(a) FILTER (WHERE count(*) > 1) FROM t", 29, "42803"),
    ("SELECT sum(a) FILTER (WHERE row_number() OVER () > 1) FROM t", 29, "42P20"),
    ("SELECT upper(c) FILTER (WHERE f) FROM t", 8, "42809"),
    ("SELECT 1 FROM t JOIN v ON count(*) > 1", 27, "42803"),
    ("SELECT 1 FROM t LIMIT count(*)", 23, "42803"),
    ("VALUES (count(*))", 9, "42803"),
    ("SELECT row_number() FROM t", 8, "42809"),
    ("SELECT rank() FILTER (WHERE f) FROM t", 8, "42809"),
    ("SELECT a FROM t WHERE row_number() OVER () = 1", 23, "42P20"),
    ("SELECT a FROM t GROUP BY row_number() OVER ()", 26, "42P20"),
    ("SELECT row_number() OVER () FROM t GROUP BY 1", 8, "42P20"),
    ("SELECT a FROM t GROUP BY a HAVING row_number() OVER () = 1", 35, "42P20"),
    ("SELECT sum(row_number() OVER ()) FROM t", 12, "42803"),
    ("SELECT sum(rank() OVER ()) OVER () FROM t", 12, "42P20"),
    ("SELECT rank() OVER (ORDER BY rank() OVER ()) FROM t", 30, "42P20"),
    ("SELECT upper(c) OVER () FROM t", 8, "42809"),
    ("SELECT count(DISTINCT a) OVER () FROM t", 8, "0A000"),
    ("SELECT string_agg(c, ',' ORDER BY a) OVER () FROM t", 8, "0A000"),
    ("SELECT rank() FILTER (WHERE f) OVER () FROM t", 8, "0A000"),
    ("SELECT ntile(c) OVER () FROM t", 8, "42883"),
    ("SELECT ntile(l) OVER () FROM t", 8, "42883"),
    ("SELECT lag(a, l) OVER () FROM t", 8, "42883"),
    ("SELECT lag(a, 1, c) OVER () FROM t", 8, "42883"),
    ("SELECT lag(a, 1, e) OVER () FROM t", 8, "42883"),
    ("SELECT lag(a, 1, 'x') OVER () FROM t", 18, "22P02"),
    ("SELECT nth_value(a) OVER () FROM t", 8, "42883"),
    ("SELECT sum(a) OVER w FROM t", 20, "42704"),
    ("SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (ORDER BY a)", 20, "42P20"),
    ("SELECT sum(a) OVER (w PARTITION BY b) FROM t WINDOW w AS (ORDER BY a)", 20, "42P20"),
    ("SELECT sum(a) OVER (w) FROM t WINDOW w AS (ORDER BY a ROWS 1 PRECEDING)", 20, "42P20"),
    ("SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (ROWS 1 PRECEDING)", 20, "42P20"),
    ("SELECT 1 FROM t WINDOW w AS (), w AS ()", 38, "42P20"),
    ("SELECT sum(a) OVER (ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM t", 34, "42P20"),
    ("SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM t", 50, "42P20"),
    ("SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t", 50, "42P20"),
    ("SELECT sum(a) OVER (ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM t", 50, "42P20"),
    ("SELECT sum(a) OVER (ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM t", 50, "42P20"),
    ("SELECT sum(a) OVER (ROWS 1 FOLLOWING) FROM t", 26, "42P20"),
    ("SELECT sum(a) OVER (ROWS UNBOUNDED FOLLOWING) FROM t", 26, "42P20"),
    ("SELECT sum(a) OVER (RANGE 1 PRECEDING) FROM t", 20, "42P20"),
    ("SELECT sum(a) OVER (ORDER BY a, b RANGE 1 PRECEDING) FROM t", 20, "42P20"),
    ("SELECT sum(a) OVER (ORDER BY c RANGE 1 PRECEDING) FROM t", 38, "0A000"),
    ("SELECT sum(a) OVER (ORDER BY a RANGE 1.5 PRECEDING) FROM t", 38, "0A000"),
    ("SELECT sum(a) OVER (ROWS 'x' PRECEDING) FROM t", 26, "22P02"),
    ("SELECT sum(a) OVER (ROWS a PRECEDING) FROM t", 26, "42P10"),
    ("SELECT sum(a) OVER (ROWS count(*) PRECEDING) FROM t", 26, "42803"),
    ("SELECT sum(a) OVER (ORDER BY b), b FROM t GROUP BY a", 34, "42803"),
    ("SELECT sum(b) OVER () FROM t GROUP BY a", 12, "42803"),
    ("SELECT DISTINCT a FROM t ORDER BY b", 35, "42P10"),
    ("SELECT DISTINCT ON (a) a FROM t ORDER BY b", 21, "42P10"),
    ("SELECT DISTINCT ON (a, b) a FROM t ORDER BY a, c, b", 24, "42P10"),
    ("SELECT DISTINCT ON (5) a FROM t", 21, "42P10"),
    ("SELECT DISTINCT ON ('x') a FROM t", 21, "42601"),
    ("SELECT DISTINCT ON a FROM t", 20, "42601"),
    ("SELECT 1 UNION SELECT 1, 2", 23, "42601"),
    ("SELECT 1 INTERSECT SELECT 1, 2", 27, "42601"),
    ("SELECT 1 EXCEPT SELECT 'x'", 24, "22P02"),
    ("SELECT a FROM t EXCEPT SELECT c FROM t", 31, "42804"),
    ("SELECT a FROM t UNION SELECT b FROM t ORDER BY b", 48, "42703"),
    ("SELECT a FROM t UNION SELECT b FROM t ORDER BY a + 1", 48, "0A000"),
    ("SELECT a FROM t INTERSECT SELECT b FROM t ORDER BY 7", 52, "42P10"),
    ("(SELECT a FROM t ORDER BY a) ORDER BY a", 39, "42601"),
    ("(SELECT a FROM t LIMIT 1) LIMIT 1", 33, "42601"),
    ("(SELECT a FROM t OFFSET 1) OFFSET 1", 35, "42601"),
    ("SELECT a FROM t LIMIT 'x'", 23, "22P02"),
    ("SELECT count(*) FILTER (WHERE f) AS n FROM t WHERE f GROUP BY a HAVING true ORDER BY zz", 86, "42703"),
    ("SELECT lower(DISTINCT c) FROM t", 8, "42809"),
    ("SELECT lower(c ORDER BY c) FROM t", 8, "42809"),
    ("SELECT count(a b) FROM t", 16, "42601"),
    ("SELECT max(a) FROM t ORDER BY a", 31, "42803"),
    ("SELECT t.*, count(*) FROM t GROUP BY t.a", 8, "42803"),
    ("SELECT a, (SELECT max(k) FROM v WHERE v.a = t.b) FROM t GROUP BY a", 45, "42803"),
    ("SELECT array_agg('x') FROM t", 8, "42725"),
    ("SELECT count(*) FROM t ORDER BY a", 33, "42803"),
]


@pytest.mark.parametrize(("query", "position", "sqlstate"), WRONG)
def test_errors_blame_what_postgres_blames(query: str, position: int, sqlstate: str) -> None:
    with pytest.raises(Error) as caught:
        bind(query)
    assert (caught.value.position, caught.value.sqlstate) == (position, sqlstate), caught.value


def test_errors_are_worded_as_postgres_words_them(postgres: Postgres) -> None:
    filled(postgres, 1)
    found = []
    for query, _, sqlstate in WRONG:
        with pytest.raises(Error) as caught:
            bind(query)
        found.append(f"!{sqlstate} {caught.value.message}")
    asked = [f"SELECT 1 FROM ({query}) AS q" for query, _, _ in WRONG]
    assert found == postgres.attempt(asked)
