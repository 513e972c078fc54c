"""INSERT, UPDATE and DELETE beside PostgreSQL: what they count, what they return and what the table holds afterwards.

The sessions read without Spark here, by the reference evaluator; which rows a statement reads and writes is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.adapter.sequence.update import AmbiguousUpdate
from mz_dagster.errors import Error
from tests.adapter.evaluated import evaluate_peeks
from tests.postgres_server import Postgres

_TABLES = {
    "t": (
        "a integer NOT NULL, b integer, c text",
        "(1, 10, 'x'), (1, 10, 'x'), (2, 20, NULL), (3, NULL, 'z'), (4, 40, 'x')",
    ),
    "u": (
        "a integer, d integer, e text",
        "(1, 100, 'x'), (2, 200, 'y'), (2, 201, 'y'), (NULL, 300, 'z'), (9, 900, 'x')",
    ),
    "w": ("a integer", "(1), (3)"),
}
_T = [(1, 10, "x"), (1, 10, "x"), (2, 20, None), (3, None, "z"), (4, 40, "x")]

#: Makes the tables anew; executes a statement on them, and returns its count and what `t` holds afterwards.
_FUNCTIONS = """
SET client_min_messages = error;
CREATE PROCEDURE make() LANGUAGE plpgsql AS $p$ BEGIN {setup} END $p$;
CREATE FUNCTION changed(statement text) RETURNS json LANGUAGE plpgsql AS $f$
DECLARE n bigint; result json;
BEGIN
  CALL make();
  EXECUTE statement;
  GET DIAGNOSTICS n = ROW_COUNT;
  SELECT json_build_array(n, (SELECT json_agg(json_build_array(a, b, c)) FROM t)) INTO result;
  RETURN result;
