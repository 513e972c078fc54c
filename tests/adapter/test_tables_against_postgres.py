"""Statements that make tables and change them, beside PostgreSQL: what they return, and what they leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from tests.postgres_server import Postgres

#: Scripts of statements; each is run on an empty database, and what is left of `t` and `u` is compared after each.
SCRIPTS = {
    "create table as": (
        "CREATE TABLE s (a integer NOT NULL, b text)",
        "INSERT INTO s VALUES (1, 'x'), (2, NULL), (2, NULL)",
        "CREATE TABLE t AS SELECT a, b, a * 1.5 AS c, now() IS NULL AS d FROM s ORDER BY a DESC LIMIT 2",
        "CREATE TABLE t AS SELECT 1 AS x",
        "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS x",
        "INSERT INTO t VALUES (NULL, NULL, NULL, NULL)",
        "CREATE TABLE u (x, y) AS SELECT b, a FROM s WITH NO DATA",
        "INSERT INTO u VALUES ('z', NULL)",
        "DROP TABLE u",
        "CREATE TABLE u (x, y, z) AS SELECT b, a FROM s",
        "CREATE TABLE u (x) AS VALUES (1, 'one'), (2, NULL) WITH DATA",
        "DROP TABLE u",
        "CREATE TABLE u AS SELECT a, a FROM s",
        "CREATE TABLE u AS TABLE s",
        "DROP TABLE u",
        "CREATE TABLE u AS SELECT 'text', NULL AS n, ARRAY[1, 2] AS l, 'c'::char(3) AS ch, 'v'::varchar(2) AS v",
        "DROP TABLE u",
        "CREATE TABLE u AS SELECT ROW(1, 2) AS r",
        'CREATE TABLE u AS WITH w AS (SELECT a FROM s) SELECT a AS "A b", count(*) AS n FROM w GROUP BY a',
        "DROP TABLE u",
        "CREATE TABLE u AS SELECT a / 0 AS q FROM s",
        "CREATE TABLE u AS SELECT nothing FROM s",
    ),
    "select into": (
        "SELECT 1 AS a, 'x' AS b INTO t",
        "SELECT a + 1 AS a, b INTO TABLE u FROM t WHERE a IS DISTINCT FROM 2",
        "SELECT a INTO t FROM u",
        "DROP TABLE u",
        "WITH w AS (SELECT 5 AS five) SELECT five INTO u FROM w UNION ALL SELECT 6",
        "DROP TABLE u",
        "SELECT 1 AS a UNION SELECT 2 INTO u",
        "SELECT a FROM t INTO u",
        "SELECT DISTINCT a IS DISTINCT FROM 1 AS d INTO u FROM t",
    ),
    "identity": (
        "CREATE TABLE t (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a text)",
        "INSERT INTO t (a) VALUES ('x'), ('y') RETURNING *",
        "INSERT INTO t VALUES (DEFAULT, 'z'), (DEFAULT, 'zz') RETURNING id",
        "INSERT INTO t VALUES (7, 'no')",
        "INSERT INTO t VALUES (DEFAULT, 'no'), (7, 'no')",
        "INSERT INTO t (id) SELECT 7",
        "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (7, 'seven'), (DEFAULT, 'next') RETURNING *",
        "INSERT INTO t OVERRIDING USER VALUE VALUES (70, 'not seventy') RETURNING *",
        "INSERT INTO t OVERRIDING USER VALUE SELECT 71, 'not seventy' RETURNING *",
        "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (NULL, 'null')",
        "INSERT INTO t (a) VALUES ('taken')",
        "INSERT INTO t (a) VALUES ('free') RETURNING *",
        "UPDATE t SET id = 5",
        "UPDATE t SET id = DEFAULT, a = a || '!' WHERE a = 'x' RETURNING id, a",
        "UPDATE t SET a = a || id WHERE id = 2 RETURNING *",
        "INSERT INTO t DEFAULT VALUES RETURNING id",
        "INSERT INTO t (a) SELECT 'many' WHERE false",
        "INSERT INTO t (a) SELECT 'many' FROM generate_series(1, 3)",
        "INSERT INTO t (a) VALUES ('c') ON CONFLICT DO NOTHING RETURNING id",
        "TRUNCATE t",
        "INSERT INTO t (a) VALUES ('on')",
        "TRUNCATE t RESTART IDENTITY",
        "INSERT INTO t (a) VALUES ('anew')",
        "DELETE FROM t",
        "TRUNCATE t RESTART IDENTITY",
        "INSERT INTO t (a) VALUES ('anew')",
        "CREATE TABLE u (a serial, b text, c bigserial NOT NULL, d smallserial UNIQUE)",
        "INSERT INTO u (b) VALUES ('x') RETURNING *",
        "INSERT INTO u VALUES (DEFAULT, 'y', 5, DEFAULT), (8, 'z', DEFAULT, 9) RETURNING *",
        "INSERT INTO u OVERRIDING USER VALUE VALUES (10, 'w', 10, 10) RETURNING *",
        "INSERT INTO u (a) VALUES (NULL)",
        "UPDATE u SET a = DEFAULT, c = 77 WHERE b = 'x' RETURNING *",
        "DROP TABLE u",
        "CREATE TABLE u (a integer, b text DEFAULT 'd', c integer GENERATED ALWAYS AS IDENTITY, d serial)",
        "INSERT INTO u VALUES (1), (2)",
        "INSERT INTO u VALUES (3, 'x') RETURNING *",
        "INSERT INTO u SELECT 4 RETURNING *",
        "INSERT INTO u VALUES (5, 'x', 7)",
        "INSERT INTO u VALUES (5, DEFAULT, DEFAULT) RETURNING *",
    ),
    "temporary": (
        "CREATE TABLE t (a integer)",
        "INSERT INTO t VALUES (1)",
        "CREATE TEMP TABLE t (a integer PRIMARY KEY, b text DEFAULT 'd', n serial)",
        "INSERT INTO t (a) VALUES (2), (3) RETURNING *",
        "INSERT INTO t (a) VALUES (2)",
        "INSERT INTO public.t VALUES (2), (2)",
        "INSERT INTO public.t VALUES (7) RETURNING t.a",
        "UPDATE t SET b = 'u' WHERE a = 2",
        "INSERT INTO t (a) VALUES (2) ON CONFLICT (a) DO UPDATE SET b = excluded.b || t.b RETURNING *",
        "SELECT * FROM public.t",
        "SELECT * FROM pg_temp.t",
        "SELECT * FROM pg_temp.nothing",
        "CREATE TEMPORARY TABLE t (a integer)",
        "CREATE TEMP TABLE IF NOT EXISTS t (a integer)",
        "CREATE TABLE IF NOT EXISTS t (a integer)",
        "CREATE TABLE t (a integer)",
        "CREATE TEMP VIEW u AS SELECT a, b FROM t",
        "SELECT * FROM u",
        "CREATE VIEW pg_temp.w AS SELECT count(*) AS n FROM u",
        "SELECT n FROM w",
        "DROP TABLE t",
        "DROP VIEW w",
        "CREATE VIEW w AS SELECT a FROM t",
        "SELECT * FROM pg_temp.w",
        "SELECT * FROM public.w",
        "DROP TABLE t CASCADE",
        "SELECT * FROM w",
        "SELECT a FROM t",
        "CREATE LOCAL TEMP TABLE u AS SELECT a FROM t",
        "SELECT a + 1 AS b INTO TEMP TABLE x FROM u",
        "SELECT b FROM pg_temp.x",
        "ALTER TABLE x RENAME TO y",
        "ALTER TABLE y RENAME TO u",
        "SELECT b FROM y",
        "DELETE FROM y WHERE b = 2 RETURNING y.b",
        "CREATE TEMP TABLE public.z (a integer)",
        "CREATE TABLE nowhere.z (a integer)",
        "CREATE TABLE public.z (a integer)",
        "SELECT * FROM z",
        "CREATE TEMP TABLE k (a integer) ON COMMIT PRESERVE ROWS",
        "CREATE INDEX k_a ON k (a)",
        "INSERT INTO k VALUES (5)",
        "SELECT a FROM k WHERE a = 5",
        "TRUNCATE k",
        "DROP TABLE k",
        "SELECT a / 0 AS q INTO TEMP q FROM t",
        "SELECT q FROM q",
    ),
    "alter table": (
        "CREATE TABLE t (a integer PRIMARY KEY, b text UNIQUE, c integer DEFAULT 3 CHECK (c > b::int), id serial)",
        "INSERT INTO t (a, b) VALUES (1, '1'), (2, NULL)",
        "ALTER TABLE t ADD COLUMN d text",
        "ALTER TABLE t ADD d integer",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS d integer",
        "ALTER TABLE t ADD COLUMN e numeric(10,2) DEFAULT 1.5 NOT NULL",
        "ALTER TABLE t ADD COLUMN f integer NOT NULL",
        "ALTER TABLE t ADD COLUMN g integer DEFAULT 1 UNIQUE",
        "ALTER TABLE t ADD COLUMN g integer DEFAULT 1 CHECK (g > a)",
        "ALTER TABLE t ADD COLUMN g integer DEFAULT 1 CHECK (g <= a)",
        "INSERT INTO t (a, b, d) VALUES (3, '2', 'd') RETURNING *",
        "INSERT INTO t (a, g) VALUES (4, 5)",
        'ALTER TABLE t RENAME COLUMN b TO "B b"',
        "ALTER TABLE t RENAME a TO c",
        "ALTER TABLE t RENAME nothing TO z",
        "INSERT INTO t (a, \"B b\") VALUES (4, '3')",
        "INSERT INTO t (a, \"B b\") VALUES (5, '1')",
        "INSERT INTO t (a, c) VALUES (1, 9)",
        "ALTER TABLE t RENAME a TO key",
        "INSERT INTO t (key) VALUES (1)",
        "INSERT INTO t (key) VALUES (8) RETURNING *",
        'ALTER TABLE t DROP COLUMN "B b"',
        'ALTER TABLE t DROP COLUMN "B b"',
        'ALTER TABLE t DROP COLUMN IF EXISTS "B b" RESTRICT',
        "INSERT INTO t (key, c) VALUES (9, -1) RETURNING *",
        "ALTER TABLE t ALTER COLUMN c SET DEFAULT 70, ALTER e DROP DEFAULT, ALTER d SET NOT NULL",
        "ALTER TABLE t ALTER COLUMN c SET DEFAULT 70, ALTER e SET DEFAULT 0, ALTER c DROP NOT NULL",
        "INSERT INTO t (key) VALUES (10) RETURNING *",
        "ALTER TABLE t ALTER key DROP NOT NULL",
        "ALTER TABLE t ALTER nothing SET DEFAULT 1",
        "ALTER TABLE t ALTER c SET DEFAULT 'x'",
        "ALTER TABLE t ALTER e DROP NOT NULL",
        "INSERT INTO t (key, e) VALUES (11, NULL)",
        "ALTER TABLE t ALTER e SET NOT NULL",
        "DELETE FROM t WHERE e IS NULL",
        "ALTER TABLE t ALTER e SET NOT NULL",
        "INSERT INTO t (key, e, id) VALUES (12, NULL, 99)",
        "ALTER TABLE t ADD CONSTRAINT k UNIQUE (id, c), ADD CHECK (id < 1000)",
        "ALTER TABLE t ADD CONSTRAINT k CHECK (id > 0)",
        "ALTER TABLE t ADD UNIQUE (e)",
        "ALTER TABLE t ADD CHECK (c < 50)",
        "ALTER TABLE t ADD PRIMARY KEY (id)",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "ALTER TABLE t DROP CONSTRAINT IF EXISTS t_pkey",
        "INSERT INTO t (key) VALUES (10)",
        "INSERT INTO t (key, id) VALUES (NULL, 98)",
        "ALTER TABLE t ADD PRIMARY KEY (id), DROP g",
        "INSERT INTO t (id, key) VALUES (1, 1)",
        "ALTER TABLE t ALTER id DROP DEFAULT",
        "INSERT INTO t (key) VALUES (10)",
        "ALTER TABLE t RENAME TO u",
        "DELETE FROM u WHERE id <> 1",
        "ALTER TABLE u ADD n integer GENERATED ALWAYS AS IDENTITY, ALTER d SET DEFAULT upper('x')",
        "ALTER TABLE u ALTER n SET DEFAULT 1",
        "ALTER TABLE u ALTER n DROP NOT NULL",
        "UPDATE u SET n = DEFAULT, d = DEFAULT WHERE id = 1 RETURNING d",
        "ALTER TABLE nothing ADD COLUMN a integer",
        "ALTER TABLE IF EXISTS nothing ADD COLUMN a integer",
        "CREATE TEMP TABLE t (a integer)",
        "INSERT INTO t VALUES (1)",
        "ALTER TABLE t ADD b text DEFAULT 'x'",
        "SELECT * FROM t",
        "ALTER TABLE t DROP COLUMN a",
    ),
    "options of identity": (
        "CREATE TABLE t (a int8 GENERATED BY DEFAULT AS IDENTITY (START 5 INCREMENT BY -2 MINVALUE 0 MAXVALUE 6))",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t VALUES (100), (DEFAULT)",
        "INSERT INTO t VALUES (DEFAULT)",
        "INSERT INTO t VALUES (DEFAULT)",
        "INSERT INTO t OVERRIDING USER VALUE VALUES (1)",
        "CREATE TABLE u (a smallint GENERATED ALWAYS AS IDENTITY (MAXVALUE 2 CYCLE CACHE 1 NO MINVALUE START 2))",
        "INSERT INTO u VALUES (DEFAULT), (DEFAULT), (DEFAULT)",
        "CREATE TABLE v (a smallint GENERATED ALWAYS AS IDENTITY (MAXVALUE 40000))",
        "CREATE TABLE v (a text GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY (INCREMENT 0))",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY (MINVALUE 5 MAXVALUE 5))",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY (START 0))",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY (START 9 MAXVALUE 8))",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY (CACHE 0))",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY (START 1 START 2))",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY DEFAULT 5)",
        "CREATE TABLE v (a int GENERATED ALWAYS AS IDENTITY GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE v (a int NULL GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE v (a serial NULL)",
        "CREATE TABLE v (a serial DEFAULT 3)",
        "CREATE TABLE v (a int DEFAULT 1 DEFAULT 2)",
        "CREATE TABLE v (a serial[])",
    ),
    "unique indexes": (
        "CREATE TABLE t (a integer, b text, c integer UNIQUE)",
        "INSERT INTO t VALUES (1, 'x', 1), (1, 'y', 2), (NULL, 'x', 3), (NULL, 'x', 4)",
        "CREATE UNIQUE INDEX ON t (a)",
        "CREATE UNIQUE INDEX CONCURRENTLY i ON t USING btree (a DESC NULLS LAST, b text_pattern_ops)",
        "CREATE UNIQUE INDEX i ON t (a, b)",
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (c)",
        "CREATE UNIQUE INDEX ON t (b, a)",
        "CREATE UNIQUE INDEX ON t (b, a)",
        "CREATE UNIQUE INDEX t_c_key ON t (c)",
        "CREATE UNIQUE INDEX j ON t (nothing)",
        "CREATE UNIQUE INDEX j ON nothing (a)",
        "CREATE TABLE i (a integer)",
        "SELECT c.relname, i.indisunique, i.indisprimary, pg_get_indexdef(c.oid) "
        "FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indrelid = 't'::regclass "
        "AND c.relname <> 'i'",
        "SELECT conname, contype::text FROM pg_constraint WHERE conrelid = 't'::regclass",
        "SELECT constraint_name FROM information_schema.table_constraints WHERE table_name = 't'",
        "INSERT INTO t VALUES (1, 'x', 9)",
        "INSERT INTO t VALUES (1, 'x', 9) ON CONFLICT (b, a) DO UPDATE SET c = t.c + 10",
        "INSERT INTO t VALUES (1, 'x', 9) ON CONFLICT ON CONSTRAINT i DO NOTHING",
        "UPDATE t SET b = 'x' WHERE a = 1",
        "ALTER TABLE t DROP CONSTRAINT i",
        "ALTER TABLE t RENAME CONSTRAINT i TO k",
        "ALTER TABLE t RENAME COLUMN b TO d",
        "ALTER INDEX i RENAME TO t_b_a_idx",
        "ALTER INDEX i RENAME TO k",
        "DROP INDEX IF EXISTS t_b_a_idx, nothing",
        "INSERT INTO t VALUES (1, 'x', 9)",
        "BEGIN",
        "DROP INDEX k",
        "INSERT INTO t VALUES (1, 'x', 9)",
        "CREATE UNIQUE INDEX k ON t (c)",
        "INSERT INTO t VALUES (1, 'x', 9)",
        "ROLLBACK",
        "INSERT INTO t VALUES (1, 'x', 9)",
        "CREATE TEMP TABLE u (a integer)",
        "CREATE UNIQUE INDEX k ON u (a)",
        "INSERT INTO u VALUES (1), (1)",
        "DROP INDEX k",
        "INSERT INTO u VALUES (1), (1)",
        "ALTER TABLE t DROP COLUMN d",
        "DROP INDEX IF EXISTS k",
    ),
}


@pytest.fixture
def theirs(postgres: Postgres) -> Iterator[psycopg.Connection[Any]]:
    with postgres.connect() as opened:
        opened.prepare_threshold = None
        opened.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        yield opened


@pytest.mark.parametrize("script", SCRIPTS)
def test_tables_are_made_and_changed_as_in_postgres(
    theirs: psycopg.Connection[Any], evaluated: Connection, script: str
) -> None:
    for statement in SCRIPTS[script]:
        found = _outcome(evaluated, statement), _contents(evaluated, "t"), _contents(evaluated, "u")
        assert found == (_outcome(theirs, statement), _contents(theirs, "t"), _contents(theirs, "u")), statement


def _outcome(connection: Any, statement: str) -> tuple[str | int, list[str]]:
    """Returns how many rows a statement wrote, or its error; and the rows it returned."""
    try:
        cursor = connection.execute(statement)
    except (Error, psycopg.Error) as error:
        return error.sqlstate or "", []
    rows = sorted(map(repr, cursor.fetchall())) if cursor.description else []
    count = cursor.rowcount
    return -1 if statement.startswith(("CREATE TABLE IF", "ALTER", "DROP", "COMMENT")) else count, rows


def _contents(connection: Any, table: str) -> list[str] | str:
    try:
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [one[0] for one in cursor.description]
        return sorted(repr(dict(zip(names, row, strict=True))) for row in cursor.fetchall())
    except (Error, psycopg.Error) as error:
        return error.sqlstate or ""
