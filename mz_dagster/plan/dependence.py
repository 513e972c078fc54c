"""What a dependent plan takes from outside: its free `OuterColumn`s, and rewriting them.

A column is free unless it stands in the right side of a `DependentJoin` or in a `Subquery`, whose arguments it then is
among: only those arguments are looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import DependentJoin, Get, Let, Relation, inputs_of
from mz_dagster.plan.rewriting import scalars_of, with_inputs, with_mapped_scalars
from mz_dagster.plan.scalar import OuterColumn, Scalar, substitute, walk


def own_inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """Returns the inputs in which the free columns are those of `relation` itself."""
    return (relation.left,) if isinstance(relation, DependentJoin) else inputs_of(relation)


def outer_columns(scalar: Scalar) -> frozenset[int]:
    """Returns the numbers of the outer columns that `scalar` reads."""
    return frozenset(one.number for one in walk(scalar) if isinstance(one, OuterColumn))


def free_columns(relation: Relation) -> frozenset[int]:
    """Returns the numbers of the outer columns that are free in `relation`."""
    own = frozenset(number for scalar in scalars_of(relation) for number in outer_columns(scalar))
    return own.union(*(free_columns(one) for one in own_inputs_of(relation)))


def is_dependent(relation: Relation, local: Collection[GlobalId] = ()) -> bool:
    """Returns whether `relation` has free outer columns, or reads one of the dependent subplans `local`."""
    if isinstance(relation, Get):
        return relation.id in local
    if any(outer_columns(scalar) for scalar in scalars_of(relation)):
        return True
    if isinstance(relation, Let) and relation.id in local:
        inner = [one for one in local if one != relation.id]
        return is_dependent(relation.value, local) or is_dependent(relation.body, inner)
    return any(is_dependent(one, local) for one in own_inputs_of(relation))


def with_outer_columns(scalar: Scalar, leaf: Callable[[OuterColumn], Scalar]) -> Scalar:
    """Returns `scalar` with each outer column replaced by what `leaf` makes of it; a subquery's in its arguments."""
    return substitute(scalar, lambda one: leaf(one) if isinstance(one, OuterColumn) else None)


def with_free_columns(relation: Relation, leaf: Callable[[OuterColumn], Scalar]) -> Relation:
    """Returns `relation` with each free outer column replaced by what `leaf` makes of it."""
    if not is_dependent(relation):
        return relation
    own = with_mapped_scalars(relation, lambda one: with_outer_columns(one, leaf))
    if isinstance(own, DependentJoin):
        return replace(own, left=with_free_columns(own.left, leaf))
    return with_inputs(own, [with_free_columns(one, leaf) for one in inputs_of(own)])
