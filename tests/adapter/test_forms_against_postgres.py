"""Forms of expressions that PostgreSQL spells in several ways: their values beside PostgreSQL's."""

from __future__ import annotations

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from tests.postgres_server import Postgres

_DOUBLES = ("2.675", "1.005", "-0.125", "1e-7", "123456789.987654321", "0.1 + 0.2", "1.0 / 3", "-2.5", "1e15 + 0.3")
_MOMENTS = ("2024-10-27 00:30:15.5+00", "2024-10-27 01:30:15.5+00", "2024-03-31 01:30+00", "1969-12-31 23:59:59.9+00")
_FIELDS = ("minute", "hours", "day", "week", "month", "quarter", "year", "second", "decade")
_ZONES = ("Europe/Berlin", "America/St_Johns", "UTC", "Asia/Kathmandu")

EXPRESSIONS = (
    *(f"round(({one})::float8::numeric, {digits})" for one in _DOUBLES for digits in (0, 1, 2, 8)),
    *(f"round(({one})::float4::numeric, 2)" for one in _DOUBLES),
    "round('2.345'::text::numeric, 2)",
    "round(CAST(('12' || '.5')::text AS numeric), 0)",
    "round(NULL::float8::numeric, 2)",
    *(
        f"round('{one}'::{type_}::numeric, 2)"
        for one in ("NaN", "inf", "-inf", "1e37")
        for type_ in ("float8", "real", "text")
    ),
    # Constants whose casts decide which digits a result has, and whether it fits a scale.
    *("2::numeric ^ 100", "power(2::numeric, 0.5)", "1::numeric / 3"),
    *(
        f"date_trunc('{field}', timestamptz '{moment}', '{zone}')"
        for field in _FIELDS
        for moment in _MOMENTS
        for zone in _ZONES
    ),
    "date_trunc('day', timestamp '2024-05-05 23:00', 'Asia/Kathmandu')",
    "make_timestamptz(2024, 7, 1, 12, 30, 15.5, 'America/New_York')",
    "make_timestamptz(2024, 3, 31, 2, 30, 0, 'Europe/Berlin')",
    "2e38::float8",
    "-12345678901234567890123456789012345678901234567890::float8",
    "CAST(1e-300 AS float8)",
    "3.4e38::float4",
    "float8(3)",
    "int4(2.5)",
    "int8('12')",
    "text(1.50)",
    "date(timestamp '2024-05-05 23:00')",
    "'a'\n'b' || 'c'\n  'd'",
    "'a'\n'b' 'c'",
    "E'\\t'\n'b'",
    "concat(VARIADIC ARRAY['a', NULL, 'b'])",
    "concat(VARIADIC NULL::text[])",
    "concat_ws(', ', VARIADIC ARRAY[1, NULL, 3])",
    "concat_ws(NULL, VARIADIC ARRAY[1, 3])",
    "format('%s and %s', VARIADIC ARRAY['a', 'b'])",
    "format('%s', VARIADIC ARRAY[timestamp '2020-01-01'])",
    "format('none', VARIADIC NULL::text[])",
    "jsonb_build_array(VARIADIC ARRAY[1, NULL, 3])",
    "'a'\n'b' || 'c'\n  -- and\n  'd'",
    # Roots and quotients that lie just below a half, or just below a bound.
    "sqrt(0.99999999999999999999999999999999999999)",
    f"sqrt(0.{'9' * 60})",
    "width_bucket(0, -1e100, 1, 10)",
    "width_bucket(0, -1e100, 1e100, 10)",
    "width_bucket(0, 1e-100, -1e100, 10)",
    "width_bucket(0::float8, -1e100, 1, 10)",
    "width_bucket(0.99999999999999999999::numeric(38,20), -99999999999999999.0::numeric(38,1), 1::numeric(38,0), 3)",
    "text(ROW(1, 2))",
    "bool(ROW(1))",
    "text(ARRAY[1, 2])",
)
QUERIES = (
    "SELECT ARRAY(VALUES (3), (1) ORDER BY 1), ARRAY(VALUES (3), (1) ORDER BY column1 DESC LIMIT 1)",
    "SELECT ARRAY(VALUES (3), (1) UNION VALUES (2) ORDER BY 1)::text[], EXISTS(VALUES (3) LIMIT 0)",
    "SELECT 1 IN (VALUES (1), (2) ORDER BY 1 DESC LIMIT 1), 1 = ANY (VALUES (2) UNION VALUES (1))",
    "VALUES (3, 'a'), (1, 'b') ORDER BY column2 DESC",
    "SELECT * FROM (VALUES (3), (1) ORDER BY column1 LIMIT 1) AS x (a)",
    "SELECT * FROM (VALUES (3), (1) UNION VALUES (2) ORDER BY 1 LIMIT 2) AS x (a), (VALUES (7)) y",
    "WITH q (x) AS (VALUES (2), (1) ORDER BY 1 LIMIT 1) SELECT x FROM q",
    "SELECT 1 = ANY(ARRAY[NULL, '1', 2]), 'x' = ANY(ARRAY[NULL, 'x']), 'y' <> ALL(ARRAY['x', 'y'])",
    "SELECT x FROM generate_series(1, 3) AS g(x) WHERE EXISTS (SELECT FROM generate_series(2, 3) AS h(y) WHERE x = y)",
    "SELECT x FROM generate_series(1, 3) AS g(x) WHERE NOT EXISTS (SELECT FROM (VALUES (2), (2)) AS h(y) "
    "WHERE x >= y GROUP BY y HAVING count(*) > 1)",
    "SELECT x / 3 FROM generate_series(1, 9) AS g(x) ORDER BY 1 FETCH FIRST 2 ROWS WITH TIES",
    "SELECT x / 3 FROM generate_series(1, 9) AS g(x) ORDER BY 1 DESC OFFSET 1 FETCH FIRST ROW WITH TIES",
    "SELECT x / 3, x FROM generate_series(1, 9) AS g(x) ORDER BY 1, 2 FETCH NEXT 4 ROWS WITH TIES",
    "SELECT sum(y), count(*) FROM (SELECT x / 4 FROM generate_series(1, 9) AS g(x) ORDER BY 1"
    " FETCH FIRST 5 ROWS WITH TIES) AS h(y)",
    "SELECT x FROM (VALUES (1), (NULL), (3)) AS v(x) ORDER BY x USING >",
    "SELECT x, y FROM (VALUES (1, 'a'), (NULL, 'b'), (3, 'c')) AS v(x, y) ORDER BY x USING < NULLS FIRST, y",
    "SELECT regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g')",
    "SELECT regexp_matches('foobarbequebaz', 'ba.')",
    "SELECT regexp_matches('foo', 'ba.'), 1",
    "SELECT x, regexp_matches(x, '(a)?(b)', 'gi') FROM (VALUES ('AB b'), (NULL), ('ab\"c'), ('')) AS v(x)"
    " ORDER BY 1, 2",
    "SELECT m, m[1], n FROM regexp_matches('foobarbaz', 'b(.)(.)', 'g') WITH ORDINALITY AS r(m, n) ORDER BY n",
    "SELECT x, m FROM (VALUES ('a1b2'), ('c')) AS v(x), regexp_matches(x, '[0-9]', 'g') AS m ORDER BY 1, 2",
    "SELECT (regexp_matches('a=1', '(.)=(.)'))[2]",
    'SELECT list[2], s.list[1:1], "array"[2], s."array"[1], s.array[2], "list"[1], ("array")[1], ARRAY[7] || "array"'
    ' FROM (VALUES (ARRAY[5, 6], ARRAY[8, 9])) AS s (list, "array")',
    "SELECT ('{\"a\":1}'::jsonb)['a'::char(3)], ('{\"a\":1}'::jsonb)['a'::varchar(3)]",
    "SELECT count(*) FROM regexp_matches('abc', '', 'g')",
    "SELECT x FROM generate_series(1, 9) AS g(x) ORDER BY x LIMIT 1 + 1 OFFSET 2 * 2",
    "SELECT x FROM generate_series(1, 9) AS g(x) ORDER BY x LIMIT length('abc')",
    "SELECT (i.*).c, (i.*).d FROM u AS i(c, d)",
    "SELECT x FROM generate_series(1, 9) AS g(x) ORDER BY x LIMIT CASE WHEN 1 > 2 THEN 1 END OFFSET 7",
)
_ROWS = "(VALUES (1, 'a', 3), (2, 'b', 1), (3, 'c', 2), (4, 'd', NULL), (5, 'e', 0), (6, 'f', 9)) AS v (a, t, b)"
#: Rows in the order of the one derived table that is all of FROM, as far as nothing else puts them in order.
IN_GIVEN_ORDER = tuple(
    one.replace("{}", _ROWS)
    for one in (
        "SELECT array_agg(a), string_agg(t, ','), count(*) FROM (SELECT a, t FROM {} ORDER BY b) x WHERE a > 1",
        "SELECT a % 2, array_agg(a), string_agg(t, '-') FILTER (WHERE a < 5), json_agg(t)::text, jsonb_agg(a)::text,"
        " json_object_agg(t, a)::text, jsonb_object_agg(a % 4, t)::text FROM (SELECT a, t FROM {} ORDER BY b DESC) x"
        " GROUP BY 1 ORDER BY 1",
        "SELECT array_agg(DISTINCT a), array_agg(a ORDER BY a), array_agg(a) FROM (SELECT a FROM {} ORDER BY b) x",
        "SELECT array_agg(a) FROM (SELECT a FROM {} ORDER BY b DESC LIMIT 4 OFFSET 1) x",
        "SELECT array_agg(a) FROM (SELECT DISTINCT ON (a % 3) a FROM {} ORDER BY a % 3 DESC, b) x",
        "SELECT ARRAY(SELECT a FROM (SELECT a FROM (SELECT a FROM {} ORDER BY b) x WHERE a <> 2) y)",
        "SELECT a, lag(a) OVER (), lead(a, 2) OVER (), row_number() OVER (), ntile(3) OVER (), first_value(a) OVER (),"
        " last_value(a) OVER (), nth_value(a, 2) OVER (), sum(a) OVER (ROWS 1 PRECEDING), sum(a) OVER (),"
        " rank() OVER () FROM (SELECT a FROM {} ORDER BY b) x",
        "SELECT a, array_agg(a) OVER w, last_value(a) OVER w, dense_rank() OVER w FROM (SELECT a FROM {} ORDER BY b) x"
        " WINDOW w AS (RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        "SELECT a, m, row_number() OVER (PARTITION BY m), last_value(a) OVER (PARTITION BY m)"
        " FROM (SELECT a, a % 2 AS m FROM {} ORDER BY m, b DESC) x",
        "SELECT a, lag(a) OVER (), rank() OVER (ROWS 1 PRECEDING) FROM (SELECT a FROM {} ORDER BY b) x ORDER BY a DESC",
        "SELECT a + 1 FROM (SELECT a FROM {} ORDER BY b) x LIMIT 2",
        "SELECT a FROM (SELECT a, b FROM {} ORDER BY b, a) x",
        "WITH x AS (SELECT a FROM {} ORDER BY b)"
        " SELECT (SELECT array_agg(a) FROM x), (SELECT a FROM x LIMIT 1), (SELECT max(a) FROM x)",
        "SELECT array_agg(a) FROM (SELECT a FROM {} UNION ALL SELECT 7 ORDER BY 1 DESC) x",
        "SELECT array_agg(u) FROM (SELECT unnest(ARRAY[b, a]) AS u, a FROM {} ORDER BY t DESC, 1) x",
        "SELECT g, (SELECT array_agg(a) FROM (SELECT a FROM {} WHERE a <= g ORDER BY b) x)"
        " FROM generate_series(1, 4) g ORDER BY g",
        "SELECT array_agg(x.t) FROM (SELECT * FROM {} ORDER BY 3) AS x (p, t)",
        "SELECT a FROM (SELECT a, row_number() OVER () AS n FROM (SELECT a FROM {} ORDER BY b) x) y"
        " WHERE n <= 2 ORDER BY a",
    )
)


