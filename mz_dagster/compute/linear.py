"""Map, filter and project, fused: one pass over a frame of updates.

Linear: applied to each update by itself; time and diff are kept, so the same rendering serves updates, histories
and snapshots. Updates of the error part pass through. A row whose evaluation fails becomes an update of the error
part, at its own time and with its own diff, so that a retraction cancels it.

Cost: no shuffle and no memory. Predicates that cannot fail stand as plain filters next to the scan, so that a scan
prunes by them; once something can fail, the order of the steps decides which error a row has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from mz_dagster.compute.frame import DIFF, ERROR, META, TIME, columns_at, positional
from mz_dagster.compute.scalar import Emitted, Emitter
from mz_dagster.plan.physical import MapFilterProject

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def linear(frame: DataFrame, mfp: MapFilterProject) -> DataFrame:
    """Returns the updates that `mfp` makes of those of `frame`."""
    if mfp.is_identity:
        return frame
    emitter = Emitter(columns_at(mfp.arity))
    steps: list[tuple[str, Emitted]] = []
    for kind, scalar in mfp.steps:
        emitted = emitter.emit(scalar)
        if kind == "map":
            emitted = emitter.shared(emitted, above=8)
            emitter.bind(emitted)
        steps.append((kind, emitted))
    failing = sf.col(ERROR).isNotNull()
    first_fallible = next((i for i, (_, one) in enumerate(steps) if one.error is not None), len(steps))
    plain = [one for kind, one in steps[:first_fallible] if kind == "filter"]
    for predicate in plain:
        if predicate.level == 0:
            frame = frame.where(failing | predicate.value)
    frame = emitter.stage(frame)
    for predicate in plain:
        if predicate.level > 0:
            frame = frame.where(failing | predicate.value)
    row = [Emitted(column) for column in columns_at(mfp.arity)] + [one for kind, one in steps if kind == "map"]
    kept = [
        row[position].value.alias(name)
        for name, position in zip(positional(len(mfp.projection)), mfp.projection, strict=True)
    ]
    meta = [sf.col(TIME), sf.col(DIFF)]
    if first_fallible == len(steps):
        return frame.select(*kept, *meta, sf.col(ERROR))
    later = steps[first_fallible:]
    frame = frame.select(*kept, *meta, _outcome(later).alias(ERROR), _passes(later).alias("mz_passes"))
    return frame.where(failing | sf.col("mz_passes")).select(*positional(len(mfp.projection)), *META)


def _outcome(steps: list[tuple[str, Emitted]]) -> Column:
    """Returns the row's error: its own of before, else that of the first step that fails and is reached."""
    outcome = sf.lit(None).cast("string")
    for kind, step in reversed(steps):
        if kind == "filter":
            outcome = sf.when(step.value, outcome)
        if step.error is not None:
            outcome = sf.coalesce(step.error, outcome)
    return sf.coalesce(sf.col(ERROR), outcome)


def _passes(steps: list[tuple[str, Emitted]]) -> Column:
    passes = sf.lit(True)
    for kind, step in steps:
        if kind == "filter":
            passes = passes & sf.coalesce(step.value, sf.lit(False))
    return passes
