"""The operators of this process over all updates from the beginning on.

What a view is hydrated from is little, often, and so is what a query is asked of. All updates of the inputs before a
time are then read here, those that came before the first time that matters being taken to be at it. Nothing is looked
up: a join's other inputs are here, and a state is empty before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.algebra.delta_terms import meeting_terms
from mz_dagster.compute.algebra.frame import TIME
from mz_dagster.compute.local.join import compacted, join_updates
from mz_dagster.compute.local.linear_operators import constant, no_updates_of, plan_schema
from mz_dagster.compute.local.operators import LinearElsewhere, LocalOperators
from mz_dagster.compute.lookups.common_lookups import used_columns
from mz_dagster.formalism import GlobalId
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
from mz_dagster.storage.arrow_schema import without_error_data

#: Returns all updates of a collection that are to be known, in at least one table: all at once, or about so many rows
#: at a time, where it is told how many. They are under the collection's columns' names or others; columns whose
#: positions are not among those given, and rows that fail the predicates of the read, may be missing or NULL.
ReadTables = Callable[[ReadCollection, Collection[int], int | None], Iterable[pa.Table]]


class ContentOperators(LocalOperators):
    """Computes operators over all updates.

    Args:
        elsewhere: Computes maps, filters and projections that are not this process's.
        read: Returns a collection's updates.
        as_of: The first time: updates before it are taken to be at it.
        upper: The first time that does not matter any more.

    Attributes:
        shared_plans: What is read in the place of collections.
    """

    def __init__(self, elsewhere: LinearElsewhere, read: ReadTables, as_of: int, upper: int) -> None:
        super().__init__(elsewhere, as_of, upper)
        self._read_tables = read
        self.shared_plans: dict[GlobalId, pa.Table] = {}

    def _stored(self, read: ReadCollection, used: Collection[int]) -> pa.Table:
        return pa.concat_tables(self._stored_parts(read, used, None))

    def read_parts(self, node: ReadCollection, user: Physical, rows: int) -> Iterator[pa.Table]:
        """Yields what `read` returns, about so many rows at a time: as much as is in files of so many."""
        for found in self._stored_parts(node, used_columns(user), rows):
            yield without_error_data(found.rename_columns(plan_schema(node).names))

    def _stored_parts(self, read: ReadCollection, used: Collection[int], rows: int | None) -> Iterator[pa.Table]:
        if read.id in self.shared_plans:
            yield self.shared_plans[read.id]
            return
        for found in self._read_tables(read, used, rows):
            position = found.column_names.index(TIME)
            times = pc.max_element_wise(found.column(TIME), self._lower)
            yield found.set_column(position, found.schema.field(position), times)

    def constant(self, node: ConstantRows) -> pa.Table:
        """Returns the rows, at the first time."""
        return constant(node, self._lower)

    def join(
        self,
        node: DeltaJoin,
        inputs: Sequence[pa.Table | None],
        compared: tuple[Comparison, ...],
        failing: Collection[int] | None = None,
        *,
        sums: bool = True,
    ) -> pa.Table:
        """Returns the updates of a join, all of whose inputs are here, with the errors of those inputs, or of all.

        Equal ones of the inputs may be summed first: see `join_updates`.
        """
        tables = [
            no_updates_of(one) if found is None else compacted(found, self._lower)
            for one, found in zip(node.inputs, inputs, strict=True)
        ]
        meeting = meeting_terms(list(map(_span, tables)))
        return join_updates(node, tables, meeting, lambda i, j, sought: tables[j], compared, failing, sums=sums)

    def _held(self, node: Accumulate | Staged, keys: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        return no_updates_of(node)

    def _due(self, node: TemporalState) -> pa.Table:
        return no_updates_of(node)


def _span(updates: pa.Table) -> tuple[int, int] | None:
    """Returns the first and the last time of updates, None if there are none."""
    if not updates.num_rows:
        return None
    bounds = pc.min_max(updates.column(TIME)).as_py()
    return bounds["min"], bounds["max"]
