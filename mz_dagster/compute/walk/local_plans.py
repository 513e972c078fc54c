"""Plans of little, in this process: what of a plan is placed here, walked with the operators of `local`.

To have Spark compute with little costs a tenth of a second and more for each query, before a row is looked at. Which
plans are this process's is `placement`'s to say, before anything runs; where an operator finds more on the way than was
to be expected, the plan is Spark's after all. What is wrong with the data is told here, as Spark tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import with_positions
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.local.content import ContentOperators, ReadTables
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.linear_operators import no_updates_of
from mz_dagster.compute.local.updates import MUCH_DUE, UpdateOperators
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.placement.choice import placed_from_start, placed_in_step
from mz_dagster.compute.spark.histories import linear_over
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.walk.handover import Handover
from mz_dagster.compute.walk.operators import Handed, Walk
from mz_dagster.compute.walk.portions import ContentWalk
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import Physical, ReadCollection, SharedPlan, TemporalState, may_cancel
from mz_dagster.storage.arrow_schema import without_error_data
from mz_dagster.storage.consolidation import summed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LocalUpdates:
    """Computes plans over the updates of an interval, for the step of one collection.

    Args:
        spark: Opens Spark for what it has a part in.
        reads: Reads collections.
        lower: The beginning of the interval.
        upper: Its end.
        own: The collection that is stepped, which has been hydrated: if a state is the root of its plan, its state.
    """

    def __init__(self, spark: SparkUse, reads: StepReads, lower: int, upper: int, own: ReadCollection) -> None:
        self._spark = spark
        self._reads = reads
        self._lower = lower
        self._upper = upper
        self._handover = Handover(spark)
        self._operators = UpdateOperators(self._handover.linear, self._looked_up, reads, lower, upper, own)
        self._walk = Walk(self._operators, costs=spark.costs)

    @property
    def spark_because(self) -> str:
        """Why Spark has a part in what was asked last; empty if it has none."""
        return self._handover.because

    def updates(self, node: Physical) -> pa.Table | None:
        """Returns the updates of a plan in the interval, not consolidated; None if it is left to Spark.

        They are a table with a column for each of the plan's, `c0`, `c1`, ..., then time, diff and error.
        """
        placed = placed_in_step(node, self._lower, lambda id: self._reads.new_rows(id, self._lower, self._upper))
        if not placed.is_spark and isinstance(node, TemporalState) and self._operators.is_much_due():
            placed = replace(placed, is_spark=True, threshold="decoded_cells", why=MUCH_DUE)
        self._handover.begin(placed)
        if placed.is_spark:
            return None
        self._spark.resume()
        return _computed(self._walk, node, self._handover)

    def taken_over(self, node: Physical) -> Handed[DataFrame] | None:
        """Returns the updates of a part of a plan that Spark computes, None if they are left to Spark, too."""
        found = self.updates(node)
        if found is None:
            return None
        return Handed(self._handover.to_spark(found, node.relation_type) if found.num_rows else None, found)

    def _looked_up(self, node: Physical, read: ReadCollection, keys: LookupKeys) -> pa.Table:
        """Returns what Spark finds of keys in a collection, and makes of it by what is linear."""
        size = self._reads.rows(read.id, self._upper)
        why = f"a lookup in {size} updates decodes much"
        most = budget().decoded_cells
        self._handover.hand(Placement(f"lookup in {read.name or read.id}", True, size, most, "decoded_cells", why))
        self._spark.open(why)
        frame = with_positions(self._reads.find(read.id, self._upper, keys, read.where), read.relation_type)
        return self._handover.to_this_process(linear_over(node, frame), node)


class LocalContents:
    """Computes plans over all updates of little, from the beginning.

    Args:
        spark: Opens Spark for what it has a part in.
        rows: Returns how many updates a collection has at most, of those that `read` returns.
        read: Returns them, all at once or a part at a time.
        as_of: The first time: updates before it are taken to be at it.
        upper: The first time that does not matter any more.
    """

    def __init__(
        self, spark: SparkUse, rows: Callable[[GlobalId], int], read: ReadTables, as_of: int, upper: int
    ) -> None:
        self._rows = rows
        self._handover = Handover(spark)
        self._operators = ContentOperators(self._handover.linear, read, as_of, upper)
        self._walk = ContentWalk(self._operators, rows, as_of, spark.costs)

    @property
    def spark_because(self) -> str:
        """Why Spark has a part in what was asked last; empty if it has none."""
        return self._handover.because

    def updates(self, node: Physical, shared: Sequence[SharedPlan] = ()) -> pa.Table | None:
        """Returns all updates of a plan from `as_of` on, not consolidated; None if it is left to Spark.

        They are a table with a column for each of the plan's, `c0`, `c1`, ..., then time, diff and error.

        Args:
            node: The plan.
            shared: What it reads beside collections, and these before it.
        """
        placed = placed_from_start(node, shared, self._rows)
        self._handover.begin(placed)
        if placed.is_spark:
            return None
        for one in shared:
            found = _computed(self._walk, one.plan, self._handover)
            if found is None:
                return None
            self._operators.shared_plans[one.id] = summed(found) if may_cancel(one.plan) else found
        return _computed(self._walk, node, self._handover)


def _computed(walk: Walk[pa.Table], node: Physical, handover: Handover) -> pa.Table | None:
    """Returns the updates of a plan that is placed here; None if an operator declines."""
    try:
        found = walk.frame(node)
    except Declined as why:
        handover.decline(str(why))
        return None
    return no_updates_of(node) if found is None else without_error_data(found)
