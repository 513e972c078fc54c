"""The order in which a join looks up its inputs: by keys, and by sizes where they are known."""

import sys
from collections import Counter

import pytest

from mz_dagster.formalism import GlobalId
from mz_dagster.plan import lower_to_maintained_plan, lower_to_snapshot_plan, optimize
from mz_dagster.plan.lowering import LookupOrders, ordered_by_size, snapshot_ordered_by_size
from mz_dagster.plan.physical import DeltaJoin, Physical, collections_read, physical_inputs
from mz_dagster.plan.relation import Filter, Get, Join, Projection, Relation
from mz_dagster.plan.rewriting import reference
from mz_dagster.scalars.scalar import Call, Literal, Scalar, columns_of
from mz_dagster.scalars.types import BOOL, INT4, Column, RelationType

SIZES = {"customer": 150_000, "orders": 1_500_000, "supplier": 10_000, "nation": 25}


def table(name: str, *columns: str, key: bool = False) -> Get:
    keys = frozenset({frozenset({0})}) if key else frozenset[frozenset[int]]()
    return Get(GlobalId(name), RelationType(tuple(Column(one, INT4, False) for one in columns), keys), name)


CUSTOMER = table("customer", "custkey", "nationkey", key=True)
ORDERS = table("orders", "orderkey", "custkey", key=True)
SUPPLIER = table("supplier", "suppkey", "nationkey", key=True)
NATION = table("nation", "nationkey", "name", key=True)


def joined(inputs: tuple[Relation, ...], *classes: tuple[int, ...]) -> Join:
    columns = RelationType(tuple(column for one in inputs for column in one.relation_type.columns))
    return Join(inputs, tuple(tuple(reference(columns, position) for position in one) for one in classes))


def joins(plan: Physical) -> list[DeltaJoin]:
    found = [plan] if isinstance(plan, DeltaJoin) else []
    return found + [join for one in physical_inputs(plan) for join in joins(one)]


def orders_of(join: DeltaJoin) -> dict[str, list[str]]:
    names = ["".join(collections_read(one)) for one in join.inputs]
    return {names[i]: [names[j] for j in order] for i, order in enumerate(join.orders)}


def test_without_sizes_unique_keys_come_first_and_cross_products_last() -> None:
    other = table("other", "n")
    relation = joined((other, SUPPLIER, CUSTOMER, NATION), (2, 6), (4, 6))
    (join,) = joins(lower_to_maintained_plan(relation, tuple("abcdefg")).output)
    assert orders_of(join)["customer"] == ["nation", "supplier", "other"]


def test_sizes_tell_a_wide_lookup_from_a_narrow_one() -> None:
    """All suppliers of a customer's nation are many; a customer's orders are few, and some do not pass the filter."""
    placed = Filter(ORDERS, (Call("gt_int4", (reference(ORDERS.relation_type, 0), Literal(9, INT4)), BOOL, False),))
    relation = joined((SUPPLIER, CUSTOMER, placed, NATION), (2, 5), (1, 3, 6))
    plan = lower_to_maintained_plan(relation, tuple("abcdefgh")).output
    (before,) = joins(plan)
    assert orders_of(before)["customer"] == ["nation", "supplier", "orders"]
    (join,) = joins(ordered_by_size(plan, SIZES.__getitem__))
    assert orders_of(join)["customer"] == ["nation", "orders", "supplier"]
    assert orders_of(join)["orders"] == ["customer", "nation", "supplier"]


