"""Columns that nothing reads are dropped as early as possible: reads and joins carry only what is needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from mz_dagster.plan.relation import Constant, Filter, Get, Join, Let, Map, Negate, Project, Relation, Union
from mz_dagster.plan.rewriting import moved, projected_to
from mz_dagster.plan.scalar import Scalar, columns_of


def demand(relation: Relation) -> Relation:
    """Returns `relation` with each operator's inputs narrowed to the columns that are needed above."""
    return _narrowed(relation, frozenset(range(relation.relation_type.arity)))


def _read(scalars: Iterable[Scalar]) -> frozenset[int]:
    return frozenset().union(*(columns_of(one) for one in scalars))


def _narrowed(relation: Relation, needed: frozenset[int]) -> Relation:
    """Returns the columns `needed` of `relation`, in their order."""
    kept = sorted(needed)
    match relation:
        case Get() | Constant():
            return projected_to(relation, kept)
        case Let():
            return projected_to(Let(relation.id, demand(relation.value), demand(relation.body)), kept)
        case Negate():
            return Negate(_narrowed(relation.input, needed))
        case Union():
            return Union(tuple(_narrowed(one, needed) for one in relation.inputs))
        case Project():
            below = frozenset(relation.positions[one] for one in kept)
            places = {old: new for new, old in enumerate(sorted(below))}
            return projected_to(_narrowed(relation.input, below), [places[relation.positions[one]] for one in kept])
        case Filter():
            below = needed | _read(relation.predicates)
            places = {old: new for new, old in enumerate(sorted(below))}
            predicates = tuple(moved(one, places) for one in relation.predicates)
            return projected_to(Filter(_narrowed(relation.input, below), predicates), [places[one] for one in kept])
        case Map():
            return _narrowed_map(relation, kept)
        case Join():
            return _narrowed_join(relation, kept)
        case _:
            assert_never(relation)


def _narrowed_map(relation: Map, kept: list[int]) -> Relation:
    arity = relation.input.relation_type.arity
    needed = set(kept)
    for i in reversed(range(len(relation.scalars))):
        if arity + i in needed:
            needed |= columns_of(relation.scalars[i])
    below = frozenset(one for one in needed if one < arity)
    used = [i for i in range(len(relation.scalars)) if arity + i in needed]
    places = {old: new for new, old in enumerate(sorted(below))}
    places |= {arity + i: len(below) + new for new, i in enumerate(used)}
    narrow = _narrowed(relation.input, below)
    if used:
        scalars = tuple(moved(relation.scalars[i], places) for i in used)
        narrow = Map(narrow, scalars, tuple(relation.names[i] for i in used))
    return projected_to(narrow, [places[one] for one in kept])


def _narrowed_join(relation: Join, kept: list[int]) -> Relation:
    needed = frozenset(kept) | _read(scalar for one in relation.equivalences for scalar in one)
    inputs: list[Relation] = []
    places: dict[int, int] = {}
    for offset, one in zip(relation.offsets, relation.inputs, strict=True):
        columns = frozenset(column for column in range(one.relation_type.arity) if offset + column in needed)
        for column in sorted(columns):
            places[offset + column] = len(places)
        inputs.append(_narrowed(one, columns))
    equivalences = tuple(tuple(moved(scalar, places) for scalar in one) for one in relation.equivalences)
    return projected_to(Join(tuple(inputs), equivalences), [places[one] for one in kept])
