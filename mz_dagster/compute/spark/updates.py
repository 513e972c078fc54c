"""The operators on Spark over the updates of an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.compute.algebra.frame import with_positions
from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.spark.accumulate import accumulate_updates
from mz_dagster.compute.spark.constant import constant
from mz_dagster.compute.spark.delta_join import DeltaJoinRendering
from mz_dagster.compute.spark.histories import Histories
from mz_dagster.compute.spark.operators import LinearOperators, Read
from mz_dagster.compute.spark.staged import staged_updates
from mz_dagster.compute.spark.state import OwnState
from mz_dagster.compute.spark.temporal import temporal_updates
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    Linear,
    Physical,
    ReadCollection,
    Staged,
    TemporalState,
    collections_read,
    is_linear,
)
from mz_dagster.storage.arrow_schema import without_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Tells something of a collection's updates in the interval: that there are none, or that they are few enough to be
#: sent to all tasks.
Tells = Callable[[GlobalId], bool]


class UpdateOperators(LinearOperators):
    """Renders operators over the updates of an interval; what is provably empty is not planned.

    Args:
        session: Where the frames live.
        read: Reads collections.
        histories: What joins look up.
        lower: The beginning of the interval.
        upper: Its end.
        is_empty: Tells of a collection that it is known to have no updates in the interval.
        is_small: Tells of one that these are few enough to be sent to all tasks.
        own: The state of the operator that is the plan's root, before the interval; None if it has none.
        reads: Prunes lookups by key; None to look up whole histories.
    """

    def __init__(
        self,
        session: SparkSession,
        read: Read,
        histories: Histories,
        lower: int,
        upper: int,
        *,
        is_empty: Tells,
        is_small: Tells,
        own: OwnState | None,
        reads: StepReads | None,
    ) -> None:
        super().__init__(session, read)
        self._histories = histories
        self._lower = lower
        self._upper = upper
        self._is_empty = is_empty
        self._is_small = is_small
        self._own = own
        self._reads = reads

    def read(self, node: ReadCollection, user: Physical, bound: Mapping[int, Column]) -> DataFrame | None:
        """Returns a collection's updates in the interval."""
        skips = self._reads is not None and self._reads.skips_all(node, self._lower, self._upper)
        if self._is_empty(node.id) or skips:
            return None
        return with_positions(self._read(node.id, self._lower, self._upper, node.where), node.relation_type)

    def constant(self, node: ConstantRows) -> DataFrame | None:
        """Returns the rows if the interval has the first time in it."""
        is_there = self._lower <= FIRST_TIME < self._upper and node.rows
        return constant(self._session, node) if is_there else None

    def join(
        self, node: DeltaJoin, inputs: Sequence[DataFrame | None], compared: tuple[Comparison, ...]
    ) -> DataFrame | None:
        """Returns the updates of a join, whose inputs' histories are looked up."""
        return DeltaJoinRendering(node).updates(
            inputs, self._histories, lambda i: all(map(self._is_small, collections_read(node.inputs[i])))
        )

    def accumulate(self, node: Accumulate, changes: DataFrame, known: pa.Table | None) -> DataFrame:
        """Returns the updates of counts and sums."""
        keys = self._keys(node.input, range(node.key_arity), known)
        return accumulate_updates(self._kept(changes, node.input, known), self._state, node, keys)

    def tournament(self, node: Staged, changes: DataFrame, known: pa.Table | None) -> DataFrame:
        """Returns the updates of a tournament, or of a window's groups."""
        keys = self._keys(node.input, node.group if node.monotonic else (), known)
        return staged_updates(self._kept(changes, node.input, known), self._state, node, keys)

    def temporal(self, node: TemporalState, changes: DataFrame | None) -> DataFrame | None:
        """Returns the updates of a temporal filter's state."""
        return temporal_updates(changes, self._state, node, self._lower, self._upper)

    def shared(self, frame: DataFrame) -> DataFrame:
        """Returns a frame that is computed once, where something keeps it."""
        return frame if self._reads is None else self._reads.shared(frame)

    def _kept(self, changes: DataFrame, input: Physical, known: pa.Table | None) -> DataFrame:
        """Returns changes that are computed once, if that takes more than to read them."""
        return changes if known is not None or is_linear(input) else self._state.kept(changes)

    def _keys(self, input: Physical, group: Sequence[int], known: pa.Table | None) -> pa.Table | None:
        """Returns the groups of what changes, if a state is looked up by them and this process can know them."""
        if not group or not self._state.prunes:
            return None
        if known is not None:
            return without_errors(known).select([f"c{position}" for position in group])
        if self._reads is None:
            return None
        positions = list(group)
        while isinstance(input, Linear):
            passed = [position for one in positions if (position := input.mfp.passed(one)) is not None]
            if len(passed) < len(positions):
                return None
            input, positions = input.input, passed
        if not isinstance(input, ReadCollection):
            return None
        return self._reads.changed_keys(input.id, positions, self._lower, self._upper)

    @property
    def _state(self) -> OwnState:
        if self._own is None:
            raise InternalError("a state operator is rendered without its state")
        return self._own
