"""Constraints of tables, and ON CONFLICT, beside PostgreSQL: what statements do, and what they leave."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.errors import Error
from mz_dagster.sql.errors import UniqueViolation
from tests.adapter.evaluated import evaluate_peeks
from tests.postgres_server import Postgres

TABLE = """CREATE TABLE t (
    a integer CONSTRAINT pk PRIMARY KEY,
    b text DEFAULT 'x' || 'y' UNIQUE,
    c numeric(10,2) DEFAULT 1.5 CHECK (c > 0),
    j jsonb UNIQUE,
    f float8,
    CONSTRAINT c_and_f UNIQUE (c, f),
    CHECK (a < 50 OR b IS NULL)
)"""

#: What is said of one row; {n} is a small number.
ROWS = (
    "({n}, DEFAULT, {n}, '{n}', 1)",
    "({n}, 'b{n}', DEFAULT, '{n}.0', NULL)",
    "({n}, NULL, {n}.25, NULL, '-0')",
    "({n}, 'b', {n}.25, NULL, 0)",
    "({n}, 'b{n}', NULL, '[{n}]', 'Infinity')",
    "(5{n}, NULL, 1, NULL, 'Infinity')",
    "(5{n}, 'over', 1, NULL, NULL)",
    "({n}, 'b{n}', -1, NULL, 2)",
    "(NULL, 'b{n}', 1, NULL, 3)",
)
STATEMENTS = (
    "INSERT INTO t VALUES {row}",
    "INSERT INTO t VALUES {row}, {row}",
    "INSERT INTO t (a) VALUES ({n})",
    "INSERT INTO t (c, a) VALUES (DEFAULT, {n}), ({n}, DEFAULT)",
    "INSERT INTO t VALUES {row} ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES {row}, {row}, {row} ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES {row}, {row} ON CONFLICT (a) DO NOTHING",
    "INSERT INTO t VALUES {row} ON CONFLICT (j) DO UPDATE SET b = excluded.b || t.a, f = DEFAULT",
    "INSERT INTO t AS old VALUES {row}, {row} ON CONFLICT (a) DO UPDATE SET (b, c) = (excluded.b, old.c + 1)",
    "INSERT INTO t VALUES {row} ON CONFLICT ON CONSTRAINT c_and_f DO UPDATE SET b = DEFAULT WHERE t.a > {n}",
    "INSERT INTO t VALUES {row} ON CONFLICT (f, c) DO UPDATE SET a = excluded.a",
    "INSERT INTO t SELECT a + 10, b || '!', c + 1, NULL, f FROM t WHERE a < 10 ON CONFLICT DO NOTHING",
    "UPDATE t SET b = 'b{n}' WHERE a = {n}",
    "UPDATE t SET a = {n} + 1, j = DEFAULT WHERE a = {n}",
    "UPDATE t SET (b, c) = (SELECT 'u' || t.a, 3.5 + t.a) WHERE a > {n}",
    "UPDATE t SET (b, c) = (SELECT b FROM t LIMIT 1) WHERE a > {n}",
    "UPDATE t SET c = c - 2 WHERE a = {n}",
    "DELETE FROM t WHERE a = {n}",
    "DELETE FROM t WHERE a > 20",
)


@pytest.mark.parametrize(
    ("seed", "statements"), [(0, 36), *(pytest.param(one, 60, marks=pytest.mark.deep) for one in range(30))]
)
def test_tables_with_constraints_do_what_they_do_in_postgres(
    postgres: Postgres, evaluated: Connection, seed: int, statements: int
) -> None:
    random_ = random.Random(seed)
    with postgres.connect() as theirs:
        theirs.execute("DROP TABLE IF EXISTS t")
        theirs.execute(TABLE)
        evaluated.execute(TABLE)
        outcomes = set()
        for _ in range(statements):
            template = _numbered(random_.choice(STATEMENTS), random_)
            rows = [_numbered(random_.choice(ROWS), random_) for _ in range(template.count("{row}"))]
            statement = _with_rows(template, rows)
            expected = _theirs(theirs, statement)
            found = _ours(evaluated, statement), _contents(evaluated)
            if expected == "23505" and isinstance(found[0], int) and "DO UPDATE" in statement:
                # Keys are checked here of what a statement leaves; there of each row, so that order matters.
                expected = _theirs(theirs, _with_rows(template, rows[::-1]))
            assert found == (_first_fault(statement, found[0], expected), _contents(theirs)), (statement, expected)
            outcomes.add(expected)
        assert {"23505", "23514", 0, 1} < outcomes


def _numbered(text: str, random_: random.Random) -> str:
    """Returns a text with numbers in their places."""
    first, *rest = text.split("{n}")
    return first + "".join(f"{random_.randrange(6)}{part}" for part in rest)


def _with_rows(template: str, rows: Sequence[str]) -> str:
    """Returns a statement with rows in their places."""
    first, *rest = template.split("{row}")
    return first + "".join(row + part for row, part in zip(rows, rest, strict=True))


def _first_fault(statement: str, ours: object, theirs: object) -> object:
    """Returns PostgreSQL's outcome; of several rows with several faults, which is told first is ours to choose."""
    faulty = isinstance(ours, str) and isinstance(theirs, str)
    return ours if faulty and ("), (" in statement or "SELECT" in statement) else theirs