def test_what_equals_a_constant_is_few() -> None:
    """Of orders and customers that are looked up by a row, those are dropped first of which fewer pass."""
    item = table("item", "orderkey", "custkey")
    column = reference(ORDERS.relation_type, 1)
    passing: dict[str, tuple[Relation, Relation]] = {
        "orders": (Filter(ORDERS, (Call("eq_int4", (column, Literal(9, INT4)), BOOL, False),)), CUSTOMER),
        "customer": (ORDERS, Filter(CUSTOMER, (Call("eq_int4", (column, Literal(9, INT4)), BOOL, False),))),
    }
    less = Call("lt_int4", (column, Literal(9, INT4)), BOOL, False)
    sizes = {**SIZES, "item": 6_000_000}
    for few, (orders, customer) in passing.items():
        others = [one if isinstance(one, Filter) else Filter(one, (less,)) for one in (orders, customer)]
        plan = lower_to_maintained_plan(joined((item, *others), (0, 2), (1, 4)), tuple("abcdef")).output
        (join,) = joins(ordered_by_size(plan, sizes.__getitem__))
        assert orders_of(join)["item"][0] == few


def test_a_snapshot_begins_where_the_fewest_rows_come_about() -> None:
    only = Filter(NATION, (Call("eq_int4", (reference(NATION.relation_type, 1), Literal(7, INT4)), BOOL, False),))
    relation = joined((ORDERS, CUSTOMER, only), (1, 2), (3, 4))
    plan = snapshot_ordered_by_size(lower_to_snapshot_plan(relation), SIZES.__getitem__)
    (join,) = joins(plan.output)
    assert join.first == 2
    assert orders_of(join)["nation"] == ["customer", "orders"]


def test_the_size_of_a_shared_subplan_is_estimated() -> None:
    shared = joined((CUSTOMER, NATION), (1, 2))
    pairs = joined((Projection(shared, (0, 1)), Projection(shared, (1, 0)), ORDERS), (0, 3), (5, 1))
    plan = lower_to_snapshot_plan(optimize(pairs))
    assert [one.id for one in plan.shared] == ["shared:1"]
    ordered = snapshot_ordered_by_size(plan, SIZES.__getitem__)
    (inner,), (outer,) = joins(ordered.shared[0].plan), joins(ordered.output)
    assert inner.first == 1
    assert orders_of(outer)["orders"] == ["shared:1", "shared:1"]


@pytest.mark.parametrize("inputs", [4, 40])
def test_ordering_a_join_looks_at_each_scalar_once(inputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many inputs there are to choose from, and in however many terms."""
    seen: Counter[Scalar] = Counter()

    def counted(scalar: Scalar) -> frozenset[int]:
        seen[scalar] += 1
        return columns_of(scalar)

    tables = tuple(table(f"t{n}", "id", "next", key=True) for n in range(inputs))
    relation = joined(tables, *((2 * n + 1, 2 * n + 2) for n in range(inputs - 1)))
    plan = lower_to_maintained_plan(relation, tuple(f"c{n}" for n in range(2 * inputs))).output
    monkeypatch.setattr(sys.modules[LookupOrders.__module__], "columns_of", counted)
    (join,) = joins(ordered_by_size(plan, lambda id: 1000 + int(id[1:])))
    assert len(join.orders) == inputs
    assert seen == {scalar: 1 for one in join.equivalences for scalar in one}


def test_an_order_is_kept_while_sizes_stay_within_a_factor() -> None:
    relation = joined((SUPPLIER, CUSTOMER, ORDERS, NATION), (2, 5), (1, 3, 6))
    plan = lower_to_maintained_plan(relation, tuple("abcdefgh")).output
    orders = LookupOrders()
    view = GlobalId("view")
    first = orders.ordered(view, plan, SIZES.__getitem__)
    assert first == ordered_by_size(plan, SIZES.__getitem__)
    assert orders.ordered(view, plan, (SIZES | {"orders": 2_500_000, "nation": 90}).__getitem__) is first
    fewer = SIZES | {"customer": 20}
    assert orders.ordered(view, plan, fewer.__getitem__) == ordered_by_size(plan, fewer.__getitem__) != first


def test_another_plan_of_a_collection_is_ordered_for_itself() -> None:
    view, orders = GlobalId("view"), LookupOrders()
    for last in (ORDERS, CUSTOMER):
        plan = lower_to_maintained_plan(joined((NATION, last), (0, 3)), tuple("abcd")).output
        assert orders.ordered(view, plan, SIZES.__getitem__) == ordered_by_size(plan, SIZES.__getitem__)
