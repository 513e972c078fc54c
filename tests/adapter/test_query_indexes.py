"""Indexes that queries read: whoever reads a view or asks by key gets the same rows at every time, from the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.adapter.peeks import Peeks
from mz_dagster.errors import DataError
from tests.budgets import SetBudget
from tests.opened import opened

pytestmark = pytest.mark.usefixtures("no_spark")

Row = tuple[Any, ...]

SUMS = "SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b"
#: Queries over the views; `{}` is for the suffix by which those without indexes are called.
QUERIES = (
    "SELECT * FROM sums{}",
    "SELECT s FROM sums{} WHERE b = 'b1'",
    "SELECT big.b, sums.n FROM big{} AS big JOIN sums{} AS sums ON big.b = sums.b",
    "SELECT max(n) FROM over_big{}",
    "SELECT b FROM over_big{} WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.b = over_big{}.b)",
)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with opened(tmp_path) as connection:
        connection.execute("CREATE TABLE t (a integer, b text)")
        connection.execute("CREATE TABLE u (b text)")
        connection.execute("INSERT INTO t VALUES (1, 'b1'), (2, 'b2'), (5, 'b2'), (7, NULL)")
        for suffix in ("", "_plain"):
            connection.execute(f"CREATE VIEW sums{suffix} AS {SUMS}")
            connection.execute(f"CREATE VIEW big{suffix} AS SELECT a, b FROM t WHERE a > 2")
            connection.execute(f"CREATE VIEW over_big{suffix} AS SELECT b, count(*) AS n FROM big{suffix} GROUP BY b")
        yield connection


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the collections that were read."""
    found: set[str] = set()
    run = Peeks._run

    def noted(self: Peeks, plan: Any, time: int, rows: Any, given: Any) -> Any:
        found.update(self.engine.names()[row.id] for row in rows)
        return run(self, plan, time, rows, given)

    monkeypatch.setattr(Peeks, "_run", noted)
    return found


def rows(connection: Connection, sql: str) -> Counter[Row]:
    return Counter(connection.execute(sql).fetchall())


@pytest.mark.parametrize("writes", [4, pytest.param(20, marks=pytest.mark.deep)])
def test_queries_read_what_an_index_holds_at_every_time(connection: Connection, read: set[str], writes: int) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    connection.execute("CREATE INDEX big_by_b ON big (b)")
    hydrated = connection.engine.catalog.read_ts("default")
    random, times = Random(3), [hydrated]
    for _ in range(writes):
        a, b = random.randrange(6), random.randrange(3)
        connection.execute(
            random.choice([f"INSERT INTO t VALUES ({a}, 'b{b}')", f"DELETE FROM t WHERE b = 'b{b}'",
                           f"UPDATE t SET a = a + 1 WHERE b = 'b{b}'", f"INSERT INTO u VALUES ('b{b}')"])
        )  # fmt: skip
        for query in QUERIES:
            read.clear()
            found = rows(connection, query.replace("{}", ""))
            assert "t" not in read
            assert read & {"sums_by_b", "big_by_b"}
            assert found == rows(connection, query.replace("{}", "_plain")), query
        times.append(connection.engine.catalog.read_ts("default"))
    for time in times:
        for query in QUERIES:
            now, then = (f"{query.replace('{}', one)} AS OF {time}" for one in ("", "_plain"))
            assert rows(connection, now) == rows(connection, then), (query, time)


def test_the_plan_names_the_index(connection: Connection) -> None:
    explain = "EXPLAIN SELECT n FROM sums WHERE b = 'b1'"
    before = connection.execute(explain).fetchall()
    assert not any("sums_by_b" in line for (line,) in before)
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    assert any("sums_by_b (index of sums)" in line for (line,) in connection.execute(explain))
    connection.execute("DROP INDEX sums_by_b")
    assert connection.execute(explain).fetchall() == before
    assert rows(connection, "SELECT n FROM sums WHERE b = 'b1'") == {(1,): 1}


def test_a_time_before_the_index_was_is_computed(connection: Connection, read: set[str]) -> None:
    time = connection.engine.catalog.read_ts("default")
    connection.execute("DELETE FROM t WHERE b = 'b2'")
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    assert rows(connection, f"SELECT n FROM sums WHERE b = 'b2' AS OF {time}") == {(2,): 1}
    assert read == {"t"}
    assert rows(connection, "SELECT n FROM sums WHERE b = 'b2'") == Counter()
    assert read == {"t", "sums_by_b"}


def test_a_transaction_sees_its_own_writes_through_the_view(connection: Connection) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    connection.execute("BEGIN")
    assert rows(connection, "SELECT n FROM sums WHERE b = 'b1'") == {(1,): 1}
    connection.execute("INSERT INTO t VALUES (3, 'b1')")
    assert rows(connection, "SELECT n FROM sums WHERE b = 'b1'") == {(2,): 1}
    connection.execute("ROLLBACK")
    assert rows(connection, "SELECT n FROM sums WHERE b = 'b1'") == {(1,): 1}


def test_what_a_transaction_creates_is_read_in_it(connection: Connection) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    connection.execute("BEGIN")
    connection.execute("CREATE VIEW of_sums AS SELECT n FROM sums WHERE b = 'b1'")
    assert rows(connection, "SELECT * FROM of_sums") == {(1,): 1}
    connection.execute("COMMIT")
    assert rows(connection, "SELECT * FROM of_sums") == {(1,): 1}


