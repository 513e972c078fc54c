"""The content of a plan at one time, its shared subplans computed once.

A shared subplan is cut off from what reads it: Spark would otherwise repeat it, text and work, for each use, and for
each use of what uses it. What is left on the server goes when nobody holds the frame any more.

What cancels in it is summed first: a row that an outer join retracts again would be multiplied by the next one.

Cost: beyond the plan's own, a shared subplan's rows, kept on the executors, and a shuffle of those that may cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import META, by_position, named, positional, with_names
from mz_dagster.compute.spark.consolidate import consolidate
from mz_dagster.compute.spark.operators import Read
from mz_dagster.compute.walk.render import Renderer
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import Physical, SnapshotPlan, may_cancel
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.storage.spark import checkpointed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def snapshot(session: SparkSession, read: Read, plan: SnapshotPlan, as_of: int) -> DataFrame:
    """Returns the content of `plan` at `as_of`, as updates at `as_of`; runs what is shared as far as shuffles go.

    Args:
        session: The session to run on.
        read: Returns the updates of a collection with `lower <= time < upper`.
        plan: What to compute.
        as_of: When; every collection that is read must be readable there.
    """
    shared: dict[GlobalId, DataFrame] = {}

    def read_or_shared(id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar]) -> DataFrame:
        return shared[id] if id in shared else read(id, lower, upper, where)

    renderer = Renderer(session, read_or_shared)
    for one in plan.shared:
        frame = renderer.snapshot(one.plan, as_of)
        shared[one.id] = _cut_off(session, _consolidated(frame, one.plan) if may_cancel(one.plan) else frame)
    return renderer.snapshot(plan.output, as_of)


def _consolidated(frame: DataFrame, plan: Physical) -> DataFrame:
    """Returns the rows of `plan` without those that cancel, which each use would join with others that do."""
    columns = by_position(plan.relation_type)
    total = consolidate(frame.toDF(*positional(len(columns)), *META), columns)
    return with_names(total, plan.relation_type)


def _cut_off(session: SparkSession, frame: DataFrame) -> DataFrame:
    """Returns the rows of `frame` without how they came about.

    By way of a view: the command that cuts a frame off cannot carry a deep plan, protobuf's parser giving up on it.
    """
    name = named(frame)
    try:
        return checkpointed(session.table(name), eager=False)
    finally:
        session.catalog.dropTempView(name)
