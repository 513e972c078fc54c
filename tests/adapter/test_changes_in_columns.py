"""UPDATE, DELETE and INSERT of many rows keep them in columns, and do what they do row by row: also what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, dml
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.adapter.sequence import insert
from mz_dagster.compute import StoredRows
from mz_dagster.compute.snapshot import peek
from mz_dagster.errors import Error
from tests.growth import calls, exponent
from tests.opened import opened

#: Of more rows than the first what is read comes in columns; those that are given are as many as the second.
_FEW, _MANY = 50, 300
_TABLE = (
    "a bigint PRIMARY KEY, b text NOT NULL, c integer, d numeric(9,1) CHECK (d < 100000), e timestamptz, f integer[], "
    "g text GENERATED ALWAYS AS (b || '-' || coalesce(c, 0)) STORED, UNIQUE (b, c)"
)
_ROWS = (
    "SELECT g, 'x' || g % 7, CASE WHEN g % 5 > 0 THEN g END, g * 0.1, timestamptz '2024-01-01' + g * interval '1 day', "
    f"ARRAY[g, NULL] FROM generate_series(1, {_MANY}) AS s(g)"
)
_STATEMENTS = (
    "UPDATE t SET c = c + 1, d = d * 2",
    "UPDATE t SET c = -c WHERE a > 3 RETURNING a, c, g || '!', t.e",
    "UPDATE t SET a = a + 1",  # places that others of the table's leave
    "UPDATE t SET a = a + 1 WHERE a < 225",  # the last of which is taken
    "UPDATE t SET a = a / 2",  # equal among themselves
    "UPDATE t SET b = NULL WHERE a > 100",
    "UPDATE t SET d = a * 1000",
    "UPDATE t SET d = 100 / (c - 151)",
    "UPDATE t SET b = 'same', c = 1",
    "UPDATE t SET b = u.b || 'u' FROM u WHERE u.a = t.a RETURNING t.a, u.b, t.g",
    "UPDATE t SET b = u.b || 'u' FROM u WHERE u.c = t.c % 10 + 1",  # some have several matches
    "UPDATE n SET b = 'z' FROM u WHERE u.a = n.a",  # some rows are there twice
    "UPDATE n SET b = 'z' RETURNING *",
    "UPDATE t SET (b, c) = (SELECT u.b || 'q', u.c + 5 FROM u WHERE u.a = t.a) WHERE a <= 275",
    "DELETE FROM t",
    "DELETE FROM t WHERE a > 10 RETURNING *",
    "DELETE FROM t USING u WHERE u.a = t.a RETURNING t.a, u.b",
    "DELETE FROM n USING u WHERE u.a = n.a RETURNING n.a, u.b",
    "DELETE FROM n WHERE a < 225 RETURNING (SELECT max(u.b) FROM u WHERE u.a = n.a)",
    "INSERT INTO t SELECT a + 300, b, c + 300, d, e, f FROM t RETURNING a, c, t.f[1], g, 'é', e::date",
    "INSERT INTO t SELECT a + 300, b, c + 300, d, e, f FROM t RETURNING 100 / (c - 301)",
    "INSERT INTO t SELECT a + 150, b, c + 300, d, e, f FROM t",
    "INSERT INTO t SELECT a + 150, b, c + 300, d, e, f FROM t ON CONFLICT DO NOTHING RETURNING a",
    "INSERT INTO t SELECT a % 400, b, NULL, d, e, f FROM t ON CONFLICT (a) DO NOTHING",
    "INSERT INTO t SELECT (a + 290) / 2, b, c / 2, d, e, f FROM t ON CONFLICT DO NOTHING",
    "INSERT INTO t SELECT a + 150, b, c + 300, d, e, f FROM t ON CONFLICT (a) DO UPDATE SET c = excluded.c, "
    "b = t.b || excluded.b WHERE t.a % 2 = 0 RETURNING a, b, g",
    "INSERT INTO t SELECT a + 9000, b, c + 9000, d, e, f FROM t ON CONFLICT (a) DO UPDATE SET c = excluded.c",
    "INSERT INTO t SELECT a / 2, b, c + 300, d, e, f FROM t ON CONFLICT (a) DO UPDATE SET c = excluded.c",
    "INSERT INTO t SELECT a + 150, b, c + 300, d, e, f FROM t ON CONFLICT (a) DO UPDATE SET d = 1000000",
    "INSERT INTO n SELECT a, NULL, b FROM n RETURNING h, a",
)


@pytest.fixture
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setattr(peek, "AT_ONCE", _FEW)
    monkeypatch.setattr(dml, "_FEW", _FEW)
    with opened(tmp_path) as connection:
        connection.execute(f"CREATE TABLE t ({_TABLE})")
        connection.execute("CREATE TABLE u (a bigint, b text, c integer)")
        connection.execute("CREATE TABLE n (a bigint, gone text, b text, h float8 DEFAULT -0.0)")
        connection.execute(f"INSERT INTO t {_ROWS}")
        connection.execute("INSERT INTO u SELECT a, b || 'u', c FROM t WHERE a % 2 = 0")
        connection.execute("INSERT INTO n SELECT a, b, b FROM t UNION ALL SELECT a, b, b FROM t WHERE a % 3 = 0")
        connection.execute("INSERT INTO n VALUES (1, 'x', 'y', 'NaN')")
        yield connection


def _outcome(connection: Connection, statement: str) -> object:
    """Returns what a statement tells and leaves behind, after which it is undone."""
    connection.execute("BEGIN")
    try:
        cursor = connection.execute(statement)
        told: Any = cursor.rowcount, sorted(map(repr, cursor.fetchall())) if cursor.description else []
        left = [sorted(map(repr, connection.execute(f"SELECT * FROM {one}").fetchall())) for one in ("t", "n")]
    except Error as error:
        told, left = (error.sqlstate, error.message, error.detail), []
    connection.execute("ROLLBACK")
    return told, left


@pytest.mark.parametrize("is_altered", [False, True])
def test_columns_become_what_rows_become(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, is_altered: bool
) -> None:
    if is_altered:
        connection.execute("ALTER TABLE t ADD COLUMN h integer")
        connection.execute("ALTER TABLE n DROP COLUMN gone")
        connection.execute("ALTER TABLE n ADD COLUMN gone text DEFAULT 'g'")
    statements = _STATEMENTS[1:-1:4] if is_altered else _STATEMENTS
    in_columns = [_outcome(connection, one) for one in statements]
    found_at = Peeks.found_at
    monkeypatch.setattr(Peeks, "found_at", lambda *given: [*found_at(*given)])
    monkeypatch.setattr(insert, "in_columns", lambda rows, _: rows)
    for statement, one in zip(statements, in_columns, strict=True):
        assert one == _outcome(connection, statement), statement


def test_rows_are_returned_in_the_order_in_which_they_were_given(connection: Connection) -> None:
    values = ", ".join(f"({one * 7919 % 5003}, 'b')" for one in range(200))
    found = connection.execute(f"INSERT INTO n (a, b) VALUES {values} RETURNING a, b || a").fetchall()
    assert found == [(one * 7919 % 5003, f"b{one * 7919 % 5003}") for one in range(200)]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET d = d + 1",
        "UPDATE t SET a = a + 1000000 RETURNING a, c",
        "DELETE FROM t USING u WHERE u.a = t.a",
        "INSERT INTO t SELECT a + 15, b, c + 300, d, e, f FROM t ON CONFLICT (a) DO UPDATE SET c = excluded.c",
        "INSERT INTO t SELECT a + 300, b, c + 300, d, e, f FROM t RETURNING a, g",
    ],
)
def test_no_row_is_made_in_python(connection: Connection, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    for name in ("rows", "__iter__"):
        monkeypatch.setattr(StoredRows, name, None)
    assert connection.execute(statement).rowcount in (_MANY, _MANY // 2)


def test_an_update_costs_no_call_for_a_row(tmp_path: Path) -> None:
    with opened(tmp_path) as connection:

        def cost(n: int) -> float:
            name = f"t{n}"
            connection.execute(f"CREATE TABLE {name} ({_TABLE})")
            connection.execute(f"INSERT INTO {name} {_ROWS.replace(str(_MANY), str(n))}")
            return calls(lambda: connection.execute(f"UPDATE {name} SET b = b || 'y', a = -a WHERE a % 2 = 0"))

        cost(2_500)  # what a process does once is done
        assert exponent(cost, (3_000, 9_000, 27_000), times=1) <= 0.2
