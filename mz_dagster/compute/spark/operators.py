"""The operators on Spark that are the same for the updates of an interval, a content and a history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.spark.catch import catch
from mz_dagster.compute.spark.linear import linear
from mz_dagster.compute.spark.negate import negate
from mz_dagster.compute.spark.repeat import repeat
from mz_dagster.compute.spark.union import union
from mz_dagster.compute.spark.unnest import unnest
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import Catch, DeltaJoin, Linear, NegateAll, Physical, Repeat, UnionAll, Unnest
from mz_dagster.scalars.scalar import Scalar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Returns the updates of a collection with `lower <= time < upper`, None being no bound: its shard's data columns under
#: their names, then `mz_timestamp`, `mz_diff` and `mz_error`. Rows that fail the predicates, which are over the
#: collection's columns, may be missing.
Read = Callable[[GlobalId, int | None, int, Sequence[Scalar]], "DataFrame"]


class LinearOperators:
    """Renders linear operators, which treat each update by itself.

    Args:
        session: Where the frames live.
        read: Reads collections.
    """

    def __init__(self, session: SparkSession, read: Read) -> None:
        self._session = session
        self._read = read

    def compared(self, node: DeltaJoin, user: Physical) -> tuple[Comparison, ...]:
        """Returns nothing: Spark's optimizer sees what is above a join."""
        return ()

    def is_empty(self, frame: DataFrame) -> bool:
        """Returns False: a frame only says what is to be computed."""
        return False

    def linear(self, node: Linear, below: DataFrame) -> DataFrame:
        """Returns what a map, filter and project makes of updates."""
        return linear(below, node.mfp)

    def negate(self, node: NegateAll, below: DataFrame) -> DataFrame:
        """Returns updates with the opposite diffs."""
        return negate(below, node.relation_type.arity)

    def union(self, node: UnionAll, parts: Sequence[DataFrame]) -> DataFrame:
        """Returns all updates of some frames."""
        return union(parts)

    def repeat(self, node: Repeat, below: DataFrame) -> DataFrame:
        """Returns updates with their diffs times a column."""
        return repeat(below, node.count, node.input.relation_type.arity)

    def catch(self, node: Catch, below: DataFrame) -> DataFrame:
        """Returns updates in which errors are rows."""
        return catch(below, node.input.relation_type.arity)

    def unnest(self, node: Unnest, below: DataFrame) -> DataFrame:
        """Returns updates with elements in the places of arrays."""
        return unnest(below, node)
