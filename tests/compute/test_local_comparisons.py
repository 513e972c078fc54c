"""Joins of which no equality tells the rows, but a comparison: only what is within is looked up, in this process."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.errors import DataError
from tests.budgets import SetBudget
from tests.sparkless import refused

#: Rows within a distance of the newest event, by a column of each kind and by each side of the comparison.
VIEWS = {
    "day": "SELECT t.k, count(*) AS n FROM t CROSS JOIN (SELECT max(made_at) AS newest FROM t) m "
    "WHERE t.made_at > m.newest - INTERVAL '1 day' GROUP BY t.k",
    "after": "SELECT t.k, t.d FROM t, u WHERE u.d <= t.d",
    "before": "SELECT t.n, u.n AS m FROM t, u WHERE t.n < u.n - 3 AND u.n > 4",
    "two_sides": "SELECT t.n FROM t, u WHERE t.n >= u.n AND t.n <= u.n + 1",
    "divided": "SELECT t.n FROM t, u WHERE t.n >= 12 / u.n",
}


def rows(connection: Connection, query: str) -> Counter[tuple[object, ...]] | None:
    """Returns what a query finds, None if it is an error."""
    try:
        return Counter(connection.execute(query).fetchall())
    except DataError:
        return None


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_views_hold_what_their_queries_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_budget: SetBudget, seed: int
) -> None:
    set_budget(whole_rows=0)
    dice = random.Random(seed)
    asked: list[object] = []
    read_table = StepReads.read_table

    def noted(self: StepReads, *args: Any) -> Any:
        asked.extend(args[5:])
        return read_table(self, *args)

    monkeypatch.setattr(StepReads, "read_table", noted)

    def row() -> str:
        day, number = dice.randrange(1, 9), "NULL" if dice.random() < 0.1 else str(dice.randrange(9))
        moment = "NULL" if dice.random() < 0.1 else f"'2026-01-0{day} {dice.randrange(24)}:00'"
        return f"({dice.randrange(3)}, {moment}, '2026-02-0{day}', {number})"

    with Connection(Engine(Project.load(tmp_path), session=refused), Isolation.STRICT_SERIALIZABLE) as connection:
        connection.execute("CREATE TABLE t (k integer, made_at timestamp, d date, n integer)")
        connection.execute("CREATE TABLE u (k integer, made_at timestamp, d date, n integer)")
        connection.execute(f"INSERT INTO t VALUES {', '.join(row() for _ in range(20))}")
        for name, query in VIEWS.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for number in range(5):
            table = "u" if number % 2 else "t"
            if dice.random() < 0.3:
                connection.execute(f"DELETE FROM {table} WHERE k = {dice.randrange(3)}")
            connection.execute(f"INSERT INTO {table} VALUES {row()}, {row()}")
            for name, query in VIEWS.items():
                assert rows(connection, f"SELECT * FROM {name}") == rows(connection, query), name
    assert any(one is not None for one in asked), "some lookups were within bounds"
    assert any(one is None for one in asked), "and what is divided by zero tells none"
