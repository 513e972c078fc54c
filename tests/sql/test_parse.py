"""Every form of statement is told by its leading words, and keeps the user's own text."""

import pytest

from mz_dagster.errors import Error
from mz_dagster.scalars.types import INT4, TEXT, numeric
from mz_dagster.sql import (
    AlterRetainHistory,
    Begin,
    Comment,
    Commit,
    CreateIndex,
    CreateMaterializedView,
    CreateSource,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Files,
    Insert,
    Name,
    Rollback,
    Select,
    Show,
    SqlText,
    Statement,
    Subscribe,
    Update,
    parse,
)


def one(text: str) -> Statement:
    (statement,) = parse(text)
    return statement


def test_create_source_keeps_columns_key_and_files() -> None:
    statement = one(
        'CREATE SOURCE IF NOT EXISTS flights (carrier text, "No" int NOT NULL, fare numeric(10, 2), '
        "PRIMARY KEY (carrier, \"No\")) IN TIMELINE replay FROM FILES (FOLDER 'landing/x', PATTERN '*.json') "
        "FORMAT JSON ENVELOPE UPSERT WITH (RETAIN HISTORY = FOR '1 hour')"
    )
    assert isinstance(statement, CreateSource)
    assert [(c.name, c.type, c.nullable) for c in statement.columns] == [
        ("carrier", TEXT, False),
        ("No", INT4, False),
        ("fare", numeric(2), True),
    ]
    assert statement.key == ("carrier", "No")
    assert statement.timeline == "replay"
    assert statement.origin == Files("landing/x", "*.json", "json")
    assert statement.envelope == "upsert"
    assert statement.retain_history_ms == 3_600_000
    assert statement.if_not_exists


def test_create_source_defaults_to_envelope_none_and_the_formats_pattern() -> None:
    statement = one("CREATE SOURCE s (a int) FROM FILES (FOLDER 'x') FORMAT CSV")
    assert isinstance(statement, CreateSource)
    assert isinstance(statement.origin, Files)
    assert (statement.envelope, statement.key, statement.origin.pattern) == ("none", None, "*.csv")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CREATE TABLE t (a int, b text NOT NULL) IN TIMELINE x WITH (RETAIN HISTORY = FOR '5 s')", CreateTable),
        ("CREATE VIEW v AS SELECT 1 AS x", CreateView),
        ("CREATE MATERIALIZED VIEW v (a, b) WITH (RETAIN HISTORY FOR '2 d') AS VALUES (1, 2)", CreateMaterializedView),
        ("CREATE INDEX ON v", CreateIndex),
        ("CREATE INDEX i ON v (a, b)", CreateIndex),
        ("CREATE INDEX i ON v (a varchar_pattern_ops DESC, b text_pattern_ops)", CreateIndex),
        ("DROP MATERIALIZED VIEW IF EXISTS a, b CASCADE", Drop),
        ("ALTER TABLE t SET (RETAIN HISTORY FOR '1 hour')", AlterRetainHistory),
        ("ALTER MATERIALIZED VIEW t RESET (RETAIN HISTORY)", AlterRetainHistory),
        ("COMMENT ON COLUMN t.a IS 'it''s'", Comment),
        ("INSERT INTO t VALUES (1, 'a;b')", Insert),
        ("INSERT INTO t (a) SELECT 1", Insert),
        ("DELETE FROM t AS x WHERE x.a = 1", Delete),
        ("UPDATE t SET a = CASE WHEN b IS DISTINCT FROM c THEN 1 END, b = 2 WHERE a > 0", Update),
        ("SUBSCRIBE t", Subscribe),
        ("SUBSCRIBE (SELECT 1) WITH (PROGRESS, SNAPSHOT = false) AS OF 1 UP TO 2", Subscribe),
        ("EXPLAIN SELECT 1", Explain),
        ("EXPLAIN OPTIMIZED PLAN AS TEXT FOR SELECT 1", Explain),
        ("EXPLAIN raw", Explain),
        (
            'CREATE TABLE t (a text COLLATE "C" NOT NULL, b text[] DEFAULT NULL COLLATE pg_catalog."default")',
            CreateTable,
        ),
        ("SHOW COLUMNS FROM t", Show),
        ("START TRANSACTION READ ONLY", Begin),
        ("BEGIN", Begin),
        ("COMMIT", Commit),
        ("ROLLBACK", Rollback),
        ("WITH x AS (SELECT 1) SELECT * FROM x", Select),
        ("(SELECT 1) UNION ALL SELECT 2", Select),
        ("TABLE t", Select),
    ],
)
def test_a_statement_is_told_by_its_leading_words(text: str, kind: type[Statement]) -> None:
    for shown in (text, f"  /* ; */ {text} -- end\n;"):
        statement = one(shown)
        assert type(statement) is kind
        assert statement.text == text
        assert shown[statement.offset :].startswith(text)


