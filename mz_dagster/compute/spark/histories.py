"""Histories: all updates before a time of what is linear over collections, as the lookups of a join need them.

Keys go down from an input of a join to the collections that it reads: a column that a linear operator only passes on
binds the column below it, and of a large collection whose columns are bound so, only the rows of the keys are read.
What is returned then lacks updates of other keys, and may have some, so the join still compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME, columns_at, with_positions
from mz_dagster.compute.algebra.lineage import passed_inputs
from mz_dagster.compute.lookups.common_lookups import path
from mz_dagster.compute.lookups.spans import span
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.spark.constant import constant
from mz_dagster.compute.spark.linear import linear
from mz_dagster.compute.spark.operators import LinearOperators, Read
from mz_dagster.errors import InternalError
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
    physical_inputs,
)
from mz_dagster.plan.rewriting import can_fail
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_ARRANGED = "the history of this operator is an arrangement's, not computed"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a lookup.

    Attributes:
        frame: A row for each key, which may repeat.
        by_position: For columns of what is looked up: the column of `frame` that they must equal.
    """

    frame: DataFrame
    by_position: Mapping[int, Column]


class HistoryOperators(LinearOperators):
    """Renders linear operators over all updates before a time.

    Args:
        session: Where the frames live.
        read: Reads collections.
        upper: The first time that is too late.
        reads: Prunes lookups by key; None to read everything.
        keys: A row for each key that is looked up, which may repeat; None to read everything.
    """

    def __init__(
        self, session: SparkSession, read: Read, upper: int, reads: StepReads | None, keys: DataFrame | None
    ) -> None:
        super().__init__(session, read)
        self._upper = upper
        self._reads = reads
        self._keys = keys

    def read(self, node: ReadCollection, user: Physical, bound: Mapping[int, Column]) -> DataFrame:
        """Returns a collection's updates; of those whose columns are bound, at least those that a key has."""
        if self._reads is not None and self._keys is not None:
            found = self._reads.lookup(node.id, self._upper, self._keys, bound, node.where)
            if found is not None:
                return with_positions(found, node.relation_type)
        return with_positions(self._read(node.id, None, self._upper, node.where), node.relation_type)

    def constant(self, node: ConstantRows) -> DataFrame:
        """Returns constant rows."""
        return constant(self._session, node)

    def join(self, node: DeltaJoin, inputs: Sequence[DataFrame | None], compared: tuple[Comparison, ...]) -> DataFrame:
        """Raises `InternalError`: a history has none."""
        raise InternalError(_ARRANGED)

    def accumulate(self, node: Accumulate, changes: DataFrame, known: pa.Table | None) -> DataFrame:
        """Raises `InternalError`: a history has none."""
        raise InternalError(_ARRANGED)

    def tournament(self, node: Staged, changes: DataFrame, known: pa.Table | None) -> DataFrame:
        """Raises `InternalError`: a history has none."""
        raise InternalError(_ARRANGED)

    def temporal(self, node: TemporalState, changes: DataFrame | None) -> DataFrame:
        """Raises `InternalError`: a history has none."""
        raise InternalError(_ARRANGED)

    def shared(self, frame: DataFrame) -> DataFrame:
        """Returns the frame."""
        return frame


#: Computes a plan of linear operators with those of a history, told which columns are restricted to the keys.
WalkHistory = Callable[[HistoryOperators, Physical, "Mapping[int, Column]"], "DataFrame"]


class Histories:
    """Reads histories up to the end of an interval.

    Args:
        session: Where constants live.
        read: Reads collections.
        walk: Computes what is linear.
        lower: The beginning of the interval.
        upper: Its end.
        reads: Prunes lookups by key; None to read everything.
    """

    def __init__(
        self,
        session: SparkSession,
        read: Read,
        walk: WalkHistory,
        lower: int,
        upper: int,
        reads: StepReads | None = None,
    ) -> None:
        self._session = session
        self._walk = walk
        self._read = read
        self._lower = lower
        self._upper = upper
        self._reads = reads

    def of(self, node: Physical, keys: Keys | None = None) -> DataFrame:
        """Returns all updates of `node`, a tree of linear operators.

        Given keys, those of others and those of the error part may be missing.
        """
        frame = None if keys is None else keys.frame
        operators = HistoryOperators(self._session, self._read, self._upper, self._reads, frame)
        return self._walk(operators, node, {} if keys is None else keys.by_position)

    def of_late(self, node: Physical) -> DataFrame:
        """Returns what `of` does, with all times before the interval put at its beginning, so that more cancels."""
        moved = sf.greatest(sf.col(TIME), sf.lit(self._lower - 1).cast("bigint")).alias(TIME)
        return self.of(node).select(*columns_at(node.relation_type.arity), moved, DIFF, ERROR)

    def common(self, join: DeltaJoin, i: int, j: int) -> DataFrame | None:
        """Returns all updates of input j that updates of input i in the interval can meet, and perhaps others.

        None if the lookup is not one to be made by what changed alone (`CommonLookups.of`).
        """
        by = None if self._reads is None else path(join, i, j)
        found = None if by is None or self._reads is None else self._reads.common(by, self._lower, self._upper)
        return None if found is None else linear_over(join.inputs[j], found)

    def span(self, node: Physical) -> tuple[int, int] | None:
        """Returns bounds of the times of all updates of `node`, None if there are none; no job."""
        return span(node, self._upper, self._reads)

    def may_have_errors(self, node: Physical, *, is_change: bool) -> bool:
        """Returns whether updates of `node` may be of the error part; no job.

        Args:
            node: A tree of linear operators.
            is_change: Whether the interval's are asked about, or all before its end.
        """
        if self._reads is None:
            return True
        match node:
            case ReadCollection():
                return self._reads.may_have_errors(node.id, self._lower if is_change else None, self._upper)
            case Linear() if any(can_fail(scalar) for _, scalar in node.mfp.steps):
                return True
            case DeltaJoin() | Accumulate() | Staged() | TemporalState():
                return True
            case _:
                return any(self.may_have_errors(one, is_change=is_change) for one in physical_inputs(node))

    def prunes(self, node: Physical, positions: Sequence[int]) -> bool:
        """Returns whether a lookup in `node` by the columns at `positions` should begin with its keys; no job."""
        if self._reads is None:
            return False
        if isinstance(node, ReadCollection):
            return self._reads.prunes(node.id, self._upper, positions)
        return any(
            self.prunes(one, [p for p in map(passes, positions) if p is not None])
            for one, passes in passed_inputs(node)
        )

    def is_large(self, node: Physical) -> bool:
        """Returns whether to read `node` whole costs more than to see first whether anything looks for it."""
        if self._reads is None:
            return False
        return sum(self._reads.rows(id, self._upper) for id in collections_read(node)) > budget().large_rows

    def shared(self, frame: DataFrame) -> DataFrame:
        """Returns the frame, computed only once however often it is used."""
        return frame if self._reads is None else self._reads.shared(frame)


def linear_over(node: Physical, leaf: DataFrame) -> DataFrame:
    """Returns the updates of what is linear over a collection, in the place of which a frame stands."""
    return linear(linear_over(node.input, leaf), node.mfp) if isinstance(node, Linear) else leaf
