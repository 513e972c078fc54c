"""What a team writes in its first month, statement by statement: what it returns beside PostgreSQL, names included."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection
from mz_dagster.errors import Error
from tests.postgres_server import Postgres

STATEMENTS = (
    "CREATE TABLE c (id integer PRIMARY KEY, name text NOT NULL, city varchar(40), u integer UNIQUE)",
    "INSERT INTO c VALUES (1, 'Ann Lee', 'Berlin', 10), (2, 'Bob', 'Paris', 20), (3, 'Zoe', NULL, NULL)",
    "CREATE TABLE o (id integer PRIMARY KEY, c integer, qty integer, note text)",
    "INSERT INTO o VALUES (1, 1, 3, NULL), (2, 1, 4, 'x'), (3, 2, 5, ''), (4, 9, 6, 'Bob')",
    "CREATE TABLE kv (k text PRIMARY KEY, v integer, n integer DEFAULT 0)",
    "INSERT INTO kv VALUES ('a', 1), ('b', 2)",
    "CREATE SCHEMA app",
    "CREATE TABLE app.t (a integer)",
    # The columns that a key decides.
    "SELECT c.id, c.name, upper(city), count(o.id) FROM c LEFT JOIN o ON o.c = c.id GROUP BY c.id ORDER BY c.name",
    "SELECT name FROM c GROUP BY id HAVING name <> 'Bob' AND count(*) = 1 ORDER BY 1",
    "SELECT id, name, sum(u) FROM c GROUP BY GROUPING SETS ((id), (id, u)) ORDER BY 1, 3",
    "SELECT id, name FROM c GROUP BY ROLLUP (id)",
    "SELECT name FROM c GROUP BY u",
    "SELECT name, rank() OVER (ORDER BY name DESC) FROM c GROUP BY id ORDER BY 1",
    "SELECT id, (SELECT count(*) FROM o WHERE o.note = c.name) FROM c GROUP BY id ORDER BY 1",
    "SELECT name FROM (SELECT * FROM c) AS s GROUP BY id",
    "SELECT c.name, o.note FROM c JOIN o ON o.c = c.id GROUP BY c.id ORDER BY 1",
    "SELECT c.name, o.note FROM c JOIN o ON o.c = c.id GROUP BY c.id, o.id ORDER BY 1, 2",
    "SELECT lower(name), id FROM c GROUP BY id, lower(name) ORDER BY 2",
    # Rows that an outer join has none of.
    "SELECT count(o), count(o.*), count(*) FROM c LEFT JOIN o ON o.c = c.id",
    "SELECT c.id, row_to_json(o)::text FROM c LEFT JOIN o ON o.c = c.id AND o.qty > 3 ORDER BY 1, o.id",
    "SELECT c.id, o IS NULL, o IS NOT NULL FROM c LEFT JOIN o ON o.c = c.id ORDER BY c.id, o.id",
    "SELECT array_agg(g ORDER BY g) FROM generate_series(1, 2) AS g FULL JOIN c ON c.id = g",
    # Whole rows as values, and what such columns are called.
    "SELECT (c.*)::text, (SELECT (o.*)::text FROM o ORDER BY id LIMIT 1), (SELECT CASE WHEN c.id > 1 THEN '' ELSE"
    " (p.*)::text END FROM o AS p ORDER BY id LIMIT 1), c.* IS NULL FROM c ORDER BY id",
    "SELECT (c.*) FROM c ORDER BY id",
    "SELECT ((c.*)), (c).*, ((c)).* FROM c ORDER BY c.id",
    "SELECT (c.*) AS whole, c.* AS other, (c).* AS third FROM c WHERE id = 1",
    "SELECT (c.*, 1)::text FROM c WHERE id = 1",
    "SELECT ((c).*)::text FROM c",
    "SELECT ((c).*) IS NULL FROM c",
    "SELECT count((c).*) FROM c",
    "SELECT count((c.*)), count(c.*) FROM c",
    "SELECT upper((c).*) FROM c",
    "SELECT 1 FROM c WHERE (c).* IS NULL",
    "SELECT (*) FROM c",
    "INSERT INTO kv SELECT (kv.*) FROM kv WHERE false RETURNING (kv.*)",
    "SELECT age(current_date + 40)::text, age(current_timestamp::timestamp - interval '3 mons') > interval '2 mons'",
    "SELECT age(current_date + time '10:00')::text, age(timestamptz '2020-01-01') = age(timestamp '2020-01-01')",
    "SELECT age('2020-01-01')",
    "SELECT age(1)",
    "SELECT age(NULL)",
    # What drivers ask to know which names they quote.
    'SELECT * FROM pg_get_keywords() ORDER BY word COLLATE "C"',
    "SELECT string_agg(word, ',' ORDER BY word) FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{abs}'::text[])",
    # Doubles that no numeric(38,2) holds.
    "CREATE TABLE doubles (d double precision)",
    "INSERT INTO doubles VALUES ('NaN'), ('-Infinity'), (1e300), (1.005), (2.345e-7), (NULL)",
    "SELECT round(d::numeric::numeric, 2)::text FROM doubles ORDER BY d",
    "SELECT sum(round(d::numeric::numeric, 2))::text, max(round(d::numeric::numeric, 1))::text FROM doubles",
    "CREATE TABLE emptied (a int)",
    "INSERT INTO emptied VALUES (1)",
    "TRUNCATE TABLE emptied CASCADE",
    "SELECT count(*) FROM emptied",
    # Names of conditions.
    'CREATE TABLE checked (a int, b int CHECK (b > 0), "C c" int CHECK (a > b), date date, CHECK (a > 0),'
    " CHECK (a < 9 AND a <> 5), CHECK (a < b), CHECK (1 < 2), CHECK (checked.b < 9 OR abs(b) > 3), CHECK"
    " (\"C c\" > 1), CONSTRAINT given CHECK (a > -1), CHECK (date > date '2000-01-01'))",
    "ALTER TABLE checked ADD CHECK (a < 100), ADD COLUMN d int CHECK (d > a), ADD CHECK (d > 0)",
    "SELECT conname FROM pg_catalog.pg_constraint WHERE contype = 'c' AND conrelid <> 0 ORDER BY conname",
    # Aggregates.
    "SELECT string_agg(DISTINCT city, ';' ORDER BY city DESC) FROM c",
    "SELECT string_agg(DISTINCT city::char(10), ';' ORDER BY city::char(10)) FROM c",
    "SELECT string_agg(DISTINCT city, ';' ORDER BY name) FROM c",
    # Names.
    "SELECT overlay('abc' PLACING 'x' FROM 2), timestamp '2024-01-01' AT TIME ZONE 'UTC'",
    'SELECT name COLLATE "C" FROM c ORDER BY name COLLATE "C"',
    "SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', date '2024-03-01')",
    "SELECT 1 AS limit, 2 AS offset, 3 AS user, 4 AS end, 5 AS table, CASE WHEN true THEN 1 END AS case",
    "WITH t AS NOT MATERIALIZED (SELECT 1 AS limit), u AS MATERIALIZED (SELECT 2) SELECT * FROM t, u",
    "SELECT U&'d\\0061t\\+000061', U&\"k\", U&'!00e9' UESCAPE '!' FROM kv WHERE k = U&'\\0061'",
    "SELECT date '2024-06-15'::text, timestamp '2024-06-15 12:00'::timestamptz::date",
    "SELECT date '2024-01-01', interval '1 day'::text",
    # What is written, as it is read.
    "CREATE TABLE wide (id integer PRIMARY KEY, n numeric, t timetz, m integer[][], ns numeric[])",
    "INSERT INTO wide VALUES (1, 1.50, '10:00+02', '{{1,2}}', '{1.5,NULL}') RETURNING *",
    "UPDATE wide SET n = n + 1 RETURNING n, wide.ns, (SELECT max(w.t) FROM wide w) IS NULL",
    "INSERT INTO wide (id, n) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = wide.n + excluded.n RETURNING n, t, m",
    "DELETE FROM wide RETURNING n, t, m, ns",
    # Several tables at once.
    "CREATE TABLE first (id serial, a integer)",
    "CREATE TABLE second (a integer)",
    "INSERT INTO first (a) VALUES (1), (2)",
    "INSERT INTO second VALUES (1)",
    "TRUNCATE first, nothing",
    "TRUNCATE first, public.second, first RESTART IDENTITY CASCADE",
    "SELECT (SELECT count(*) FROM first), (SELECT count(*) FROM second)",
    "INSERT INTO first (a) VALUES (3) RETURNING id",
    "BEGIN",
    "TRUNCATE second, first",
    "SELECT count(*) FROM first",
    "ROLLBACK",
    "SELECT count(*) FROM first",
    # Predicates.
    "SELECT 3 BETWEEN SYMMETRIC 5 AND 1, 3 NOT BETWEEN SYMMETRIC 5 AND 1, 9 BETWEEN SYMMETRIC NULL AND 1",
    "SELECT 3 BETWEEN SYMMETRIC NULL AND 1, 3 BETWEEN SYMMETRIC 1 AND NULL, 1 BETWEEN ASYMMETRIC 1 AND 2",
    # Arrays and json.
    "SELECT array_fill(0, ARRAY[3]), array_fill(NULL::text, ARRAY[2]), array_fill(1, '{}'), array_fill(1, ARRAY[0, 2])",
    "SELECT array_fill(1, ARRAY[-1])",
    "SELECT num_nulls(VARIADIC ARRAY[1, NULL]), num_nonnulls(VARIADIC ARRAY['a', NULL, 'b']) AS other",
    "SELECT num_nulls(VARIADIC '{}'::int[])",
    "SELECT num_nonnulls(VARIADIC NULL::int[]), num_nulls(VARIADIC string_to_array('a,,b', ',', '')) AS n",
    "SELECT array_fill(1, ARRAY[NULL::int])",
    "SELECT array_fill('x', ARRAY[1])",
    "SELECT generate_subscripts('{a,b,c}'::text[], 1, true), generate_subscripts('{a,b,c}'::text[], 1, false)",
    "SELECT * FROM generate_subscripts('{a,b}'::text[], 2, true)",
    "SELECT width_bucket(5, ARRAY[1, 3, 6]), width_bucket(2.5, ARRAY[1, 3]), width_bucket(NULL, ARRAY[1])",
    "SELECT width_bucket('b'::text, ARRAY['a', 'b', 'c']), width_bucket(date '2024-01-05', '{2024-01-01}'::date[])",
    "SELECT width_bucket(1, ARRAY[1, NULL])",
    "SELECT json_build_object(VARIADIC ARRAY['a', 'b', 'c', NULL])::text",
    "SELECT jsonb_build_object(VARIADIC ARRAY[1, 2])::text",
    "SELECT json_build_object(VARIADIC NULL::text[])::text, json_build_object(VARIADIC '{}'::text[])::text",
    "SELECT jsonb_build_object(VARIADIC ARRAY[timestamp '2024-01-01', timestamp '2024-01-02'])::text",
    "SELECT json_build_object(VARIADIC ARRAY['a', 'b', 'c'])",
    "SELECT json_build_object(VARIADIC ARRAY['a', 'b', NULL, 'c'])",
    "SELECT json_build_object(VARIADIC ARRAY['1'::jsonb, '2'])",
    # No columns.
    "SELECT count(*) FROM (SELECT FROM kv) AS s",
    "SELECT count(*) FROM (SELECT) AS s",
    "SELECT count(*) FROM ((SELECT FROM kv LIMIT 1) UNION ALL SELECT FROM kv WHERE k = 'a') AS s",
    "SELECT DISTINCT FROM kv",
    # WITH before a write.
    "WITH s(k, v) AS (VALUES ('n1', 1), ('n2', 2)) INSERT INTO kv (k, v) SELECT k, v FROM s RETURNING k",
    "WITH s AS (SELECT 5 AS a) INSERT INTO kv VALUES ('n3', (SELECT a FROM s)) RETURNING v, (SELECT a FROM s)",
    "WITH s AS (SELECT 5 AS a) INSERT INTO kv WITH w AS (SELECT a + 1 AS b FROM s) SELECT 'n4', b FROM w RETURNING v",
    "WITH s(k) AS (SELECT 'a'), t AS (SELECT 8 AS v) INSERT INTO kv SELECT k, 1 FROM s ON CONFLICT (k) DO NOTHING",
    "WITH s AS (SELECT 1 AS a), u AS (SELECT 2 AS b)"
    " UPDATE kv SET v = (SELECT a FROM s) + u.b FROM u WHERE kv.k = 'b' RETURNING kv.*, u.b, (SELECT a FROM s)",
    "WITH s AS (SELECT 'n1' AS a) UPDATE kv SET (v, n) = (SELECT 7, 8 FROM s) WHERE k IN (SELECT a FROM s) RETURNING *",
    "WITH s AS (SELECT 'n3' AS a) DELETE FROM kv WHERE k IN (SELECT a FROM s) RETURNING k",
    "WITH s AS (SELECT 'n4' AS a) DELETE FROM kv USING s WHERE k = a RETURNING kv.k, s.a",
    "WITH s AS (SELECT nothing) DELETE FROM kv",
    "SELECT * FROM kv ORDER BY k",
    # Schemas.
    "INSERT INTO app.t VALUES (1), (2) RETURNING app.t.a, app.t.*",
    "INSERT INTO public.kv VALUES ('q', 1) RETURNING public.kv.k, kv.v",
    "UPDATE app.t SET a = 5 WHERE app.t.a = 1 RETURNING app.t.a, t.*",
    "UPDATE app.t AS x SET a = 6 RETURNING app.t.a",
    "DELETE FROM app.t WHERE app.t.a = 5 RETURNING app.t.*, app.t IS NULL",
    "SELECT public.kv.k, app.t.* FROM public.kv, app.t ORDER BY 1 LIMIT 1",
    "SELECT public.kv.* FROM app.t",
    # Views that take others' places.
    "CREATE VIEW v AS SELECT k, v FROM kv",
    "CREATE OR REPLACE VIEW v AS SELECT k, v, 1 AS one FROM kv WHERE k = 'a'",
    "SELECT * FROM v",
    "CREATE OR REPLACE VIEW v AS SELECT k FROM kv",
    "CREATE OR REPLACE VIEW v AS SELECT k, v AS w, 1 AS one FROM kv",
    "CREATE OR REPLACE VIEW v AS SELECT k, v::text, 1 AS one FROM kv",
    "CREATE OR REPLACE VIEW kv AS SELECT 1",
    "CREATE OR REPLACE VIEW w (a) AS SELECT 1",
    "SELECT * FROM w",
    "CREATE OR REPLACE TEMP VIEW s AS SELECT 1 AS a",
    "CREATE OR REPLACE TEMP VIEW s AS SELECT 1 AS a, 2 AS b",
    "SELECT * FROM s",
)
#: What is refused, with what the error says to do.
REFUSED = {
    "WITH gone AS (DELETE FROM kv RETURNING *) SELECT count(*) FROM gone": "a statement of its own",
    "WITH s AS (SELECT 1 AS v) MERGE INTO kv USING s ON true WHEN MATCHED THEN DELETE": "INSERT, UPDATE and DELETE",
    "UPDATE kv SET k[1] = 'x'": "jsonb_set",
    "CREATE UNIQUE INDEX ON kv (v) WHERE v > 0": "CASE WHEN",
    "CREATE UNIQUE INDEX ON kv (lower(k))": "GENERATED ALWAYS AS",
    "CREATE INDEX ON kv (v) WHERE v > 0": "Index a view",
    "DO $$ BEGIN END $$": "execute the statements",
    "LISTEN changes": "SUBSCRIBE",
    "EXPLAIN (ANALYZE, BUFFERS) SELECT 1": "EXPLAIN (ANALYZE) SELECT",
    "CREATE DOMAIN d AS integer CHECK (VALUE > 0)": "CHECK",
    "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'": "a view",
    "CREATE OR REPLACE TABLE kv (a integer)": "project's files",
    "CREATE TABLE l (LIKE kv)": "WITH NO DATA",
    "SELECT '[1,2)'::int4range": "two columns",
    "SELECT '1.2.3.4'::inet": "text",
    "SELECT x'1F'": "bytea",
    "SELECT array_agg(g.*) FROM o FULL JOIN (SELECT c AS x FROM o) AS g ON true": "Name its columns",
}


def told(connection: Any, statement: str) -> object:
    """Returns what a statement returns, or the SQLSTATE of its error."""
    try:
        cursor = connection.execute(statement)
    except (Error, psycopg.Error) as error:
        return error.sqlstate
    return ([one[0] for one in cursor.description], cursor.fetchall()) if cursor.description else None


def test_what_teams_write_first_returns_what_it_does_in_postgres(sparkless: Connection, postgres: Postgres) -> None:
    different = []
    with postgres.new_database().connect() as theirs:
        for statement in STATEMENTS:
            ours, wanted = told(sparkless, statement), told(theirs, statement)
            if ours != wanted:
                different.append(f"{statement}: {ours}, in PostgreSQL {wanted}")
    assert not different, "\n".join(different)


def test_what_is_refused_says_what_to_do(sparkless: Connection) -> None:
    for statement in STATEMENTS[2:7:2]:
        sparkless.execute(statement)
    for statement, advice in REFUSED.items():
        with pytest.raises(Error) as refused:
            sparkless.execute(statement)
        assert refused.value.sqlstate == "0A000", statement
        assert advice in str(refused.value), statement
        assert refused.value.position is not None, statement


def test_a_view_that_is_read_is_not_replaced(sparkless: Connection) -> None:
    for statement in (*STATEMENTS[4:6], "CREATE VIEW v AS SELECT k FROM kv", "CREATE VIEW w AS SELECT k FROM v"):
        sparkless.execute(statement)
    with pytest.raises(Error, match="others read it") as refused:
        sparkless.execute("CREATE OR REPLACE VIEW v AS SELECT k, v FROM kv")
    assert refused.value.detail == "What reads it is bound to what it was: w."


def test_a_view_that_groups_by_a_key_depends_on_the_key(sparkless: Connection) -> None:
    for statement in (*STATEMENTS[4:6], "CREATE MATERIALIZED VIEW m AS SELECT k, v, count(*) FROM kv GROUP BY k"):
        sparkless.execute(statement)
    assert sorted(sparkless.execute("SELECT * FROM m").fetchall()) == [("a", 1, 1), ("b", 2, 1)]
    sparkless.execute("UPDATE kv SET v = 5 WHERE k = 'a'")
    assert sorted(sparkless.execute("SELECT * FROM m").fetchall()) == [("a", 5, 1), ("b", 2, 1)]
    with pytest.raises(Error, match="depend on it") as refused:
        sparkless.execute("ALTER TABLE kv DROP CONSTRAINT kv_pkey")
    assert refused.value.detail == 'Materialized view "m" depends on it.'
