"""A union of unions becomes one, and a union of one input is that input."""

from __future__ import annotations

from dataclasses import replace

from mz_dagster.plan.relation import Relation, Union
from mz_dagster.plan.rewriting import bottom_up


def flatten_unions(relation: Relation) -> Relation:
    """Returns `relation` without a union directly above another."""
    return bottom_up(relation, _flat)


def _flat(relation: Relation) -> Relation:
    if not isinstance(relation, Union):
        return relation
    inputs = tuple(arm for one in relation.inputs for arm in (one.inputs if isinstance(one, Union) else (one,)))
    return inputs[0] if len(inputs) == 1 else replace(relation, inputs=inputs)