def test_rows_come_in_the_order_of_their_derived_table_as_in_postgres(
    postgres: Postgres, evaluated: Connection
) -> None:
    with postgres.connect() as theirs:
        for query in IN_GIVEN_ORDER:
            assert evaluated.execute(query).fetchall() == theirs.execute(query).fetchall(), query


def test_forms_have_the_values_that_they_have_in_postgres(postgres: Postgres, evaluated: Connection) -> None:
    different = []
    for expression, answer in zip(EXPRESSIONS, postgres.attempt(EXPRESSIONS), strict=True):
        theirs = answer[:6] if answer is not None and answer.startswith("!") else answer
        try:
            ((value,),) = evaluated.execute(f"SELECT ({expression})::text").fetchall()
            ours = None if value is None else f"={value}"
        except Error as error:
            ours = f"!{error.sqlstate}"
        if ours != theirs and (ours, theirs) != ("!0A000", "!42601"):
            different.append(f"{expression}: {ours}, in PostgreSQL {answer}")
    assert not different, "\n".join(different)


def test_forms_of_queries_have_the_rows_that_they_have_in_postgres(postgres: Postgres, evaluated: Connection) -> None:
    table = "CREATE TEMP TABLE u (a int, b text)"
    evaluated.execute(table)
    evaluated.execute("INSERT INTO u VALUES (1, 'x')")
    with postgres.connect() as theirs:
        theirs.execute(table)
        theirs.execute("INSERT INTO u VALUES (1, 'x')")
        for query in QUERIES:
            assert evaluated.execute(query).fetchall() == theirs.execute(query).fetchall(), query


