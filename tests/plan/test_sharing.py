"""A shared subplan is planned, kept and computed once, and kept only where that saves more than it costs."""

import sys
from collections import Counter
from collections.abc import Callable

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.plan import (
    collections_read,
    explain_logical,
    explain_physical,
    lower_to_maintained_plan,
    lower_to_snapshot_plan,
    optimize,
)
from mz_dagster.plan.physical import (
    DeltaJoin,
    MaintainedPlan,
    OperatorKind,
    Physical,
    may_cancel,
    operator_kind,
    physical_inputs,
)
from mz_dagster.plan.relation import Filter, Get, Let, Projection, Relation, Union
from mz_dagster.plan.rewriting import bottom_up, nodes_of
from mz_dagster.plan.transform import demand, push_predicates
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal
from mz_dagster.scalars.types import BOOL, INT4, Column, RelationType
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


def test_projections_over_one_another_are_moved_to_a_narrower_shared_subplan_once() -> None:
    three = RelationType(tuple(Column(name, INT4) for name in "abc"))
    value, shared = Get(GlobalId("u1"), three, "t"), Get(GlobalId("let:1"), three)
    wide = Let(shared.id, value, Projection(Projection(shared, (1, 2)), (1, 0)))
    narrow = Get(shared.id, RelationType(three.columns[1:]))
    assert demand(wide) == Let(shared.id, Projection(value, (1, 2)), Projection(narrow, (1, 0)))


def operators(plan: Physical) -> list[Physical]:
    return [plan, *(below for one in physical_inputs(plan) for below in operators(one))]


def parts(query: str) -> list[list[Physical]]:
    """The operators of both plans of a query: of what is kept and what is shared, too."""
    relation = optimize(bind(query).relation)
    maintained = lower_to_maintained_plan(relation, relation.relation_type.names)
    snapshot = lower_to_snapshot_plan(relation)
    kept, shared = [one.plan for one in maintained.arrangements], [one.plan for one in snapshot.shared]
    return [operators(plan) for plan in (*kept, maintained.output, *shared, snapshot.output)]


@pytest.mark.parametrize(
    "query",
    [
        lambda n: "SELECT " + ", ".join(f"(SELECT count(*) FROM t WHERE b = {i}) AS c{i}" for i in range(n)),
        lambda n: "SELECT t.a, v0.k FROM t " + " ".join(f"LEFT JOIN v AS v{i} ON t.b = v{i}.a" for i in range(n)),
    ],
    ids=["scalar subqueries", "left joins"],
)
def test_what_cancels_is_not_multiplied_by_what_cancels_elsewhere(query: Callable[[int], str]) -> None:
    """Of n scalar subqueries each is a value, a default and the default taken back: 3^n updates for one row."""
    for n in (3, 15):
        for plan in parts(query(n)):
            for one in plan:
                assert not isinstance(one, DeltaJoin) or sum(map(may_cancel, one.inputs)) < 2
    few, more, most = (sum(map(len, parts(query(n)))) for n in (16, 32, 48))
    assert abs((most - more) - (more - few)) < few / 8, "by about as many operators with each"


def test_predicates_enter_shared_subplans_in_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = Counter[int]()

    def plan(lets: int) -> Relation:
        """Returns a chain of shared subplans, each read twice under one predicate."""
        type_ = RelationType((Column("a", INT4),))
        positive = Call("gt_int4", (ColumnRef(0, INT4), Literal(0, INT4)), BOOL)
        reads = [Get(GlobalId(f"{'t' if n == 0 else 'l'}{n}"), type_) for n in range(lets + 1)]
        twice = [Union((Filter(one, (positive,)), Filter(one, (positive,)))) for one in reads]
        body: Relation = twice[-1]
        for n in range(lets, 0, -1):
            body = Let(reads[n].id, twice[n - 1], body)
        return body

    def counted(relation: Relation, rule: Callable[[Relation], Relation]) -> Relation:
        def one(relation: Relation) -> Relation:
            looked_at[lets] += 1
            return rule(relation)

        return bottom_up(relation, one)

    monkeypatch.setattr(sys.modules[push_predicates.__module__], "bottom_up", counted)
    for lets in (5, 10, 20):
        pushed = push_predicates(plan(lets))
        assert sum(isinstance(one, Filter) for one in nodes_of(pushed)) == 2, "only the first reads what is not shared"
    assert looked_at[20] - looked_at[10] == 2 * (looked_at[10] - looked_at[5])


def test_a_query_is_planned_in_pieces_however_deep_it_is() -> None:
    query = "SELECT a, b FROM t"
    for i in range(40):
        query = f"SELECT b AS a, count(*)::integer AS b FROM ({query}) q{i} GROUP BY b"
    snapshot = lower_to_snapshot_plan(optimize(bind(query).relation))
    keyed = [
        sum(operator_kind(one) is OperatorKind.KEYED for one in operators(plan))
        for plan in (*(shared.plan for shared in snapshot.shared), snapshot.output)
    ]
    assert sum(keyed) == 40
    assert max(keyed) <= 5


@pytest.mark.parametrize("groupings", ["ROLLUP (t.a, b)", "CUBE (t.a, b), f", "GROUPING SETS ((b), (b), ())"])
def test_groupings_are_one_state(groupings: str) -> None:
    """Also of what would be kept if several read it."""
    plan = maintained(f"SELECT count(*), sum(v.k) FROM t JOIN v ON t.b = v.a GROUP BY {groupings}")
    (state,) = plan.arrangements
    assert collections_read(state.plan) == {"u1", "u3"}