def _theirs(connection: psycopg.Connection[Any], statement: str) -> int | str | None:
    try:
        return connection.execute(statement).rowcount
    except psycopg.Error as error:
        return error.sqlstate


def _ours(connection: Connection, statement: str) -> int | str:
    try:
        return connection.execute(statement).rowcount
    except Error as error:
        return error.sqlstate


def _contents(connection: Any) -> list[str]:
    rows = connection.execute("SELECT a, b, c::text, j::text, f::text FROM t").fetchall()
    return sorted(map(repr, rows))


def test_copy_meets_constraints_and_defaults(evaluated: Connection, tmp_path: Path) -> None:
    evaluated.execute(TABLE)
    evaluated.execute("INSERT INTO t (a) VALUES (1)")
    for text, outcome in (
        ("7,b7\n8,b8\n", 2),
        ("9,b9\n9,b10\n", "23505"),
        ("7,b11\n", "23505"),
        ("9,xy\n", "23505"),
        ("60,b\n", "23514"),
        (",b\n", "23502"),
    ):
        (tmp_path / "rows.csv").write_text(text)
        assert _ours(evaluated, "COPY t (a, b) FROM 'rows.csv' WITH (FORMAT CSV)") == outcome, text
    found = evaluated.execute("SELECT a, b, c::text, f FROM t ORDER BY a").fetchall()
    assert found == [(1, "xy", "1.50", None), (7, "b7", "1.50", None), (8, "b8", "1.50", None)]


