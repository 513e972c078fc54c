"""Plans over few updates of an interval, in this process, with Spark to find what they meet.

What changes in a step is little, mostly. So updates are read here and computed with (`few_operators`), and what Spark
does is to find, in what is large, the rows of keys that are known. So it is with more, where joins leave little of it.

What a lookup reads, the cheapest that will do: a collection that is little whole, once for all lookups; what several
joins of a step ask for alike, as `common_lookups` has it; the files of the keys, if these have few rows; else a query.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.compute import few_operators
from mz_dagster.compute.common_lookups import Path, leaf, passed_down, path, used_columns
from mz_dagster.compute.constant import FIRST_TIME
from mz_dagster.compute.delta_join import meeting_terms
from mz_dagster.compute.few_join import NotFew, few_join
from mz_dagster.compute.few_linear import plan_schema
from mz_dagster.compute.few_operators import FewOperators
from mz_dagster.compute.frame import with_positions
from mz_dagster.compute.histories import linear_over, span
from mz_dagster.compute.lookup_keys import LookupKeys, is_key
from mz_dagster.compute.step_reads import HERE_CELLS, StepReads
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.lowering import estimated_updates
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
    identity,
    physical_inputs,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Of more changes no joins are made here, which Arrow makes of tables, even if they leave little.
MOST_JOINED_CHANGES = 200_000
#: A collection of up to so many rows is read whole.
WHOLE_ROWS = 20_000


class FewPlans(FewOperators):
    """Evaluates plans over few updates of an interval, for the step of one collection.

    Args:
        session: Returns where Spark evaluates; called when it has to.
        reads: Reads collections.
        lower: The beginning of the interval, after the first time.
        upper: Its end.
        own: The collection that is stepped, which has been hydrated: if a state is the root of its plan, its state.
    """

    def __init__(
        self, session: Callable[[], SparkSession], reads: StepReads, lower: int, upper: int, own: ReadCollection
    ) -> None:
        super().__init__(session, lower, upper)
        self._reads = reads
        self._own = own
        self._whole: dict[object, pa.Table] = {}

    def updates(self, node: Physical) -> pa.Table | None:
        """Returns the updates of a plan in the interval, not consolidated; None if it is left to Spark.

        They are a table with a column for each of the plan's, `c0`, `c1`, ..., then time, diff and error.
        """
        if self._lower <= FIRST_TIME or not self._are_few(node) or not self._is_here(node):
            return None
        return self._evaluated(node)

    def _are_few(self, node: Physical) -> bool:
        """Returns whether little changed for a plan, or joins, as their sizes suggest, leave little of it."""

        def new(id: GlobalId) -> int:
            return self._reads.new_rows(id, self._lower, self._upper)

        changes = sum(map(new, collections_read(node)))
        if changes <= few_operators.MOST_CHANGES:
            return True
        left = estimated_updates(node, lambda id: self._reads.rows(id, self._upper), new)
        return has_join(node) and changes <= MOST_JOINED_CHANGES and left <= few_operators.MOST_CHANGES

    def _is_met_here(self, node: Physical) -> bool:
        return leaf(node) is not None

    def _read(self, read: ReadCollection, used: Collection[int]) -> pa.Table:
        if self._reads.skips_all(read, self._lower, self._upper):
            return plan_schema(read).empty_table()
        return self._reads.few_rows(read.id, self._lower, self._upper, used)

    def _constant(self, node: ConstantRows) -> pa.Table:
        return plan_schema(node).empty_table()  # the interval begins after they came

    def _joined(self, node: DeltaJoin) -> pa.Table:
        changes = [self._updates(one) for one in node.inputs]
        if not any(one.num_rows for one in changes):
            return plan_schema(node).empty_table()
        meeting = meeting_terms([span(one, self._upper, self._reads) for one in node.inputs])
        return few_join(node, changes, meeting, lambda i, j, by: self._met(node.inputs[j], by, path(node, i, j)))

    def _held(self, node: Accumulate | Staged, keys: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        return self._met(self._own, keys, None)

    def _due(self, node: TemporalState) -> pa.Table:
        own = self._own
        if not self._reads.changes_by_itself(own.id, self._upper):
            return plan_schema(node).empty_table()
        if self._reads.rows(own.id, self._upper) * own.relation_type.arity > HERE_CELLS:
            raise NotFew("much may fall due")
        return self._all(own, own)

    def _met(self, node: Physical, by: Mapping[int, pa.ChunkedArray], common: Path | None) -> pa.Table:
        """Returns the updates of a join's input, before the end of the interval, that values of its columns meet."""
        read = leaf(node)
        assert read is not None
        if self._reads.rows(read.id, self._upper) <= WHOLE_ROWS:
            return self._all(node, read)
        columns = read.relation_type.columns
        bound = {below: values for k, values in by.items() if (below := passed_down(node, k)) is not None}
        usable = {k: bound[k] for k in sorted(bound) if is_key(columns[k])}
        if not usable:
            raise NotFew("nothing tells which rows of much are asked for")
        if common is not None:
            shared = self._reads.common_rows(common, self._lower, self._upper)
            if shared is not None:
                return self._over(node, shared)
        keys = LookupKeys.of(
            {k: columns[k] for k in usable}, [pa.table({str(k): values for k, values in usable.items()})]
        )
        found = self._reads.few_found(read.id, self._upper, keys, used_columns(node), read.where)
        if found is not None:
            return self._over(node, found.rename_columns(plan_schema(read).names))
        frame = with_positions(self._reads.find(read.id, self._upper, keys, read.where), read.relation_type)
        return self._fetched(linear_over(node, frame), node)

    def _all(self, node: Physical, read: ReadCollection) -> pa.Table:
        """Returns all updates of what is linear over a little collection, before the end of the interval."""
        known = identity(node)
        if known not in self._whole:
            rows = self._reads.few_rows(read.id, None, self._upper, used_columns(node), read.where)
            self._whole[known] = self._over(node, rows.rename_columns(plan_schema(read).names))
        return self._whole[known]

    def _over(self, node: Physical, rows: pa.Table) -> pa.Table:
        """Returns the updates of what is linear over a collection, in the place of which a table stands."""
        return self._linear(node, self._over(node.input, rows)) if isinstance(node, Linear) else rows


def has_join(node: Physical) -> bool:
    """Returns whether a plan has a join."""
    return isinstance(node, DeltaJoin) or any(map(has_join, physical_inputs(node)))
