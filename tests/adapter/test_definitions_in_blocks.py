"""Tables, views, indexes and types that a block defines: for others once it commits, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection, connect
from mz_dagster.catalog import NameTaken
from mz_dagster.errors import Error
from tests.adapter.outcomes import compare

MADE = (
    "CREATE TABLE made (id serial PRIMARY KEY, n integer)",
    "COMMENT ON TABLE made IS 'By a block'",
    "INSERT INTO made (n) VALUES (1), (2)",
    "CREATE INDEX made_by_n ON made (n)",
    "CREATE VIEW big AS SELECT id FROM made WHERE n > 1",
    "CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM made",
    "INSERT INTO made (n) VALUES (3)",
)


@pytest.fixture
def two(tmp_path: Path, sparkless: Connection) -> Iterator[tuple[Connection, Connection]]:
    """Two sessions of one project."""
    with connect(tmp_path / "shop") as one, connect(tmp_path / "shop") as other:
        yield one, other


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(sql).fetchall())


def names(connection: Connection) -> list[object]:
    query = "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = 'public'"
    return [one for (one,) in rows(connection, query)]


def state(connection: Connection, sql: str) -> str:
    with pytest.raises(Error) as caught:
        connection.execute(sql)
    return str(caught.value.sqlstate)


def test_what_a_block_creates_is_there_for_others_once_it_commits(two: tuple[Connection, Connection]) -> None:
    one, other = two
    with one.transaction():
        for statement in MADE:
            one.execute(statement)
        assert rows(one, "SELECT id FROM big") == [(2,), (3,)]
        assert rows(one, "TABLE total") == [(6,)]
        assert state(other, "TABLE made") == "42P01"
        assert names(other) == []
    assert rows(other, "SELECT id FROM big") == [(2,), (3,)]
    assert rows(other, "TABLE total") == [(6,)]
    expected = ["big", "made", "made_by_n", "made_id_seq", "made_pkey", "total"]
    assert names(one) == names(other) == expected
    assert rows(other, "SELECT obj_description('made'::regclass)") == [("By a block",)]


def test_a_block_that_rolls_back_leaves_nothing(two: tuple[Connection, Connection]) -> None:
    one, other = two
    one.execute("CREATE TABLE kept (a integer)")
    one.execute("BEGIN")
    for statement in (*MADE, "DROP TABLE kept"):
        one.execute(statement)
    assert state(one, "TABLE kept") == "42P01"
    one.execute("ROLLBACK")
    assert names(one) == names(other) == ["kept"]
    assert [row.name for row in one.engine.catalog.objects()] == ["kept"]


def test_a_table_is_replaced_in_a_block(two: tuple[Connection, Connection]) -> None:
    one, other = two
    one.execute("CREATE TABLE t (a integer)")
    one.execute("INSERT INTO t VALUES (1)")
    with one.transaction():
        one.execute("DROP TABLE t")
        one.execute("CREATE TABLE t (b text)")
        one.execute("INSERT INTO t VALUES ('new')")
        assert rows(other, "TABLE t") == [(1,)]
    assert rows(other, "TABLE t") == rows(one, "TABLE t") == [("new",)]


def test_a_savepoint_undoes_what_was_defined_since(two: tuple[Connection, Connection]) -> None:
    one, other = two
    with one.transaction():
        one.execute("CREATE TABLE a (x integer)")
        one.execute("SAVEPOINT s")
        one.execute("CREATE TABLE b (x integer)")
        one.execute("DROP TABLE a")
        assert state(one, "TABLE a") == "42P01"
        one.execute("ROLLBACK TO s")
        one.execute("INSERT INTO a VALUES (1)")
    assert names(other) == ["a"]
    assert rows(other, "TABLE a") == [(1,)]


@pytest.mark.parametrize(("statement", "tables"), [("CREATE TABLE t (a integer)", ["t"]), ("CREATE SCHEMA sales", [])])
def test_of_two_blocks_that_take_a_name_one_commits(
    two: tuple[Connection, Connection], statement: str, tables: list[object]
) -> None:
    one, other = two
    for connection in two:
        connection.execute("BEGIN")
        connection.execute(statement)
    one.execute("COMMIT")
    with pytest.raises(NameTaken):
        other.execute("COMMIT")
    assert names(other) == tables


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("DROP TABLE read", "2BP01"),
        ("DROP TABLE mine", "25001"),
        ("CREATE TEMPORARY TABLE mine AS SELECT 1 AS a", "42P07"),
        ("ALTER TABLE read ADD b integer, DROP COLUMN a", "2BP01"),
        ("ALTER TABLE read ALTER a TYPE bigint", "0A000"),
        ("ALTER TABLE mine ADD COLUMN b integer", "25001"),
        ("ALTER TABLE counted ALTER COLUMN a RESTART", "25001"),
        ("ALTER TABLE counted ADD CHECK (a > 1)", "23514"),
        ("COMMENT ON TABLE read IS 'x'", "25001"),
        ("CREATE OR REPLACE VIEW reader AS SELECT a FROM read", "25001"),
        ("CREATE TABLE read (a integer)", "42P07"),
        ("DROP SCHEMA there", "25001"),
        ("CREATE SCHEMA there", "42P06"),
    ],
)
def test_what_a_block_cannot_define_it_refuses(sparkless: Connection, sql: str, sqlstate: str) -> None:
    sparkless.execute("CREATE TABLE read (a integer)")
    sparkless.execute("CREATE VIEW reader AS SELECT a FROM read")
    sparkless.execute("CREATE SCHEMA there")
    sparkless.execute("CREATE TABLE counted (a serial)")
    sparkless.execute("INSERT INTO counted DEFAULT VALUES")
    sparkless.execute("CREATE TEMPORARY TABLE mine (a integer)")
    sparkless.execute("BEGIN")
    assert state(sparkless, sql) == sqlstate
    sparkless.execute("ROLLBACK")
    assert names(sparkless) == ["counted", "counted_a_seq", "read", "reader"]


TEMPORARY = (
    "CREATE TEMP TABLE mine AS SELECT a FROM t WHERE a > 1",
    "CREATE TEMP TABLE t (a integer PRIMARY KEY, b text)",
    "INSERT INTO t VALUES (7, 'hides the other one')",
    "CREATE TEMP VIEW twice AS SELECT a * 2 AS a FROM mine",
    "CREATE VIEW counted AS SELECT count(*) AS n FROM mine",  # temporary, too, as what it reads
    "INSERT INTO mine VALUES (5)",
    "INSERT INTO public.t SELECT a + 10 FROM mine",
)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "ROLLBACK TO start"])
def test_temporary_objects_of_a_block_are_the_sessions_once_it_commits(
    two: tuple[Connection, Connection], end: str
) -> None:
    one, other = two
    one.execute("CREATE TABLE t (a integer)")
    one.execute("INSERT INTO t VALUES (1), (2), (3)")
    objects = one.execute("SELECT count(*) FROM mz_objects").fetchall()
    one.execute("BEGIN")
    one.execute("SAVEPOINT start")
    for statement in TEMPORARY:
        one.execute(statement)
    assert rows(one, "TABLE mine") == [(2,), (3,), (5,)]
    assert rows(one, "TABLE twice") == [(4,), (6,), (10,)]
    assert rows(one, "TABLE counted") == [(3,)]
    assert rows(one, "SELECT a FROM t") == [(7,)]
    assert names(other) == ["t"]
    assert state(other, "TABLE mine") == "42P01"
    one.execute(end)
    if end == "ROLLBACK TO start":
        assert state(one, "TABLE mine") == "42P01"
        one.execute("ROLLBACK TO start")
        assert rows(one, "TABLE t") == [(1,), (2,), (3,)]
        one.execute("CREATE TEMP TABLE mine AS SELECT 9 AS a")
        one.execute("COMMIT")
        assert rows(one, "TABLE mine") == [(9,)]
        one.execute("DROP TABLE mine")
    if end == "COMMIT":
        assert rows(one, "TABLE mine") == [(2,), (3,), (5,)]
        assert rows(one, "SELECT a FROM t") == [(7,)]
        one.execute("INSERT INTO mine VALUES (6)")
        assert rows(one, "TABLE counted") == [(4,)]
        assert rows(other, "TABLE t") == [(1,), (2,), (3,), (12,), (13,), (15,)]
        one.execute("DROP TABLE mine, pg_temp.t CASCADE")
    else:
        assert rows(other, "TABLE t") == [(1,), (2,), (3,)]
    assert state(one, "TABLE twice") == state(one, "TABLE mine") == "42P01"
    assert one.execute("SELECT count(*) FROM mz_objects").fetchall() == objects
    assert names(other) == ["t"]


def test_a_schema_and_what_a_block_creates_in_it(two: tuple[Connection, Connection]) -> None:
    one, other = two
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname IN ('sales', 'gone')"
    one.execute("BEGIN")
    for statement in (
        "CREATE SCHEMA IF NOT EXISTS sales",
        "CREATE SCHEMA IF NOT EXISTS sales",
        "CREATE TABLE sales.made (a integer)",
        "INSERT INTO sales.made VALUES (1)",
    ):
        one.execute(statement)
    assert state(one, "CREATE SCHEMA sales") == "42P06"
    one.execute("ROLLBACK")
    assert (rows(one, schemas), state(one, "TABLE sales.made")) == ([], "42P01")
    with one.transaction():
        one.execute("CREATE SCHEMA sales")
        one.execute("CREATE TABLE sales.made (a integer)")
        one.execute("INSERT INTO sales.made VALUES (1)")
        assert (rows(one, schemas), rows(one, "SHOW SCHEMAS LIKE 'sales'")) == ([("sales",)], [("sales",)])
        assert (rows(other, schemas), state(other, "TABLE sales.made")) == ([], "42P01")
        one.execute("SAVEPOINT before")
        one.execute("CREATE SCHEMA gone")
        one.execute("ROLLBACK TO before")
    assert rows(one, schemas) == rows(other, schemas) == [("sales",)]
    assert rows(other, "TABLE sales.made") == [(1,)]
    other.execute("DROP SCHEMA sales CASCADE")
    assert rows(one, schemas) == []


def test_a_type_and_what_a_block_creates_of_it(two: tuple[Connection, Connection]) -> None:
    one, other = two
    types = "SELECT typname, enumlabel FROM pg_enum JOIN pg_type AS t ON t.oid = enumtypid"
    for end in ("ROLLBACK", "COMMIT"):
        one.execute("BEGIN")
        one.execute("CREATE TYPE size AS ENUM ('small', 'large')")
        one.execute("CREATE TABLE made (size size DEFAULT 'large', others size[])")
        one.execute("INSERT INTO made (others) VALUES ('{small}')")
        assert state_in(one, "CREATE TYPE size AS ENUM ('x')") == "42710"
        assert state_in(one, "DROP TYPE size") == "2BP01"
        assert (rows(other, types), state(other, "SELECT 'small'::size")) == ([], "42704")
        one.execute(end)
    assert rows(other, types) == [("size", "large"), ("size", "small")]
    assert rows(other, "TABLE made") == [("large", ["small"])]
    with one.transaction():
        one.execute("ALTER TABLE made ADD COLUMN more integer")
        one.execute("DROP TABLE made")
        one.execute("DROP TYPE size")
        one.execute("CREATE TYPE size AS ENUM ('only')")
        assert rows(other, types) == [("size", "large"), ("size", "small")]
    assert rows(one, types) == rows(other, types) == [("size", "only")]


ALTERED = (
    "ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 5",
    "ALTER TABLE t RENAME COLUMN a TO d",
    "INSERT INTO t (d) VALUES (3)",
    "ALTER TABLE t DROP COLUMN b, ADD CONSTRAINT once UNIQUE (d)",
    "CREATE INDEX t_c ON t (c)",
    "UPDATE t SET c = 9 WHERE d = 1",
)


@pytest.fixture
def altering(two: tuple[Connection, Connection]) -> tuple[Connection, Connection]:
    """Two sessions, and in the first a block that has altered a table of two rows, which is another for it alone."""
    one, other = two
    for sql in (
        "CREATE TABLE t (id serial PRIMARY KEY, a integer, b text)",
        "COMMENT ON COLUMN t.a IS 'a number'",
        "CREATE INDEX t_a ON t (a)",
        "COMMENT ON INDEX t_a IS 'by number'",
        "CREATE INDEX t_b ON t (b)",
        "INSERT INTO t (a) VALUES (1), (2)",
        "BEGIN",
        *ALTERED,
    ):
        one.execute(sql)
    assert rows(one, "TABLE t") == [(1, 1, 9), (2, 2, 5), (3, 3, 5)]
    assert rows(one, "SHOW INDEXES") == [("t_a", "t", "d"), ("t_c", "t", "c")]
    assert rows(other, "TABLE t") == [(1, 1, None), (2, 2, None)]
    assert rows(other, "SHOW INDEXES") == [("t_a", "t", "a"), ("t_b", "t", "b")]
    return one, other


def test_an_altered_table_is_another_for_others_once_its_block_commits(
    altering: tuple[Connection, Connection],
) -> None:
    one, other = altering
    assert state_in(one, "INSERT INTO t (d) VALUES (1)") == "23505"
    other.execute("CREATE ROLE reader")
    other.execute("GRANT SELECT ON t TO reader")
    one.execute("COMMIT")
    other.execute("INSERT INTO t (d) VALUES (4)")
    assert rows(other, "TABLE t") == rows(one, "TABLE t") == [(1, 1, 9), (2, 2, 5), (3, 3, 5), (5, 4, 5)]
    assert rows(other, "SHOW INDEXES") == [("t_a", "t", "d"), ("t_c", "t", "c")]
    assert rows(other, "SELECT col_description('t'::regclass, 2), obj_description('t_a'::regclass)") == [
        ("a number", "by number")
    ]
    assert rows(other, "SELECT has_table_privilege('reader', 't', 'SELECT')") == [(True,)]
    assert state(other, "INSERT INTO t (d) VALUES (4)") == "23505"
    assert [row.kind for row in one.engine.catalog.objects()].count("table") == 1


def test_an_altered_table_is_what_it_was_if_its_block_rolls_back(altering: tuple[Connection, Connection]) -> None:
    one, other = altering
    one.execute("ROLLBACK")
    one.execute("INSERT INTO t (a) VALUES (3)")
    assert rows(other, "TABLE t") == rows(one, "TABLE t") == [(1, 1, None), (2, 2, None), (3, 3, None)]
    assert rows(one, "SHOW INDEXES") == [("t_a", "t", "a"), ("t_b", "t", "b")]
    with one.transaction():
        one.execute("SAVEPOINT before")
        one.execute("ALTER TABLE t ADD COLUMN c integer")
        one.execute("ROLLBACK TO before")
        one.execute("ALTER TABLE t DROP COLUMN b")
        one.execute("SAVEPOINT dropped")
        one.execute("DROP TABLE t")
        one.execute("ROLLBACK TO dropped")
    assert rows(other, "TABLE t") == [(1, 1), (2, 2), (3, 3)]
    with one.transaction():
        one.execute("CREATE VIEW seen AS SELECT a FROM t")
        one.execute("DROP VIEW seen")
        one.execute("CREATE INDEX t_id ON t (id)")
        one.execute("ALTER TABLE t ADD COLUMN c integer")
        one.execute("ALTER TABLE t ADD COLUMN d integer")
    assert rows(other, "SHOW INDEXES") == [("t_a", "t", "a"), ("t_id", "t", "id")]
    with one.transaction():
        one.execute("ALTER TABLE t ADD COLUMN e integer")
        one.execute("DROP TABLE t")
    assert names(other) == []


#: Each is executed here and in PostgreSQL, where views are no tables, either.
UNDER_A_VIEW = (
    "CREATE TABLE t (id serial PRIMARY KEY, a integer, b text DEFAULT 'x')",
    "CREATE VIEW u AS SELECT a, count(*) AS n, max(id) AS id FROM t GROUP BY a",
    "INSERT INTO t (a) VALUES (1), (2), (2)",
    "ALTER TABLE t ADD COLUMN dropped integer DEFAULT 8",
    "ALTER TABLE t DROP COLUMN dropped",
    "BEGIN",
    "INSERT INTO t (a) VALUES (3)",
    "ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 5, DROP COLUMN b",
    "UPDATE t SET c = 9 WHERE a = 1",
    "ALTER TABLE t ALTER COLUMN c DROP DEFAULT",
    "SAVEPOINT named",
    "INSERT INTO t (id, a, c) VALUES (40, 4, 4)",
    "ROLLBACK TO named",
    "ALTER TABLE t RENAME COLUMN a TO d",
    "INSERT INTO t (d, c) VALUES (2, 1), (NULL, 2)",
    "ALTER TABLE t ADD COLUMN e integer DEFAULT 3, ADD CHECK (c > 0)",
    "DELETE FROM t WHERE id = 2",
    "SELECT * FROM u WHERE n > 1",
    "SAVEPOINT undone",
    "TRUNCATE t",
    "ALTER TABLE t ADD COLUMN f text",
    "ROLLBACK TO undone",
    "INSERT INTO t (d, c) VALUES (6, 6)",
    "COMMIT",
    "INSERT INTO t (d, c) VALUES (7, 0)",
    "INSERT INTO t (d, c) VALUES (7, 1)",
    "BEGIN",
    "ALTER TABLE t DROP COLUMN e",
    "TRUNCATE t RESTART IDENTITY",
    "COMMIT",
    "INSERT INTO t (d, c) VALUES (1, 1)",
)


#: The table gets other names meanwhile, and what reads it, or is on it, comes and goes.
UNDER_OTHER_NAMES = (
    "CREATE TABLE t (id integer, a integer, b integer, c integer)",
    "CREATE VIEW u AS SELECT id FROM t",
    "CREATE VIEW w AS SELECT b FROM t",
    "CREATE INDEX t_a ON t (a)",
    "CREATE INDEX t_c ON t (c)",
    "BEGIN",
    "ALTER TABLE t RENAME TO v",
    "ALTER TABLE v ADD COLUMN d integer",
    "ALTER TABLE v RENAME TO t",
    "COMMIT",
    "BEGIN",
    "ALTER TABLE t RENAME TO v",
    "ALTER TABLE v ADD COLUMN e integer",
    "COMMIT",
    "SELECT * FROM v",
    "BEGIN",
    "ALTER TABLE v ADD COLUMN f integer DEFAULT 1",
    "INSERT INTO v VALUES (1, 2, 3)",
    "ALTER TABLE v RENAME TO x",
    "CREATE TABLE v (new integer)",
    "INSERT INTO v VALUES (1)",
    "COMMIT",
    "SELECT * FROM v",
    "SELECT * FROM x",
    "ALTER TABLE x RENAME TO t",
    "BEGIN",
    "CREATE VIEW made AS SELECT a FROM t",
    "ALTER TABLE t DROP COLUMN d",
    "DROP VIEW made",
    "COMMIT",
    "BEGIN",
    "DROP INDEX t_a",
    "DROP VIEW w",
    "ALTER TABLE t DROP COLUMN a, DROP COLUMN b, DROP COLUMN c",
    "CREATE TABLE t_c (id integer)",
    "COMMIT",
    "SELECT * FROM t_c",
)


#: What indexes there are is asked in blocks and behind them.
_INDEXES = (
    "SELECT relname, obj_description(c.oid, 'pg_class'), pg_get_indexdef(c.oid) FROM pg_class AS c JOIN pg_index "
    "ON indexrelid = c.oid WHERE indrelid IN (SELECT oid FROM pg_class WHERE relname = 't')"
)
_READERS = "SELECT DISTINCT ev_class::regclass FROM pg_depend JOIN pg_rewrite AS r ON r.oid = objid WHERE refobjid = "

WITH_INDEXES = (
    "CREATE TABLE t (a integer, b integer)",
    "CREATE VIEW u AS SELECT a FROM t",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
    "BEGIN",
    "ALTER TABLE t ADD COLUMN c integer DEFAULT 5",
    "CREATE INDEX t_c ON t (c)",
    "CREATE INDEX t_ac ON t (a, c)",
    "COMMENT ON INDEX t_c IS 'of c'",
    "INSERT INTO t VALUES (3, 3, 5)",
    "SELECT * FROM t WHERE c = 5",
    "COMMIT",
    _INDEXES,
    "SELECT * FROM t WHERE c = 5",
    "INSERT INTO t VALUES (4, 4, 5)",
    "SELECT * FROM t WHERE a = 4 AND c = 5",
    "BEGIN",
    "CREATE INDEX t_b ON t (b)",
    "ALTER TABLE t RENAME COLUMN c TO d",
    "SAVEPOINT made",
    "CREATE INDEX t_d ON t (d)",
    "ROLLBACK TO made",
    "CREATE INDEX t_bd ON t (b, d)",
    "ALTER INDEX t_bd RENAME TO t_db",
    "COMMENT ON INDEX t_db IS 'of both'",
    "ALTER TABLE t ADD COLUMN e integer DEFAULT 1",
    _INDEXES,
    _READERS + "'t'::regclass",
    "CREATE INDEX t_e ON t (e)",
    "CREATE INDEX t_be ON t (b, e)",
    "CREATE INDEX t_eb ON t (e, b)",
    "DROP INDEX t_be",
    "DROP INDEX t_ac",
    "CREATE INDEX t_ac ON t (d, a)",
    "ALTER TABLE t DROP COLUMN e",
    "CREATE INDEX t_a ON t (a)",
    "COMMIT",
    _INDEXES,
    "SELECT * FROM t WHERE b = 2 AND d = 5",
    "DROP INDEX t_db, t_ac, t_gone",
    "BEGIN",
    _INDEXES,
    "DROP INDEX t_db, t_ac, t_a",
    _INDEXES,
    "COMMIT",
    "BEGIN",
    "ALTER TABLE t ADD COLUMN e integer",
    "CREATE INDEX t_e ON t (e)",
    "ROLLBACK",
    _INDEXES,
)


#: Sequences begin anew in a block: for it at once, for others when it commits.
ANEW = (
    "CREATE TABLE t (id serial PRIMARY KEY, a integer)",
    "INSERT INTO t (a) VALUES (1), (2), (3)",
    "BEGIN",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (a) VALUES (4), (5)",
    "SAVEPOINT one",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (a) VALUES (6)",
    "TABLE t",
    "ROLLBACK TO one",
    "INSERT INTO t VALUES (10, 6)",
    "SELECT nextval('t_id_seq')",
    "INSERT INTO t (a) VALUES (7)",
    "SELECT setval('t_id_seq', 20)",
    "INSERT INTO t (a) VALUES (8)",
    "TABLE t",
    "COMMIT",
    "INSERT INTO t (a) VALUES (9)",
    "BEGIN",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (a) VALUES (4), (5)",
    "ROLLBACK",
    "INSERT INTO t (a) VALUES (10)",
    "BEGIN",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (a) VALUES (11)",
    "ALTER TABLE t ADD COLUMN b integer",
    "INSERT INTO t (a) VALUES (12)",
    "COMMIT",
    "INSERT INTO t (a) VALUES (13)",
    "CREATE VIEW u AS SELECT a FROM t",
    "BEGIN",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (a) VALUES (14)",
    "ALTER TABLE t ADD COLUMN c integer",
    "INSERT INTO t (a) VALUES (15)",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (a) VALUES (16), (17)",
    "COMMIT",
    "INSERT INTO t (a) VALUES (18)",
    "TABLE t",
    "BEGIN",
    "TRUNCATE t RESTART IDENTITY",
    "INSERT INTO t (a) VALUES (19)",
    "ALTER TABLE t ALTER COLUMN id DROP DEFAULT",
    "COMMIT",
    "INSERT INTO t (a) VALUES (20)",
)


@pytest.mark.parametrize(
    "statements",
    [UNDER_A_VIEW, UNDER_OTHER_NAMES, WITH_INDEXES, ANEW],
    ids=["views", "names", "indexes", "numbers"],
)
def test_a_table_is_altered_under_its_views_as_in_postgres(
    sparkless: Connection, theirs: psycopg.Connection[Any], statements: tuple[str, ...]
) -> None:
    compare(sparkless, theirs, statements)


def test_an_index_is_over_its_columns_still_when_a_table_that_was_altered_is_altered_in_a_block(
    two: tuple[Connection, Connection],
) -> None:
    one, other = two
    for sql in (
        "CREATE TABLE t (a integer, b integer, c integer)",
        "CREATE INDEX t_bc ON t (b, c)",
        "ALTER TABLE t DROP COLUMN a",
        "BEGIN",
        "ALTER TABLE t ADD COLUMN d integer",
        "COMMIT",
    ):
        one.execute(sql)
    assert rows(other, "SHOW INDEXES") == [("t_bc", "t", "b, c")]


@pytest.fixture
def viewed(two: tuple[Connection, Connection]) -> tuple[Connection, Connection]:
    """Two sessions, and in the first a block that has altered a table from which views are computed."""
    one, other = two
    for sql in (
        "CREATE TABLE t (id serial PRIMARY KEY, a integer, b text)",
        "CREATE INDEX t_a ON t (a)",
        "COMMENT ON COLUMN t.a IS 'a number'",
        "INSERT INTO t (a) VALUES (1), (2)",
        "CREATE MATERIALIZED VIEW total AS SELECT sum(a) AS a FROM t",
        "CREATE TABLE p (a integer PRIMARY KEY)",
        "INSERT INTO p VALUES (1), (2), (13)",
        "BEGIN",
        "ALTER TABLE t ADD COLUMN c integer NOT NULL DEFAULT 5, DROP COLUMN b",
        "ALTER TABLE t RENAME COLUMN a TO d",
        "UPDATE t SET c = c + id, d = 13 WHERE d = 2",
        "ALTER TABLE t ADD FOREIGN KEY (d) REFERENCES p",
        "COMMENT ON COLUMN t.c IS 'another'",
    ):
        one.execute(sql)
    assert rows(one, "TABLE t") == [(1, 1, 5), (2, 13, 7)]
    assert rows(one, "TABLE total") == [(14,)]
    assert rows(other, "TABLE t") == [(1, 1, None), (2, 2, None)]
    assert rows(other, "TABLE total") == [(3,)]
    return one, other


def test_views_are_what_they_were_computed_from_once_the_block_commits(viewed: tuple[Connection, Connection]) -> None:
    one, other = viewed
    catalog = one.engine.catalog
    before = {row.name: row.id for row in catalog.objects() if row.name is not None}
    assert state_in(one, "CREATE MATERIALIZED VIEW m AS SELECT c FROM t") == "25001"
    assert state_in(one, "CREATE VIEW m AS SELECT a FROM total") == "25001"
    assert state_in(one, "CREATE INDEX total_a ON total (a)") == "25001"
    assert state_in(one, "DROP TABLE t CASCADE") == "25001"
    assert state_in(one, "ALTER TABLE t DROP COLUMN d") == "2BP01"
    assert state_in(one, "ALTER TABLE t DROP COLUMN d CASCADE") == "25001"
    assert state_in(one, "INSERT INTO t (d) VALUES (3)") == "23503"
    one.execute("ALTER TABLE t RENAME TO v")
    assert rows(one, "SHOW INDEXES FROM v") == [("t_a", "v", "d")]
    one.execute("COMMIT")
    before["v"] = before.pop("t")
    assert {row.name: row.id for row in catalog.objects() if row.name is not None} == before
    other.execute("INSERT INTO v (d) VALUES (2)")
    assert rows(other, "TABLE v") == rows(one, "TABLE v") == [(1, 1, 5), (2, 13, 7), (4, 2, 5)]
    assert rows(other, "TABLE total") == [(16,)]
    assert rows(other, "SHOW INDEXES") == [("t_a", "v", "d")]
    described = "SELECT attname, col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = 'v'::regclass"
    assert rows(other, f"{described} AND attname IN ('c', 'd')") == [("c", "another"), ("d", "a number")]
    assert state(other, "DELETE FROM p WHERE a = 13") == "23503"
    assert [row.kind for row in catalog.objects()].count("table") == 2


@pytest.mark.parametrize(
    "others",
    [
        "INSERT INTO t (a) VALUES (4)",
        "SELECT nextval('t_id_seq')",
        "CREATE VIEW v AS SELECT a FROM t",
        "COMMENT ON TABLE t IS 'theirs'",
        pytest.param("ALTER TABLE t ADD COLUMN z integer", marks=pytest.mark.deep),
        pytest.param("DROP TABLE t CASCADE", marks=pytest.mark.deep),
    ],
)
def test_a_table_under_views_that_others_change_meanwhile_is_not_altered(
    viewed: tuple[Connection, Connection], others: str
) -> None:
    one, other = viewed
    other.execute(others)
    assert state(one, "COMMIT") == "40001"
    if not others.startswith("DROP"):
        assert rows(one, "SELECT a FROM t WHERE id < 3") == [(1,), (2,)]
        assert rows(one, "TABLE total") == rows(other, "SELECT sum(a) FROM t")


def test_a_table_under_views_whose_type_gets_a_value_meanwhile_is_not_altered(
    two: tuple[Connection, Connection],
) -> None:
    one, other = two
    one.execute("CREATE TYPE size AS ENUM ('small')")
    one.execute("CREATE TABLE t (size size)")
    one.execute("CREATE VIEW v AS SELECT size FROM t")
    one.execute("BEGIN")
    one.execute("ALTER TABLE t ADD COLUMN a integer")
    other.execute("ALTER TYPE size ADD VALUE 'large'")
    assert state(one, "COMMIT") == "40001"
    one.execute("ALTER TABLE t ADD COLUMN a integer DEFAULT 1")
    one.execute("INSERT INTO t VALUES ('large')")
    assert rows(other, "TABLE t") == [("large", 1)]


def test_a_table_is_written_on_whose_alteration_was_given_up_behind_its_files(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("[writes]\ninline_rows = 0\n")
    with connect(tmp_path) as one, connect(tmp_path) as other:
        one.execute("CREATE TABLE t (a integer)")
        one.execute("CREATE VIEW v AS SELECT a FROM t")
        one.execute("INSERT INTO t VALUES (1)")
        one.execute("BEGIN")
        one.execute("ALTER TABLE t ADD COLUMN b integer DEFAULT 1, ADD COLUMN c integer, ADD COLUMN column_4 integer")
        other.execute("COMMENT ON TABLE t IS 'theirs'")
        assert state(one, "COMMIT") == "40001"
        one.execute("INSERT INTO t VALUES (2)")
        one.execute("ALTER TABLE t ADD COLUMN c text DEFAULT '7'")
        one.execute("INSERT INTO t VALUES (3, 'other')")
        one.execute("ALTER TABLE t ADD COLUMN column_4 numeric DEFAULT 1.5")
        expected = [(1, "7", Decimal("1.5")), (2, "7", Decimal("1.5")), (3, "other", Decimal("1.5"))]
        assert rows(other, "TABLE t") == expected
        assert rows(other, "TABLE v") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("others", "sqlstate"),
    [
        ("INSERT INTO t (a) VALUES (4)", "40001"),
        ("COMMENT ON TABLE t IS 'theirs'", "40001"),
        ("DROP INDEX t_b", "40001"),
        ("CREATE VIEW v AS SELECT a FROM t", "2BP01"),
        *(
            pytest.param(*one, marks=pytest.mark.deep)
            for one in (
                ("SELECT nextval('t_id_seq')", "40001"),
                ("ALTER TABLE t ADD COLUMN z integer", "40001"),
                ("DROP TABLE t", "40001"),
                ("ALTER INDEX t_a RENAME TO theirs", "40001"),
                ("CREATE INDEX theirs ON t (id)", "2BP01"),
            )
        ),
    ],
)
def test_a_table_that_others_change_meanwhile_is_not_altered(
    altering: tuple[Connection, Connection], others: str, sqlstate: str
) -> None:
    one, other = altering
    other.execute(others)
    before = names(other)
    assert state(one, "COMMIT") == sqlstate
    assert names(one) == names(other) == before


def test_nothing_that_others_insert_into_an_empty_table_is_lost(two: tuple[Connection, Connection]) -> None:
    one, other = two
    one.execute("CREATE TABLE t (a integer)")
    one.execute("BEGIN")
    one.execute("ALTER TABLE t ADD COLUMN b integer")
    other.execute("INSERT INTO t VALUES (1)")
    assert state(one, "COMMIT") == "40001"
    assert rows(one, "TABLE t") == [(1,)]
    with one.transaction():
        one.execute("DELETE FROM t")
        one.execute("ALTER TABLE t ADD COLUMN b integer")
    assert rows(other, "SELECT a, b FROM t") == []
    one.execute("CREATE VIEW v AS SELECT a FROM t")
    with one.transaction():
        one.execute("DROP VIEW v")
        one.execute("ALTER TABLE t RENAME COLUMN a TO c")
        one.execute("CREATE VIEW v AS SELECT c AS a FROM t")
        one.execute("CREATE MATERIALIZED VIEW m AS SELECT c, count(*) AS n FROM t GROUP BY c")
        one.execute("CREATE INDEX t_c ON t (c)")
        one.execute("INSERT INTO t VALUES (1, 2)")
    assert rows(other, "TABLE v") == [(1,)]
    assert rows(other, "TABLE m") == [(1, 1)]
    assert rows(other, "SELECT b FROM t WHERE c = 1") == [(2,)]


def test_a_block_commits_that_has_locked_what_is_gone_again(two: tuple[Connection, Connection]) -> None:
    one, other = two
    with one.transaction():
        one.execute("SAVEPOINT before")
        for name in "abc":
            one.execute(f"CREATE TABLE {name} (x integer)")
            one.execute(f"SELECT x FROM {name} FOR UPDATE")
            if name == "a":
                one.execute("ROLLBACK TO before")
        one.execute("DROP TABLE b")
        one.execute("ALTER TABLE c ADD COLUMN y integer")
        one.execute("INSERT INTO c VALUES (1, 2)")
    assert names(other) == ["c"]
    assert rows(other, "TABLE c") == [(1, 2)]


REBUILT = (
    "CREATE TABLE new AS (SELECT a, a * 10 AS b FROM read)",
    "ALTER TABLE built RENAME TO old",
    "ALTER TABLE new RENAME TO built",
)


def test_a_table_is_rebuilt_beside_itself(two: tuple[Connection, Connection]) -> None:
    """As dbt does: the new one is made, and takes the name of the old one, which is dropped with what reads it."""
    one, other = two
    one.execute("CREATE TABLE read (a integer)")
    one.execute("INSERT INTO read VALUES (1), (2)")
    one.execute("CREATE TABLE built AS SELECT a FROM read")
    one.execute("CREATE VIEW reader AS SELECT a FROM built")
    for tries in range(2):
        one.execute("BEGIN")
        for statement in REBUILT:
            one.execute(statement)
        assert rows(one, "TABLE built") == [(1, 10), (2, 20)]
        assert rows(one, "TABLE old") == rows(one, "TABLE reader") == [(1,), (2,)]
        assert names(one) == ["built", "old", "read", "reader"]
        assert state(other, "TABLE old") == "42P01"
        assert rows(other, "TABLE built") == [(1,), (2,)]
        assert names(other) == ["built", "read", "reader"]
        one.execute("COMMIT" if tries else "ROLLBACK")
    assert rows(other, "TABLE built") == [(1, 10), (2, 20)]
    with one.transaction():
        one.execute("DROP TABLE IF EXISTS old CASCADE")
        assert names(one) == ["built", "read"]
        assert names(other) == ["built", "old", "read", "reader"]
    assert names(one) == names(other) == ["built", "read"]


def test_names_are_swapped(two: tuple[Connection, Connection]) -> None:
    one, other = two
    for name in "ab":
        one.execute(f"CREATE VIEW {name} AS SELECT '{name}' AS x")
    with one.transaction():
        one.execute("ALTER VIEW a RENAME TO c")
        assert state_in(one, "ALTER VIEW c RENAME TO b") == "42P07"
        one.execute("SAVEPOINT s")
        one.execute("ALTER TABLE b RENAME TO d")
        one.execute("ROLLBACK TO s")
        one.execute("ALTER TABLE b RENAME TO a")
        one.execute("ALTER VIEW c RENAME TO b")
    assert (rows(other, "TABLE a"), rows(other, "TABLE b")) == ([("b",)], [("a",)])
    with one.transaction():
        one.execute("ALTER VIEW a RENAME TO c")
        one.execute("DROP VIEW c")
        one.execute("CREATE VIEW a AS SELECT 1 AS y")
    assert rows(other, "TABLE a") == [(1,)]
    assert names(other) == ["a", "b"]


def test_indexes_go_with_what_they_are_on(two: tuple[Connection, Connection]) -> None:
    one, other = two
    one.execute("CREATE TABLE t (x integer)")
    one.execute("CREATE VIEW v AS SELECT x FROM t")
    one.execute("CREATE INDEX i ON t (x)")
    with one.transaction():
        one.execute("ALTER INDEX i RENAME TO j")
        one.execute("CREATE INDEX k ON v (x)")
        one.execute("DROP TABLE t CASCADE")
    assert names(one) == names(other) == []


def test_the_names_of_indexes_are_free_once_what_they_are_on_is_dropped(two: tuple[Connection, Connection]) -> None:
    one, other = two
    one.execute("CREATE TABLE t (x integer)")
    one.execute("CREATE VIEW v AS SELECT x FROM t")
    one.execute("CREATE INDEX i ON t (x)")
    one.execute("CREATE INDEX k ON v (x)")
    one.execute("BEGIN")
    one.execute("DROP TABLE t CASCADE")
    one.execute("CREATE TABLE t (y integer)")
    one.execute("CREATE INDEX i ON t (y)")
    one.execute("CREATE TABLE k (z integer)")
    assert rows(other, "SELECT count(*) FROM v") == [(0,)]
    one.execute("COMMIT")
    assert names(other) == ["i", "k", "t"]
    assert rows(other, "SHOW INDEXES") == [("i", "t", "y")]


def state_in(connection: Connection, sql: str) -> str:
    """Returns why a statement of a block fails, which goes on as before."""
    connection.execute("SAVEPOINT fails")
    found = state(connection, sql)
    connection.execute("ROLLBACK TO fails")
    return found


@pytest.mark.parametrize("others", ["DROP TABLE t", "ALTER TABLE t RENAME TO u"])
def test_what_others_have_dropped_or_renamed_is_not_renamed(two: tuple[Connection, Connection], others: str) -> None:
    one, other = two
    one.execute("CREATE TABLE t (a integer)")
    one.execute("BEGIN")
    one.execute("ALTER TABLE t RENAME TO v")
    other.execute(others)
    assert state(one, "COMMIT") == "40001"
    assert names(one) == ["u"] * ("RENAME" in others)


def test_rows_of_a_query_are_those_of_the_time_at_which_the_block_commits(two: tuple[Connection, Connection]) -> None:
    one, other = two
    one.execute("CREATE TABLE t (a integer)")
    one.execute("BEGIN")
    one.execute("INSERT INTO t VALUES (1)")
    assert one.execute("CREATE TABLE copied AS SELECT a FROM t").tag == "SELECT 1"
    one.execute("INSERT INTO copied VALUES (2)")
    other.execute("INSERT INTO t VALUES (3)")
    assert state(one, "COMMIT") == "40001"
    assert names(one) == ["t"]
    with one.transaction():
        one.execute("CREATE TABLE copied AS SELECT a FROM t")
        one.execute("CREATE TABLE empty AS SELECT a FROM t WITH NO DATA")
    assert (rows(other, "TABLE copied"), rows(other, "TABLE empty")) == ([(3,)], [])
