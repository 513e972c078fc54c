"""Plans over collections that have gained columns since: what reads them leaves these out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.lowering.fusion import linear_over
from mz_dagster.plan.physical import (
    Linear,
    MapFilterProject,
    Physical,
    ReadCollection,
    SnapshotPlan,
    collections_read,
    physical_inputs,
    with_physical_inputs,
)
from mz_dagster.scalars.types import Column

#: The columns of some collections, as they are stored.
Stored = Mapping[GlobalId, tuple[Column, ...]]


def over_stored(node: Physical, stored: Stored) -> Physical:
    """Returns `node` reading collections that have these columns by now: those that it was made for, then others."""
    if isinstance(node, ReadCollection):
        return _read(node, stored[node.id]) if node.id in stored else node
    if not stored.keys() & collections_read(node):
        return node
    inputs = [over_stored(one, stored) for one in physical_inputs(node)]
    if isinstance(node, Linear):
        return linear_over(inputs[0], node.mfp, node.relation_type)
    return with_physical_inputs(node, inputs)


def snapshot_over_stored(plan: SnapshotPlan, stored: Stored) -> SnapshotPlan:
    """Returns a query's plan as `over_stored` does."""
    if not stored:
        return plan
    shared = tuple(replace(one, plan=over_stored(one.plan, stored)) for one in plan.shared)
    return SnapshotPlan(shared, over_stored(plan.output, stored))


def _read(node: ReadCollection, columns: tuple[Column, ...]) -> Physical:
    known, arity = node.relation_type, node.relation_type.arity
    named = (replace(one, name=now.name) for one, now in zip(known.columns, columns, strict=False))
    read = replace(node, relation_type=replace(known, columns=(*named, *columns[arity:])))
    if len(columns) <= arity:
        return read
    return Linear(read, MapFilterProject(len(columns), (), tuple(range(arity))), known)
