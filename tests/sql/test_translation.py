"""Queries of other dialects in this project's: what is rewritten, what is remarked on, what is refused."""

from __future__ import annotations

import pytest

from mz_dagster.sql import parse
from mz_dagster.sql.translation import (
    Original,
    SourceDialect,
    Translation,
    UnknownDialect,
    Untranslatable,
    column_type,
    originals,
    relation_path,
    translate,
)


def translated(sql: str, dialect: str) -> Translation:
    (original,) = originals(sql, SourceDialect.named(dialect))
    if isinstance(original, Untranslatable):
        raise original
    found = translate(original, {path: path[-1] for path in original.reads})
    if original.kind != "table":
        parse(f"CREATE VIEW v AS {found.text}")
    return found


def one_line(found: Translation) -> str:
    return " ".join(" ".join(line for line in found.text.splitlines() if not line.strip().startswith("--")).split())


@pytest.mark.parametrize(
    ("dialect", "original", "here"),
    [
        ("spark", "concat(a, b)", "a || b"),
        ("duckdb", "concat(a, b)", "CONCAT(a, b)"),
        ("spark", "substring(a, 0, 2)", "SUBSTRING(a FROM 1 FOR 2)"),
        ("duckdb", "substring(a, 0, 2)", "SUBSTRING(a FROM 0 FOR 2)"),
        ("spark", "substring(a, -3)", "RIGHT(a, 3)"),
        ("snowflake", "greatest(a, b)", "CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE GREATEST(a, b) END"),
        ("spark", "greatest(a, b)", "GREATEST(a, b)"),
        ("duckdb", "count_if(a)", "COUNT(*) FILTER(WHERE a)"),
        ("duckdb", "a::decimal", "CAST(a AS DECIMAL(18, 3))"),
        ("spark", "cast(a as decimal)", "CAST(a AS DECIMAL(10, 0))"),
        ("duckdb", "a::hugeint", "CAST(a AS DECIMAL(38, 0))"),
        ("duckdb", "a / 2", "CAST(a AS DOUBLE PRECISION) / 2"),
        ("duckdb", "round(a / b, 2)", "ROUND( CAST(CAST(a AS DOUBLE PRECISION) / b AS DECIMAL), 2 )"),
        ("duckdb", "try_cast(a as text)", "CAST(a AS TEXT)"),
        ("postgres", "a / 2", "a / 2"),
    ],
)
def test_what_would_mean_something_else_is_written_otherwise(dialect: str, original: str, here: str) -> None:
    assert one_line(translated(f"SELECT {original} AS x FROM t", dialect)) == f"SELECT {here} AS x FROM t"


@pytest.mark.parametrize(
    ("dialect", "original", "topic", "is_exact"),
    [
        ("duckdb", "a / b", "division", False),
        ("duckdb", "a / 2", "division", True),
        ("spark", "a / 2", "division", False),
        ("snowflake", "a / 2", "division", False),
        ("duckdb", "a % b", "division", False),
        ("spark", "a div b", "division", False),
        ("spark", "a + b", "overflow", False),
        ("spark", "cast(a as int)", "cast", False),
        ("duckdb", "sum(a)", "overflow", False),
        ("bigquery", "avg(a)", "rounding", False),
        ("bigquery", "1.5", "rounding", False),
        ("snowflake", "round(a, 1)", "rounding", False),
        ("duckdb", "row_number() over (order by a desc)", "null order", True),
        ("spark", "row_number() over (order by a)", "null order", True),
        ("spark", "timestamp '2024-01-01 00:00:00'", "time zone", False),
        ("spark", "current_date()", "time zone", False),
        ("spark", "from_utc_timestamp(a, 'Asia/Tokyo')", "time zone", False),
        ("spark", "a + interval 1 day", "date arithmetic", False),
        ("duckdb", "date_diff('month', a, b)", "date arithmetic", False),
        ("duckdb", "date_diff('day', a, b)", "date arithmetic", True),
        ("spark", "date_format(a, 'yyyy')", "date format", False),
        ("spark", "substring(a, b, 2)", "substring", False),
        ("snowflake", "left(a, b)", "substring", False),
        ("spark", "concat(a, b)", "text", True),
        ("duckdb", "concat(a, b)", "text", False),
        ("bigquery", "greatest(a, b)", "null", True),
        ("duckdb", r"a like 'x\_'", "pattern", False),
        ("spark", "a rlike '[a-z]'", "regular expression", False),
        ("snowflake", "a:b", "json", False),
        ("duckdb", "string_agg(a, ',')", "row order", False),
        ("spark", "collect_list(a)", "row order", False),
        ("spark", "a[0]", "array", False),
        ("duckdb", "a[1]", "array", False),
        ("duckdb", "some_function(a)", "function", False),
    ],
)
def test_what_may_mean_something_else_has_a_remark(dialect: str, original: str, topic: str, is_exact: bool) -> None:
    sql = f"SELECT {original} AS x FROM t"
    (tree,) = originals(sql, SourceDialect.named(dialect))
    assert isinstance(tree, Original)
    found = translate(tree, {("t",): "t"})
    said = [one for one in found.remarks if one.topic == topic]
    assert [one.is_exact for one in said] == [is_exact]
    assert any(line.strip().startswith(f"-- {said[0].topic}:") for line in found.text.splitlines()) == (not is_exact)


