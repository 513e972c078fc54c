"""Columns that nobody reads ask nothing: subqueries in them are taken away, with their errors, before they are planned.

Invariant: what is read of a plan is what it was.
"""

from __future__ import annotations

from collections.abc import Collection

from mz_dagster.plan.relation import DependentJoin, Filter, Join, Let, Map, Project, Reduce, Relation, inputs_of
from mz_dagster.plan.rewriting import scalars_of, with_inputs
from mz_dagster.scalars.scalar import Literal, Scalar, Subquery, columns_of, walk


def without_unread(relation: Relation) -> Relation:
    """Returns a plan with NULL for the subqueries in columns that are not read within it; all of its own are.

    Example:
        >>> from mz_dagster.plan.semijoin import ONE_ROW
        >>> from mz_dagster.scalars.scalar import SubqueryKind
        >>> from mz_dagster.scalars.types import INT4
        >>> one = Map(ONE_ROW, (Literal(1, INT4),), ("one",))
        >>> both = Map(one, (Subquery(SubqueryKind.SCALAR, one),), ("asked",))
        >>> without_unread(both) == both, [one.value for one in without_unread(Project(both, (0,))).input.scalars]
        (True, [None])
    """
    return _read(relation, range(relation.relation_type.arity))


def _read(relation: Relation, read: Collection[int]) -> Relation:
    """Returns `relation`, of which the columns `read` are."""
    match relation:
        case Project():
            return with_inputs(relation, [_read(relation.input, {relation.positions[one] for one in read})])
        case Filter():
            return with_inputs(relation, [_read(relation.input, {*read, *_columns(relation.predicates)})])
        case Map():
            return _read_map(relation, read)
        case Join() | DependentJoin():
            return _read_join(relation, {*read, *_columns(scalars_of(relation))})
        case Reduce():
            places = {*relation.key, *(place for one in relation.aggregates for place in one.positions)}
            return with_inputs(relation, [_read(relation.input, places)])
        case Let():
            return with_inputs(relation, [without_unread(relation.value), _read(relation.body, read)])
        case _:
            return with_inputs(relation, [without_unread(one) for one in inputs_of(relation)])


def _read_map(relation: Map, read: Collection[int]) -> Relation:
    arity = relation.input.relation_type.arity
    needed = set(read)
    scalars: list[Scalar] = []
    for place, scalar in reversed(list(enumerate(relation.scalars, arity))):
        if place in needed or not any(isinstance(one, Subquery) for one in walk(scalar)):
            needed |= columns_of(scalar)
            scalars.append(scalar)
        else:
            scalars.append(Literal(None, scalar.type))
    below = _read(relation.input, {one for one in needed if one < arity})
    changed = any(isinstance(one, Literal) for one in scalars)
    return Map(below, tuple(reversed(scalars)), relation.names) if changed else with_inputs(relation, [below])


def _read_join(relation: Join | DependentJoin, read: Collection[int]) -> Relation:
    below: list[Relation] = []
    start = 0
    for one in inputs_of(relation):
        below.append(_read(one, {place - start for place in read if 0 <= place - start < one.relation_type.arity}))
        start += one.relation_type.arity
    return with_inputs(relation, below)


def _columns(scalars: Collection[Scalar]) -> set[int]:
    return {place for one in scalars for place in columns_of(one)}
