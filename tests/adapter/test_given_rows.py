"""Many written rows are held against a table's keys as a frame, not as constants of a plan: the same, at less cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.errors import Error
from mz_dagster.sql import constraints
from mz_dagster.storage.spark import SparkConfig
from tests.growth import calls, exponent
from tests.opened import opened

#: By type: values that are all different, and one that is equal to the first of them and written differently.
TYPES = {
    "integer": (("1", "2", "-3"), "1"),
    "numeric": (("1.0", "2.50", "'NaN'"), "1.000"),
    "numeric(10,2)": (("1", "2.5", "0"), "1.00"),
    "double precision": (("0", "'NaN'", "'Infinity'"), "'-0'"),
    "real": (("'NaN'", "0.5", "1e10"), "'NaN'"),
    "text": (("'a'", "''", "'é'"), "'a'"),
    "char(3)": (("'a'", "'b'", "''"), "'a  '"),
    "bytea": ((r"'\x00'", r"'\x01'", "''"), r"'\x00'"),
    "uuid": (
        (
            "'00000000-0000-0000-0000-000000000001'",
            "'00000000-0000-0000-0000-000000000002'",
            "'00000000-0000-0000-0000-000000000003'",
        ),
        "'{00000000-0000-0000-0000-000000000001}'",
    ),
    "date": (("'2024-02-29'", "'infinity'", "'-infinity'"), "'29 Feb 2024'"),
    "timestamptz": (("'2024-02-29 12:00+00'", "'infinity'", "'2024-03-01'"), "'2024-02-29 13:00+01'"),
    "interval": (("'1 month'", "'1 day'", "'2 days'"), "'30 days'"),
    "integer[]": (("'{1,2}'", "'{}'", "'{NULL}'"), "'{1,2}'"),
    "jsonb": (("'{\"a\": 1}'", "'1'", "'null'"), "'{\"a\":1.0}'"),
}


@pytest.fixture(params=["auto", pytest.param("spark", marks=pytest.mark.deep)])
def connection(request: pytest.FixtureRequest, tmp_path: Path, spark_config: SparkConfig) -> Iterator[Connection]:
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute(f"SET engine = {request.param}")
        yield connection


def refused(connection: Connection, statement: str, sqlstate: str = "23505") -> str:
    with pytest.raises(Error) as error:
        connection.execute(statement)
    assert error.value.sqlstate == sqlstate
    return f"{error.value} / {error.value.detail}"


def test_rows_are_equal_as_their_types_say(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    by_spark = connection.execute("SHOW engine").fetchall() == [("spark",)]
    for number, (type_, (values, same)) in enumerate(TYPES.items()):
        if by_spark and type_ != "double precision":
            continue  # the frame is the same, and each statement takes a second
        name = f"t{number}"
        connection.execute(f"CREATE TABLE {name} (k {type_} UNIQUE, n integer)")
        rows = ", ".join(f"({value}, {n})" for n, value in enumerate(values))
        found = []
        for most in (100, 0):
            monkeypatch.setattr(constraints, "_MOST_LITERAL", most)
            connection.execute(f"DELETE FROM {name}")
            connection.execute(f"INSERT INTO {name} VALUES {rows}")
            connection.execute(f"INSERT INTO {name} VALUES (NULL, 7), (NULL, 8)")  # NULLs equal nothing
            told = [
                refused(connection, f"INSERT INTO {name} VALUES ({same}, 9)"),
                refused(connection, f"INSERT INTO {name} SELECT k, 9 FROM {name} WHERE n = 1"),
            ]
            connection.execute(f"INSERT INTO {name} VALUES ({same}, 9), (NULL, 10) ON CONFLICT DO NOTHING")
            connection.execute(
                f"INSERT INTO {name} AS t VALUES ({same}, 5) ON CONFLICT (k) DO UPDATE SET n = excluded.n + t.n"
            )
            found.append((told, connection.execute(f"SELECT n FROM {name} ORDER BY n").fetchall()))
        assert found[0] == found[1], type_
        assert found[0][1] == [(1,), (2,), (5,), (7,), (8,), (10,)], type_
        assert "already exists" in found[0][0][0]


def test_a_block_holds_many_rows_against_its_own_and_says_what_it_wrote(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (a integer PRIMARY KEY, b text, CHECK (a > 0))")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 500) AS g")
    assert connection.execute("SELECT n FROM m").fetchall() == [(500,)]
    connection.execute("SAVEPOINT s")
    assert "Key (a)=(500)" in refused(connection, "INSERT INTO t SELECT g, 'y' FROM generate_series(500, 900) AS g")
    connection.execute("ROLLBACK TO s")
    changed = connection.execute(
        "INSERT INTO t SELECT g, 'y' FROM generate_series(401, 700) AS g ON CONFLICT (a) DO UPDATE "
        "SET b = t.b || excluded.b RETURNING a, b"
    ).fetchall()
    assert sorted(changed)[98:102] == [(499, "xy"), (500, "xy"), (501, "y"), (502, "y")]
    connection.execute("COMMIT")
    assert connection.execute("SELECT n FROM m").fetchall() == [(700,)]
    refused(connection, "INSERT INTO t SELECT g, 'z' FROM generate_series(-5, 900) AS g WHERE g <> 0", "23514")
    twice = "INSERT INTO t SELECT 1000 + g % 200, 'z' FROM generate_series(1, 300) AS g"
    assert "Key (a)=(10" in refused(connection, twice)
    refused(connection, f"{twice} ON CONFLICT (a) DO UPDATE SET b = excluded.b", "21000")


def test_an_insert_costs_by_its_rows_and_a_key_is_not_most_of_it(tmp_path: Path) -> None:
    first = iter(range(1, 100_000_000, 1_000_000))
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE keyed (a integer PRIMARY KEY, b text)")
        connection.execute("CREATE TABLE free (a integer, b text)")

        def cost(table: str, n: int) -> float:
            start = next(first)
            query = f"INSERT INTO {table} SELECT g, 'x' || g FROM generate_series({start}, {start + n - 1}) AS g"
            return calls(lambda: connection.execute(query))

        for table in ("keyed", "free"):
            cost(table, 200)  # what a process does once is done
        assert exponent(lambda n: cost("keyed", n), (1_000, 3_000, 9_000), times=1) <= 1.05
        assert cost("keyed", 9_000) <= 4 * cost("free", 9_000)
