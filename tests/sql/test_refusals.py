"""What is not supported, or wrong, says so at the right character: nothing is dropped silently."""

import pytest

from mz_dagster.errors import Error
from tests.sql.project import bind

REFUSED = [
    ("SELECT * FROM t TABLESAMPLE SYSTEM (10)", 17, "TABLESAMPLE"),
    ("SELECT array_agg(x.a) FROM (SELECT a FROM t ORDER BY b) x, v", 45, "beside array_agg()"),
    ("SELECT ARRAY(SELECT x.a FROM (SELECT a FROM t ORDER BY b) x JOIN v ON true)", 47, "beside ARRAY()"),
    ("SELECT string_agg(c, ',') FROM v LEFT JOIN (SELECT c FROM t ORDER BY b) x ON true", 61, "beside string_agg()"),
    ("SELECT jsonb_agg(a) FROM (SELECT DISTINCT a FROM (SELECT a FROM t ORDER BY b) x) y", 67, "beside jsonb_agg()"),
    (
        "WITH x AS (SELECT a FROM t ORDER BY b) SELECT array_agg(a) FROM (SELECT a FROM x UNION SELECT 1) y",
        28,
        "ORDER BY",
    ),
    ("SELECT array_agg(a) FROM (SELECT a FROM t ORDER BY b) x GROUP BY ROLLUP (a % 2)", 43, "beside array_agg()"),
    ("SELECT lag(a) OVER (PARTITION BY a % 2) FROM (SELECT a FROM t ORDER BY b) x", 63, "beside lag() OVER"),
    ("SELECT first_value(a) OVER () FROM (SELECT a FROM t ORDER BY b) x GROUP BY a", 53, "beside first_value() OVER"),
    (
        "SELECT last_value(a) OVER (), rank() OVER (ORDER BY a) FROM (SELECT a FROM t ORDER BY b) x",
        78,
        "beside last_value() OVER",
    ),
    ("SELECT a, rank() OVER (ORDER BY a) FROM (SELECT a FROM t ORDER BY b) x LIMIT 1", 58, "beside LIMIT"),
    ("SELECT lag(a) OVER (ROWS 1 PRECEDING EXCLUDE TIES) FROM (SELECT a FROM t ORDER BY b) x", 74, "beside lag() OVER"),
    ("SELECT DISTINCT ON (a) a, b FROM (SELECT a, b FROM t ORDER BY b) x", 54, "beside DISTINCT ON"),
    ("SELECT (SELECT b FROM t WHERE b IN (SELECT a FROM t ORDER BY b) LIMIT 1)", 53, "beside LIMIT"),
    ("WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x", 6, "WITH RECURSIVE"),
    ("WITH MUTUALLY RECURSIVE x (n integer) AS (SELECT 1) SELECT * FROM x", 6, "WITH MUTUALLY RECURSIVE"),
    ("SELECT now()", 8, "now()"),
    ("SELECT a, random() FROM t", 11, "random()"),
    ("SELECT current_timestamp", 8, "current_timestamp"),
    ("SELECT ROW()", 8, "row without values"),
    ("SELECT 'abc' 'def'", 8, "side by side"),
    ("SELECT sum(DISTINCT interval '1 day') FROM t", 8, "DISTINCT in sum() of intervals"),
    ("SELECT age(e) FROM t", 8, "function age(timestamp with time zone)"),
    ("SELECT to_number(c, c) FROM t", 8, "a template of to_number that is not a literal"),
    ("SELECT date 'now'", 13, 'date "now"'),
    ("SELECT timestamptz '2020-01-01 10:00 PST'", 20, 'the time zone "pst"'),
    ("SELECT e::timestamp AT TIME ZONE 'CET' FROM t", 34, 'time zone "CET"'),
    ("SELECT e::timestamp AT TIME ZONE c FROM t", 34, "a time zone that is not a literal"),
    ("SELECT * EXCEPT (a) FROM t", 18, "*"),
    ("SELECT a FROM t WHERE (a, b) BETWEEN SYMMETRIC (2, 1) AND (1, 2)", 38, "BETWEEN"),
    ("SELECT $1", 8, "$1"),
    ("SELECT a FROM t LIMIT a + 1", 23, None),
    ("SELECT a FROM t UNION ALL SELECT b FROM t ORDER BY a + 1", 52, "ORDER BY clause"),
    ("SELECT '$.a'::jsonpath", 15, "type jsonpath"),
    ("SELECT 1, set_config('work_mem', '1MB', false)", 11, "set_config()"),
    ("SELECT json_populate_recordset(NULL::t, '[]')", 8, "json_populate_recordset()"),
    ("SELECT coalesce(VARIADIC ARRAY[1, 2])", 8, "VARIADIC"),
    ("SELECT greatest(c::jsonb, '1') FROM t", 8, "greatest of jsonb"),
    ("SELECT jsonb_object_agg(DISTINCT c, a) FROM t", 8, "DISTINCT in jsonb_object_agg()"),
    ("SELECT json_agg(DISTINCT ARRAY[a]) FROM t", 8, "DISTINCT in json_agg() of arrays"),
    ("SELECT jsonb_agg(DISTINCT ARRAY[[a], [b]]) FROM t", 8, "DISTINCT in jsonb_agg() of arrays"),
    ("SELECT a AS x, a AS y FROM t GROUP BY x, ROLLUP (y)", 8, "two outputs of one expression in GROUPING SETS"),
    ("SELECT a, a AS y FROM t GROUP BY a, CUBE (y)", 8, "two outputs of one expression in GROUPING SETS"),
    ("SELECT a, 1 AS x FROM t GROUP BY GROUPING SETS (1, 2)", 11, "a constant in GROUPING SETS"),
    ("SELECT sum(a) IGNORE NULLS FROM t", 8, "IGNORE NULLS"),
    ("SELECT rank() IGNORE NULLS OVER (ORDER BY a) FROM t", 8, "IGNORE NULLS"),
    ("SELECT count(*) OVER (ORDER BY e RANGE 1 PRECEDING) FROM t", 40, "date"),
    ("SELECT count(*) OVER (ORDER BY a ROWS 1.5 PRECEDING) FROM t", 39, "ROWS"),
    ("SELECT max(x.y) FROM (SELECT array_agg(a) AS y FROM t) x", 8, "max(integer[])"),
    ("SELECT corr(DISTINCT a, b) FROM t", 8, "DISTINCT in corr()"),
    ("SELECT a, rank(a) WITHIN GROUP (ORDER BY b) FROM t GROUP BY a", 16, "depends on the group"),
    ("SELECT dense_rank(1, 2) WITHIN GROUP (ORDER BY a, b) FROM t", 8, "of several keys"),
    ("SELECT a FROM t OPTIONS (EXPECTED GROUP SIZE = 3)", 26, "EXPECTED GROUP SIZE"),
]


