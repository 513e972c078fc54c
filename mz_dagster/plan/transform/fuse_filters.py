"""Adjacent filters become one, and its conjunctions are split.

    Filter q (Filter (p and r) x)   is   Filter p, r, q x

Predicates that cannot fail come first. Those that can stay together in one conjunction at the end, since `false and
error` is false whichever comes first: split, an error would win over a later false. Doubles are dropped.
"""

from __future__ import annotations

from mz_dagster.plan.relation import Filter, Relation
from mz_dagster.plan.rewriting import bottom_up, can_fail, conjunction, conjuncts
from mz_dagster.plan.scalar import Scalar


def fuse_filters(relation: Relation) -> Relation:
    """Returns `relation` without a filter directly above another."""
    return bottom_up(relation, _fused)


def _fused(relation: Relation) -> Relation:
    if not isinstance(relation, Filter):
        return relation
    below = relation.input
    predicates = relation.predicates
    if isinstance(below, Filter):
        predicates, below = below.predicates + predicates, below.input
    split = dict.fromkeys(one for predicate in predicates for one in conjuncts(predicate))
    safe: list[Scalar] = [one for one in split if not can_fail(one)]
    unsafe = [one for one in split if can_fail(one)]
    if unsafe:
        safe.append(conjunction(unsafe))
    if not safe:
        return below
    return relation if tuple(safe) == relation.predicates else Filter(below, tuple(safe))
