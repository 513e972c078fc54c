"""Equal subplans become one, bound by a `Let` outside of all others; what is used once stands where it is used.

    Let a = v in Join(a, Union(v, w))   is   Let l1 = v in Join(l1, Union(l1, w))
    Let a = v in Filter p a             is   Filter p v

Plans are equal if they differ in names only. What passes on rows of collections, or of a shared subplan, one by one is
cheaper computed twice than kept, so it is not bound: `Map`, `Filter`, `Projection`, `Negate` over what is cheap itself.

Each node is looked at once, whatever binds it, and told from others by itself and the numbers of its inputs: the cost
is linear in the size of the plan, in which a shared subplan counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import (
    Constant,
    Filter,
    Get,
    Let,
    Map,
    Negate,
    Projection,
    Relation,
    inputs_of,
)
from mz_dagster.plan.rewriting import nodes_of, with_inputs
from mz_dagster.scalars.scalar import signs_of_zeros
from mz_dagster.scalars.types import RelationType


def share_subplans(relation: Relation) -> Relation:
    """Returns `relation` with each subplan that occurs several times bound once, and nothing else bound."""
    if _is_chain(relation):
        return relation
    found = _Subplans(frozenset(one.id for one in nodes_of(relation) if isinstance(one, Let)))
    root = found.numbered(relation, {})
    return found.bound(root)


def _is_chain(relation: Relation) -> bool:
    """Returns whether no operator has several inputs, so that no subplan can occur twice."""
    while len(inputs := inputs_of(relation)) == 1:
        (relation,) = inputs
    return not inputs


@dataclass(slots=True)
class _Subplans:
    """The distinct nodes of a plan.

    Attributes:
        let_ids: The ids that `Let`s in the plan bind.
        nodes: Each, which may be over others, with the numbers of its inputs, which stand before it.
    """

    let_ids: frozenset[GlobalId]
    nodes: list[tuple[Relation, tuple[int, ...]]] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)
    #: What a relation takes from the `Let`s around it, by its identity.
    _free: dict[int, frozenset[GlobalId]] = field(default_factory=dict)
    #: The number of a relation, by its identity and the numbers of what it takes.
    _numbers: dict[tuple[int, frozenset[tuple[GlobalId, int]]], int] = field(default_factory=dict)

    def numbered(self, relation: Relation, local: Mapping[GlobalId, int]) -> int:
        """Returns the number of `relation`, in which `local` are the numbers of what is bound around it."""
        taken = frozenset((one, local[one]) for one in self._taken(relation) if one in local)
        place = id(relation), taken
        if place not in self._numbers:
            self._numbers[place] = self._numbered(relation, local)
        return self._numbers[place]

    def _taken(self, relation: Relation) -> frozenset[GlobalId]:
        """Returns the ids of `let_ids` that `relation` reads and does not bind itself."""
        if id(relation) not in self._free:
            match relation:
                case Get():
                    free = self.let_ids & {relation.id}
                case Let():
                    free = self._taken(relation.value) | (self._taken(relation.body) - {relation.id})
                case _:
                    free = frozenset().union(*map(self._taken, inputs_of(relation)))
            self._free[id(relation)] = free
        return self._free[id(relation)]

    def _numbered(self, relation: Relation, local: Mapping[GlobalId, int]) -> int:
        if isinstance(relation, Let):
            value = self.numbered(relation.value, local)
            return self.numbered(relation.body, {**local, relation.id: value})
        if isinstance(relation, Get) and relation.id in local:
            return local[relation.id]
        inputs = tuple(self.numbered(one, local) for one in inputs_of(relation))
        identity = _identity(relation, inputs)
        if identity not in self._known:
            self._known[identity] = len(self.nodes)
            self.nodes.append((relation, inputs))
        return self._known[identity]

    def bound(self, root: int) -> Relation:
        """Returns the plan of the node `root`."""
        uses = Counter([root])
        for number in range(root, -1, -1):
            if uses[number]:
                uses.update(self.nodes[number][1])
        cheap: list[bool] = []
        plans: list[Relation] = []
        lets: list[tuple[GlobalId, Relation]] = []
        for number, (node, inputs) in enumerate(self.nodes[: root + 1]):
            plan = with_inputs(node, [plans[one] for one in inputs])
            cheap.append(_passes_on(node) and all(cheap[one] for one in inputs))
            if uses[number] > 1 and not cheap[number]:
                identity = GlobalId(f"l{len(lets) + 1}")
                lets.append((identity, plan))
                plan = Get(identity, plan.relation_type)
                cheap[number] = True
            plans.append(plan)
        body = plans[root]
        for identity, value in reversed(lets):
            body = Let(identity, value, body)
        return body


def _passes_on(node: Relation) -> bool:
    return isinstance(node, Get | Constant | Map | Filter | Projection | Negate)


#: Constants of more rows are told apart by being there, not by their rows: an INSERT may have very many.
_COMPARED_ROWS = 64


def _identity(node: Relation, inputs: tuple[int, ...]) -> object:
    """Returns what is equal for nodes that are, over inputs of these numbers, which say what their columns are.

    Names do not count, but the sign of a zero does.
    """
    if isinstance(node, Constant) and len(node.rows) > _COMPARED_ROWS:
        return id(node)
    kind: Any = type(node)
    own = tuple(_nameless(getattr(node, name)) for name in _own(kind))
    return kind, own, inputs, signs_of_zeros(own)


@cache
def _own(kind: Any) -> tuple[str, ...]:
    """Returns what decides the rows of a class of nodes besides its inputs."""
    return tuple(one.name for one in fields(kind) if one.init and one.name not in _INPUTS_AND_NAMES)


_INPUTS_AND_NAMES = frozenset({"input", "inputs", "left", "right", "name", "names"})


def _nameless(value: object) -> object:
    if isinstance(value, RelationType):
        return tuple((one.type, one.nullable) for one in value.columns), value.keys, value.monotonic
    return value
