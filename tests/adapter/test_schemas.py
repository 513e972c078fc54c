"""Schemas: names of one never meet those of another, beside PostgreSQL; what was created means the same for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection, NotAllApplied, OrphanStillRead, apply_project
from mz_dagster.adapter.rebuilding import rebuild
from mz_dagster.errors import Error
from mz_dagster.orchestration import build_mz_asset_specs
from mz_dagster.sql.errors import InvalidSchemaName, UndefinedTable
from tests.opened import opened
from tests.postgres_server import Postgres

#: Statements that both execute, one after the other; what they return, or their SQLSTATE, is compared.
SCRIPT = (
    "CREATE SCHEMA sh",
    "CREATE SCHEMA sh",
    "CREATE SCHEMA IF NOT EXISTS sh",
    "CREATE SCHEMA pg_mine",
    'CREATE SCHEMA "My S"',
    "CREATE TABLE nowhere.t (a int)",
    "CREATE TABLE sh.t (a int PRIMARY KEY, b text DEFAULT 'd' CHECK (t.b <> ''), n serial)",
    "CREATE TABLE t (a int)",
    "INSERT INTO sh.t (a) VALUES (1), (2), (3)",
    "INSERT INTO t VALUES (10)",
    "SELECT * FROM sh.t ORDER BY a",
    "SELECT sh.t.a, t.b FROM sh.t ORDER BY 1",
    "SELECT public.t.a FROM t",
    "SELECT sh.t.a, public.t.a FROM sh.t, public.t ORDER BY 1",
    "SELECT t.a FROM sh.t, public.t",
    "SELECT sh.t.a FROM sh.t AS x",
    "SELECT t.* FROM sh.t ORDER BY 1",
    "SELECT sh.t.a FROM t",
    "SELECT x.a FROM sh.t AS x WHERE EXISTS (SELECT 1 FROM t WHERE x.a < t.a) ORDER BY 1",
    "SELECT a FROM sh.t WHERE EXISTS (SELECT 1 FROM public.t WHERE sh.t.a + 8 = public.t.a)",
    "UPDATE sh.t SET b = 'u' WHERE sh.t.a = 1 RETURNING b",
    "UPDATE sh.t SET b = 'v' FROM public.t AS p WHERE sh.t.a = p.a",
    "DELETE FROM sh.t WHERE sh.t.a = 2 RETURNING *",
    "INSERT INTO sh.t (a, b) VALUES (1, '')",
    "INSERT INTO sh.t (a) VALUES (1)",
    "INSERT INTO sh.t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = t.b || excluded.b RETURNING *",
    "CREATE VIEW sh.v AS SELECT t.a FROM sh.t",
    "CREATE INDEX i ON sh.t (b)",
    "CREATE TABLE sh.c AS SELECT a FROM sh.v",
    "SELECT count(*) FROM sh.c",
    "SET search_path = sh, public",
    "SHOW search_path",
    "SELECT current_schema()",
    "SELECT * FROM t ORDER BY a",
    "CREATE TABLE u (x int)",
    "CREATE VIEW w AS SELECT a FROM t",
    "CREATE TABLE t (b int)",
    "SET search_path TO public",
    "SELECT * FROM w",
    "SELECT * FROM sh.w ORDER BY a",
    "SET search_path = nowhere, sh",
    "CREATE TABLE first (a int)",
    "SELECT count(*) FROM sh.first",
    "DROP TABLE first",
    "SET search_path = nowhere",
    "CREATE TABLE first (a int)",
    "SET search_path = nowhere, sh",
    "SELECT a FROM t ORDER BY a",
    "SET search_path = nowhere",
    "SELECT a FROM t",
    "SET search_path TO DEFAULT",
    "ALTER TABLE sh.t ADD COLUMN z int DEFAULT 5",
    "ALTER TABLE sh.t RENAME COLUMN b TO bb",
    "SELECT a, bb, z FROM sh.t ORDER BY a",
    "ALTER TABLE sh.u ADD COLUMN y int",
    "INSERT INTO sh.u VALUES (1, 2)",
    "SELECT * FROM sh.u",
    "ALTER TABLE sh.u RENAME TO u2",
    "SELECT * FROM sh.u2",
    'CREATE TABLE "My S"."T t" ("a.b" int)',
    'INSERT INTO "My S"."T t" VALUES (3)',
    'SELECT "My S"."T t"."a.b" FROM "My S"."T t"',
    "TRUNCATE sh.c",
    "SELECT count(*) FROM sh.c",
    "CREATE TEMP TABLE t (k int)",
    "SELECT * FROM t",
    "SELECT count(*) FROM sh.t",
    "DROP TABLE t",
    "SELECT * FROM t",
    "DROP VIEW sh.w",
    "DROP SCHEMA sh",
    'DROP SCHEMA sh, "My S" CASCADE',
    "SELECT * FROM sh.t",
    "DROP SCHEMA sh",
    "DROP SCHEMA IF EXISTS sh",
    "DROP SCHEMA public",
)


def told(execute: Any, statement: str) -> object:
    try:
        cursor = execute(statement)
        return list(cursor.fetchall()) if cursor.description else None
    except Error as error:
        return error.sqlstate
    except psycopg.Error as error:
        return error.sqlstate


def test_statements_say_what_postgres_says(sparkless: Connection, postgres: Postgres) -> None:
    with postgres.connect() as reference:
        reference.prepare_threshold = None
        reference.execute("DROP SCHEMA IF EXISTS sh CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        for statement in SCRIPT:
            if statement == "DROP SCHEMA public":  # which PostgreSQL does
                assert told(sparkless.execute, statement) == "2BP01"
            elif statement == "SET search_path TO DEFAULT":
                sparkless.execute(statement)
                reference.execute("SET search_path TO public")
            else:
                assert told(sparkless.execute, statement) == told(reference.execute, statement), statement


def rows(connection: Connection, query: str) -> list[tuple[object, ...]]:
    return sorted(connection.execute(query).fetchall())


def test_what_is_in_a_schema_is_maintained_and_means_the_same_whatever_the_path(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:
        for one in (
            "CREATE SCHEMA sh",
            "CREATE TABLE sh.t (a int, b text)",
            "CREATE TABLE t (a int, b text)",
            "SET search_path = sh, public",
            "CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b",
            "CREATE INDEX ON m (n)",
            "SET search_path = public",
            "INSERT INTO sh.t VALUES (1, 'x'), (2, 'x')",
            "INSERT INTO t VALUES (1, 'y')",
            "COMMENT ON TABLE sh.t IS 'said'",
        ):
            connection.execute(one)
        assert rows(connection, "SELECT * FROM sh.m") == [("x", 2)]
        shown = "CREATE MATERIALIZED VIEW sh.m AS SELECT b, count(*) AS n FROM sh.t GROUP BY b"
        assert rows(connection, "SHOW CREATE MATERIALIZED VIEW sh.m") == [("sh.m", shown)]
        assert rows(connection, "SHOW CREATE INDEX sh.m_n_idx") == [("sh.m_n_idx", "CREATE INDEX m_n_idx ON sh.m (n)")]
        connection.execute("ALTER TABLE sh.t RENAME TO t2")
        assert rows(connection, "SHOW OBJECTS") == [
            ("sh.m", "materialized view"),
            ("sh.m_n_idx", "index"),
            ("sh.t2", "table"),
            ("t", "table"),
        ]
        assert rows(connection, "SHOW SCHEMAS") == [("public",), ("sh",)]
        connection.execute("ALTER TABLE sh.t2 ADD COLUMN c int")
        connection.execute("ALTER TABLE sh.t2 RENAME b TO bb")
        ((_, again),) = rows(connection, "SHOW CREATE MATERIALIZED VIEW sh.m")
        connection.execute("DROP MATERIALIZED VIEW sh.m")
        connection.execute(str(again))
    with opened(tmp_path) as connection:
        connection.execute("INSERT INTO sh.t2 VALUES (3, 'x', 1)")
        assert rows(connection, "SELECT * FROM sh.m") == [("x", 3)]
        assert not connection.engine.replan()
        objects = rows(connection, "SELECT name FROM mz_catalog.mz_objects WHERE name IS NOT NULL")
        assert objects == [("sh.m",), ("sh.t2",), ("t",)]


def test_a_schema_holds_what_is_in_it_and_a_quoted_name_with_a_dot_is_none(sparkless: Connection) -> None:
    sparkless.execute('CREATE TABLE "sh.t" (a int)')
    with pytest.raises(UndefinedTable):
        sparkless.execute("SELECT * FROM sh.t")
    with pytest.raises(InvalidSchemaName):
        sparkless.execute("CREATE VIEW sh.v AS SELECT 1 AS one")
    sparkless.execute("CREATE SCHEMA sh")
    with pytest.raises(UndefinedTable):
        sparkless.execute("SELECT * FROM sh.t")
    sparkless.execute("CREATE TABLE sh.u (a int)")
    with pytest.raises(UndefinedTable):
        sparkless.execute('SELECT * FROM "sh.u"')
    with pytest.raises(Error, match='cannot drop "sh" because other objects depend on it') as caught:
        sparkless.execute("DROP SCHEMA sh")
    assert caught.value.detail == "Dependants: sh.u."


def test_files_define_what_is_of_schemas(tmp_path: Path) -> None:
    def write(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / "assets" / f"{name}.sql").write_text(text)

    (tmp_path / "mz.toml").touch()
    (tmp_path / "assets").mkdir()
    write(
        schemas='CREATE SCHEMA sales; CREATE SCHEMA IF NOT EXISTS "My S";',
        base="CREATE TABLE public.t (a int);\nCREATE TABLE sales.t (a int, c sales.colour);",
        types="CREATE TYPE sales.colour AS ENUM ('red', 'blue');",
        views="-- What is sold.\nCREATE MATERIALIZED VIEW sales.v AS SELECT t.a, sales.t.c FROM sales.t;"
        "CREATE INDEX i ON sales.v (a); COMMENT ON COLUMN sales.v.a IS 'a number';"
        'CREATE VIEW "My S"."a b" AS SELECT v.c, t.a FROM sales.v JOIN t USING (a);'
        'CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM "My S"."a b";',
    )
    with opened(tmp_path) as connection:
        engine = connection.engine
        assert set(apply_project(engine).created) == {
            *("sales.", '"My S".', "t", "sales.t", "sales.colour", "sales.v", "sales.i", '"My S"."a b"', "m")
        }
        assert not apply_project(engine).changed
        assert rows(connection, "SHOW SCHEMAS") == [("My S",), ("public",), ("sales",)]
        connection.execute("INSERT INTO sales.t VALUES (1, 'blue'), (2, 'red')")
        connection.execute("INSERT INTO t VALUES (1)")
        assert rows(connection, 'SELECT * FROM "My S"."a b"') == [("blue", 1)]
        assert rows(connection, "SELECT n FROM m") == [(1,)]
        kept = engine.collection_of("sales.v")
        write(base="CREATE TABLE t (a int);\nCREATE TABLE sales.t (a int, c sales.colour, d text DEFAULT 'x');")
        write(types="CREATE TYPE sales.colour AS ENUM ('red', 'green', 'blue');")
        assert {one.name for one in apply_project(engine).changes if one.alterations} == {"sales.t", "sales.colour"}
        connection.execute("INSERT INTO sales.t VALUES (3, 'green', 'y')")
        assert rows(connection, "SELECT rank() OVER (ORDER BY c), c FROM sales.v") == [
            (1, "red"),
            (2, "green"),
            (3, "blue"),
        ]
        assert rows(connection, "SELECT d FROM sales.t ORDER BY a") == [("x",), ("x",), ("y",)]
        assert engine.collection_of("sales.v") == kept
        specs = {spec.key.to_user_string(): spec for spec in build_mz_asset_specs(engine.project)}
        assert specs.keys() == {"t", "sales/t", "sales/v", "sales/i", "m"}
        assert {dep.asset_key.to_user_string() for dep in specs["m"].deps} == {"sales/v", "t"}
        assert {dep.asset_key.to_user_string() for dep in specs["sales/v"].deps} == {"sales/t"}
        assert specs["sales/v"].description == "What is sold."
        write(views="CREATE MATERIALIZED VIEW sales.v AS SELECT a + 1 AS a FROM sales.t;")
        connection.execute("CREATE VIEW sales.own AS SELECT 1 AS one")
        (tmp_path / "assets" / "types.sql").unlink()
        with pytest.raises(NotAllApplied, match=r'"sales.colour" does not exist'):
            apply_project(engine)
        write(types="CREATE TYPE sales.colour AS ENUM ('red', 'green', 'blue');")
        done = apply_project(engine, drop=True)
        assert set(done.replaced) == {"sales.v"}
        assert set(done.dropped) == {"sales.i", '"My S"."a b"', "m"}
        assert rows(connection, "SELECT * FROM sales.v ORDER BY a") == [(2,), (3,), (4,)]
        write(schemas="CREATE SCHEMA sales;")
        assert apply_project(engine, drop=True).dropped == ('"My S".',)
        write(more="CREATE VIEW nowhere.v AS SELECT 1 AS a;")
        with pytest.raises(NotAllApplied, match=r'more.sql:1:13: schema "nowhere" does not exist'):
            apply_project(engine)
        for name in ("base", "types", "views", "schemas", "more"):
            (tmp_path / "assets" / f"{name}.sql").unlink()
        with pytest.raises(OrphanStillRead, match='schema "sales" is not dropped'):
            apply_project(engine, drop=True)
    with opened(tmp_path) as connection:
        assert rows(connection, "SELECT * FROM sales.own") == [(1,)]


def test_what_is_made_anew_stays_in_its_schema(sparkless: Connection) -> None:
    for one in (
        "CREATE SCHEMA sh",
        "CREATE TABLE sh.t (a int)",
        "INSERT INTO sh.t VALUES (1)",
        "CREATE MATERIALIZED VIEW sh.v AS SELECT a FROM sh.t",
        "COMMENT ON MATERIALIZED VIEW sh.v IS 'said'",
    ):
        sparkless.execute(one)
    rebuild(sparkless.engine, ["sh.v"])
    assert rows(sparkless, "SELECT * FROM sh.v") == [(1,)]
    assert rows(sparkless, "SELECT comment FROM mz_internal.mz_comments") == [("said",)]
    with pytest.raises(Error, match="cannot drop"):
        sparkless.execute("DROP SCHEMA sh")


#: A type of a table's column is what it was, whatever another of its name is on the path, or nothing is.
TYPES_ON_A_PATH = (
    "CREATE TYPE mood AS ENUM ('a', 'b')",
    "CREATE SCHEMA s2",
    "CREATE TYPE s2.mood AS ENUM ('x', 'y')",
    "CREATE TABLE t (m mood, n int NOT NULL)",
    "INSERT INTO t VALUES ('a', 1)",
    "SET search_path = s2",
    "ALTER TABLE public.t ADD COLUMN k int",
    "INSERT INTO public.t (m, n) VALUES ('b', 2)",
    "SELECT * FROM public.t ORDER BY n",
    "CREATE TABLE c AS SELECT m, 'x'::mood AS n FROM public.t",
    "ALTER TABLE c ALTER COLUMN n SET DEFAULT 'y'",
    "INSERT INTO c (m) VALUES ('b') RETURNING *",
    "SET search_path = ''",
    "ALTER TABLE public.t ADD COLUMN l int DEFAULT 3, ADD COLUMN o public.mood DEFAULT 'a'",
    "ALTER TABLE public.t ADD CONSTRAINT p UNIQUE (n)",
    "SELECT m, l, o FROM public.t ORDER BY n",
)


def test_types_of_columns_are_those_of_before_whatever_the_path(sparkless: Connection, postgres: Postgres) -> None:
    def told(connection: Any, statement: str) -> object:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None

    with postgres.new_database().connect() as theirs:
        for statement in TYPES_ON_A_PATH:
            assert told(sparkless, statement) == told(theirs, statement), statement


def test_explain_says_of_which_schema_what_is_read_is_by_what_it_is_called_now(sparkless: Connection) -> None:
    def read(query: str) -> list[str]:
        lines = (str(line) for (line,) in sparkless.execute(f"EXPLAIN {query}").fetchall())
        return sorted({line.split()[1] for line in lines if line.split()[:1] in (["Get"], ["Read"])})

    for statement in ("CREATE SCHEMA s", "CREATE TABLE t (a int)", "CREATE TABLE s.t (a int)"):
        sparkless.execute(statement)
    sparkless.execute("CREATE VIEW s.v AS SELECT a FROM s.t")
    both = "SELECT a FROM t UNION ALL SELECT t.a FROM s.t"
    assert read(both) == ["s.t", "t"]
    assert read("SELECT a FROM s.v UNION ALL SELECT a FROM s.t") == ["s.t"]
    sparkless.execute("ALTER TABLE t RENAME TO u")
    sparkless.execute("ALTER TABLE s.t RENAME TO w")
    assert read("SELECT a FROM u UNION ALL SELECT w.a FROM s.w") == ["s.w", "u"]


def test_columns_are_qualified_by_the_project_as_the_database(tmp_path: Path) -> None:
    (root := tmp_path / "shop").mkdir()
    with opened(root) as connection:
        for sql in ("CREATE SCHEMA s", "CREATE TABLE s.t (a integer)", "INSERT INTO s.t VALUES (1), (2)"):
            connection.execute(sql)
        assert connection.execute("SELECT shop.s.t.a FROM s.t WHERE shop.s.t.a > 1").fetchall() == [(2,)]
        connection.execute("UPDATE s.t SET a = 3 FROM (SELECT 2 AS b) AS x WHERE shop.s.t.a = b")
        assert connection.execute("SELECT a FROM shop.s.t ORDER BY shop.s.t.a").fetchall() == [(1,), (3,)]
        with pytest.raises(Error, match="qualified by a database is not supported in a definition"):
            connection.execute("CREATE VIEW v AS SELECT shop.s.t.a FROM s.t")
        for sql, message in (
            ("SELECT other.s.t.a FROM s.t", 'relation "other.s.t" does not exist'),
            ("SELECT shop.s.t.a FROM s.t AS x", 'missing FROM-clause entry for table "s.t"'),
        ):
            with pytest.raises(Error) as caught:
                connection.execute(sql)
            assert (caught.value.message, caught.value.position) == (message, 8)


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        ("SELECT * FROM t", 'relation "t" does not exist', 'Perhaps you meant "public.t".'),
        ("SELECT * FROM x", 'relation "x" does not exist', 'Perhaps you meant "sales.x".'),
        ("DROP TABLE x", 'table "x" does not exist', 'Perhaps you meant "sales.x".'),
        ("SELECT * FROM public.mood", 'relation "public.mood" does not exist', None),
        ("CREATE INDEX i ON public.y (a)", 'relation "public.y" does not exist', None),
        ("CREATE TABLE z (a integer)", "no schema has been selected to create in", "SET search_path to one"),
    ],
)
def test_what_is_in_a_schema_that_is_not_searched_is_named_with_it(
    tmp_path: Path, sql: str, message: str, hint: str | None
) -> None:
    with opened(tmp_path) as connection:
        for one in (
            "CREATE SCHEMA sales",
            "CREATE TABLE sales.x (a integer)",
            "CREATE TABLE t (a integer)",
            "CREATE TYPE mood AS ENUM ('sad')",
            "SET search_path = ''",
        ):
            connection.execute(one)
        with pytest.raises(Error) as caught:
            connection.execute(sql)
    assert caught.value.message == message
    assert (caught.value.hint or "").startswith(hint or "")
    assert (caught.value.hint is None) == (hint is None)
