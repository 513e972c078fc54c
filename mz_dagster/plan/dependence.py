"""What a dependent plan takes from outside: its free `OuterColumn`s, and rewriting them.

A column is free unless it stands in the right side of a `DependentJoin` or in a `Subquery`, whose arguments it then is
among: only those arguments are looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import DependentJoin, Get, Let, Relation, inputs_of
from mz_dagster.plan.rewriting import scalars_of, with_inputs, with_mapped_scalars
from mz_dagster.scalars.scalar import OuterColumn, Scalar, substitute, walk


def own_inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """Returns the inputs in which the free columns are those of `relation` itself."""
    return (relation.left,) if isinstance(relation, DependentJoin) else inputs_of(relation)


def outer_columns(scalar: Scalar) -> frozenset[int]:
    """Returns the numbers of the outer columns that `scalar` reads."""
    return frozenset(one.number for one in walk(scalar) if isinstance(one, OuterColumn))


def free_columns(relation: Relation) -> frozenset[int]:
    """Returns the numbers of the outer columns that are free in `relation`."""
    return frozenset(
        number for one in _own_nodes(relation) for scalar in scalars_of(one) for number in outer_columns(scalar)
    )


def is_dependent(relation: Relation, local: Collection[GlobalId] = ()) -> bool:
    """Returns whether `relation` has free outer columns, or reads one of the dependent subplans `local`."""
    for one in _own_nodes(relation, local):
        if isinstance(one, Let) and one.id in local:
            inner = [each for each in local if each != one.id]
            if is_dependent(one.value, local) or is_dependent(one.body, inner):
                return True
        elif (isinstance(one, Get) and one.id in local) or any(map(outer_columns, scalars_of(one))):
            return True
    return False


def _own_nodes(relation: Relation, hidden: Collection[GlobalId] = ()) -> Iterator[Relation]:
    """Yields the nodes whose free columns are those of `relation`, each once; nothing below a `Let` of `hidden`."""
    seen: set[int] = set()
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            if not (isinstance(one, Let) and one.id in hidden):
                waiting += own_inputs_of(one)


def with_outer_columns(scalar: Scalar, leaf: Callable[[OuterColumn], Scalar]) -> Scalar:
    """Returns `scalar` with each outer column replaced by what `leaf` makes of it; a subquery's in its arguments."""
    return substitute(scalar, lambda one: leaf(one) if isinstance(one, OuterColumn) else None)


def with_free_columns(relation: Relation, leaf: Callable[[OuterColumn], Scalar]) -> Relation:
    """Returns `relation` with each free outer column replaced by what `leaf` makes of it."""
    found: dict[int, Relation] = {}

    def rebuilt(one: Relation) -> Relation:
        if not is_dependent(one):
            return one
        if id(one) not in found:
            own = with_mapped_scalars(one, lambda scalar: with_outer_columns(scalar, leaf))
            if isinstance(own, DependentJoin):
                found[id(one)] = replace(own, left=rebuilt(own.left))
            else:
                found[id(one)] = with_inputs(own, [rebuilt(each) for each in inputs_of(own)])
        return found[id(one)]

    return rebuilt(relation)