END $f$;
"""

STATEMENTS = (
    "INSERT INTO t VALUES (5, 50, 'v'), (6, DEFAULT, DEFAULT)",
    "INSERT INTO t (c, a) VALUES ('v', 5), (DEFAULT, 6)",
    "INSERT INTO t (c, a) VALUES (DEFAULT, DEFAULT)",
    "INSERT INTO t DEFAULT VALUES",
    "INSERT INTO t SELECT a, d, e FROM u WHERE a IS NOT NULL",
    "INSERT INTO t SELECT * FROM t",
    "INSERT INTO t (a, b) SELECT a, count(*) FROM u GROUP BY a HAVING count(*) > 1",
    "INSERT INTO t WITH x AS (SELECT a + 1 AS a FROM w) SELECT a, a FROM x",
    "INSERT INTO t TABLE u",
    "INSERT INTO t (b) SELECT a FROM w",
    "INSERT INTO t (b) SELECT a FROM w WHERE a > 5",
    "UPDATE t SET a = NULL",
    "UPDATE t SET a = NULL WHERE b > 50",
    "INSERT INTO t SELECT 1, 2, 3, 4",
    "INSERT INTO t VALUES ('7', '8', 9)",
    "INSERT INTO t VALUES (7, 8.5, 'x')",
    "INSERT INTO t VALUES (1 / 0, 8, 'x')",
    "DELETE FROM t",
    "DELETE FROM t WHERE b > 10",
    "DELETE FROM t WHERE b IS NULL OR c = 'x'",
    "DELETE FROM t AS s WHERE s.a IN (SELECT a FROM u)",
    "DELETE FROM t WHERE a NOT IN (SELECT a FROM u)",
    "DELETE FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL)",
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.d > t.b * 10)",
    "DELETE FROM t WHERE b = (SELECT max(b) FROM t)",
    "DELETE FROM t WHERE b = (SELECT d FROM u)",
    "DELETE FROM t USING u WHERE t.a = u.a",
    "DELETE FROM t USING u, w WHERE t.a = u.a AND w.a = u.a",
    "DELETE FROM t USING u JOIN w ON w.a = u.a WHERE t.a = u.a",
    "DELETE FROM t USING u LEFT JOIN w USING (a) WHERE t.a = u.a AND w.a IS NULL",
    "DELETE FROM t USING (SELECT max(a) AS m FROM u) AS x WHERE t.a < x.m",
    "DELETE FROM t USING t AS s WHERE t.b < s.b",
    "DELETE FROM t USING u",
    "DELETE FROM t USING w WHERE false",
    "DELETE FROM t USING t WHERE t.a = 1",
    "DELETE FROM t USING u WHERE a = 1",
    "DELETE FROM t USING u WHERE b = d / 10",
    "DELETE FROM t USING (SELECT t.a + 1 AS n) AS x WHERE x.n = 3",
    "DELETE FROM t AS s WHERE t.a = 1",
    "DELETE FROM t WHERE count(*) > 1",
    "DELETE FROM t WHERE a",
    "UPDATE t SET b = b + 1",
    "UPDATE t SET b = a, a = b WHERE b IS NOT NULL",
    "UPDATE t SET b = a, a = b",
    "UPDATE t SET b = DEFAULT, c = 'new' WHERE a = 2",
    "UPDATE t SET a = DEFAULT",
    "UPDATE t SET (b, c) = (a * 2, 'p' || a), a = 0 WHERE a > 1",
    "UPDATE t SET (b, c) = ROW (a * 2, DEFAULT)",
    "UPDATE t SET (b, c) = (1, 2, 3)",
    "UPDATE t SET b = '12', c = 13",
    "UPDATE t SET b = 'x'",
    "UPDATE t SET b = true",
    "UPDATE t SET b = 1, b = 2",
    "UPDATE t SET q = 1",
    "UPDATE t AS s SET b = s.a WHERE s.c IS DISTINCT FROM 'x'",
    "UPDATE t SET b = CASE WHEN a = 1 THEN 0 ELSE b END",
    "UPDATE t SET b = (SELECT max(d) FROM u WHERE u.a = t.a)",
    "UPDATE t SET b = (SELECT d FROM u WHERE u.a = t.a)",
    "UPDATE t SET b = (SELECT count(*) FROM u WHERE u.a = t.a) WHERE a IN (SELECT a FROM w)",
    "UPDATE t SET b = d FROM u WHERE u.a = t.a AND u.d <> 201",
    "UPDATE t SET b = u.d + t.b, c = e FROM u, w WHERE u.a = t.a AND w.a = t.a",
    "UPDATE t SET c = e FROM u WHERE u.a = t.a",
    "UPDATE t SET b = x.m FROM (SELECT a, max(d) AS m FROM u GROUP BY a) AS x WHERE x.a = t.a",
    "UPDATE t SET b = s.b FROM t AS s WHERE s.a = t.a + 1",
    "UPDATE t SET b = 0 FROM u WHERE u.a = t.a",
    "UPDATE t SET b = 0 FROM u WHERE a = 1",
    "UPDATE t SET b = 0 FROM t WHERE t.a = 1",
    "UPDATE t SET b = count(*)",
    "UPDATE t SET b = row_number() OVER ()",
    "UPDATE t SET b = 1 / (a - 1)",
    "UPDATE nowhere SET b = 1",
    "DELETE FROM nowhere",
    "INSERT INTO nowhere VALUES (1)",
)  # fmt: skip

#: Statements with RETURNING, with PostgreSQL's rows.
RETURNING = (
    "INSERT INTO t VALUES (5, 50, 'v'), (6, 60, NULL) RETURNING *, a + b AS s, (SELECT count(*) FROM w) AS n",
    "DELETE FROM t WHERE a = 1 RETURNING t.a, c",
    "DELETE FROM t AS s WHERE a = 1 RETURNING s.*",
    "UPDATE t SET b = b + 1 WHERE a < 3 RETURNING a, b, b IN (SELECT b FROM t)",
    "UPDATE t SET b = 7 WHERE a > 99 RETURNING a",
    "UPDATE t SET b = t.b + 1 FROM u WHERE t.a = u.a AND d <> 201 RETURNING *",
    "UPDATE t AS s SET b = u.d FROM u JOIN w ON w.a = u.a WHERE s.a = u.a RETURNING u.*, s.b - 1 AS x, w.a",
    "UPDATE t SET b = 0 FROM u LEFT JOIN w USING (a) WHERE t.a = u.a AND u.d = 200 RETURNING *",
    "UPDATE t SET b = 0 FROM u WHERE t.a = u.a AND d = 100 RETURNING e, (SELECT max(w.a) FROM w WHERE w.a <= u.d)",
    "DELETE FROM t USING u WHERE t.a = u.a AND d <> 201 RETURNING *",
    "DELETE FROM t USING u WHERE t.a = u.a RETURNING t.a",
    "DELETE FROM t USING (SELECT t.a + 1 AS n) AS x WHERE x.n = 3 RETURNING n",
    "UPDATE t SET b = 1 RETURNING u.d",
    "UPDATE t SET b = 1 FROM u RETURNING a",
    "DELETE FROM t USING u WHERE t.a = u.a RETURNING count(*)",
    "DELETE FROM t RETURNING count(*)",
    "DELETE FROM t RETURNING nope",
)


@pytest.fixture(scope="module")
def server(postgres: Postgres) -> Postgres:
    """A PostgreSQL with a function that says what a statement does."""
    setup = "\n".join(
        f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} ({columns}); INSERT INTO {name} VALUES {rows};"
        for name, (columns, rows) in _TABLES.items()
    )
    postgres.run(_FUNCTIONS.format(setup=setup))
    return postgres


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection that starts no Spark."""
    evaluate_peeks(monkeypatch)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        for name, (columns, rows) in _TABLES.items():
            opened.execute(f"CREATE TABLE {name} ({columns})")
            opened.execute(f"INSERT INTO {name} VALUES {rows}")
        yield opened


