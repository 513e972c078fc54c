"""Queries over strings with a length, uuid, bytea and patterns say what PostgreSQL 15 says."""

from __future__ import annotations

import pytest

from mz_dagster.plan import explain_logical, optimize
from tests.postgres_server import Postgres
from tests.sql.against_postgres import bind, differences, script, tables

_Q = (
    "(SELECT id, c::char(3) AS k, c::varchar(3) AS v, c, md5(c)::uuid AS u, c::bytea AS b, coalesce(c, 'n')::char(1)"
    " AS f FROM t) AS q"
)
_W = "(SELECT 'x'::char(3) AS k, 'y  '::varchar(4) AS v UNION ALL SELECT 'xx'::char(3), 'Z'::varchar(4)) AS w"

QUERIES = [
    # Comparisons: blanks at the end do not count of char, and do of varchar.
    "SELECT id FROM " + _Q + " WHERE k = 'x   ' OR v = 'Z '",
    "SELECT id, k < 'y', k IN ('x', 'xx  '), v IN ('x', 'xx  '), k BETWEEN 'x ' AND 'xx', k IS DISTINCT FROM 'x' FROM "
    + _Q,
    "SELECT id, k = v, v = k, c = k, k || '|', v || k, length(k), octet_length(k), concat(k, '|', v) FROM " + _Q,
    "SELECT id, k LIKE 'x%', k LIKE 'x', k LIKE 'x__', v LIKE 'x', k ~ '^x $', v SIMILAR TO '(x|y)+' FROM " + _Q,
    "SELECT id FROM " + _Q + " JOIN " + _W.replace(" w", " x") + " USING (k)",
    "SELECT id, x.v FROM " + _Q + " JOIN " + _W.replace(" w", " x") + " ON q.k = x.v",
    "SELECT id FROM " + _Q + " WHERE k IN (SELECT k FROM " + _W + ") OR v NOT IN (SELECT v FROM " + _W + ")",
    # Types of branches, set operations, lists.
    "SELECT (CASE WHEN a > 0 THEN c::varchar(2) ELSE 'other' END)::text, coalesce(c, c::varchar(1)), c || v FROM "
    + _Q
    + " JOIN t USING (id, c)",
    "SELECT CASE WHEN a > 0 THEN f ELSE 'N' END = 'N', coalesce(f, 'q') = f FROM t JOIN "
    + _Q.replace(" q", " p")
    + " USING (id)",
    "SELECT v::text FROM (SELECT v FROM " + _Q + " UNION SELECT 'longer than three') AS d",
    "SELECT count(*) FROM (SELECT k FROM " + _Q + " EXCEPT SELECT 'x'::char(3)) AS d",
    "SELECT greatest(c, c::char(3)), least(c::varchar(2), c)::text FROM t",
    "SELECT nullif(k, 'x') IS NULL, nullif(v, 'x'), nullif(k, c) FROM " + _Q,
    # As PostgreSQL shows literals beside a char(n) in the definitions of views and checks.
    "SELECT id, k = ANY (ARRAY['x'::bpchar, 'xx'::bpchar]), k = ''::bpchar, f = 'n'::bpchar, k::bpchar || '|' FROM "
    + _Q,
    "SELECT id, (CASE WHEN f = 'x'::bpchar THEN 'N'::pg_catalog.bpchar ELSE f END)::text, (CASE WHEN k > 'x'::bpchar"
    " THEN k ELSE NULL::bpchar END)::text FROM " + _Q,
    # Aggregates, orders, windows.
    "SELECT max(k)::text, min(v), count(DISTINCT k), string_agg(v, '-' ORDER BY id) FROM " + _Q,
    "SELECT k::text, count(*) FROM " + _Q + " GROUP BY k HAVING k <> 'Z  '",
    "SELECT u::text, count(b), min(id) FROM " + _Q + " GROUP BY u ORDER BY u",
    "SELECT b::text, rank() OVER (ORDER BY b DESC), lag(k) OVER (ORDER BY id) = k FROM " + _Q,
    "SELECT array_agg(u::text ORDER BY u, id) FROM " + _Q,
    "SELECT DISTINCT ON (k) k::text, id FROM " + _Q + " ORDER BY k, id DESC",
    # Casts.
    "SELECT a::varchar(1), d::varchar(3), f::char(2)::text, e::varchar(4), '12 '::char(4)::int + a FROM t",
    "SELECT c::varchar(2)::uuid FROM t WHERE c = 'x'",
    "SELECT id::char(1)::int FROM t",
    "SELECT (u::text || 'x')::uuid FROM " + _Q + " WHERE id = 0",
    "SELECT encode(b || '\\x00ff'::bytea, 'hex'), length(b), sha256(b)::text, b > '\\x78' FROM " + _Q,
    # Functions of text and patterns.
    "SELECT initcap(c || ' b-c'), overlay(c PLACING 'oo' FROM 1 FOR 1), format('%s is %L', a, c), quote_nullable(c)"
    " FROM t",
    "SELECT regexp_replace(c, 'x|xx', '<\\&>', 'g'), substring(c FROM '(.)x'), c NOT SIMILAR TO '%x' ESCAPE '!' FROM t",
    "SELECT substring(c FROM '#\"%#\"x' FOR '#'), substring(c SIMILAR '#\"%#\"x' ESCAPE '#'), "
    "substring(substring(c FOR 3) FROM 2), regexp_match(c, '(x)(y)?'), c !~* '^X' FROM t",
    "SELECT id FROM t WHERE c ~ '('",
    "SELECT num_nulls(a, b, c), num_nonnulls(c, f) FROM t",
    # Numbers.
    "SELECT a & 6 | 1, a # b, ~a, a << 2, l >> 1, power(a, 2), a ^ 2, div(d, 2), gcd(a, b), lcm(a, b) FROM t",
    "SELECT a FROM t WHERE d >= 0 AND sqrt(d) > 1.7 OR d > 0 AND ln(d) < 0.5",
    "SELECT width_bucket(d, 0, 4, 8), (d::float8 / 3)::numeric(38, 4), d::float8::text, d::real::text, exp(a) FROM t",
]


@pytest.mark.parametrize("seed", [1, 2])
def test_queries_over_strings_say_what_postgres_says(postgres: Postgres, seed: int) -> None:
    data = tables(seed)
    postgres.run("DROP TABLE IF EXISTS t, v, z;" + script(data))
    found = differences(postgres, data, QUERIES)
    assert not found, f"{len(found)} differ:\n" + "\n".join(found)


def test_strings_of_different_types_are_looked_up_by_a_join() -> None:
    query = "SELECT 1 FROM (SELECT c::varchar(3) AS v FROM t) AS x JOIN (SELECT c::char(5) AS k FROM v) AS y ON v = k"
    plan = explain_logical(optimize(bind(query).relation))
    assert "Join cast_bpchar_to_text" in plan
    assert "Filter" not in plan
