"""The plans of TPC-H's queries: joins that can look rows up do, and views keep as few collections as they need.

What a view keeps decides what a step costs, a write for each; so the numbers are held here, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mz_dagster.adapter.definition import Definable, Definition, define
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import lower_to_snapshot_plan, optimize
from mz_dagster.plan.physical import DeltaJoin, Physical, physical_inputs
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.scalar import columns_of
from mz_dagster.sql import CreateMaterializedView, CreateSource, CreateView, parse

ASSETS = Path(__file__).parent / "project" / "assets"
#: How many arrangements each view has.
KEPT = {
    "q01": 1, "q02": 2, "q03": 2, "q03_now": 4, "q04": 2, "q05": 1, "q06": 1, "q07": 1, "q08": 1, "q09": 1, "q10": 2,
    "q11": 3, "q12": 1, "q13": 3, "q14": 1, "q15": 2, "q16": 3, "q17": 3, "q18": 3, "q19": 1, "q20": 3, "q21": 5,
    "q22": 4,
}  # fmt: skip
#: Those that compare every row with one sum over all of them.
CROSS = {"q11", "q22"}


class Schema:
    """Resolves the eight tables."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        for statement in parse((ASSETS / "sources.sql").read_text(encoding="utf-8")):
            assert isinstance(statement, CreateSource)
            one = self.defined(statement)
            self.items[one.name] = Item(GlobalId(one.name), one.name, "source", one.relation_type, one.timeline)

    def defined(self, statement: Definable) -> Definition:
        return define(statement, self, default_timeline="tpch")

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        return self.items.get(name[-1])

    def names(self) -> tuple[str, ...]:
        return tuple(self.items)


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema()


def is_connected(join: DeltaJoin) -> bool:
    """Whether equivalences lead from each input to each other."""
    owners = [i for i, one in enumerate(join.inputs) for _ in range(one.relation_type.arity)]
    reached = {0}
    for _ in join.inputs:
        for members in join.equivalences:
            inputs = {owners[column] for scalar in members for column in columns_of(scalar)}
            if inputs & reached:
                reached |= inputs
    return len(reached) == len(join.inputs)


def joins(plan: Physical) -> Iterator[DeltaJoin]:
    if isinstance(plan, DeltaJoin):
        yield plan
    for one in physical_inputs(plan):
        yield from joins(one)


@pytest.mark.parametrize("name", KEPT)
def test_a_query_keeps_few_collections_and_joins_by_keys(name: str, schema: Schema) -> None:
    *views, statement = parse((ASSETS / f"{name}.sql").read_text(encoding="utf-8"))
    for view in views:
        assert isinstance(view, CreateView)
        one = schema.defined(view)
        schema.items[one.name] = Item(GlobalId(one.name), one.name, "view", one.relation_type, "tpch", one.relation)
    assert isinstance(statement, CreateMaterializedView)
    found = schema.defined(statement)
    assert found.plan is not None
    assert found.relation is not None
    plans = [*(one.plan for one in found.plan.arrangements), found.plan.output]
    assert len(found.plan.arrangements) == KEPT[name]
    assert all(is_connected(join) for plan in plans for join in joins(plan)) == (name not in CROSS)
    if name != "q03_now":
        once = lower_to_snapshot_plan(optimize(found.relation))
        assert len(once.shared) <= len(found.plan.arrangements)
