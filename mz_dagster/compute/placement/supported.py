"""What this process computes of a plan, as far as the plan tells: each operator, and each scalar.

Known before anything runs; what sizes decide is `choice`'s. The answers are in words for people, empty where nothing is
left to Spark.
"""

from __future__ import annotations

from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.local.accumulate import can_accumulate
from mz_dagster.compute.local.gathered import can_gather
from mz_dagster.compute.local.join import can_join
from mz_dagster.compute.local.staged import can_stage
from mz_dagster.compute.local.temporal import can_filter
from mz_dagster.compute.local.windowed import can_window
from mz_dagster.plan.explain import explain_scalar
from mz_dagster.plan.operators import operator_name
from mz_dagster.plan.physical import (
    Accumulate,
    Catch,
    ConstantRows,
    DeltaJoin,
    Linear,
    MapFilterProject,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    TemporalState,
    UnionAll,
    Unnest,
    physical_inputs,
)


def unsupported(plan: Physical) -> str:
    """Returns which operator of a plan is Spark's however little there is; empty if none is."""
    if not _is_supported(plan):
        return f"{operator_name(plan)} is not computed in this process"
    return next(filter(None, map(unsupported, physical_inputs(plan))), "")


def _is_supported(node: Physical) -> bool:
    """Returns whether this process computes an operator, its inputs being there."""
    match node:
        case DeltaJoin():
            return can_join(node)
        case Accumulate():
            return can_accumulate(node)
        case Staged():
            return can_window(node) or can_gather(node) or can_stage(node)
        case TemporalState():
            return can_filter(node)
        case ReadCollection() | ConstantRows() | Linear() | NegateAll() | Repeat() | Catch() | Unnest() | UnionAll():
            return True


def unsupported_scalar(plan: Physical) -> str:
    """Returns which scalar of a plan Spark evaluates however few rows there are; empty if none."""
    own = unsupported_in(plan.mfp) if isinstance(plan, Linear) else ""
    return own or next(filter(None, map(unsupported_scalar, physical_inputs(plan))), "")


def unsupported_in(mfp: MapFilterProject) -> str:
    """Returns which scalar of a map, filter and project Spark evaluates however few rows there are; empty if none."""
    left = next((scalar for _, scalar in mfp.steps if not is_exact_in_python(scalar)), None)
    return "" if left is None else f"{explain_scalar(left)} is not evaluated in this process"