def test_a_negative_limit_is_one_of_no_rows_too(postgres: Postgres, evaluated: Connection) -> None:
    with postgres.connect() as theirs:
        for query in (
            "SELECT 1 WHERE false LIMIT (SELECT -1)",
            "SELECT 1 WHERE false OFFSET (SELECT -1)",
            "SELECT * FROM (SELECT x FROM generate_series(1, 3) AS g(x) WHERE false LIMIT (SELECT min(1) - 5)) AS d",
        ):
            with pytest.raises(psycopg.Error) as wanted:
                theirs.execute(query)
            with pytest.raises(Error) as found:
                evaluated.execute(query).fetchall()
            assert found.value.sqlstate == wanted.value.sqlstate, query


def test_forms_that_others_have(evaluated: Connection) -> None:
    rows = "(VALUES (1, 'a', NULL), (1, 'a', 3), (2, 'b', 4)) AS v(x, y, z)"
    for query, same in (
        ("SELECT y, sum(x), x + 1 FROM {} GROUP BY ALL", "SELECT y, sum(x), x + 1 FROM {} GROUP BY y, x + 1"),
        ("SELECT count(*), max(x) FROM {} GROUP BY ALL", "SELECT count(*), max(x) FROM {} GROUP BY ()"),
        (
            "SELECT x, first_value(z IGNORE NULLS) OVER (ORDER BY x, z NULLS FIRST) FROM {}",
            "SELECT x, first_value(z) IGNORE NULLS OVER (ORDER BY x, z NULLS FIRST) FROM {}",
        ),
        ("SELECT lag(z, 1 IGNORE NULLS) OVER (ORDER BY x, z) FROM {}",
         "SELECT lag(z, 1) IGNORE NULLS OVER (ORDER BY x, z) FROM {}"),
    ):  # fmt: skip
        found, wanted = (sorted(map(repr, evaluated.execute(one.format(rows)).fetchall())) for one in (query, same))
        assert found == wanted, query


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 1 FETCH FIRST 2 ROWS WITH TIES", "without ORDER BY"),
        ("SELECT least(VARIADIC ARRAY[1, 2])", "VARIADIC in least"),
        ("SELECT concat(VARIADIC 1)", "must be an array"),
        ("SELECT ARRAY[1, 2][1e0 + 1]", "syntax error at or near"),
        ("SELECT ARRAY(SELECT 7)[1]", "syntax error at or near"),
        ("SELECT array_agg(x)[1] FROM (VALUES (1)) AS v (x)", "syntax error at or near"),
        ("SELECT '{1,2}'::int[][1]", "syntax error at or near"),
        ("SELECT CAST('{1}' AS int[])[1]", "syntax error at or near"),
        ("SELECT concat(VARIADIC ARRAY['a'], 'b')", "VARIADIC in concat"),
        ("SELECT 1 = ANY(ARRAY['1', '2'])", "operator does not exist: integer = text"),
        ("SELECT 'x' = ANY(ARRAY['x', 1])", 'invalid input syntax for type integer: "x"'),
    ],
)
def test_forms_that_are_refused(evaluated: Connection, query: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        evaluated.execute(query)
