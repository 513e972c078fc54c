"""Enumerations are PostgreSQL's: their order, their literals and casts, where they stand; without Spark."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import mz_dagster
from mz_dagster.adapter.definition import define
from mz_dagster.catalog import TypeAltered
from mz_dagster.errors import Error
from mz_dagster.sql import CreateView, parse
from tests.opened import Connect
from tests.postgres_server import Postgres

SCRIPT = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'very happy')",
    "CREATE TYPE other AS ENUM ('zz', 'aa', 'sad')",
    "CREATE TYPE \"My Mood\" AS ENUM ('A b', 'c''d')",
    "CREATE TABLE p (name text, m mood, o other NOT NULL DEFAULT 'aa')",
    "INSERT INTO p VALUES ('x', 'ok'), ('y', 'sad'), ('z', 'very happy'), ('n', NULL), ('w', 'ok')",
    "CREATE TABLE k (m mood PRIMARY KEY, c mood CHECK (c > 'sad'::mood), d mood DEFAULT 'ok'::mood)",
    "INSERT INTO k VALUES ('ok', 'ok')",
    "INSERT INTO k VALUES ('ok', 'ok')",
    "INSERT INTO k VALUES ('sad', 'sad')",
    "INSERT INTO k VALUES ('ok', 'ok') ON CONFLICT (m) DO UPDATE SET c = 'very happy'",
    "INSERT INTO p (name, m) VALUES ('q', 'nope')",
    "INSERT INTO p (name, m) SELECT 'q', 'sad'::text",
    "INSERT INTO p (name, m) SELECT 'q', 'saad'::text::mood",
    "INSERT INTO p (name, m) SELECT 'q', 'sad'::text::mood",
    "CREATE TABLE copied AS SELECT m, count(*) AS n FROM p GROUP BY m",
    "CREATE TABLE grown (a int)",
    "ALTER TABLE grown ADD COLUMN m mood, ADD COLUMN ms mood[]",
    "INSERT INTO grown VALUES (1, 'sad', '{ok}')",
    "CREATE TYPE mood AS ENUM ('a')",
    "CREATE TYPE twice AS ENUM ('a', 'a')",
    "CREATE TABLE none (a nothing)",
    "DROP TYPE mood",
    "DROP TYPE nothing",
    "DROP TYPE IF EXISTS nothing",
    "CREATE TYPE empty AS ENUM ()",
    "DROP TYPE empty",
    'CREATE TABLE quoted (m "My Mood")',
    "INSERT INTO quoted VALUES ('A b'), ('c''d')",
    "CREATE SCHEMA sh",
    "CREATE TYPE sh.colour AS ENUM ('red', 'blue')",
    "CREATE TABLE sh.painted (c sh.colour)",
    "INSERT INTO sh.painted VALUES ('red'), ('blue')",
    "DROP SCHEMA sh",
    "CREATE TYPE size AS ENUM ('s', 'l')",
    "CREATE TABLE shirts (id int, z size NOT NULL, zs size[], r text)",
    "CREATE VIEW large AS SELECT id, z, z::text AS t FROM shirts WHERE z >= 'l'",
    "CREATE VIEW read AS SELECT id, r::size AS z FROM shirts WHERE r > ''",
    "INSERT INTO shirts VALUES (1, 's', '{s,l}', 's'), (2, 'l', NULL, NULL)",
    "INSERT INTO shirts VALUES (3, 'm', NULL, 'm')",
    "ALTER TYPE size ADD VALUE 'm' BEFORE 'l'",
    "ALTER TYPE size ADD VALUE 'm'",
    "ALTER TYPE size ADD VALUE IF NOT EXISTS 'm' AFTER 'nothing'",
    "ALTER TYPE size ADD VALUE 'n' AFTER 'nothing'",
    "ALTER TYPE nothing ADD VALUE 'n'",
    "ALTER TYPE size ADD VALUE 'xl'",
    "ALTER TYPE size ADD VALUE 'xs' BEFORE 's'",
    "ALTER TYPE size ADD VALUE 'it''s between' AFTER 'm'",
    "ALTER TYPE size ADD VALUE 'just below m' BEFORE 'm'",
    "ALTER TYPE sh.colour ADD VALUE 'green' BEFORE 'blue'",
    "INSERT INTO sh.painted VALUES ('green')",
    "INSERT INTO shirts VALUES (3, 'm', '{xl,m,xs}', 'm'), (4, 'xl', NULL, 'xl'), (5, 'xs', NULL, 'xs')",
    "INSERT INTO shirts VALUES (6, 'just below m', NULL, NULL), (7, 'it''s between', NULL, NULL)",
    "CREATE VIEW joined AS SELECT l.id, s.z FROM large l JOIN shirts s ON s.z = l.z JOIN read r ON r.z = s.z",
    "DROP TYPE size",
    # Labels, in tables, defaults, conditions, views, records and json, and as plain texts, which stay.
    "CREATE TYPE grade AS ENUM ('low', 'mid', 'high')",
    "CREATE TABLE g (id int, g grade DEFAULT 'low' CHECK (g <> 'high' OR note = 'low'), gs grade[], note text)",
    "INSERT INTO g VALUES (1, 'low', '{low,mid}', 'low'), (2, 'mid', '{}', 'mid'), (3, 'high', NULL, 'low')",
    "CREATE VIEW lows AS SELECT id, g::text AS t, 'low' AS plain FROM g WHERE g = 'low' OR g IN ('low', 'high')",
    "CREATE VIEW plain AS SELECT id, g FROM g WHERE note = 'low'",
    "ALTER TYPE grade RENAME VALUE 'low' TO 'it''s low'",
    "ALTER TYPE grade RENAME VALUE 'low' TO 'lower'",
    "ALTER TYPE grade RENAME VALUE 'mid' TO 'high'",
    "ALTER TYPE grade RENAME VALUE 'mid' TO 'mid'",
    "ALTER TYPE grade ADD VALUE 'low' AFTER 'it''s low'",
    "ALTER TYPE grade RENAME VALUE 'mid' TO ''",
    "INSERT INTO g (id, note) VALUES (4, 'low')",
    "INSERT INTO g VALUES (5, 'high', NULL, 'x')",
    "INSERT INTO g VALUES (6, 'low', '{low}', 'low')",
    "INSERT INTO g VALUES (7, 'mid', NULL, 'low')",
    "INSERT INTO g SELECT 8, t::grade, NULL, t FROM lows WHERE id = 4",
    "INSERT INTO g SELECT 9, 'mid'::text::grade",
    "CREATE TABLE copied_grades AS SELECT g, count(*) AS n FROM g GROUP BY g",
)
QUERIES = (
    "SELECT * FROM p ORDER BY m DESC NULLS LAST, name",
    "SELECT * FROM k",
    "SELECT * FROM copied ORDER BY m",
    "SELECT a, m, ms::text FROM grown",
    "SELECT m, count(*) FROM p GROUP BY m ORDER BY m DESC",
    "SELECT min(m), max(m), count(DISTINCT m) FROM p",
    "SELECT name FROM p WHERE m > 'sad' ORDER BY 1",
    "SELECT name FROM p WHERE m IN ('sad', 'ok') AND m BETWEEN 'sad' AND 'ok' ORDER BY 1",
    "SELECT name FROM p WHERE m = 'nix'",
    "SELECT name FROM p WHERE m = name",
    "SELECT a.name FROM p a JOIN p b ON a.m = b.o",
    "SELECT a.name, b.name FROM p a JOIN p b ON a.m = b.m AND a.name < b.name ORDER BY 1, 2",
    "SELECT a.m, b.o FROM p a JOIN p b ON a.m::text = b.o::text",
    "SELECT m::text || '!', m || '!', 'a' || m FROM p ORDER BY name",
    "SELECT 'sad'::mood < 'ok', 'ok'::mood::text, 'sad'::varchar(3)::mood, '{sad,ok}'::mood[]::text",
    "SELECT 'sad'::mood = 'sad'::other",
    "SELECT 'x'::mood",
    "SELECT 'x'::nothing",
    "SELECT 1::mood",
    "SELECT m::int FROM p",
    "SELECT length(m) FROM p",
    "SELECT string_agg(m, ',') FROM p",
    "SELECT CASE WHEN true THEN 'sad'::mood ELSE 'sad'::other END",
    "SELECT m FROM p UNION SELECT 'sad'::text",
    "SELECT m FROM p UNION SELECT 'sad' ORDER BY 1",
    "SELECT array_agg(m ORDER BY m DESC, name)::text, string_agg(m::text, ',' ORDER BY m) FROM p",
    "SELECT ROW(m, name)::text, coalesce(m, 'ok'), greatest(m, 'ok'), nullif(m, 'ok') FROM p ORDER BY name",
    "SELECT name, rank() OVER (ORDER BY m), lag(m, 1, 'ok') OVER (ORDER BY m, name) FROM p ORDER BY name",
    "SELECT DISTINCT ON (m) m, name FROM p ORDER BY m, name DESC",
    "SELECT to_json(m)::text, jsonb_build_array(m)::text, row_to_json(p)::text, concat(m, '-', o),"
    " format('%s', m) FROM p ORDER BY name",
    "SELECT json_agg(m ORDER BY name)::text, jsonb_object_agg(name, m)::text FROM p",
    "SELECT mode() WITHIN GROUP (ORDER BY m), percentile_disc(0.5) WITHIN GROUP (ORDER BY m DESC) FROM p",
    "SELECT m::varchar(2), m::char(3), pg_typeof(m)::text, pg_typeof(ARRAY[m])::text FROM p ORDER BY name",
    "SELECT name FROM p WHERE m = ANY ('{sad,ok}') AND (m, name) > ('sad', 'a') ORDER BY 1",
    "SELECT enum_first(NULL::mood), enum_last('sad'::mood), enum_range(NULL::mood)::text",
    "SELECT enum_range('ok'::mood, NULL)::text, enum_range(NULL, 'ok'::mood)::text",
    "SELECT enum_range('ok', 'sad'::mood)::text",
    "SELECT enum_first(1)",
    "SELECT * FROM mood",
    "SELECT m, m::text, 'A b'::\"My Mood\" < m FROM quoted ORDER BY m DESC",
    "SELECT 'x'::\"My Mood\"",
    "SELECT c, 'red'::sh.colour < c FROM sh.painted ORDER BY c DESC",
    "SELECT 'red'::colour",
    "SELECT id, z, zs::text, r FROM shirts ORDER BY z, id",
    "SELECT * FROM large ORDER BY z DESC, id",
    "SELECT * FROM read ORDER BY z",
    "SELECT * FROM joined ORDER BY id",
    "SELECT min(z), max(z), enum_range(NULL::size)::text, enum_last(NULL::size) FROM shirts",
    "SELECT count(*) FROM shirts s JOIN shirts t ON s.z > t.z AND s.zs IS NULL",
    "SELECT id, g, gs::text, g::text, note, row_to_json(g)::text, ROW(g, gs)::text, to_json(gs)::text FROM g"
    " ORDER BY g, id",
    "SELECT * FROM lows ORDER BY id",
    "SELECT * FROM plain ORDER BY g DESC, id",
    "SELECT g, n, concat(g, '!'), g::varchar(3) FROM copied_grades ORDER BY g",
    "SELECT enum_range(NULL::grade)::text, 'it''s low'::grade < 'low', min(g), max(g) FROM g",
    "SELECT enumlabel FROM pg_catalog.pg_enum e JOIN pg_catalog.pg_type t ON t.oid = e.enumtypid"
    " WHERE typname = 'grade' ORDER BY enumsortorder",
)


def test_enumerations_are_those_of_postgres(postgres: Postgres, tmp_path: Path, connect: Connect) -> None:
    connection = connect(tmp_path)
    different = []
    with postgres.new_database().connect() as theirs:

        def told(connection: psycopg.Connection[tuple[object, ...]] | mz_dagster.Connection, text: str) -> object:
            try:
                cursor = connection.execute(text)
                return cursor.fetchall() if cursor.description else None
            except (Error, psycopg.Error) as error:
                return error.sqlstate

        for statement in (*SCRIPT, *QUERIES):
            ours, wanted = told(connection, statement), told(theirs, statement)
            if ours != wanted:
                different.append(f"{statement}: {ours}, in PostgreSQL {wanted}")
        # Another process, which has only the catalog's word for what the types are.
        other = connect(tmp_path)
        different += [
            f"{query}: {told(other, query)} later" for query in QUERIES if told(other, query) != told(theirs, query)
        ]
    assert not different, "\n".join(different)


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        ("CREATE TYPE t AS (a int)", "0A000", "this form of CREATE TYPE"),
        (f"CREATE TYPE t AS ENUM ('{'x' * 64}')", "42602", "invalid enum label"),
        ("SELECT enum_range(m, 'ok') FROM p", "0A000", "not constants"),
        ("ALTER TYPE mood RENAME TO feeling", "0A000", "this form of ALTER TYPE"),
        ("ALTER TYPE mood RENAME VALUE 'bad' TO 'low'", "22023", "not an existing enum label"),
        (f"ALTER TYPE mood ADD VALUE '{'x' * 64}'", "42602", "invalid enum label"),
        ("ALTER TABLE p ALTER COLUMN name TYPE mood", "0A000", "this change of a type"),
    ],
)
def test_what_is_refused_of_enumerations(
    tmp_path: Path, connect: Connect, statement: str, sqlstate: str, message: str
) -> None:
    connection = connect(tmp_path)
    for one in SCRIPT[:4]:
        connection.execute(one)
    with pytest.raises(Error, match=message) as found:
        connection.execute(statement)
    assert found.value.sqlstate == sqlstate


def test_a_value_is_added_under_what_is_maintained(tmp_path: Path, connect: Connect) -> None:
    connection = connect(tmp_path)
    other = connect(tmp_path)  # of a process of its own, as far as what it knows goes

    def run(*statements: str) -> None:
        for one in statements:
            connection.execute(one)

    def ids() -> dict[str, str]:
        return dict(connection.execute("SELECT name, id FROM mz_catalog.mz_objects").fetchall())

    run(
        "CREATE TYPE size AS ENUM ('s', 'l')",
        "CREATE TABLE shirts (z size, t text)",
        "INSERT INTO shirts VALUES ('l', 's'), ('s', 'm')",
        "CREATE MATERIALIZED VIEW counted AS SELECT z, count(*) AS n FROM shirts GROUP BY z",
        "CREATE INDEX by_size ON counted (z)",
        "CREATE MATERIALIZED VIEW known AS SELECT t::size AS z FROM shirts",
        "CREATE VIEW over_known AS SELECT z FROM known",
        "CREATE TEMP VIEW own AS SELECT count(*) AS n FROM over_known",
    )
    with pytest.raises(Error, match='invalid input value for enum size: "m"'):
        connection.execute("SELECT * FROM known")
    counts = "SELECT z, n FROM counted ORDER BY z"
    assert other.execute(counts).fetchall() == [("s", 1), ("l", 1)]
    with pytest.raises(Error, match="invalid input value"):
        other.execute("SELECT * FROM over_known")
    before = ids()
    run("ALTER TYPE size ADD VALUE 'm' BEFORE 'l'", "INSERT INTO shirts VALUES ('m', 'l')")
    kept = {name for name, id in ids().items() if before.get(name) == id}
    assert {"size", "shirts", "counted", "by_size"} <= kept
    assert not {"known", "over_known"} & kept
    for one in (other, connection, connect(tmp_path)):
        assert one.execute(counts).fetchall() == [("s", 1), ("m", 1), ("l", 1)]
        assert one.execute("SELECT z FROM over_known ORDER BY z").fetchall() == [("s",), ("m",), ("l",)]
        assert one.execute("SELECT n FROM counted WHERE z = 'm'").fetchall() == [(1,)]
    assert connection.execute("SELECT n FROM own").fetchall() == [(3,)]
    other.execute("INSERT INTO shirts VALUES ('m', 'm')")
    assert connection.execute(counts).fetchall() == [("s", 1), ("m", 2), ("l", 1)]
    with pytest.raises(Error, match="cannot run inside a transaction block"):
        run("BEGIN", "ALTER TYPE size ADD VALUE 'x'")


def test_what_was_bound_before_a_value_came_is_bound_anew(tmp_path: Path, connect: Connect) -> None:
    connection, other = connect(tmp_path), connect(tmp_path)
    for one in ("CREATE TYPE size AS ENUM ('s', 'l')", "CREATE TABLE t (z size, a text)", "CREATE VIEW v AS TABLE t"):
        connection.execute(one)
    engine = other.engine
    for number, query in enumerate(("SELECT a::size AS z FROM t", "SELECT z FROM t", "SELECT z FROM v")):
        (statement,) = parse(f"CREATE VIEW w AS {query}")
        assert isinstance(statement, CreateView)
        (new,) = engine.definitions.new_objects(define(statement, engine.definitions, default_timeline="default"))
        connection.execute(f"ALTER TYPE size ADD VALUE 'x{number}'")
        with pytest.raises(TypeAltered):
            engine.catalog.create_objects([new])
        other.execute(statement.text)
        connection.execute("DROP VIEW w")


def test_a_value_is_renamed_under_what_is_maintained(tmp_path: Path, connect: Connect) -> None:
    connection, other = connect(tmp_path), connect(tmp_path)

    def ids() -> dict[str, str]:
        return dict(connection.execute("SELECT name, id FROM mz_catalog.mz_objects").fetchall())

    for one in (
        "CREATE TYPE size AS ENUM ('s', 'l')",
        "CREATE TABLE shirts (z size DEFAULT 's', t text)",
        "INSERT INTO shirts VALUES ('l', 's'), ('s', 'l')",
        "CREATE MATERIALIZED VIEW counted AS SELECT z, count(*) AS n FROM shirts GROUP BY z",
        "CREATE INDEX by_size ON counted (z)",
        "CREATE MATERIALIZED VIEW small AS SELECT z, t, 's' AS u FROM shirts WHERE z IN ('s') AND t <> 's'",
        "CREATE MATERIALIZED VIEW texts AS SELECT z::text AS t FROM shirts",
        "CREATE MATERIALIZED VIEW known AS SELECT t::size AS z FROM shirts WHERE t = 'l'",
    ):
        connection.execute(one)
    assert other.execute("SELECT t FROM texts ORDER BY t").fetchall() == [("l",), ("s",)]
    before = ids()
    connection.execute("ALTER TYPE size RENAME VALUE 's' TO 'small'")
    kept = {name for name, id in ids().items() if before.get(name) == id}
    assert {"size", "shirts", "counted", "by_size"} <= kept
    assert "texts" not in kept
    connection.execute("INSERT INTO shirts (t) VALUES ('l')")
    for session in (other, connection, connect(tmp_path)):
        assert session.execute("SELECT z, n FROM counted ORDER BY z").fetchall() == [("small", 2), ("l", 1)]
        assert session.execute("SELECT n FROM counted WHERE z = 'small'").fetchall() == [(2,)]
        assert session.execute("SELECT * FROM small").fetchall() == [("small", "l", "s")] * 2
        assert session.execute("SELECT t FROM texts ORDER BY t").fetchall() == [("l",), ("small",), ("small",)]
        assert session.execute("SELECT z FROM known").fetchall() == [("l",), ("l",)]
        with pytest.raises(Error, match="invalid input value for enum size"):
            session.execute("SELECT * FROM counted WHERE z = 's'")
    ((_, shown),) = connection.execute("SHOW CREATE MATERIALIZED VIEW small").fetchall()
    assert "z IN ('small') AND t <> 's'" in shown
    assert connection.execute("SELECT z FROM shirts").fetch_arrow_table()["z"].to_pylist().count("small") == 2
    connection.execute("CREATE VIEW listed AS SELECT z FROM shirts WHERE z = ANY ('{small,l}'::size[])")
    with pytest.raises(Error, match='view "listed" says a value of it') as refused:
        connection.execute("ALTER TYPE size RENAME VALUE 'small' TO 'tiny'")
    assert refused.value.sqlstate == "2BP01"
    assert connection.execute("SELECT count(*) FROM listed").fetchall() == [(3,)]
