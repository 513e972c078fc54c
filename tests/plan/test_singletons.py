"""Inputs of a join that have at most one row are joined a few at a time, so that plans do not grow by their square."""

from __future__ import annotations

import random
from collections import Counter

from mz_dagster.formalism import GlobalId
from mz_dagster.plan import optimize
from mz_dagster.plan.physical import DeltaJoin, MaintainedPlan, Physical, physical_inputs
from tests.plan.reference import Rows, maintained_rows, rows_of
from tests.plan.test_sharing import maintained
from tests.sql.project import bind

T = GlobalId("u1")


def joins(plan: Physical) -> list[DeltaJoin]:
    below = [one for each in physical_inputs(plan) for one in joins(each)]
    return [plan, *below] if isinstance(plan, DeltaJoin) else below


def lookups(plan: MaintainedPlan) -> int:
    plans = [*(one.plan for one in plan.arrangements), plan.output]
    return sum(len(order) for one in plans for join in joins(one) for order in join.orders)


def counts(n: int) -> str:
    """Returns subqueries that stay apart: lists are not merged (`merge_totals`)."""
    return ", ".join(f"(SELECT array_agg(a) FROM t WHERE b = {i}) AS c{i}" for i in range(n))


def test_lookups_of_scalar_subqueries_grow_by_as_many_with_each() -> None:
    few, more, most = (lookups(maintained(f"SELECT {counts(n)}")) for n in (16, 32, 48))
    assert most < 4 * 48 + 16, "each in one join of four, and a few above: not 48 * 47"
    assert abs((most - more) - (more - few)) <= 24


def test_four_stay_side_by_side() -> None:
    plan = maintained(f"SELECT {counts(4)}")
    (join,) = [join for one in (*(kept.plan for kept in plan.arrangements), plan.output) for join in joins(one)]
    assert len(join.inputs) == 4


def test_what_is_compared_with_other_inputs_stays_beside_them() -> None:
    """A row of it narrows what is looked up there, which its product with others would not do better."""
    query = f"SELECT t.a, {counts(6)} FROM t WHERE t.b = (SELECT max(b) FROM t)"
    plan = maintained(query)
    (top,) = joins(plan.output)
    assert len(top.equivalences) == 1
    data: list[dict[str, Rows]] = []
    for seed in range(20):
        dice = random.Random(seed)
        rows = ((a, dice.choice([None, 1, 2, 3]), None, None, None, None) for a in range(dice.randrange(9)))
        data.append({T: Counter(rows)})
    expected = [rows_of(optimize(bind(query).relation), one) for one in data]
    assert [maintained_rows(plan, one) for one in data] == expected
    assert sum(map(bool, expected)) > 10
