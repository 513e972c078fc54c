"""A lowered plan has the rows of the plan it comes from: any operators, any data, once and maintained."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from mz_dagster.plan import explain_logical, explain_physical, lower_to_maintained_plan, lower_to_snapshot_plan
from mz_dagster.plan.relation import Relation
from tests.plan.random_plans import contents, relations, times
from tests.plan.reference import Rows, Undefined, maintained_rows, rows_of, snapshot_rows

random_plans = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def cleaned(rows: Rows) -> Rows:
    return Rows({row: n for row, n in rows.items() if n})


def expected_rows(relation: Relation, data: dict[str, Rows], now: int) -> Rows:
    """The rows of a plan, of which none is there too often to write down, and none fewer times than never."""
    try:
        found = cleaned(rows_of(relation, data, now))
    except Undefined:
        assume(False)
    assume(sum(map(abs, found.values())) < 2000)
    return found


@random_plans
@given(relations(), contents, times)
def test_lowering_keeps_every_row(relation: Relation, data: dict[str, Rows], now: int) -> None:
    expected = expected_rows(relation, data, now)
    assert cleaned(snapshot_rows(lower_to_snapshot_plan(relation), data, now)) == expected
    plan = lower_to_maintained_plan(relation, relation.relation_type.names)
    assert cleaned(maintained_rows(plan, data, now)) == expected
    assert explain_logical(relation)
    assert explain_physical(plan).endswith(f"at most {1 + len(plan.arrangements)}")