@pytest.mark.parametrize(("query", "position", "part"), REFUSED)
def test_unsupported_forms_are_refused_with_position_and_reason(query: str, position: int, part: str | None) -> None:
    with pytest.raises(Error) as caught:
        bind(query)
    error = caught.value
    assert error.position == position, error
    if part is not None:
        assert error.sqlstate == "0A000", error
        assert part in error.message
        assert error.detail or error.hint


WRONG = [
    ("SELECT to_number('1', '9S9S')", 8, "42601"),
    ("SELECT timestamptz '2020-01-01 +16'", 20, "22009"),
    ("SELECT '\"\\u0000\"'::jsonb", 8, "22P05"),
    ("SELECT zz FROM t", 8, "42703"),
    ("SELECT t.zz FROM t", 8, "42703"),
    ("SELECT x.a FROM t", 8, "42P01"),
    ('SELECT "A" FROM t', 8, "42703"),
    ("SELECT a FROM tt", 15, "42P01"),
    ("SELECT a FROM nowhere.t", 15, "42P01"),
    ("SELECT 1 FROM i", 15, "42809"),
    ("SELECT a FROM t, u", 8, "42702"),
    ("SELECT x FROM t, u JOIN v ON t.a = v.a", 30, "42P01"),
    ("SELECT 1 FROM t x, u x", 20, "42712"),
    ("SELECT foo(a) FROM t", 8, "42883"),
    ("SELECT upper(a, 1) FROM t", 8, "42883"),
    ("SELECT a + c FROM t", 10, "42883"),
    ("SELECT (a) || (b) FROM t", 12, "42883"),
    ("SELECT a FROM t WHERE b", 23, "42804"),
    ("SELECT a FROM t WHERE NOT b", 27, "42804"),
    ("SELECT CASE WHEN b THEN 1 END FROM t", 18, "42804"),
    ("SELECT CASE WHEN f THEN 1 ELSE c END FROM t", 25, "42804"),
    ("SELECT 1 FROM t UNION ALL SELECT c FROM t", 34, "42804"),
    ("SELECT 1, 2 UNION ALL SELECT 3", 30, "42601"),
    ("SELECT f::date FROM t", 8, "42846"),
    ("SELECT 'x'::int", 8, "22P02"),
    ("SELECT 'x' = 1", 8, "22P02"),
    ("SELECT DATE '2020-02-30'", 13, "22008"),
    ("SELECT 'x'::nonsense", 13, "42704"),
    ("SELECT 1 < 2 < 3", 14, "42601"),
    ("SELECT a NOT NULL FROM t", 10, "42601"),
    ("SELECT a FROM t WHERE a = b NOT ISNULL", 29, "42601"),
    ("SELECT a IS NULL NOT NULL FROM t", 18, "42601"),
    ("SELECT a == 1 FROM t", 10, "42883"),
    ("SELECT c -> 'a' FROM t", 10, "42883"),
    ("SELECT lower(c -> '') FROM t", 16, "42883"),
    ("SELECT a !=- 1 FROM t", 10, "42883"),
    ("SELECT c::jsonb -> b FROM t WHERE c::jsonb -> f", 44, "42883"),
    ("SELECT * FROM jsonb_to_recordset('[]') AS r", 15, "42601"),
    ("SELECT * FROM jsonb_to_record('{}') AS r (a int, a text)", 50, "42701"),
    ("SELECT * FROM jsonb_object_keys('{}') AS r (a int)", 45, "42601"),
    ("SELECT (c::jsonb)[f] FROM t", 19, "42804"),
    ("SELECT to_jsonb('x')", 8, "42804"),
    ("SELECT a, FROM t", 11, "42601"),
    ("SELECT a FROM t WHERE", 22, "42601"),
    ("SELECT a FROM t WHERE a IN ()", 29, "42601"),
    ("SELECT a b c FROM t", 12, "42601"),
    ("SELECT a FROM t LIMIT 1, 2", 24, "42601"),
    ("SELECT a FROM t LIMIT -1", 23, "2201W"),
    ("SELECT a FROM t ORDER BY 3", 26, "42P10"),
    ("SELECT a, b AS a FROM t ORDER BY a", 34, "42702"),
    ("SELECT *", 8, "42601"),
    ("SELECT * FROM t x (p, q, r, s, t, u, v)", 15, "42P10"),
    ("SELECT * FROM t JOIN u USING (b)", 31, "42703"),
    ("SELECT j.b FROM t JOIN v USING (a) AS j", 8, "42703"),
    ("SELECT 1 FROM t JOIN v USING (a) AS t", 37, "42712"),
    ("VALUES (1), (2, 3)", 13, "42601"),
    ("WITH x AS (SELECT 1), x AS (SELECT 2) SELECT 1", 23, "42712"),
    ("SELECT ?", 8, "42P02"),
    ("SELECT a FROM t, w", 18, "42P00"),
    ("SELECT date_trunc('fortnight', e) FROM t", 8, "22023"),
    ("SELECT a FROM t ALL", 17, "42601"),
    ("SELECT a FROM t 'abc'", 17, "42601"),
    ("SELECT a left FROM t", 10, "42601"),
    ("SELECT 1 END", 10, "42601"),
    ("SELECT (, 1)", 9, "42601"),
    ("SELECT . 5", 10, "42601"),
    ("SELECT int 1", 12, "42601"),
    ("SELECT AS a FROM t", 8, "42601"),
    ("WITH x (SELECT 1) SELECT * FROM x", 9, "42601"),
    ("WITH x AS (SELECT 1) (WITH y AS (SELECT 2) SELECT * FROM y)", 23, "42601"),
    ("WITH x AS (SELECT 1) WITH y AS (SELECT 2) SELECT * FROM x", 22, "42601"),
    ("WITH x AS (SELECT 1), WITH y AS (SELECT 2) SELECT * FROM x", 23, "42601"),
    ("WITH x AS (WITH x AS (SELECT 1), x AS (SELECT 2) SELECT 1) SELECT 1", 34, "42712"),
    ("SELECT a FROM t OPTIONS (LIMIT INPUT GROUP SIZE = x)", 51, "42601"),
    ("SELECT a FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 1.5)", 51, "22003"),
    ("SELECT a FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 1, LIMIT INPUT GROUP SIZE = 2)", 79, "42701"),
    ("SELECT a FROM t OPTIONS (LIMIT INPUT SIZE = 1)", 26, "42601"),
    ("SELECT a FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 1", 52, "42601"),
    ("SELECT a FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 1) WHERE zz", 60, "42703"),
    ("SELECT a FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 1) OPTIONS (LIMIT INPUT GROUP SIZE = 1)", 54, "42601"),
    ("SELECT a FROM t QUALIFY row_number() OVER ()", 25, "42804"),
]


@pytest.mark.parametrize(("query", "position", "sqlstate"), WRONG)
def test_errors_carry_position_and_sqlstate(query: str, position: int, sqlstate: str) -> None:
    with pytest.raises(Error) as caught:
        bind(query)
    assert (caught.value.position, caught.value.sqlstate) == (position, sqlstate), caught.value


def test_positions_count_in_the_whole_text() -> None:
    with pytest.raises(Error) as caught:
        bind("/* é */  SELECT\n  zz FROM t")
    assert caught.value.position == 19


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT 1 FROM tt", 'Perhaps you meant "t".'),
        ("SELECT 1 FROM nowhere.t", 'Perhaps you meant "t".'),
        ("SELECT uper(c) FROM t", 'Perhaps you meant "upper".'),
        ("SELECT ts2 FROM u", 'Perhaps you meant "ts".'),
        ("SELECT a FROM t, v", "Qualify it: t.a, v.a."),
    ],
)
def test_hints_say_what_was_meant(query: str, hint: str) -> None:
    with pytest.raises(Error) as caught:
        bind(query)
    assert caught.value.hint == hint
