"""Within which times the updates of a join's input lie, as far as the lists of batches and files tell."""

from __future__ import annotations

from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.errors import InternalError
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    Physical,
    ReadCollection,
    Staged,
    TemporalState,
    physical_inputs,
)


def span(node: Physical, upper: int, reads: StepReads | None) -> tuple[int, int] | None:
    """Returns bounds of the times of all updates before `upper` of what is linear, None if there are none; no job."""
    match node:
        case ReadCollection():
            return (FIRST_TIME, upper - 1) if reads is None else reads.span(node.id, upper)
        case ConstantRows():
            return (FIRST_TIME, FIRST_TIME) if node.rows else None
        case DeltaJoin() | Accumulate() | Staged() | TemporalState():
            raise InternalError("the history of this operator is an arrangement's, not computed")
        case _:
            spans = [found for one in physical_inputs(node) if (found := span(one, upper, reads)) is not None]
            return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None
