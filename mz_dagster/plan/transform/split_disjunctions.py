"""What all alternatives of an OR say is said beside it, where it can become a key of a join or move into an input.

    (p and q) or (p and r)                  is   p and (q or r)
    (a and b and c) or (d and e)            is   (a or d) and the same    a and d over one input of the join below

Only predicates that cannot fail are said twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.plan.relation import Filter, Join, Relation
from mz_dagster.plan.rewriting import bottom_up, can_fail, conjunction, conjuncts
from mz_dagster.scalars.scalar import Call, Scalar, columns_of, reads_now
from mz_dagster.scalars.types import BOOL


def split_disjunctions(relation: Relation) -> Relation:
    """Returns `relation` with the predicates of filters that follow from ORs, and cannot fail, standing alone."""
    return bottom_up(relation, _split)


def _split(relation: Relation) -> Relation:
    if not isinstance(relation, Filter):
        return relation
    predicates = tuple(factored(one) for one in relation.predicates)
    if isinstance(relation.input, Join):
        known = dict.fromkeys(part for one in predicates for part in conjuncts(one))  # in the order of the query
        implied = (one for predicate in known for one in _implied(predicate, relation.input))
        predicates += tuple(one for one in dict.fromkeys(implied) if one not in known)
    return relation if predicates == relation.predicates else Filter(relation.input, predicates)


def factored(predicate: Scalar) -> Scalar:
    """Returns `predicate` with the conjuncts that all alternatives of an OR have taken out of it.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> p, q, r = (ColumnRef(i, BOOL, False) for i in range(3))
        >>> both = Call("or", (Call("and", (p, q), BOOL, False), Call("and", (p, r), BOOL, False)), BOOL, False)
        >>> factored(both) == Call("and", (p, Call("or", (q, r), BOOL, False)), BOOL, False)
        True
    """
    if isinstance(predicate, Call) and predicate.function == "and":
        return conjunction([part for one in predicate.arguments for part in conjuncts(factored(one))])
    if not isinstance(predicate, Call) or predicate.function != "or" or can_fail(predicate):
        return predicate
    alternatives = [conjuncts(factored(one)) for one in disjuncts(predicate)]
    first, *others = alternatives
    common = [one for one in dict.fromkeys(first) if all(one in other for other in others)]
    if not common:
        return predicate
    rest = [[one for one in alternative if one not in common] for alternative in alternatives]
    if not all(rest):
        return conjunction(common)
    return conjunction([*common, _either([conjunction(one) for one in rest])])


def disjuncts(predicate: Scalar) -> tuple[Scalar, ...]:
    """Returns the predicates of which one must be true for `predicate` to be."""
    if isinstance(predicate, Call) and predicate.function == "or":
        return tuple(one for argument in predicate.arguments for one in disjuncts(argument))
    return (predicate,)


def _implied(predicate: Scalar, join: Join) -> list[Scalar]:
    """Returns what an OR over several inputs of `join` says of single ones."""
    alternatives = [conjuncts(one) for one in disjuncts(predicate)]
    if len(alternatives) < 2 or _reads_one(predicate, join) or reads_now(predicate):
        return []
    found: list[Scalar] = []
    for offset, one in zip(join.offsets, join.inputs, strict=True):
        own = range(offset, offset + one.relation_type.arity)
        parts = [
            [part for part in alternative if columns_of(part) and columns_of(part) <= set(own) and not can_fail(part)]
            for alternative in alternatives
        ]
        if all(parts):
            found.append(_either([conjunction(part) for part in parts]))
    return found


def _reads_one(predicate: Scalar, join: Join) -> bool:
    ends = [*join.offsets[1:], join.relation_type.arity]
    return any(columns_of(predicate) <= set(range(*bounds)) for bounds in zip(join.offsets, ends, strict=True))


def _either(predicates: Sequence[Scalar]) -> Scalar:
    distinct = tuple(dict.fromkeys(predicates))
    return distinct[0] if len(distinct) == 1 else Call("or", distinct, BOOL, any(one.nullable for one in distinct))