@pytest.mark.parametrize("dialect", ["spark", "duckdb", "snowflake", "bigquery"])
def test_what_means_the_same_everywhere_has_none(dialect: str) -> None:
    sql = """
        SELECT a, upper(b) AS b, count(*) AS n, max(c) AS c, CASE WHEN a > 1 THEN 'x' END AS d, coalesce(a, 0) AS e
        FROM t JOIN u USING (a) WHERE a IN (1, 2) AND b LIKE 'x%' GROUP BY a, b HAVING count(*) > 1
    """
    assert translated(sql, dialect).remarks == ()


def test_postgresqls_own_has_no_remarks() -> None:
    assert translated("SELECT sum(a) / 2, x[1], b FROM t ORDER BY 1", "postgres").remarks == ()


def test_a_comment_stands_above_its_place_and_once_in_full() -> None:
    found = translated("SELECT a, b / c AS x, c / d AS y FROM t WHERE e = '-- no\n/* comment'", "duckdb")
    zero = "x / 0 is infinity or NULL, here an error"
    assert found.text.splitlines() == [
        "SELECT",
        "  a,",
        f"  -- division: / divides as double precision, and so does the translation; {zero}",
        "  CAST(b AS DOUBLE PRECISION) / c AS x,",
        "  -- division: as above",
        "  CAST(c AS DOUBLE PRECISION) / d AS y",
        "FROM t",
        "WHERE",
        "  e = '-- no",
        "/* comment'",
    ]
    assert [one.line for one in found.remarks] == [4, 6]


def test_a_comment_never_stands_within_a_text() -> None:
    found = translated("SELECT CASE WHEN e = 'x\ny' AND a / b > 1 THEN 1 END AS x FROM t", "duckdb")
    assert "'x\ny'" in found.text
    assert found.text.count("-- division") == 1


def test_names_that_are_one_stay_one() -> None:
    assert one_line(translated('SELECT "Total Sum", TOTAL FROM "T"', "duckdb")) == 'SELECT "total sum", total FROM t'
    assert (
        one_line(translated('SELECT "TOTAL", "Total", total FROM t', "snowflake"))
        == 'SELECT total, "Total", total FROM t'
    )
    assert one_line(translated("SELECT `Total` FROM t", "clickhouse")) == 'SELECT "Total" FROM t'


@pytest.mark.parametrize(
    ("dialect", "sql", "message"),
    [
        ("duckdb", "SELECT try_cast(a AS int) FROM t", "is NULL where the cast fails"),
        ("spark", "SELECT try_cast(a AS int) FROM t", "is NULL where the cast fails"),
        ("duckdb", "INSERT INTO t VALUES (1)", "is no query"),
        ("duckdb", "SELECT FROM WHERE", "not understood as duckdb"),
        ("duckdb", "CREATE SCHEMA s", "CREATE SCHEMA is not translated"),
        ("duckdb", "CREATE TEMP VIEW v AS SELECT 1 AS a", "a session's own"),
        ("duckdb", "WITH t AS (SELECT 1 AS a) SELECT * FROM t, main.t AS u", "hides the relation"),
        ("snowflake", "SELECT a + max(b) AS x FROM t GROUP BY ALL", "no key and no aggregate"),
    ],
)
def test_what_has_no_equal_is_refused(dialect: str, sql: str, message: str) -> None:
    with pytest.raises(Untranslatable, match=message):
        translated(sql, dialect)


def test_a_query_reads_what_its_with_does_not_hide() -> None:
    sql = """
        WITH orders AS (SELECT * FROM raw.orders), paid AS (SELECT * FROM orders)
        SELECT * FROM paid, "Db"."S"."Customers" AS c, (WITH paid AS (SELECT 1 AS a) SELECT * FROM paid) AS q
    """
    (found,) = originals(sql, SourceDialect.named("duckdb"))
    assert isinstance(found, Original)
    assert found.reads == (("raw", "orders"), ("db", "s", "customers"))
    text = translate(found, {("raw", "orders"): "raw_orders", ("db", "s", "customers"): "customers"}).text
    assert "raw_orders AS orders" in text
    assert "customers AS c" in text


def test_each_statement_of_a_text_says_what_it_makes() -> None:
    sql = (
        "CREATE VIEW a AS SELECT 1 AS x; CREATE TABLE s.b AS SELECT 3; CREATE TABLE c (x integer PRIMARY KEY); SELECT 2"
    )
    found = [one for one in originals(sql, SourceDialect.named("duckdb")) if isinstance(one, Original)]
    assert [(one.kind, one.name) for one in found] == [
        ("view", ("a",)),
        ("materialized view", ("s", "b")),
        ("table", ("c",)),
        ("materialized view", None),
    ]


def test_types_and_names_of_a_catalog() -> None:
    spark, snowflake = SourceDialect.named("spark"), SourceDialect.named("snowflake")
    assert [column_type(one, spark) for one in ("string", "timestamp", "decimal(10,2)", "bigint")] == [
        "TEXT",
        "TIMESTAMPTZ",
        "DECIMAL(10, 2)",
        "BIGINT",
    ]
    assert column_type("no type at all", spark) is None
    assert relation_path("`Db`.`Orders`", spark) == ("db", "orders")
    assert relation_path('RAW."Orders"', snowflake) == ("raw", "Orders")
    with pytest.raises(UnknownDialect, match="unknown dialect") as told:
        SourceDialect.named("sparc")
    assert "spark" in str(told.value.hint)
