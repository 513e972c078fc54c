"""Optimized plans of joins and subqueries have the rows of the plans that were bound, evaluated beside each other.

The plans that are bound are held to PostgreSQL in `test_joins_against_postgres.py`. Errors are another matter: a
transform may move one; where either plan has an error, the rows are not compared. What the optimized plan must not do
is to be an error where a query without anything that can fail is none.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from mz_dagster.errors import Error
from mz_dagster.plan import optimize
from mz_dagster.plan.relation import Relation
from tests.plan.reference import Rows
from tests.sql.evaluation import Failed, rows_of
from tests.sql.join_queries import combinations, queries
from tests.sql.test_joins_against_postgres import Data, bound, random_data


def answer(relation: Relation, data: Data) -> Rows | None:
    """Returns the rows, or None for an error of the data."""
    collections: dict[str, Rows] = {f"u_{name}": Counter(rows) for name, rows in data.items()}
    try:
        found = rows_of(relation, collections)
    except Failed:
        return None
    return Counter({row: n for row, n in found.items() if n})


def check(seed: int, wanted: int) -> None:
    asked = [query for query, _ in queries(seed, wanted)]
    compared = 0
    for number, query in enumerate(random.Random(seed).sample(asked, min(wanted, len(asked)))):
        plan = bound(query)
        if isinstance(plan, Error):
            continue
        optimized = optimize(plan.relation)
        for data in (random_data(seed + number), random_data(seed + number + 1000)):
            expected, found = answer(plan.relation, data), answer(optimized, data)
            assert expected is None or found is not None or "/" in query, f"an error is new: {query}"
            if expected is not None and found is not None:
                assert found == expected, query
                compared += 1
    assert compared > wanted, "most queries say nothing"


@pytest.mark.parametrize("wanted", [70, pytest.param(120, marks=pytest.mark.deep)])
def test_optimized_queries_have_the_rows_that_were_bound(wanted: int) -> None:
    check(1, wanted)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_optimized_queries_have_the_rows_that_were_bound(seed: int) -> None:
    check(seed, combinations())
