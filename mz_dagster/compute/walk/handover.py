"""What one engine hands to the other, counted: the one place where a table becomes a frame or a frame a table.

Each handover is a round trip to Spark, a tenth of a second and more; a step's report has how many there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import by_position, ensure_exact
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.linear_operators import plan_schema
from mz_dagster.compute.placement.supported import unsupported_in
from mz_dagster.compute.spark.linear import linear
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.plan.operators import operator_name
from mz_dagster.plan.physical import Linear, Physical
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.storage.spark import frame_of_rows
from mz_dagster.storage.spark_shards import update_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Handover:
    """Hands frames from one engine to the other.

    Args:
        spark: Opens Spark, told why, and counts.

    Attributes:
        because: Why Spark has a part in what was asked last; empty if it has none.
    """

    def __init__(self, spark: SparkUse) -> None:
        self._spark = spark
        self._placed: Placement | None = None
        self.because = ""

    def begin(self, placed: Placement) -> None:
        """Notes who computes the plan that is asked for now."""
        self._placed, self.because = placed, placed.because
        self._spark.placements.append(placed)

    def hand(self, part: Placement) -> None:
        """Notes a part of it that is Spark's, and why."""
        self.because = part.why
        if part not in self._spark.placements:
            self._spark.placements.append(part)

    def decline(self, why: str) -> None:
        """Notes that it is Spark's after all, as was found on the way."""
        self.because = why
        if self._placed is not None:
            found = f"it was found while it was computed that {why}"
            self._spark.placements.append(Placement(self._placed.subtree, True, 0, 0, "", found))

    def to_spark(self, table: pa.Table, columns: RelationType) -> DataFrame:
        """Returns updates of this process as an operator's frame."""
        session = self._spark.session(self.because)
        ensure_exact(session)
        self._spark.handovers += 1
        return frame_of_rows(session, table, update_schema(by_position(columns)))

    def to_this_process(self, frame: DataFrame, node: Physical) -> pa.Table:
        """Returns updates of a node that Spark computes.

        Raises:
            Declined: They are more than `Budget.fetched_rows`.
        """
        found = self._fetched(frame, by_position(node.relation_type), budget().fetched_rows)
        if found is None:
            raise Declined("a lookup finds much")
        return found.cast(plan_schema(node))

    def to_be_written(self, frame: DataFrame, columns: Sequence[Column]) -> pa.Table | None:
        """Returns updates that Spark computes, for this process to write; None if more than `Budget.written_updates`.

        A write by Spark costs the jobs of a Delta commit, however little there is to write: a second or two, ten times
        what an append in this process costs. Whether a result is little shows when it is there; if it is not, Spark
        computes it again to write it. So this is for results that are likely to be little: where little was read.

        Args:
            frame: Its columns are `columns`, under their names and in their order, then time, diff and error.
            columns: The data columns.
        """
        return self._fetched(frame, columns, budget().written_updates)

    def linear(self, node: Linear, below: pa.Table) -> pa.Table:
        """Returns what Spark makes of updates by a map, filter and project."""
        rows = below.num_rows
        left = unsupported_in(node.mfp)
        why = left or f"scalars of {rows} rows are evaluated, many row by row"
        name = "" if left else "frame_rows" if rows > budget().frame_rows else "scalar_rows"
        most = getattr(budget(), name) if name else 0
        self.hand(Placement(f"{operator_name(node)}, a handover", True, rows, most, name, why))
        return self.to_this_process(linear(self.to_spark(below, node.input.relation_type), node.mfp), node)

    def _fetched(self, frame: DataFrame, columns: Sequence[Column], most: int) -> pa.Table | None:
        # Without the limit a result of any size would go through the memory of both processes; without being told the
        # columns, the client would have the whole plan analyzed once more to know them.
        self._spark.handovers += 1
        found = frame.limit(most + 1).to(update_schema(columns)).toArrow()
        self._spark.resume()
        return found if found.num_rows <= most else None
