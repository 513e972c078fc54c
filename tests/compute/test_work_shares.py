"""Who computes what in a step that workers share: objects as wholes, where they were, and evenly."""

from __future__ import annotations

import random
from collections import Counter

from mz_dagster.compute import MaintainedNode, Node, TableNode
from mz_dagster.compute.step.work_shares import STEPPER, Unit, WorkShares, units_of
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ReadCollection
from mz_dagster.scalars.types import INT4, Column, RelationType

ROW = RelationType((Column("a", INT4),))


def node(id: str, reads: str, owner: str | None = None, *more: str) -> MaintainedNode:
    """Returns a collection that reads another, and depends on some more."""
    plan = ReadCollection(GlobalId(reads), ROW)
    named = frozenset(map(GlobalId, more))
    return MaintainedNode(GlobalId(id), id, plan, named, owner=None if owner is None else GlobalId(owner))


def described(units: list[Unit]) -> list[tuple[str, list[str], bool]]:
    return [(str(unit.id), [one.name for one in unit.nodes], unit.is_shared) for unit in units]


def test_an_object_and_its_arrangements_are_one_unit() -> None:
    nodes = [node("x1", "t", "x"), node("y1", "t", "y"), node("x", "x1"), node("y", "y1", None, "x")]
    units = units_of(nodes, lambda _: True)
    assert described(units) == [("x", ["x1", "x"], True), ("y", ["y1", "y"], True)]
    assert [unit.inputs for unit in units] == [{"t"}, {"t", "x"}]


def test_what_others_read_or_no_worker_may_compute_is_units_of_their_own() -> None:
    nodes: list[Node] = [node("x1", "t", "x"), node("y", "x1"), node("x", "y", None, "x1"), node("z", "t")]
    units = units_of(nodes, lambda one: one.id != "z")
    assert described(units) == [("x1", ["x1"], False), ("y", ["y"], True), ("x", ["x"], False), ("z", ["z"], False)]


def test_everything_is_dealt_once_its_inputs_are_done() -> None:
    """Whatever there is, wherever it was before, whenever workers join, and in whatever order places are done."""
    for seed in range(200):
        dice = random.Random(seed)
        nodes: list[Node] = []
        for n in range(dice.randrange(1, 25)):
            read = dice.choice(nodes).id if nodes and dice.random() < 0.7 else GlobalId("t")
            owner = dice.choice([None, None, f"v{dice.randrange(4)}"])
            nodes.append(node(f"c{n}", read, owner))
        units = units_of(nodes, lambda one, dice=dice: dice.random() < 0.8)  # type: ignore[misc]
        workers = range(1, dice.randrange(1, 4))
        kept = {unit.id: dice.randrange(5) for unit in units if dice.random() < 0.5}
        shares = WorkShares(units, kept)
        done, running, joined = set[str](), list[tuple[Unit, int]](), list[int]()
        while len(done) < len(nodes):
            joined = [one for one in workers if one in joined or dice.random() < 0.3]
            shares.join(joined)
            for place in (STEPPER, *joined):
                while (unit := shares.take(place)) is not None:
                    assert unit.is_shared or place == STEPPER
                    assert {str(one) for one in unit.inputs} <= done | {"t"}
                    running.append((unit, place))
            assert running, "nothing is left to wait for"
            unit, place = running.pop(dice.randrange(len(running)))
            shares.done(unit, place)
            assert not done & {one.name for one in unit.nodes}
            done |= {one.name for one in unit.nodes}


def test_shares_grow_even() -> None:
    """Of a hundred units that one worker had, another and the stepper take over what they have time for."""
    nodes: list[Node] = [TableNode(GlobalId("t"), "t"), *(node(f"v{n}", "t") for n in range(100))]
    kept: dict[GlobalId, int] = {GlobalId(f"v{n}"): 1 for n in range(100)}
    for _ in range(2):
        shares = WorkShares(units_of(nodes[1:], lambda _: True), kept)
        shares.join([1, 2])
        computed = Counter[int]()
        while True:
            taken = [(unit, place) for place in (STEPPER, 1, 2) if (unit := shares.take(place)) is not None]
            for unit, place in taken:
                shares.done(unit, place)
                computed[place] += 1
            if not taken:
                break
        assert computed.total() == 100
        assert max(computed.values()) <= 35
    assert Counter(kept.values()) == computed
