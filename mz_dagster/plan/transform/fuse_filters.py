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
    found = [(one, can_fail(one)) for one in split]
    safe = [one for one, fails in found if not fails]
    temporal = [one for one, fails in found if fails and is_temporal(one)]
    unsafe = [one for one, fails in found if fails and not is_temporal(one)]
    if unsafe:
        safe.append(conjunction(unsafe))
    safe += temporal
    if not safe:
        return below
    return relation if tuple(safe) == relation.predicates else Filter(below, tuple(safe))
