"""The logical plan becomes the physical one.

Owns how maps, filters and projections fuse into one `MapFilterProject`, in which order a delta join looks up its
inputs, and what must be kept as an arrangement: the history of a join's input must be readable from shards, so an
input that contains a join itself becomes a collection of its own, `arrangement:N`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Arrangement,
    ConstantRows,
    DeltaJoin,
    Linear,
    MaintainedPlan,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    UnionAll,
    physical_inputs,
)
from mz_dagster.plan.relation import Constant, Filter, Get, Join, Let, Map, Negate, Project, Relation, Union
from mz_dagster.plan.rewriting import moved
from mz_dagster.plan.scalar import ColumnRef, Scalar, columns_of
from mz_dagster.plan.types import RelationType


def lower_to_maintained_plan(relation: Relation, names: tuple[str, ...]) -> MaintainedPlan:
    """Returns the plan by which `relation` is maintained, with output columns called `names`.

    Precondition: `relation` has no `Let`; `optimize` sees to that.

    Cost: an arrangement costs one more write per step in which it changes.
    """
    lowering = _Lowering(arranges=True)
    output = lowering.lowered(relation)
    return MaintainedPlan(tuple(lowering.arrangements), output, relation.relation_type.with_names(names))


def lower_to_snapshot_plan(relation: Relation) -> Physical:
    """Returns the plan by which `relation` is computed once, at one time: joins may stand below joins."""
    return _Lowering(arranges=False).lowered(relation)


@dataclass(slots=True)
class _Lowering:
    arranges: bool
    arrangements: list[Arrangement] = field(default_factory=list)

    def lowered(self, relation: Relation) -> Physical:
        """Returns the physical plan of `relation`."""
        base, mfp = _fused(relation)
        below = self._operator(base)
        return below if mfp.is_identity else Linear(below, mfp, relation.relation_type)

    def _operator(self, relation: Relation) -> Physical:
        match relation:
            case Get():
                return ReadCollection(relation.id, relation.relation_type, relation.name)
            case Constant():
                return ConstantRows(relation.rows, relation.relation_type)
            case Negate():
                return NegateAll(self.lowered(relation.input), relation.relation_type)
            case Union():
                return UnionAll(tuple(self.lowered(one) for one in relation.inputs), relation.relation_type)
            case Join():
                return self._join(relation)
            case Map() | Filter() | Project() | Let():
                raise InternalError(f"{type(relation).__name__} cannot be lowered by itself")
            case _:
                assert_never(relation)

    def _join(self, relation: Join) -> Physical:
        inputs = [self.lowered(one) for one in relation.inputs]
        if self.arranges:
            inputs = [self._arranged(relation, i, one) if _has_join(one) else one for i, one in enumerate(inputs)]
        orders = tuple(lookup_order(relation, i) for i in range(len(inputs)))
        return DeltaJoin(tuple(inputs), relation.equivalences, orders, relation.relation_type)

    def _arranged(self, join: Join, index: int, plan: Physical) -> ReadCollection:
        identity = GlobalId(f"arrangement:{len(self.arrangements) + 1}")
        relation_type = _with_unique_names(join.inputs[index].relation_type)
        offset = join.offsets[index]
        key = sorted(
            {
                scalar.position - offset
                for one in join.equivalences
                for scalar in one
                if isinstance(scalar, ColumnRef) and 0 <= scalar.position - offset < relation_type.arity
            }
        )
        self.arrangements.append(Arrangement(identity, plan, relation_type, tuple(key) or default_key(relation_type)))
        return ReadCollection(identity, relation_type, str(identity))


def default_key(relation_type: RelationType) -> tuple[int, ...]:
    """Returns the key of an arrangement that names none: the smallest unique key, else all columns."""
    keys = sorted((len(key), sorted(key)) for key in relation_type.keys if key)
    return tuple(keys[0][1]) if keys else tuple(range(relation_type.arity))


def lookup_order(join: Join, first: int) -> tuple[int, ...]:
    """Returns the order in which the term of input `first` looks up the others.

    Next is an input whose unique key is bound by what is already there, then one that is connected by an equivalence,
    and only then one that is not: a cross product. Ties go to the leftmost.
    """
    bound = _columns(join, first)
    order: list[int] = []
    rest = [i for i in range(len(join.inputs)) if i != first]
    while rest:
        chosen = min(rest, key=lambda i: (_rank(join, i, bound), i))
        order.append(chosen)
        rest.remove(chosen)
        bound |= _columns(join, chosen)
    return tuple(order)


def _columns(join: Join, index: int) -> set[int]:
    offset = join.offsets[index]
    return set(range(offset, offset + join.inputs[index].relation_type.arity))


def _rank(join: Join, index: int, bound: set[int]) -> int:
    own = _columns(join, index)
    connected: list[Scalar] = []
    for one in join.equivalences:
        if any(columns_of(scalar) <= bound for scalar in one):
            connected += [scalar for scalar in one if columns_of(scalar) <= own]
    positions = {scalar.position - join.offsets[index] for scalar in connected if isinstance(scalar, ColumnRef)}
    if any(key <= positions for key in join.inputs[index].relation_type.keys):
        return 0
    return 1 if connected else 2


def _has_join(plan: Physical) -> bool:
    return isinstance(plan, DeltaJoin) or any(_has_join(one) for one in physical_inputs(plan))


def _with_unique_names(relation_type: RelationType) -> RelationType:
    """Returns the type with names that a shard can have: unique, and none of its own."""
    names: list[str] = []
    for i, name in enumerate(relation_type.names):
        unusable = relation_type.names.count(name) > 1 or name.startswith("mz_") or not name.isidentifier()
        names.append(f"c{i}" if unusable else name)
    if len(set(names)) != len(names):
        names = [f"c{i}" for i in range(relation_type.arity)]
    return relation_type.with_names(tuple(names))


def _fused(relation: Relation) -> tuple[Relation, MapFilterProject]:
    """Returns the operator below the run of maps, filters and projections on top of `relation`, and the run."""
    run: list[Map | Filter | Project] = []
    while isinstance(relation, Map | Filter | Project):
        run.append(relation)
        relation = relation.input
    arity = relation.relation_type.arity
    steps: list[tuple[str, Scalar]] = []
    places = list(range(arity))
    width = arity
    for one in reversed(run):
        match one:
            case Project():
                places = [places[position] for position in one.positions]
            case Filter():
                steps += [("filter", moved(predicate, dict(enumerate(places)))) for predicate in one.predicates]
            case Map():
                for scalar in one.scalars:
                    steps.append(("map", moved(scalar, dict(enumerate(places)))))
                    places.append(width)
                    width += 1
    return relation, MapFilterProject(arity, tuple(steps), tuple(places))
