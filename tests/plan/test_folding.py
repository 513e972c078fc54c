"""Constants are computed when a plan is made, where Python does so exactly; what fails or is long stays as it is.

That the values are PostgreSQL's is held in `tests/compute/test_scalar_against_postgres.py`.
"""

from __future__ import annotations

import pytest

from mz_dagster.plan import optimize
from mz_dagster.plan.relation import Constant
from tests.sql.project import bind

FOLDED = {
    "7 / 2 + 1": 4,
    "upper('x' || 'y')": "XY",
    "'abc' LIKE 'a%'": True,
    "coalesce(NULL, 2)": 2,
    "(DATE '2024-03-01' - 1)::text": "2024-02-29",
    "round(2.5) = 3 AND 1.5::int = 2": True,
    "(1 = 2) IS NOT TRUE": True,
    "'12'::int + length('ab')": 14,
    "CASE WHEN 1 > 2 THEN 1 / 0 ELSE 5 END": 5,
}


@pytest.mark.parametrize("text", FOLDED)
def test_what_is_known_is_a_constant(text: str) -> None:
    plan = optimize(bind(f"SELECT {text} AS v").relation)
    assert isinstance(plan, Constant), plan
    assert [[cell.value for cell in row] for row in plan.rows] == [[FOLDED[text]]]


@pytest.mark.parametrize("text", ["1 / 0", "('x' || 'y')::int", "repeat('x', 1000000)"])
def test_what_fails_or_is_long_is_not(text: str) -> None:
    assert not isinstance(optimize(bind(f"SELECT {text} AS v").relation), Constant)
