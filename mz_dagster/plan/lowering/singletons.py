"""Inputs of a join that have at most one row are joined with one another first, a few at a time.

A delta join of n inputs has n terms of n - 1 lookups each. Where each input narrows what is looked up next, that is the
price of having no intermediate results. Of inputs that nothing connects, as the scalar subqueries of one SELECT are,
none narrows anything: fifteen of them make a plan of hundreds of joins, on which Spark's planner spends minutes and
gigabytes. But the product of inputs of at most one row has one row at most, so to keep it costs nothing: a tree of
joins of a few inputs each has as many lookups as inputs, times a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.plan.relation import Join, Projection, Relation
from mz_dagster.plan.rewriting import moved

#: So many are joined at once; no more of them are left as they are.
_TOGETHER = 4


def with_singletons_joined(join: Join) -> Relation | None:
    """Returns the join with unconnected inputs of at most one row joined into fewer; None if these are few."""
    connected = join.compared
    single = [i for i, one in enumerate(join.inputs) if frozenset() in one.relation_type.keys]
    alone = [i for i in single if i not in connected]
    if len(alone) <= _TOGETHER:
        return None
    groups = [alone[start : start + _TOGETHER] for start in range(0, len(alone), _TOGETHER)]
    rest = [i for i in range(len(join.inputs)) if i not in alone]
    inputs = [join.inputs[i] for i in rest] + [_product([join.inputs[i] for i in group]) for group in groups]
    places = join.places([*rest, *alone])
    classes = tuple(tuple(moved(scalar, places) for scalar in one) for one in join.equivalences)
    whole = Join(tuple(inputs), classes, join.null_safe) if len(inputs) > 1 else inputs[0]
    return Projection(whole, tuple(places[position] for position in range(join.relation_type.arity)))


def _product(inputs: Sequence[Relation]) -> Relation:
    return Join(tuple(inputs), ()) if len(inputs) > 1 else inputs[0]
