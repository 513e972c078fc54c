"""What a query joins many of is joined row by row: nothing that cancels out is multiplied by what cancels elsewhere."""

from __future__ import annotations

from decimal import Decimal

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget
from tests.budgets import SetBudget

ROWS = [(number % 100 + 1, Decimal(number), Decimal(2 * number)) for number in range(300)]


def _shown(ranges: int = 5) -> str:
    """TPC-DS's q09: of each of five ranges a count decides which average is shown, by three subqueries."""
    shown = []
    for begin in range(1, 20 * ranges, 20):
        within = f"FROM t WHERE q BETWEEN {begin} AND {begin + 19}"
        shown.append(
            f"CASE WHEN (SELECT count(*) {within}) > {begin} THEN (SELECT avg(a) {within}) "
            f"ELSE (SELECT avg(b) {within}) END AS c{begin}"
        )
    return f"SELECT {', '.join(shown)} FROM r WHERE k = 1"


def _expected(rows: list[tuple[int, Decimal, Decimal]], ranges: int = 5) -> list[tuple[Decimal, ...]]:
    shown = []
    for begin in range(1, 20 * ranges, 20):
        within = [row for row in rows if begin <= row[0] <= begin + 19]
        position = 1 if len(within) > begin else 2
        average = sum((Decimal(row[position]) for row in within), Decimal(0)) / len(within)
        shown.append(average.quantize(Decimal("1e-20")))
    return [tuple(shown)]


def _create(connection: Connection) -> None:
    connection.execute("CREATE TABLE t (q integer, a numeric(10, 2), b numeric(10, 2))")
    connection.execute("CREATE TABLE r (k integer)")
    connection.execute("INSERT INTO r VALUES (1), (2)")
    connection.execute("INSERT INTO t VALUES " + ", ".join(f"({q}, {a}, {b})" for q, a, b in ROWS))


@pytest.mark.deep
def test_fifteen_scalar_subqueries_need_no_spark(sparkless: Connection) -> None:
    """Each is a value, a default and the default taken back: 3^15 updates, were they joined as they are."""
    _create(sparkless)
    assert sparkless.execute(_shown()).fetchall() == _expected(ROWS)
    sparkless.execute(f"CREATE MATERIALIZED VIEW shown AS {_shown()}")
    more = [
        (q, Decimal(1), Decimal(2)) for q in (7, 7, 8, 20, 50, 51, 52, 53)
    ]  # 64 rows of a range have exact averages
    sparkless.execute("INSERT INTO t VALUES " + ", ".join(f"({q}, {a}, {b})" for q, a, b in more))
    assert sparkless.execute("SELECT * FROM shown").fetchall() == _expected([*ROWS, *more])


def test_ten_left_joins_need_no_spark(sparkless: Connection) -> None:
    """Each keeps a row, adds the same with NULLs and takes that back: 3^10 updates of each, were they joined so."""
    joined = " ".join(f"LEFT JOIN d AS d{i} ON f.k = d{i}.id" for i in range(10))
    shown = ", ".join(f"d{i}.name" for i in range(10))
    sparkless.execute("CREATE TABLE f (id integer, k integer)")
    sparkless.execute("CREATE TABLE d (id integer, name text)")
    sparkless.execute("INSERT INTO d VALUES " + ", ".join(f"({i}, 'n{i}')" for i in range(12)))
    sparkless.execute("INSERT INTO f VALUES " + ", ".join(f"({i}, {i % 14})" for i in range(100)))
    found = sparkless.execute(f"SELECT f.id, {shown} FROM f {joined}").fetchall()
    assert sorted(found) == [(i, *[None if i % 14 > 11 else f"n{i % 14}"] * 10) for i in range(100)]


def test_what_was_taken_back_is_not_joined_again(sparkless: Connection, set_budget: SetBudget) -> None:
    """Of three tables one row each, replaced eight times: 17^3 rows, of which one is left."""
    set_budget(joined_rows=1_000)
    tables = [f"n{i}" for i in range(3)]
    for name in tables:
        sparkless.execute(f"CREATE TABLE {name} (k integer)")
        sparkless.execute(f"INSERT INTO {name} VALUES (0)")
        for count in range(1, 9):
            sparkless.execute(f"UPDATE {name} SET k = {count}")
    shown = ", ".join(f"{name}.k AS {name}" for name in tables)
    sparkless.execute(f"CREATE MATERIALIZED VIEW product AS SELECT {shown} FROM {', '.join(tables)}")
    sparkless.execute("UPDATE n0 SET k = 9")
    assert sparkless.execute("SELECT * FROM product").fetchall() == [(9, 8, 8)]


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_spark_computes_scalar_subqueries(connection: Connection, set_budget: SetBudget) -> None:
    """Six, which are joined four at a time; a step of them, too."""
    _create(connection)
    set_budget(Budget.spark_alone())
    connection.execute(f"CREATE MATERIALIZED VIEW shown AS {_shown(2)}")
    assert connection.execute("SELECT * FROM shown").fetchall() == _expected(ROWS, 2)
    more = [(q, Decimal(1), Decimal(2)) for q in (7, 7, 8, 20)]
    connection.execute("INSERT INTO t VALUES " + ", ".join(f"({q}, {a}, {b})" for q, a, b in more))
    assert connection.execute("SELECT * FROM shown").fetchall() == _expected([*ROWS, *more], 2)
    assert connection.execute(_shown(1)).fetchall() == _expected([*ROWS, *more], 1)
