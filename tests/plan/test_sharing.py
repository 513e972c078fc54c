"""A shared subplan is planned, kept and computed once, and kept only where that saves more than it costs."""

import pytest

from mz_dagster.plan import (
    collections_read,
    explain_logical,
    explain_physical,
    lower_to_maintained_plan,
    lower_to_snapshot_plan,
    optimize,
)
from mz_dagster.plan.physical import DeltaJoin, MaintainedPlan, Physical, physical_inputs
from tests.sql.project import bind

#: A join that is used more than once.
PAIRS = "WITH q AS (SELECT t.a, t.b, v.k FROM t JOIN v ON t.b = v.a)"


def maintained(query: str) -> MaintainedPlan:
    relation = bind(query).relation
    return lower_to_maintained_plan(optimize(relation), relation.relation_type.names)


def joins(plan: Physical) -> int:
    return isinstance(plan, DeltaJoin) + sum(joins(one) for one in physical_inputs(plan))


def size(joined: int) -> tuple[int, int, int]:
    """The lines of the plans of so many full joins above one another, and the most of one collection's plan."""
    query = "SELECT count(*) AS n FROM t " + " ".join(f"FULL JOIN v v{i} ON t.b = v{i}.a" for i in range(joined))
    logical = optimize(bind(query).relation)
    plan = lower_to_maintained_plan(logical, ("n",))
    snapshot = lower_to_snapshot_plan(logical)
    lines = len(explain_logical(logical).splitlines()), len(explain_physical(plan).splitlines())
    return *lines, max(joins(one.plan) for one in snapshot.shared)


def test_plans_of_full_joins_grow_by_as_much_with_each() -> None:
    """Written out, sides that each join has thrice would grow by a factor."""
    (one, two, most), (three, four, still) = size(6), size(12)
    assert (three - one, four - two) == (2 * (one - size(3)[0]), 2 * (two - size(3)[1]))
    assert most == still == 3


def test_what_several_collections_read_is_an_arrangement() -> None:
    plan = maintained(f"{PAIRS} SELECT a, count(*) AS n FROM q GROUP BY a UNION ALL SELECT k, max(b) FROM q GROUP BY k")
    shared, *others = plan.arrangements
    assert joins(shared.plan) == 1
    assert [collections_read(one.plan) for one in others] == [{shared.id}, {shared.id}]


def test_what_a_join_looks_up_is_an_arrangement_by_its_key() -> None:
    plan = maintained(f"{PAIRS} SELECT x.a, y.k FROM q x JOIN q y ON x.k = y.b")
    (shared,) = plan.arrangements
    assert [shared.relation_type.names[position] for position in shared.key] in (["k"], ["b"])
    assert collections_read(plan.output) == {shared.id}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.a, v.a FROM t LEFT JOIN v ON t.b = v.k",  # the join itself tells which rows have a partner
        f"{PAIRS} SELECT a FROM q UNION ALL SELECT k FROM q",
    ],
)
def test_what_one_collection_passes_on_is_computed_in_it(query: str) -> None:
    plan = maintained(query)
    assert plan.arrangements == ()
    assert joins(plan.output) == 2  # equal ones, which the renderer computes once


def test_what_is_linear_over_collections_is_not_kept() -> None:
    plan = maintained("WITH q AS (SELECT a, b FROM t WHERE f UNION ALL SELECT k, a FROM v) SELECT * FROM q x, q y")
    assert plan.arrangements == ()


def test_equal_subqueries_are_one_whatever_their_names() -> None:
    sums = "(SELECT b AS {0}, sum(a) AS s FROM t JOIN v USING (a) GROUP BY b)"
    plan = maintained(f"SELECT x.s, y.s FROM {sums.format('p')} x JOIN {sums.format('q')} y ON x.p < y.q")
    assert len(plan.arrangements) == 1
