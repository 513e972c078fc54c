"""A query with a limit and the view of it hand out the same rows: ties of their order are broken alike."""

from __future__ import annotations

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.budget import Budget
from tests.budgets import SetBudget

#: Of each kind values whose order is not that of their spelling, or of Python's.
VALUES = {
    "text": ("b", "B", "é", "", "a\t", None),
    "char(3)": ("a", "a\t", "b", "", "a b", None),
    "double precision": ("-0", "0", "NaN", "-Infinity", "1", None),
    "interval": ("1 mon", "30 days", "720:00", "-1 day", "1 year", None),
    "jsonb": ("1.0", "1", '"a"', "[]", "null", None),
    "bytea": (r"\xff", r"\x00", r"\x", r"\x7f", r"\x80", None),
    "uuid": (*(f"{one}0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11" for one in "f09aA"), None),
    "boolean": ("true", "false", None, "true", "false", None),
    "numeric(38,2)": ("10", "9", "-1", "0", "0.5", None),
    "time": ("10:00", "09:00", "23:59:59.999999", "00:00", "12:00", None),
    "timestamptz": ("2020-01-01 00:00+02", "2020-01-01 00:00+01", "2019-12-31", "1960-01-01", "2020-01-01", None),
    "integer[]": ("{}", "{1,NULL}", "{1,2}", "{NULL}", "{1}", None),
    "text[]": ("{b}", "{B}", "{é}", '{"",a}', "{NULL,a}", None),
}
SHAPES = {
    "first": "SELECT {0} FROM ties ORDER BY k LIMIT 3",
    "middle": "SELECT {0}, k FROM ties ORDER BY k DESC LIMIT 3 OFFSET 2",
    "hidden": "SELECT {0} FROM ties ORDER BY k > 9 OFFSET 4",
    "none": "SELECT {0} FROM ties LIMIT 4",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("budget", [Budget(), pytest.param(Budget(evaluated_updates=0), marks=pytest.mark.deep)])
def test_a_query_and_the_view_of_it_break_ties_alike(
    connection: Connection, set_budget: SetBudget, budget: Budget
) -> None:
    set_budget(budget)
    columns = {f"c{i}": type_ for i, type_ in enumerate(VALUES)}
    listed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
    connection.execute(f"CREATE TABLE ties (k integer, {listed})")
    queries: dict[str, str] = {}
    for number, name in enumerate(columns):
        shape = list(SHAPES)[number % len(SHAPES)]
        queries[f"{shape}_of_{name}"] = SHAPES[shape].format(name)
    queries["record"] = "SELECT ROW(c0, c5) AS r FROM ties ORDER BY k LIMIT 3"
    for view, query in queries.items():
        connection.execute(f"CREATE MATERIALIZED VIEW {view} AS {query}")
    rows = list(zip(*VALUES.values(), strict=True))
    for row in (*rows, *rows[:2]):
        connection.execute(f"INSERT INTO ties VALUES (1, {', '.join('?' * len(row))})", row)
    for view, query in queries.items():
        held = connection.execute(f"SELECT * FROM {view}").fetchall()
        asked = connection.execute(query).fetchall()
        assert sorted(map(repr, held)) == sorted(map(repr, asked)), f"{query}: {held} is not {asked}"
