"""Transforms keep every row of random plans: all of them in their order, and each alone."""

from __future__ import annotations

from hypothesis import given, settings

from mz_dagster.plan import PIPELINE, lower_to_maintained_plan, optimize
from mz_dagster.plan.relation import Relation
from tests.plan.random_plans import contents, relations, times
from tests.plan.reference import Rows, maintained_rows, rows_of
from tests.plan.test_lowering import cleaned, expected_rows, random_plans


@settings(random_plans)
@given(relations(), contents, times)
def test_transforms_keep_every_row(relation: Relation, data: dict[str, Rows], now: int) -> None:
    expected = expected_rows(relation, data, now)
    optimized = optimize(relation)
    assert cleaned(rows_of(optimized, data, now)) == expected
    plan = lower_to_maintained_plan(optimized, relation.relation_type.names)
    assert cleaned(maintained_rows(plan, data, now)) == expected
    for name, one in {one.name: one for one in PIPELINE}.items():
        after = one.run(relation)
        if after != relation:
            assert cleaned(rows_of(after, data, now)) == expected, name
