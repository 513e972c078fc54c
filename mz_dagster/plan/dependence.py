"""What a dependent plan takes from outside: its free `OuterColumn`s, and rewriting them.

A column is free unless it stands in the right side of a `DependentJoin` or in a `Subquery`, whose arguments it then is
among: only those arguments are looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import (
    DependentJoin,
    Filter,
    Get,
    Join,
    Let,
    Map,
    Relation,
    TemporalFilter,
    inputs_of,
)
from mz_dagster.plan.rewriting import with_inputs
from mz_dagster.plan.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, Subquery, walk


def scalars_of(relation: Relation) -> tuple[Scalar, ...]:
    """Returns the scalars of the node itself."""
    match relation:
        case Map():
            return relation.scalars
        case Filter():
            return relation.predicates
        case Join():
            return tuple(scalar for one in relation.equivalences for scalar in one)
        case TemporalFilter():
            return relation.lower + relation.upper
        case DependentJoin():
            return relation.arguments
        case _:
            return ()


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
    match scalar:
        case OuterColumn():
            return leaf(scalar)
        case ColumnRef() | Literal():
            return scalar
        case Call() | Subquery():
            return replace(scalar, arguments=tuple(with_outer_columns(one, leaf) for one in scalar.arguments))
        case If():
            return If(
                with_outer_columns(scalar.condition, leaf),
                with_outer_columns(scalar.then, leaf),
                with_outer_columns(scalar.otherwise, leaf),
            )


def with_free_columns(relation: Relation, leaf: Callable[[OuterColumn], Scalar]) -> Relation:
    """Returns `relation` with each free outer column replaced by what `leaf` makes of it."""

    def replaced(scalars: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return tuple(with_outer_columns(one, leaf) for one in scalars)

    if not is_dependent(relation):
        return relation
    below = [with_free_columns(one, leaf) for one in own_inputs_of(relation)]
    match relation:
        case Map():
            return Map(below[0], replaced(relation.scalars), relation.names)
        case Filter():
            return Filter(below[0], replaced(relation.predicates))
        case Join():
            return replace(
                relation, inputs=tuple(below), equivalences=tuple(replaced(one) for one in relation.equivalences)
            )
        case TemporalFilter():
            return TemporalFilter(below[0], replaced(relation.lower), replaced(relation.upper))
        case DependentJoin():
            return DependentJoin(below[0], relation.right, replaced(relation.arguments))
        case _:
            return with_inputs(relation, below)
