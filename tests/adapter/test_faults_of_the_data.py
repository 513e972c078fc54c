"""What is wrong with the data is the same error by either engine, of the same rows, and never a reason for Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster import budget
from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.budget import Budget, EngineSetting
from mz_dagster.errors import Error
from mz_dagster.storage.spark import SparkConfig
from tests.sparkless import refuse_spark

#: More than a bigint can count, once eight of it are put together.
_MANY = 2**60
_EIGHT = f"({' UNION ALL '.join(['SELECT x FROM many'] * 8)}) AS u"
_TABLES = (
    "CREATE TABLE one (x int)",
    "CREATE TABLE words (g int, s text)",
    "INSERT INTO one SELECT 1 FROM generate_series(1, 32768)",
    "INSERT INTO words VALUES (1, 'a'), (2, 'b')",
    "CREATE MATERIALIZED VIEW squared AS SELECT a.x FROM one AS a, one AS b",
    "CREATE MATERIALIZED VIEW many AS SELECT a.x FROM squared AS a, squared AS b",
)
_ARRAY = ("54000", "array size exceeds the maximum allowed (134217727)")
_TEXT = ("54000", "string_agg result exceeds the maximum allowed (1073741823 bytes)")
_COPIES = ("22003", "a row's multiplicity is out of range")
#: Queries, with the error that they are, or their rows.
_ASKED: dict[str, object] = {
    "SELECT count(*) FROM many AS a, many AS b": _COPIES,
    f"SELECT x, count(*) FROM {_EIGHT} GROUP BY x": _COPIES,
    f"SELECT max(x) FROM {_EIGHT}": _COPIES,
    "SELECT array_agg(x) FROM many": _ARRAY,
    "SELECT string_agg(s, ',') FROM many, words WHERE g = 1": _TEXT,
    f"SELECT x FROM (SELECT x FROM {_EIGHT} LIMIT 1) AS l": _COPIES,
    f"SELECT DISTINCT x FROM {_EIGHT}": _COPIES,
    "SELECT count(*) FROM many AS a, one AS b": _COPIES,
    "SELECT g, array_agg(s) FROM words, many GROUP BY g": _ARRAY,
    "SELECT string_agg(s::bytea, ''::bytea) FROM words, many": _TEXT,
    "SELECT sum(9223372036854775807 + g) FROM words, many WHERE g = 0": [(None,)],
    "SELECT sum(g::bigint) FROM words, many": [(3 * _MANY,)],
    "SELECT count(*) FROM (SELECT x FROM many OFFSET 1) AS o": [(_MANY - 1,)],
    "SELECT count(*) FROM (SELECT x FROM many EXCEPT ALL SELECT x FROM one) AS e": [(_MANY - 32768,)],
}
_FEW = 5
_TOO_MANY_ROWS = ("53200", f"memory does not hold the {_MANY} rows of the result")


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection under `engine = local`, on which whatever opens Spark fails, and the test with it."""
    tried = refuse_spark(monkeypatch)
    with Connection(Engine(Project.load(tmp_path)), Isolation.STRICT_SERIALIZABLE) as opened:
        opened.execute("SET engine = local")
        yield opened
    assert not tried


@pytest.fixture
def by_spark(tmp_path: Path, spark_config: SparkConfig) -> Iterator[Connection]:
    """A connection to a new project, whose Spark is asked for once `engine` is `spark`."""
    with Connection(Engine(Project.load(tmp_path), spark=spark_config), Isolation.STRICT_SERIALIZABLE) as opened:
        yield opened


def filled(connection: Connection) -> Connection:
    for statement in _TABLES:
        connection.execute(statement)
    return connection


def answered(connection: Connection, query: str) -> object:
    """Returns the rows, or the error: its SQLSTATE and its message."""
    try:
        return connection.execute(query).fetchall()
    except Error as error:
        return error.sqlstate, error.message


def test_queries_tell_here_what_is_wrong_with_the_data(local: Connection) -> None:
    filled(local)
    assert {query: answered(local, query) for query in _ASKED} == _ASKED
    # However many copies there are, they are counted before they are made.
    assert answered(local, "SELECT x FROM many") == answered(local, "SELECT * FROM many") == _TOO_MANY_ROWS
    assert answered(local, "SELECT 1 / (g - 1) FROM words, many") == ("22012", "division by zero")


@pytest.mark.parametrize("count", [_FEW, pytest.param(len(_ASKED), marks=pytest.mark.deep)])
def test_queries_tell_the_same_by_spark(by_spark: Connection, count: int) -> None:
    filled(by_spark).execute("SET engine = spark")
    asked = dict(list(_ASKED.items())[:count])
    assert {query: answered(by_spark, query) for query in asked} == asked


def test_equal_rows_are_joined_once_however_many_pairs_they_make(local: Connection) -> None:
    local.execute("CREATE TABLE t (k int, x int)")
    local.execute("INSERT INTO t SELECT n, n / 32768 FROM generate_series(0, 65535) AS n")
    assert answered(local, "SELECT count(*) FROM t AS a, t AS b") == [(2**32,)]
    assert answered(local, "SELECT b.x, count(*) FROM t AS a, t AS b GROUP BY b.x ORDER BY 1") == [
        (x, 2**31) for x in (0, 1)
    ]


def test_pairs_that_memory_does_not_hold_are_an_error(local: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_held_rows", lambda: 1_000_000)
    monkeypatch.setattr(budget, "_engines", {EngineSetting.LOCAL: Budget.here_alone()})
    local.execute("CREATE TABLE t (k int)")
    local.execute("INSERT INTO t SELECT n FROM generate_series(1, 2000) AS n")
    refused = answered(local, "SELECT max(a.k + b.k) FROM t AS a, t AS b WHERE a.k <> b.k")
    assert refused == ("0A000", "not computed without Spark: too many rows are joined")


def healed(connection: Connection) -> list[object]:
    """Returns what views say before some rows make them errors, with these, and when they are deleted again."""
    connection.execute("CREATE MATERIALIZED VIEW lists AS SELECT g, array_agg(s) AS l FROM words, many GROUP BY g")
    connection.execute("CREATE MATERIALIZED VIEW texts AS SELECT string_agg(s, '') AS t FROM words, many WHERE g = 1")
    connection.execute("CREATE MATERIALIZED VIEW greatest AS SELECT max(s) AS m FROM words, many")
    told: list[object] = []
    asked = "SELECT count(*) FROM lists", "SELECT t FROM texts", "SELECT m FROM greatest"
    for statement in (None, "DELETE FROM one", "INSERT INTO one VALUES (7)"):
        if statement is not None:
            connection.execute(statement)
        told.append([answered(connection, query) for query in asked])
    return told


_HEALED = [[_ARRAY, _TEXT, [("b",)]], [[(0,)], [(None,)], [(None,)]], [[(2,)], [("a",)], [("b",)]]]


def test_views_tell_here_what_is_wrong_with_the_data_and_heal(local: Connection) -> None:
    assert healed(filled(local)) == _HEALED


@pytest.mark.deep
def test_views_tell_the_same_by_spark(by_spark: Connection) -> None:
    filled(by_spark).execute("SET engine = spark")
    assert healed(by_spark) == _HEALED