@pytest.mark.parametrize("keys", [3, pytest.param(5, marks=pytest.mark.deep)])
def test_of_many_that_insert_one_key_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: int) -> None:
    evaluate_peeks(monkeypatch)
    (tmp_path / "mz.toml").write_text('[writes]\ndeadline = "2 min"\n')
    project = Project.load(tmp_path)
    with Connection(Engine(project), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (a integer PRIMARY KEY, b integer)")
        outcomes: list[str] = []
        start = threading.Barrier(4)

        def insert(number: int) -> None:
            with Connection(Engine(project, holder=f"writer {number}"), Isolation.STRICT_SERIALIZABLE) as own:
                start.wait(60)
                for key in range(keys):
                    try:
                        own.execute("INSERT INTO t VALUES (?, ?)", (key, number))
                        outcomes.append("done")
                    except UniqueViolation:
                        outcomes.append("twice")
                    own.execute("INSERT INTO t VALUES (99, 1) ON CONFLICT (a) DO UPDATE SET b = t.b + excluded.b")

        threads = [threading.Thread(target=insert, args=(number,)) for number in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(120)
        assert sorted(outcomes) == ["done"] * keys + ["twice"] * 3 * keys
        assert connection.execute("SELECT count(*) FROM t WHERE a < 5").fetchall() == [(keys,)]
        assert connection.execute("SELECT b FROM t WHERE a = 99").fetchall() == [(4 * keys,)]


def test_a_key_serves_the_planner(evaluated: Connection) -> None:
    evaluated.execute("CREATE TABLE t (a integer PRIMARY KEY, b integer UNIQUE, c integer NOT NULL UNIQUE)")
    (row,) = evaluated.engine.catalog.objects("table")
    assert row.keys == {frozenset({0}), frozenset({2})}


def test_truncate_and_refresh(evaluated: Connection) -> None:
    evaluated.execute("CREATE TABLE t (a integer); INSERT INTO t VALUES (1), (2)")
    assert evaluated.execute("TRUNCATE t").tag == "TRUNCATE TABLE"
    assert evaluated.execute("SELECT a FROM t").fetchall() == []
    evaluated.execute("CREATE MATERIALIZED VIEW m AS SELECT a FROM t WITH NO DATA")
    assert evaluated.execute("REFRESH MATERIALIZED VIEW m").tag == "REFRESH MATERIALIZED VIEW"
    for wrong in ("REFRESH MATERIALIZED VIEW t", "REFRESH MATERIALIZED VIEW x", "TRUNCATE x", "TRUNCATE m"):
        with pytest.raises(Error):
            evaluated.execute(wrong)


def test_what_is_done_by_itself_is_told_when_it_is_asked_for(evaluated: Connection) -> None:
    evaluated.execute("CREATE TABLE t (a integer, b integer); CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    for statement, tag, told in (
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY m", "REFRESH MATERIALIZED VIEW", "nothing to refresh"),
        ("ANALYZE", "ANALYZE", "nothing to analyze"),
        ("ANALYZE VERBOSE t (a, b), m", "ANALYZE", "nothing to analyze"),
        ("VACUUM", "VACUUM", "nothing to vacuum"),
        ("VACUUM FULL VERBOSE ANALYZE t", "VACUUM", "nothing to vacuum"),
        ("VACUUM (ANALYZE, VERBOSE off) t", "VACUUM", "nothing to vacuum"),
    ):
        done = evaluated.execute(statement)
        assert done.tag == tag
        assert told in str(done.messages[0][1])
    for wrong in ("ANALYZE x", "VACUUM t, x", "VACUUM t m"):
        with pytest.raises(Error):
            evaluated.execute(wrong)


def test_of_rows_of_one_statement_those_are_equal_that_sql_calls_so(evaluated: Connection) -> None:
    evaluated.execute("CREATE TABLE t (f float8 UNIQUE, j jsonb UNIQUE, i interval UNIQUE, r float8[] UNIQUE)")
    for one, other in (
        ("'NaN', NULL, NULL, NULL", "'NaN', NULL, NULL, NULL"),
        ("0, NULL, NULL, NULL", "'-0', NULL, NULL, NULL"),
        ("NULL, '{\"a\": 1}', NULL, NULL", "NULL, '{\"a\": 1.0}', NULL, NULL"),
        ("NULL, NULL, '1 month', NULL", "NULL, NULL, '30 days', NULL"),
        ("NULL, NULL, NULL, ARRAY['NaN'::float8, 0]", "NULL, NULL, NULL, ARRAY['NaN'::float8, '-0']"),
    ):
        assert _ours(evaluated, f"INSERT INTO t VALUES ({one}), ({other})") == "23505", one
        assert _ours(evaluated, f"INSERT INTO t VALUES ({one}), ({other}) ON CONFLICT DO NOTHING") == 1, one
    assert _ours(evaluated, "INSERT INTO t VALUES (NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL)") == 2


def test_names_in_quotes_bear_constraints(evaluated: Connection) -> None:
    evaluated.execute('CREATE TABLE "Two Words" ("The Key" integer PRIMARY KEY, b text)')
    insert = 'INSERT INTO "Two Words" AS "O" VALUES (1, \'x\') ON CONFLICT ("The Key") DO UPDATE SET b = '
    for expression in ('excluded.b || "O"."The Key"', 'excluded.b || "O".b'):
        evaluated.execute(insert + expression)
    assert evaluated.execute('SELECT * FROM "Two Words"').fetchall() == [(1, "xx")]


def test_copy_evaluates_no_default_of_a_column_that_the_file_has(evaluated: Connection, tmp_path: Path) -> None:
    evaluated.execute("CREATE TABLE t (a integer PRIMARY KEY DEFAULT 1 / 0, b text DEFAULT 'y')")
    (tmp_path / "rows.csv").write_text("7\n8\n")
    assert evaluated.execute("COPY t (a) FROM 'rows.csv' WITH (FORMAT CSV)").rowcount == 2
    assert evaluated.execute("SELECT a, b FROM t ORDER BY a").fetchall() == [(7, "y"), (8, "y")]


def test_several_tables_are_truncated_all_or_none(sparkless: Connection) -> None:
    for name in ("a", "b"):
        sparkless.execute(f"CREATE TABLE {name} (i integer)")
        sparkless.execute(f"INSERT INTO {name} VALUES (1)")
    with pytest.raises(Error, match="nothing"):
        sparkless.execute("TRUNCATE a, b, nothing")
    assert sparkless.execute("SELECT count(*) FROM a").fetchall() == [(1,)]
    sparkless.execute("TRUNCATE a, b")
    assert sparkless.execute("SELECT count(*) FROM a UNION ALL SELECT count(*) FROM b").fetchall() == [(0,), (0,)]
