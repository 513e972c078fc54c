"""What a statement costs over views that others read twice, many times over: it is linear in the number of views.

There are 2^n ways through n such diamonds. Cost is counted in calls of functions, which is the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import pytest

from mz_dagster.adapter import Connection
from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from tests.growth import calls

VIEWS = {
    "join": "SELECT x.a, y.b FROM {0} x JOIN {0} y ON x.a = y.a",
    "union": "SELECT a, b FROM {0} UNION ALL SELECT b, a FROM {0}",
    "outer join": "SELECT x.a, y.b FROM {0} x LEFT JOIN {0} y ON x.a = y.b AND x.b < y.a",
    "subquery": "SELECT a, (SELECT max(y.b) FROM {0} y WHERE y.a = x.a) AS b FROM {0} x",
    "membership": "SELECT a, b FROM {0} x WHERE a IN (SELECT y.b FROM {0} y WHERE y.a < x.b)",
    "common table": "WITH w AS (SELECT a, count(*)::int AS n FROM {0} GROUP BY a) SELECT w.a, x.b FROM w, {0} x, w v",
}


def exponent(sizes: Sequence[int], costs: list[int]) -> float:
    """Returns the power of the size by which the cost grows: the slope of the line through the logarithms."""
    x, y = [math.log(one) for one in sizes], [math.log(one) for one in costs]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def planned(connection: Connection, view: str) -> None:
    # Its lines are as many as its operators, some of which come only with many views: they are not counted.
    connection.execute(f"EXPLAIN OPTIMIZED PLAN FOR SELECT * FROM {view}")


@pytest.mark.parametrize(
    ("sizes", "most"), [((5, 9, 15), 1.3), pytest.param((12, 20, 32), 1.1, marks=pytest.mark.deep)]
)
@pytest.mark.parametrize(
    "form",
    [pytest.param(one, marks=pytest.mark.deep if one not in ("subquery", "outer join") else ()) for one in VIEWS],
)
def test_a_select_over_diamonds_of_views_costs_as_many_times_as_there_are_views(
    sparkless: Connection, form: str, sizes: tuple[int, ...], most: float
) -> None:
    """Few views are sure to tell a square; by how little their cost may differ from a line is for many."""
    sparkless.execute("CREATE TABLE v0 (a integer, b integer)")
    costs = list[int]()
    for n in range(1, max(sizes) + 1):
        sparkless.execute(f"CREATE VIEW v{n} AS {VIEWS[form].format(f'v{n - 1}')}")
        if n in sizes:
            planned(sparkless, f"v{n}")  # binds the definitions
            costs.append(calls(partial(planned, sparkless, f"v{n}")))
    assert exponent(sizes, costs) <= most, costs


def test_whether_a_view_moves_with_time_is_asked_of_each_of_its_inputs_once(sparkless: Connection) -> None:
    sparkless.execute("CREATE TABLE v0 (a integer, b integer)")
    sizes, costs = [10, 16, 25], list[int]()
    for n in range(1, max(sizes) + 1):
        sparkless.execute(f"CREATE MATERIALIZED VIEW v{n} AS {VIEWS['join'].format(f'v{n - 1}')}")
    engine = sparkless.engine
    for n in sizes:
        definitions = CatalogDefinitions(engine.catalog, engine.project)
        views = [engine.collection_of(f"v{one}") for one in range(n + 1)]
        for one in views:
            definitions.definition(one)
        costs.append(calls(partial(definitions.is_temporal, views[-1])))
    assert exponent(sizes, costs) <= 1.1, costs
