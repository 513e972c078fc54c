"""The operators on Spark over the content at one time: all updates are at that time, of what came until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.compute.algebra.frame import at_time, with_positions
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.spark.accumulate import accumulate_snapshot
from mz_dagster.compute.spark.constant import constant
from mz_dagster.compute.spark.delta_join import DeltaJoinRendering
from mz_dagster.compute.spark.operators import LinearOperators, Read
from mz_dagster.compute.spark.staged import staged_snapshot
from mz_dagster.compute.spark.temporal import temporal_snapshot
from mz_dagster.errors import InternalError
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    Physical,
    ReadCollection,
    Staged,
    TemporalState,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class ContentOperators(LinearOperators):
    """Renders operators over contents.

    Args:
        session: Where the frames live.
        read: Reads collections.
        as_of: When.
        reads: Keeps what is used several times; None if nothing is kept.
    """

    def __init__(self, session: SparkSession, read: Read, as_of: int, reads: StepReads | None) -> None:
        super().__init__(session, read)
        self._as_of = as_of
        self._reads = reads

    def read(self, node: ReadCollection, user: Physical, bound: Mapping[int, Column]) -> DataFrame:
        """Returns a collection's content."""
        frame = with_positions(self._read(node.id, None, self._as_of + 1, node.where), node.relation_type)
        return at_time(frame, node.relation_type.arity, self._as_of)

    def constant(self, node: ConstantRows) -> DataFrame:
        """Returns constant rows."""
        return constant(self._session, node, self._as_of)

    def join(self, node: DeltaJoin, inputs: Sequence[DataFrame | None], compared: tuple[Comparison, ...]) -> DataFrame:
        """Returns the content of a join."""
        frames = [one for one in inputs if one is not None]
        if len(frames) < len(inputs):
            raise InternalError("every operator has a content")
        return DeltaJoinRendering(node).snapshot(frames, self._as_of)

    def accumulate(self, node: Accumulate, changes: DataFrame, known: pa.Table | None) -> DataFrame:
        """Returns the counts and sums."""
        return accumulate_snapshot(changes, node, self._as_of)

    def tournament(self, node: Staged, changes: DataFrame, known: pa.Table | None) -> DataFrame:
        """Returns the state of a tournament, or of a window's groups."""
        return staged_snapshot(changes, node, self._as_of)

    def temporal(self, node: TemporalState, changes: DataFrame | None) -> DataFrame:
        """Returns the state of a temporal filter."""
        if changes is None:
            raise InternalError("every operator has a content")
        return temporal_snapshot(changes, node, self._as_of)

    def shared(self, frame: DataFrame) -> DataFrame:
        """Returns a frame that is computed once, where something keeps it."""
        return frame if self._reads is None else self._reads.shared(frame)