def test_what_is_defined_over_the_view_goes_on_without_its_index(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    connection.execute("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM sums")
    connection.execute("DROP INDEX sums_by_b")
    connection.execute("INSERT INTO t VALUES (1, 'new')")
    with opened(tmp_path) as again:
        assert rows(again, "SELECT * FROM m") == {(4,): 1}


def test_an_error_in_the_index_is_one_of_who_reads_the_view(connection: Connection) -> None:
    connection.execute("CREATE VIEW v AS SELECT a, 10 / a AS q FROM t")
    connection.execute("CREATE INDEX v_by_a ON v (a)")
    connection.execute("INSERT INTO t VALUES (0, 'zero')")
    with pytest.raises(DataError, match="division by zero"):
        connection.execute("SELECT a FROM v WHERE a = 1")
    connection.execute("DELETE FROM t WHERE a = 0")
    assert rows(connection, "SELECT q FROM v WHERE a = 1") == {(10,): 1}


def test_a_view_is_subscribed_to_through_its_index(connection: Connection) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    before = connection.engine.catalog.state().objects("materialized view")
    cursor = connection.cursor().execute("SUBSCRIBE sums")
    assert {row[1:] for row in cursor.fetchmany(100)} == {(1, "b1", 1, 1), (1, "b2", 2, 7), (1, None, 1, 7)}
    assert connection.engine.catalog.state().objects("materialized view") == before
    connection.execute("INSERT INTO t VALUES (3, 'b1')")
    assert {row[1:] for row in cursor.fetchmany(100)} == {(-1, "b1", 1, 1), (1, "b1", 2, 4)}


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        ("b = 'b2'", "t_by_b"),
        ("a = 2 AND b = 'b2'", "t"),
        ("c = 3", "t"),
        ("c = 3 AND d = 1", "t_by_c_d"),
        *(
            pytest.param(*one, marks=pytest.mark.deep)
            for one in (
                ("b IN ('b1', 'b2')", "t_by_b"),
                ("b = 'b1' AND a > 1", "t"),
                ("c = 1 AND b = 'b2'", "t_by_b"),
                ("a = 2", "t"),
            )
        ),
    ],
)
def test_a_large_collection_is_asked_by_the_index_of_its_key(
    connection: Connection, read: set[str], set_budget: SetBudget, asked: str, answers: str
) -> None:
    connection.execute("CREATE TABLE large (a integer, b text, c integer, d integer)")
    connection.execute("INSERT INTO large SELECT g % 5, 'b' || g % 3, g % 4, g % 2 FROM generate_series(1, 200) g")
    query = f"SELECT a, b FROM large WHERE {asked}"
    for name, key in (("t", "a"), ("t_by_b", "b"), ("t_by_c_d", "c, d")):
        connection.execute(f"CREATE INDEX large_{name} ON large ({key})")
    # Its plan reads the table, and it is on something else.
    connection.execute("CREATE VIEW part AS SELECT b, a, d, c FROM large WHERE a > 3")
    connection.execute("CREATE INDEX part_by_c ON part (c)")
    connection.execute("INSERT INTO large VALUES (2, 'b2', 3, 1)")
    connection.execute("DELETE FROM large WHERE a = 1")
    expected = rows(connection, query)
    assert read == {"large"}, "it is small"
    set_budget(small_rows=100)
    read.clear()
    assert rows(connection, query) == expected != Counter()
    assert read == {"large" if answers == "t" else f"large_{answers}"}
    connection.execute("BEGIN")
    connection.execute("DELETE FROM large")
    assert not rows(connection, query), "a block reads what it has written"
    connection.execute("ROLLBACK")


def arrangements(connection: Connection) -> list[str]:
    """Returns the keys of what views keep besides their contents."""
    found = connection.execute("SELECT key FROM mz_internal.mz_arrangement_sizes WHERE type = 'arrangement'")
    return sorted(key for (key,) in found)


def test_views_that_look_up_one_collection_by_one_key_keep_nothing_of_it(connection: Connection) -> None:
    for n, condition in enumerate(("t.a > 1", "t.a < 9")):
        connection.execute(
            f"CREATE MATERIALIZED VIEW joined_{n} AS SELECT t.a, u.b FROM t JOIN u ON t.b = u.b WHERE {condition}"
        )
    connection.execute("INSERT INTO u VALUES ('b1')")
    assert arrangements(connection) == [], "joins look rows up in the collections themselves"
    assert connection.execute("SELECT a FROM joined_0").fetchall() == []
    assert connection.execute("SELECT a FROM joined_1").fetchall() == [(1,)]


def test_groups_are_kept_once_for_views_that_read_them_of_an_indexed_view(connection: Connection) -> None:
    connection.execute("CREATE INDEX sums_by_b ON sums (b)")
    before = arrangements(connection)
    for n in range(2):
        connection.execute(f"CREATE MATERIALIZED VIEW of_sums_{n} AS SELECT b, s + {n} AS s FROM sums")
    assert arrangements(connection) == before, "of views of their own each keeps its groups"
    connection.execute("INSERT INTO t VALUES (10, 'b1')")
    for n in range(2):
        assert connection.execute(f"SELECT s FROM of_sums_{n} WHERE b = 'b1'").fetchall() == [(11 + n,)]
