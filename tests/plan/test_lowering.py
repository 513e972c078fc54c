"""A lowered plan has the rows of the plan it comes from: any operators, any data, once and maintained."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from mz_dagster.budget import Budget, budget_of
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import explain_logical, explain_physical, lower_to_maintained_plan, lower_to_snapshot_plan
from mz_dagster.plan.physical import Physical, physical_inputs
from mz_dagster.plan.relation import Filter, Get, Reduce, Relation, Union
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import BOOL, INT4, Column, RelationType
from tests.plan.random_plans import contents, relations, times
from tests.plan.reference import Rows, Undefined, maintained_rows, rows_of, snapshot_rows

random_plans = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
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
    with budget_of(Budget(planned_operators=2, planned_states=1)):  # so that everything is cut
        assert cleaned(snapshot_rows(lower_to_snapshot_plan(relation), data, now)) == expected
    plan = lower_to_maintained_plan(relation, relation.relation_type.names)
    assert cleaned(maintained_rows(plan, data, now)) == expected
    assert explain_logical(relation)
    assert explain_physical(plan).endswith(f"at most {1 + len(plan.arrangements)}")


def _size(plan: Physical) -> int:
    return 1 + sum(map(_size, physical_inputs(plan)))


def test_what_is_planned_together_is_of_a_bounded_size() -> None:
    """Whatever the size of a query: more operators are cut off in parts, as many as it takes."""
    table = Get(GlobalId("u1"), RelationType((Column("a", INT4),)))
    branches = [
        Reduce(Filter(table, (Call("gt_int4", (ColumnRef(0, INT4), Literal(i, INT4)), BOOL),)), (0,), (), ())
        for i in range(300)
    ]
    nested: Relation = branches[0]
    for one in branches[1:80]:
        nested = Reduce(Union((nested, one)), (0,), (), ())
    with budget_of(Budget(planned_operators=60, planned_states=1_000)):
        for relation in (Union(tuple(branches)), nested):
            plan = lower_to_snapshot_plan(relation)
            sizes = [_size(one) for one in (*(each.plan for each in plan.shared), plan.output)]
            assert max(sizes) <= 70
            assert len(sizes) <= 3 * sum(sizes) // 60
