"""Adjacent projections become one, and one that changes nothing vanishes."""

from __future__ import annotations

from mz_dagster.plan.relation import Projection, Relation
from mz_dagster.plan.rewriting import bottom_up, projected_to


def fuse_projects(relation: Relation) -> Relation:
    """Returns `relation` without a projection directly above another."""
    return bottom_up(relation, _fused)


def _fused(relation: Relation) -> Relation:
    if not isinstance(relation, Projection):
        return relation
    positions, below = relation.positions, relation.input
    if isinstance(below, Projection):
        positions, below = tuple(below.positions[one] for one in positions), below.input
    return projected_to(below, positions)