@pytest.mark.parametrize(
    ("text", "as_of", "at_least", "query"),
    [
        ("SELECT 1 AS OF 5", "5", False, "SELECT 1"),
        ("SELECT a FROM t LIMIT 1 AS OF AT LEAST TIMESTAMP '2020-01-01'", "TIMESTAMP '2020-01-01'", True,
         "SELECT a FROM t LIMIT 1"),
        ("SELECT 'AS OF 3' AS of FROM t", None, False, "SELECT 'AS OF 3' AS of FROM t"),
        ("SELECT * FROM (SELECT 1 AS of) x AS OF ?", "?", False, "SELECT * FROM (SELECT 1 AS of) x"),
    ],
)  # fmt: skip
def test_as_of_is_cut_off_the_query(text: str, as_of: str | None, at_least: bool, query: str) -> None:
    statement = one(text)
    assert isinstance(statement, Select)
    assert statement.query.text == query
    assert (statement.as_of.time.text if statement.as_of else None) == as_of
    assert bool(statement.as_of and statement.as_of.at_least) is at_least


def test_subscribe_is_never_an_alias() -> None:
    statement = one("SUBSCRIBE t AS OF 3 UP TO 9")
    assert isinstance(statement, Subscribe)
    assert statement.target == Name(("t",), 10)
    assert statement.as_of is not None
    assert statement.up_to == SqlText("9", 26)


def test_update_cuts_its_expressions_at_commas_outside_parentheses() -> None:
    statement = one("UPDATE t SET a = greatest(1, 2), b = ? WHERE c = ?")
    assert isinstance(statement, Update)
    found = [(one.column, one.value.text) for one in statement.assignments if one.value is not None]
    assert found == [("a", "greatest(1, 2)"), ("b", "?")]
    assert statement.predicate == SqlText("c = ?", 45, 1)


def test_statements_of_a_file_keep_their_offsets() -> None:
    text = "SELECT 1;\n\nCREATE VIEW v AS\n  SELECT ';' AS x;\n"
    first, second = parse(text)
    assert isinstance(second, CreateView)
    assert (first.offset, second.offset) == (0, 11)
    assert text[second.query.offset :].startswith("SELECT ';' AS x")


