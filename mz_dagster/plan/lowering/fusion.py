"""Runs of linear operators become one `MapFilterProject`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.plan.bounding import leading_bounds
from mz_dagster.plan.physical import Linear, MapFilterProject, Physical, ReadCollection
from mz_dagster.plan.relation import Filter, Map, Projection, Relation
from mz_dagster.plan.rewriting import moved
from mz_dagster.scalars.scalar import ColumnRef, Scalar, columns_of
from mz_dagster.scalars.types import RelationType


def fused(relation: Relation) -> tuple[Relation, MapFilterProject]:
    """Returns the operator below the run of maps, filters and projections on top of `relation`, and the run."""
    run: list[Map | Filter | Projection] = []
    while isinstance(relation, Map | Filter | Projection):
        run.append(relation)
        relation = relation.input
    arity = relation.relation_type.arity
    steps: list[tuple[str, Scalar]] = []
    places = list(range(arity))
    width = arity
    for one in reversed(run):
        match one:
            case Projection():
                places = [places[position] for position in one.positions]
            case Filter():
                steps += [("filter", moved(predicate, dict(enumerate(places)))) for predicate in one.predicates]
            case Map():
                for scalar in one.scalars:
                    steps.append(("map", moved(scalar, dict(enumerate(places)))))
                    places.append(width)
                    width += 1
    return relation, MapFilterProject(arity, tuple(steps), tuple(places))


def linear_over(below: Physical, mfp: MapFilterProject, relation_type: RelationType) -> Physical:
    """Returns `mfp` over `below`, as one operator with what is linear at the top of `below`."""
    if mfp.is_identity:
        return below
    if isinstance(below, Linear):
        return linear_over(below.input, _composed(below.mfp, mfp), relation_type)
    if isinstance(below, ReadCollection):
        below = replace(below, where=leading_bounds(mfp.steps, mfp.arity))
    return Linear(below, mfp, relation_type)


def selected(
    below: Physical, filters: Sequence[Scalar], scalars: Sequence[Scalar], relation_type: RelationType
) -> Physical:
    """Returns the values of `scalars` of the rows that pass `filters`, both over the columns of `below`."""
    arity = below.relation_type.arity
    steps = [("filter", one) for one in filters]
    positions: list[int] = []
    places: dict[Scalar, int] = {}
    for one in scalars:
        if isinstance(one, ColumnRef):
            positions.append(one.position)
            continue
        if one not in places:
            places[one] = arity + len(places)
            steps.append(("map", one))
        positions.append(places[one])
    return linear_over(below, MapFilterProject(arity, tuple(steps), tuple(positions)), relation_type)


def _composed(first: MapFilterProject, second: MapFilterProject) -> MapFilterProject:
    """Returns the one that does `first`, then `second`, without the values that only `second` leaves out."""
    places = list(first.projection)
    width = first.arity + sum(kind == "map" for kind, _ in first.steps)
    steps = list(first.steps)
    for kind, scalar in second.steps:
        steps.append((kind, moved(scalar, dict(enumerate(places)))))
        if kind == "map":
            places.append(width)
            width += 1
    return _read(MapFilterProject(first.arity, tuple(steps), tuple(places[position] for position in second.projection)))


def _read(mfp: MapFilterProject) -> MapFilterProject:
    """Returns `mfp` without the values that nothing in it reads."""
    needed = set(mfp.projection)
    kept: list[tuple[int | None, str, Scalar]] = []
    position = mfp.arity + sum(kind == "map" for kind, _ in mfp.steps)
    for kind, scalar in reversed(mfp.steps):
        if kind == "map":
            position -= 1
            if position not in needed:
                continue
        needed |= columns_of(scalar)
        kept.append((position if kind == "map" else None, kind, scalar))
    places = dict(enumerate(range(mfp.arity)))
    steps: list[tuple[str, Scalar]] = []
    for own, kind, scalar in reversed(kept):
        steps.append((kind, moved(scalar, places)))
        if own is not None:
            places[own] = len(places)
    return MapFilterProject(mfp.arity, tuple(steps), tuple(places[one] for one in mfp.projection))
