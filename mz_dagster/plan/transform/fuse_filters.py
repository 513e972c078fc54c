"""Adjacent filters become one, and its conjunctions are split.

    Filter q (Filter (p and r) x)   is   Filter p, r, q x

Predicates that cannot fail come first. Those that can stay together in one conjunction at the end, since `false and
error` is false whichever comes first: split, an error would win over a later false. Comparisons of `mz_now()` stand
alone after them, because each becomes a bound of a temporal filter by itself. Doubles are dropped.
"""

from __future__ import annotations

from mz_dagster.plan.relation import Filter, Relation
from mz_dagster.plan.rewriting import bottom_up, can_fail, conjunction, conjuncts
from mz_dagster.plan.transform.temporal_filters import is_temporal, without_not
from mz_dagster.scalars.scalar import Scalar


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
    split = dict.fromkeys(one for predicate in predicates for one in conjuncts(without_not(predicate)))
    safe: list[Scalar] = [one for one in split if not can_fail(one)]
    temporal = [one for one in split if can_fail(one) and is_temporal(one)]
    unsafe = [one for one in split if can_fail(one) and not is_temporal(one)]
    if unsafe:
        safe.append(conjunction(unsafe))
    safe += temporal
    if not safe:
        return below
    return relation if tuple(safe) == relation.predicates else Filter(below, tuple(safe))
