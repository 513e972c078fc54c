"""Map, filter and project, fused: one pass over a frame of updates.

Linear: applied to each update by itself; time and diff are kept, so the same rendering serves updates, histories
and snapshots. Updates of the error part pass through. A row whose evaluation fails becomes an update of the error
part, at its own time and with its own diff, so that a retraction cancels it.

Cost: no shuffle and no memory. Predicates that cannot fail stand as plain filters next to the scan, so that a scan
prunes by them; once something can fail, the order of the steps decides which error a row has.
"""

from __future__ import annotations

from operator import and_
from typing import TYPE_CHECKING

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, columns_at, positional
from mz_dagster.compute.spark.balanced import Branches, balanced
from mz_dagster.compute.spark.expressions import Emitted, Emitter
from mz_dagster.compute.spark.linear_by_workers import linear_by_workers
from mz_dagster.plan.physical import MapFilterProject
from mz_dagster.storage.late_pyspark import functions as sf

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
    if emitter.load > budget().planned_columns and all(is_exact_in_python(scalar) for _, scalar in mfp.steps):
        return linear_by_workers(frame, mfp)
    failing = sf.col(ERROR).isNotNull()
    first_fallible = next((i for i, (_, one) in enumerate(steps) if one.error is not None), len(steps))
    plain = [one for kind, one in steps[:first_fallible] if kind == "filter"]
    frame = _passing(frame, [one.value for one in plain if one.level == 0])
    frame = _passing(emitter.stage(frame), [one.value for one in plain if one.level > 0])
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


def _passing(frame: DataFrame, predicates: list[Column]) -> DataFrame:
    """Returns the rows that pass all of them, and those that failed before; in one step, however many they are."""
    if not predicates:
        return frame
    return frame.where(balanced(and_, [sf.col(ERROR).isNotNull() | one for one in predicates]))


def _outcome(steps: list[tuple[str, Emitted]]) -> Column:
    """Returns the row's error: its own of before, else that of the first step that fails and is reached."""
    if all(kind == "map" for kind, _ in steps):
        return sf.coalesce(sf.col(ERROR), *(step.error for _, step in steps if step.error is not None))
    outcome = Branches(sf.lit(None).cast("string"))
    outcome.when(sf.col(ERROR).isNotNull(), sf.col(ERROR))
    for kind, step in steps:
        if step.error is not None:
            outcome.when(step.error.isNotNull(), step.error)
        if kind == "filter":
            outcome.when(~sf.coalesce(step.value, sf.lit(False)), sf.lit(None).cast("string"))
    return outcome.otherwise()


def _passes(steps: list[tuple[str, Emitted]]) -> Column:
    passes = [sf.coalesce(step.value, sf.lit(False)) for kind, step in steps if kind == "filter"]
    return balanced(and_, passes or [sf.lit(True)])
