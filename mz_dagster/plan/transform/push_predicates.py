"""Predicates move towards what they read: through maps, projections, unions, and into single inputs of joins.

A predicate that can fail never overtakes one before it that stays behind, and never enters an input of a join:
there it would meet rows that the join drops.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.plan.relation import Filter, Join, Map, Negate, Project, Relation, Union, inputs_of
from mz_dagster.plan.rewriting import can_fail, filtered, moved, shifted, substituted, with_inputs
from mz_dagster.plan.scalar import Scalar, columns_of


def push_predicates(relation: Relation) -> Relation:
    """Returns `relation` with each predicate as far down as it may go."""
    return _pushed(relation, ())


def _pushed(relation: Relation, predicates: Sequence[Scalar]) -> Relation:
    """Returns `Filter predicates relation`, pushed down."""
    match relation:
        case Filter():
            return _pushed(relation.input, (*relation.predicates, *predicates))
        case Project():
            places = dict(enumerate(relation.positions))
            below = _pushed(relation.input, [moved(one, places) for one in predicates])
            return Project(below, relation.positions)
        case Map():
            return _through_map(relation, predicates)
        case Negate() | Union():
            return with_inputs(relation, [_pushed(one, predicates) for one in inputs_of(relation)])
        case Join():
            return _into_join(relation, predicates)
        case _:
            return filtered(with_inputs(relation, [_pushed(one, ()) for one in inputs_of(relation)]), predicates)


def _through_map(relation: Map, predicates: Sequence[Scalar]) -> Relation:
    arity = relation.input.relation_type.arity
    values: dict[int, Scalar] = {}
    for i, scalar in enumerate(relation.scalars):
        inlined = substituted(scalar, values)
        if not can_fail(inlined) and all(position < arity for position in columns_of(inlined)):
            values[arity + i] = inlined
    through: list[Scalar] = []
    stays: list[Scalar] = []
    for predicate in predicates:
        inlined = substituted(predicate, values)
        below = all(position < arity for position in columns_of(inlined))
        if below and not (stays and can_fail(inlined)):
            through.append(inlined)
        else:
            stays.append(predicate)
    return filtered(Map(_pushed(relation.input, through), relation.scalars, relation.names), stays)


def _into_join(relation: Join, predicates: Sequence[Scalar]) -> Relation:
    offsets = relation.offsets
    into: list[list[Scalar]] = [[] for _ in relation.inputs]
    stays: list[Scalar] = []
    for predicate in predicates:
        columns = columns_of(predicate)
        owners = [
            i
            for i, one in enumerate(relation.inputs)
            if columns and columns <= set(range(offsets[i], offsets[i] + one.relation_type.arity))
        ]
        if owners and not can_fail(predicate):
            into[owners[0]].append(shifted(predicate, -offsets[owners[0]]))
        else:
            stays.append(predicate)
    inputs = tuple(_pushed(one, pushed) for one, pushed in zip(relation.inputs, into, strict=True))
    return filtered(Join(inputs, relation.equivalences), stays)
