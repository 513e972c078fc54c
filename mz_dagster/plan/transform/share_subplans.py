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
from dataclasses import dataclass, field, replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import (
    Constant,
    Filter,
    Get,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    Window,
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
        nodes: Each over `Get`s of the numbers of its inputs, which stand before it.
    """

    let_ids: frozenset[GlobalId]
    nodes: list[Relation] = field(default_factory=list)
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
        inputs = [self.numbered(one, local) for one in inputs_of(relation)]
        node = with_inputs(relation, [Get(_place(one), self.nodes[one].relation_type) for one in inputs])
        identity = _identity(node)
        if identity not in self._known:
            self._known[identity] = len(self.nodes)
            self.nodes.append(node)
        return self._known[identity]

    def bound(self, root: int) -> Relation:
        """Returns the plan of the node `root`."""
        inputs = [[] if isinstance(one, Get) else [_number(get) for get in inputs_of(one)] for one in self.nodes]
        uses = Counter([root])
        for number in range(root, -1, -1):
            if uses[number]:
                uses.update(inputs[number])
        cheap: list[bool] = []
        plans: list[Relation] = []
        lets: list[tuple[GlobalId, Relation]] = []
        for number, node in enumerate(self.nodes[: root + 1]):
            plan = node if isinstance(node, Get) else with_inputs(node, [plans[one] for one in inputs[number]])
            cheap.append(_passes_on(node) and all(cheap[one] for one in inputs[number]))
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


def _place(number: int) -> GlobalId:
    return GlobalId(f"node:{number}")


def _number(node: Relation) -> int:
    assert isinstance(node, Get)
    return int(node.id.removeprefix("node:"))


#: Constants of more rows are told apart by being there, not by their rows: an INSERT may have very many.
_COMPARED_ROWS = 64


def _identity(node: Relation) -> object:
    """Returns what is equal for nodes that are: names do not count, but the sign of a zero does."""
    if isinstance(node, Constant) and len(node.rows) > _COMPARED_ROWS:
        return id(node)
    nameless = _nameless(node)
    return nameless, signs_of_zeros(nameless)


def _nameless(node: Relation) -> Relation:
    match node:
        case Get():
            return Get(node.id, _nameless_type(node.relation_type))
        case Constant():
            return Constant(node.rows, _nameless_type(node.relation_type))
        case Map() | Reduce() | Window():
            named = with_inputs(node, [_nameless(one) for one in inputs_of(node)])
            assert isinstance(named, Map | Reduce | Window)
            return replace(named, names=("",) * len(node.names))
        case _:
            return with_inputs(node, [_nameless(one) for one in inputs_of(node)])


def _nameless_type(relation_type: RelationType) -> RelationType:
    return relation_type.with_names(("",) * relation_type.arity)
