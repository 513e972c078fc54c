"""Adjacent maps become one: `Map t (Map s r)` is `Map s, t r`; a map of nothing vanishes."""

from __future__ import annotations

from mz_dagster.plan.relation import Map, Relation
from mz_dagster.plan.rewriting import bottom_up


def fuse_maps(relation: Relation) -> Relation:
    """Returns `relation` without a map directly above another."""
    return bottom_up(relation, _fused)


def _fused(relation: Relation) -> Relation:
    if not isinstance(relation, Map):
        return relation
    if not relation.scalars:
        return relation.input
    if isinstance(relation.input, Map):
        below = relation.input
        return Map(below.input, below.scalars + relation.scalars, below.names + relation.names)
    return relation
