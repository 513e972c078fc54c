"""Equality correlation: subqueries that depend on their outer row by equalities only.

`EXISTS (SELECT .. FROM u WHERE u.k = outer.a AND u.b > 0)` asks whether `outer.a` is among the values of `k` in the
rows of a closed plan. What is found here becomes a semijoin with those values, without a domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.plan.dependence import is_dependent, outer_columns
from mz_dagster.plan.equality import equated, is_equality
from mz_dagster.plan.relation import Filter, Join, Let, Map, Projection, Relation, query_of
from mz_dagster.plan.rewriting import conjuncts, filtered, moved, shifted
from mz_dagster.scalars.scalar import Call, Scalar, Subquery, columns_of, walk


@dataclass(frozen=True, slots=True)
class EqualityCorrelation:
    """Whether some row of a closed plan has these values.

    Attributes:
        relation: The plan.
        pairs: A scalar over the arguments, equal to one over the columns of `relation`; neither is NULL then.
    """

    relation: Relation
    pairs: tuple[tuple[Scalar, Scalar], ...]


@dataclass(frozen=True, slots=True)
class _Uncorrelated:
    """A dependent plan without its correlations.

    Attributes:
        relation: Closed.
        places: For each column of the dependent plan, where it is in `relation`; None if it depends on the outer row.
        pairs: The correlations.
    """

    relation: Relation
    places: tuple[int | None, ...]
    pairs: tuple[tuple[Scalar, Scalar], ...] = ()


def equality_correlation(subquery: Subquery) -> EqualityCorrelation | None:
    """Returns what `EXISTS` or `ANY` asks, as a look-up of values; None if it is correlated otherwise."""
    found = _uncorrelated(query_of(subquery))
    if found is not None and subquery.test is not None:
        found = _with_predicates(found, conjuncts(subquery.test))
    return None if found is None else EqualityCorrelation(found.relation, found.pairs)


def compared(scalar: Scalar) -> tuple[Scalar, Scalar] | None:
    """Returns the two sides, over the arguments alone and over the rows alone, that `scalar` says are equal."""
    if not is_equality(scalar):
        return None
    assert isinstance(scalar, Call)
    return _apart(*scalar.arguments)


def _looked_up(scalar: Scalar) -> tuple[Scalar, Scalar] | None:
    """Returns the two sides as `compared` does, in one type."""
    sides = equated(scalar)
    return None if sides is None else _apart(*sides)


def _apart(first: Scalar, second: Scalar) -> tuple[Scalar, Scalar] | None:
    if any(isinstance(one, Subquery) for side in (first, second) for one in walk(side)):
        return None
    for outer, inner in ((first, second), (second, first)):
        if not columns_of(outer) and not outer_columns(inner) and (outer_columns(outer) or columns_of(inner)):
            return outer, inner
    return None


def _uncorrelated(relation: Relation) -> _Uncorrelated | None:
    if not is_dependent(relation):
        return _Uncorrelated(relation, tuple(range(relation.relation_type.arity)))
    match relation:
        case Filter():
            below = _uncorrelated(relation.input)
            predicates = [one for predicate in relation.predicates for one in conjuncts(predicate)]
            return None if below is None else _with_predicates(below, predicates)
        case Map():
            return _mapped(relation)
        case Projection():
            below = _uncorrelated(relation.input)
            if below is None:
                return None
            return replace(below, places=tuple(below.places[one] for one in relation.positions))
        case Join():
            return _joined(relation)
        case Let() if not is_dependent(relation.value):
            below = _uncorrelated(relation.body)
            return None if below is None else replace(below, relation=Let(relation.id, relation.value, below.relation))
        case _:
            return None


def _with_predicates(below: _Uncorrelated, predicates: Sequence[Scalar]) -> _Uncorrelated | None:
    kept: list[Scalar] = []
    pairs = list(below.pairs)
    for one in predicates:
        placed = _placed(one, below.places)
        if placed is None:
            return None
        if not outer_columns(placed):
            kept.append(placed)
            continue
        pair = _looked_up(placed)
        if pair is None:
            return None
        pairs.append(pair)
    return replace(below, relation=filtered(below.relation, kept), pairs=tuple(pairs))


def _mapped(relation: Map) -> _Uncorrelated | None:
    below = _uncorrelated(relation.input)
    if below is None:
        return None
    base, places = below.relation, list(below.places)
    for scalar, name in zip(relation.scalars, relation.names, strict=True):
        placed = _placed(scalar, places)
        if placed is None or outer_columns(placed):
            places.append(None)
            continue
        places.append(base.relation_type.arity)
        base = Map(base, (placed,), (name,))
    return _Uncorrelated(base, tuple(places), below.pairs)


def _joined(relation: Join) -> _Uncorrelated | None:
    parts = [_uncorrelated(one) for one in relation.inputs]
    bases: list[Relation] = []
    places: list[int | None] = []
    pairs: list[tuple[Scalar, Scalar]] = []
    offset = 0
    for part in parts:
        if part is None:
            return None
        bases.append(part.relation)
        places += [None if one is None else offset + one for one in part.places]
        pairs += [(outer, shifted(inner, offset)) for outer, inner in part.pairs]
        offset += part.relation.relation_type.arity
    classes: list[tuple[Scalar, ...]] = []
    for equivalence in relation.equivalences:
        members = [_placed(one, places) for one in equivalence]
        known = tuple(one for one in members if one is not None and not outer_columns(one))
        if len(known) != len(members):
            return None
        classes.append(known)
    return _Uncorrelated(Join(tuple(bases), tuple(classes), relation.null_safe), tuple(places), tuple(pairs))


def _placed(scalar: Scalar, places: Sequence[int | None]) -> Scalar | None:
    """Returns `scalar` over the plan without its correlations, or None if it reads a column that is not there."""
    known = {column: place for column in sorted(columns_of(scalar)) if (place := places[column]) is not None}
    return moved(scalar, known) if len(known) == len(columns_of(scalar)) else None