@pytest.mark.parametrize(
    ("text", "position", "sqlstate", "part"),
    [
        ("FOO", 1, "42601", "expected a statement"),
        ("SELEC 1", 1, "42601", 'near "SELEC"'),
        ("CREATE TABLE t (a int primary key, PRIMARY KEY (a))", 36, "42P16", "multiple primary keys"),
        ("CREATE TABLE t (a int UNIQUE, UNIQUE (b))", 31, "42703", 'column "b" named in key does not exist'),
        ("CREATE TABLE t (a int, CONSTRAINT k UNIQUE (a), CONSTRAINT k CHECK (a > 0))", 62, "42710", "already exists"),
        ("CREATE TABLE t (a int REFERENCES u ON DELETE SET DEFAULT)", 46, "0A000", "SET DEFAULT"),
        ("CREATE TABLE t (a int DEFAULT 1 DEFAULT 2)", 33, "42601", "multiple default values"),
        ("CREATE TABLE t (a int CONSTRAINT k)", 35, "42601", "a constraint"),
        ("CREATE TABLE t (a int, a text)", 24, "42701", 'column "a" specified more than once'),
        (
            "CREATE TABLE t (a int, b int, PRIMARY KEY (b, a, b))",
            31,
            "42701",
            'column "b" appears twice in primary key',
        ),
        ("CREATE TABLE t (a int, UNIQUE (a, a))", 24, "42701", 'column "a" appears twice in unique constraint'),
        ("CREATE VIEW v (a, b, a) AS SELECT 1, 2, 3", 15, "42701", 'column "a" specified more than once'),
        ("CREATE TABLE t (a interval day to year)", 19, "42601", "no such type of intervals"),
        ("CREATE TABLE t (a int GENERATED ALWAYS AS (1))", 46, "42601", "STORED"),
        (
            "CREATE TABLE t (a int GENERATED BY DEFAULT AS (1) STORED)",
            23,
            "42601",
            "must be specified",
        ),
        ("CREATE TABLE t (a int DEFAULT 1 GENERATED ALWAYS AS (2) STORED)", 17, "42601", "both default and generation"),
        ("CREATE TABLE t (mz_diff int)", 17, "42P16", "reserved"),
        ("CREATE TABLE select (a int)", 14, "42601", 'near "select"'),
        ("CREATE SOURCE s (a int PRIMARY KEY) FROM FILES (FOLDER 'x') FORMAT JSON", 24, "42P16", "ENVELOPE UPSERT"),
        ("CREATE SOURCE s (a jsonb PRIMARY KEY) FROM FILES (FOLDER 'x') FORMAT CSV ENVELOPE UPSERT", 18, "42P16", "ke"),
        ("CREATE SOURCE s (a int) FROM FILES (FOLDER 'x') FORMAT JSON ENVELOPE UPSERT", 61, "42P16", "primary key"),
        ("CREATE SOURCE s (a int) FROM KAFKA", 30, "0A000", "kind of source"),
        ("CREATE SOURCE s (a int) FROM FILES (FOLDER 'x') FORMAT XML", 56, "0A000", "format"),
        ("CREATE VIEW v AS SELECT 1 AS OF 3", 27, "42601", "AS OF is not allowed"),
        ("CREATE MATERIALIZED VIEW v IN CLUSTER c AS SELECT 1", 28, "0A000", "IN CLUSTER"),
        ("CREATE INDEX ON v (lower(a))", 25, "0A000", "expression"),
        ("CREATE SINK s FROM v INTO kafka", 27, "0A000", "this kind of sink"),
        ("CREATE OR REPLACE TABLE v AS SELECT 1", 8, "0A000", "OR REPLACE"),
        ("ALTER TABLE t SET (RETAIN HISTORY FOR '1 ms')", 39, "42P16", "at least 1000 ms"),
        ("ALTER TABLE t SET (RETAIN HISTORY FOR '1 month')", 39, "42P16", "fixed length"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1", 26, "42601", "requires inference specification"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE b DO NOTHING", 42, "0A000", "WHERE of a key"),
        ("TRUNCATE t, u, ", 15, "42601", "expected a name"),
        ("ALTER TABLE t SET SCHEMA s", 15, "0A000", "SET SCHEMA"),
        ("ALTER SCHEMA s RENAME TO r", 7, "0A000", "ALTER SCHEMA"),
        ("REFRESH MATERIALIZED VIEW m WITH NO DATA", 29, "0A000", "WITH NO DATA"),
        ("INSERT INTO t (a) DEFAULT VALUES", 13, "42601", "DEFAULT VALUES"),
        ("UPDATE t SET (a, b) = (1, 2, 3)", 14, "42601", "number of columns does not match"),
        ("DELETE FROM t WHERE CURRENT OF c", 21, "0A000", "WHERE CURRENT OF"),
        ("COPY t TO PROGRAM 'x'", 11, "0A000", "COPY TO PROGRAM"),
        ("COPY (SUBSCRIBE t) TO 'x.csv'", 23, "0A000", "a subscription to a file"),
        ("COPY t TO 'x' (FORMAT binary)", 15, "22023", "not recognized"),
        ("COPY t TO 'x' (FORMAT json, HEADER)", 15, "42601", "requires FORMAT CSV"),
        ("COPY t FROM PROGRAM 'ls'", 13, "0A000", "COPY FROM PROGRAM"),
        ("COPY t FROM STDIN (FORMAT csv, DELIMITER 'ab')", 19, "42601", "single one-byte"),
        ("SUBSCRIBE t UP TO 1 UP TO 2", 21, "42601", "said twice"),
        ("SUBSCRIBE t ENVELOPE UPSERT (KEY (a, a))", 34, "42601", "in the key twice"),
        ("SUBSCRIBE t LIMIT 1", 13, "42601", "a clause of SUBSCRIBE"),
        ("DECLARE c BINARY CURSOR FOR SELECT 1", 11, "0A000", "BINARY cursor"),
        ("FETCH 2 c WITH (TIMEOUT 'soon')", 25, "22023", "a timeout is a time"),
        ("COPY t FROM 'x'", 16, "0A000", "this format of COPY"),
        ("COPY t FROM 'x' (FORMAT BINARY)", 17, "0A000", "this format of COPY"),
        ("COPY t FROM 'x' (FORMAT PARQUET, HEADER)", 17, "42601", "COPY HEADER requires FORMAT CSV"),
        ("COPY t FROM 'x' (FORMAT CSV, COLOUR 'red')", 30, "42601", 'option "colour" not recognized'),
        ("COPY t FROM 'x' (FORMAT CSV, ENCODING 'x')", 30, "0A000", "COPY ENCODING"),
        ("COPY t FROM 'x' (FORMAT CSV, DELIMITER '||')", 17, "42601", "single one-byte character"),
        ("COPY t FROM 'x' (FORMAT CSV, DELIMITER '\"')", 17, "22023", "must be different"),
        ("COPY t FROM 'x' (FORMAT CSV, HEADER maybe)", 17, "42601", "header requires a Boolean value"),
        ("COPY t FROM 'x' (FORMAT CSV, FORMAT CSV)", 30, "42601", "conflicting or redundant options"),
        ("ALTER VIEW t RENAME COLUMN a TO b", 14, "0A000", "RENAME of a part"),
        ("EXPLAIN CREATE TABLE t (a int)", 1, "0A000", "EXPLAIN of this statement"),
        ("EXPLAIN DELETE FROM t", 9, "0A000", "EXPLAIN DELETE"),
        ("SET x", 6, "42601", "end of input"),
        ("COMMIT; SELECT 1 +; BOGUS", 21, "42601", 'near "BOGUS"'),
        ("DROP TABLE", 11, "42601", "end of input"),
        ("EXPLAIN ANALYZE INSERT INTO t VALUES (1)", 9, "0A000", "EXPLAIN ANALYZE of what is no query"),
        ("EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1", 19, "0A000", "FORMAT JSON of EXPLAIN"),
        ("EXPLAIN (BUFFERS, ANALYZE) SELECT 1", 10, "0A000", "BUFFERS of EXPLAIN"),
        ("EXPLAIN VERBOSE SELECT 1", 9, "0A000", "VERBOSE of EXPLAIN"),
        ("EXPLAIN RAW PLAN FOR SELECT 1", 9, "0A000", "EXPLAIN RAW"),
        ("EXPLAIN TIMESTAMP FOR SELECT 1", 9, "0A000", "EXPLAIN TIMESTAMP"),
        ('CREATE TABLE t (a text COLLATE "de_DE")', 24, "0A000", "COLLATE in a definition"),
        ('CREATE TABLE t (a integer COLLATE "C")', 27, "42804", "collations are not supported by type integer"),
        ("CREATE TABLE t (a varchr(10))", 19, "42704", 'type "varchr" does not exist'),
        ("CREATE SOURCE s FROM KAFKA CONNECTION k (TOPIC 't') FORMAT JSON", 22, "0A000", "this kind of source"),
        ("SHOW 1", 6, "42601", "what to show"),
    ],
)
def test_refused_statements_say_where_and_why(text: str, position: int, sqlstate: str, part: str) -> None:
    with pytest.raises(Error) as caught:
        parse(text)
    assert (caught.value.position, caught.value.sqlstate) == (position, sqlstate)
    assert part in caught.value.message