def test_writes_do_what_they_do_in_postgres(server: Postgres, connection: Connection) -> None:
    theirs = server.attempt([f"changed($statement${one}$statement$)" for one in STATEMENTS])
    different = []
    for statement, answer in zip(STATEMENTS, theirs, strict=True):
        assert answer is not None
        expected = answer[1:6] if answer.startswith("!") else _read(answer[1:])
        found = changed(connection, statement)
        if found != expected:
            different.append(f"{statement}\n   ours: {found}\n theirs: {answer}")
    assert not different, "\n".join(different)


def test_what_was_written_is_returned_as_in_postgres(server: Postgres, connection: Connection) -> None:
    different = []
    for statement in RETURNING:
        try:
            lines = server.run(f"SET client_min_messages = error; CALL make();\n{statement};").splitlines()
            expected: Any = sorted(lines)
        except AssertionError as error:
            expected = f"error: {error}"
        fill(connection)
        try:
            found: Any = sorted("|".join(map(text, row)) for row in connection.execute(statement).fetchall())
        except Error as error:
            found = f"error: {error.message}"
            assert contents(connection) == _T
        if found != expected and not (isinstance(found, str) and found.removeprefix("error: ") in expected):
            different.append(f"{statement}\n   ours: {found}\n theirs: {expected}")
    assert not different, "\n".join(different)


def test_nothing_is_written_if_what_is_returned_fails(connection: Connection) -> None:
    for statement in ("DELETE FROM t", "UPDATE t SET c = 'y'", "INSERT INTO t VALUES (1, 10, 'y')"):
        with pytest.raises(Error) as caught:
            connection.execute(f"{statement} RETURNING 1 / (b - 10)")
        assert caught.value.sqlstate == "22012"
        assert contents(connection) == _T


def test_a_row_that_would_get_several_new_values_is_refused(connection: Connection) -> None:
    """PostgreSQL takes one of them."""
    with pytest.raises(AmbiguousUpdate) as caught:
        connection.execute("UPDATE t SET b = d FROM u WHERE u.a = t.a")
    assert caught.value.detail == "The row is (2, 20, null)."
    assert contents(connection) == _T
    assert connection.execute("UPDATE t SET c = e FROM u WHERE u.a = t.a").rowcount == 3  # several equal ones are one


def _read(answer: str) -> Any:
    count, rows = json.loads(answer)
    return [count, sorted(rows or [], key=lambda row: repr(tuple(row)))]


def fill(connection: Connection) -> None:
    """Gives `t` its rows, unless it has them still."""
    if contents(connection) != _T:
        columns, rows = _TABLES["t"]
        connection.execute("DROP TABLE t")
        connection.execute(f"CREATE TABLE t ({columns})")
        connection.execute(f"INSERT INTO t VALUES {rows}")


def contents(connection: Connection) -> list[tuple[Any, ...]]:
    """Returns the rows of `t` in an order that does not depend on the engine."""
    return sorted(connection.execute("SELECT * FROM t").fetchall(), key=repr)


def changed(connection: Connection, statement: str) -> Any:
    """Returns the count and the rows of `t` after a statement on fresh rows, or the error's code."""
    fill(connection)
    try:
        count = connection.execute(statement).rowcount
    except Error as error:
        return error.sqlstate
    return [count, [list(row) for row in contents(connection)]]


def text(cell: object) -> str:
    """Returns a cell as psql prints it."""
    return "" if cell is None else {True: "t", False: "f"}[cell] if isinstance(cell, bool) else str(cell)
