"""Columns that nobody reads ask nothing: subqueries in them and what may fail are taken away before they are planned.

Invariant: what is read of a plan is what it was. A node that is there several times, as a view is that others read, is
rewritten once for each set of columns that is read of it, and stays one where nothing changes.
"""

from __future__ import annotations

from collections.abc import Collection

from mz_dagster.plan.relation import DependentJoin, Filter, Join, Let, Map, Projection, Reduce, Relation, inputs_of
from mz_dagster.plan.rewriting import can_fail, scalars_of, with_inputs
from mz_dagster.scalars.scalar import Literal, Scalar, Subquery, columns_of, walk


def without_unread_subqueries(relation: Relation) -> Relation:
    """Returns a plan with NULL for subqueries, and what may fail, in columns that nothing in it reads; its own are.

    Example:
        >>> from mz_dagster.plan.semijoin import ONE_ROW
        >>> from mz_dagster.scalars.scalar import SubqueryKind
        >>> from mz_dagster.scalars.types import INT4
        >>> one = Map(ONE_ROW, (Literal(1, INT4),), ("one",))
        >>> both = Map(one, (Subquery(SubqueryKind.SCALAR, one),), ("asked",))
        >>> without_unread_subqueries(both) == both
        True
        >>> [one.value for one in without_unread_subqueries(Projection(both, (0,))).input.scalars]
        [None]
    """
    return _Rewriting().all_of(relation)


class _Rewriting:
    """Rewrites the nodes of one plan."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, frozenset[int]], Relation] = {}

    def all_of(self, relation: Relation) -> Relation:
        """Returns a node of which all columns are read."""
        return self.read(relation, range(relation.relation_type.arity))

    def read(self, relation: Relation, read: Collection[int]) -> Relation:
        """Returns a node of which the columns `read` are."""
        key = id(relation), frozenset(read)
        if key not in self._found:
            self._found[key] = self._rewritten(relation, key[1])
        return self._found[key]

    def _rewritten(self, relation: Relation, read: frozenset[int]) -> Relation:
        match relation:
            case Projection():
                return with_inputs(relation, [self.read(relation.input, {relation.positions[one] for one in read})])
            case Filter():
                return with_inputs(relation, [self.read(relation.input, {*read, *_columns(relation.predicates)})])
            case Map():
                return self._map(relation, read)
            case Join() | DependentJoin():
                return self._join(relation, {*read, *_columns(scalars_of(relation))})
            case Reduce():
                places = {*relation.key, *(place for one in relation.aggregates for place in one.positions)}
                return with_inputs(relation, [self.read(relation.input, places)])
            case Let():
                return with_inputs(relation, [self.all_of(relation.value), self.read(relation.body, read)])
            case _:
                return with_inputs(relation, [self.all_of(one) for one in inputs_of(relation)])

    def _map(self, relation: Map, read: Collection[int]) -> Relation:
        arity = relation.input.relation_type.arity
        needed = set(read)
        scalars: list[Scalar] = []
        for place, scalar in reversed(list(enumerate(relation.scalars, arity))):
            if place in needed or not (can_fail(scalar) or any(isinstance(one, Subquery) for one in walk(scalar))):
                needed |= columns_of(scalar)
                scalars.append(scalar)
            else:
                scalars.append(Literal(None, scalar.type))
        below = self.read(relation.input, {one for one in needed if one < arity})
        changed = any(one is not old for one, old in zip(reversed(scalars), relation.scalars, strict=True))
        return Map(below, tuple(reversed(scalars)), relation.names) if changed else with_inputs(relation, [below])

    def _join(self, relation: Join | DependentJoin, read: Collection[int]) -> Relation:
        below: list[Relation] = []
        start = 0
        for one in inputs_of(relation):
            arity = one.relation_type.arity
            below.append(self.read(one, {place - start for place in read if 0 <= place - start < arity}))
            start += arity
        return with_inputs(relation, below)


def _columns(scalars: Collection[Scalar]) -> set[int]:
    return {place for one in scalars for place in columns_of(one)}
