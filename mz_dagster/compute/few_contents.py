"""Plans over little, in this process: all updates of them, from the beginning.

What a view is hydrated from is little, often, and so is what a query is asked of. All updates of the inputs before a
time are then read here and computed with (`few_operators`), those that came before the first time that matters being
taken to be at it. Nothing is looked up: a join's other inputs are here, and a state is empty before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute import few_operators
from mz_dagster.compute.delta_join import meeting_terms
from mz_dagster.compute.few_join import few_join
from mz_dagster.compute.few_linear import plan_schema
from mz_dagster.compute.few_operators import FewOperators
from mz_dagster.compute.frame import TIME
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    Physical,
    ReadCollection,
    SharedPlan,
    Staged,
    TemporalState,
    collections_read,
)
from mz_dagster.storage.local_shards import update_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Returns all updates of a collection that are to be known, under its own columns' names or others; columns whose
#: positions are not among those given, and rows that fail the predicates of the read, may be missing or NULL.
ReadHere = Callable[[ReadCollection, Collection[int]], pa.Table]


class FewContents(FewOperators):
    """Evaluates plans over little, from the beginning.

    Args:
        session: Returns where Spark evaluates; called when it has to.
        rows: Returns how many updates a collection has at most, of those that `read` returns.
        read: Returns them.
        as_of: The first time: updates before it are taken to be at it.
        upper: The first time that does not matter any more.
    """

    def __init__(
        self,
        session: Callable[[], SparkSession],
        rows: Callable[[GlobalId], int],
        read: ReadHere,
        as_of: int,
        upper: int,
    ) -> None:
        super().__init__(session, as_of, upper)
        self._rows = rows
        self._stored = read
        self._shared: dict[GlobalId, pa.Table] = {}

    def updates(self, node: Physical, shared: Sequence[SharedPlan] = ()) -> pa.Table | None:
        """Returns all updates of a plan from `as_of` on, not consolidated; None if it is left to Spark.

        They are a table with a column for each of the plan's, `c0`, `c1`, ..., then time, diff and error.

        Args:
            node: The plan.
            shared: What it reads beside collections, and these before it.
        """
        plans = [*(one.plan for one in shared), node]
        ids = {id for plan in plans for id in collections_read(plan)} - {one.id for one in shared}
        if sum(map(self._rows, ids)) > few_operators.MOST_CHANGES or not all(map(self._is_here, plans)):
            return None
        for one in shared:
            found = self._evaluated(one.plan)
            if found is None:
                return None
            self._shared[one.id] = found
        return self._evaluated(node)

    def _read(self, read: ReadCollection, used: Collection[int]) -> pa.Table:
        if read.id in self._shared:
            return self._shared[read.id]
        found = self._stored(read, used)
        position = found.column_names.index(TIME)
        times = pc.max_element_wise(found.column(TIME), self._lower)
        return found.set_column(position, found.schema.field(position), times)

    def _constant(self, node: ConstantRows) -> pa.Table:
        columns = node.relation_type.columns
        rows = update_table(columns, [(tuple(cell.value for cell in row), self._lower, 1) for row in node.rows])
        return rows.rename_columns(plan_schema(node).names)

    def _joined(self, node: DeltaJoin) -> pa.Table:
        inputs = [self._updates(one) for one in node.inputs]
        return few_join(node, inputs, meeting_terms(list(map(_span, inputs))), lambda i, j, by: inputs[j])

    def _held(self, node: Accumulate | Staged, keys: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        return plan_schema(node).empty_table()

    def _due(self, node: TemporalState) -> pa.Table:
        return plan_schema(node).empty_table()


def _span(updates: pa.Table) -> tuple[int, int] | None:
    """Returns the first and the last time of updates, None if there are none."""
    if not updates.num_rows:
        return None
    bounds = pc.min_max(updates.column(TIME)).as_py()
    return bounds["min"], bounds["max"]
