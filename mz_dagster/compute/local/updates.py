"""The operators of this process over the updates of an interval, in the step of one collection.

What changes in a step is little, mostly. So updates are read here and computed with, and what Spark does is to find, in
what is large, the rows of keys that are known. So it is with more, where joins leave little of it.

What a lookup reads, the cheapest that will do: a collection that is little whole, once for all lookups; what several
joins of a step ask for alike, as `common_lookups` has it; the files of the keys, if these have few rows; else a query.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial, reduce
from operator import and_, ge, gt, le, lt
from typing import Any

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.catalog import in_shard
from mz_dagster.compute.algebra.delta_terms import meeting_terms
from mz_dagster.compute.algebra.each_update import of_each_update
from mz_dagster.compute.algebra.lineage import passed_inputs
from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.local.computed_keys import computed_key
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.join import Sought, ValueBound, compacted, join_updates
from mz_dagster.compute.local.linear_operators import constant, no_updates_of, plan_schema
from mz_dagster.compute.local.operators import LinearElsewhere, LocalOperators, of_one_sign
from mz_dagster.compute.lookups.common_lookups import LookupPath, leaf, passed_down, path, used_columns
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.compute.lookups.spans import span
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.errors import InternalError
from mz_dagster.plan.bounding import Comparison
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    EachUpdate,
    Linear,
    Physical,
    ReadCollection,
    Staged,
    TemporalState,
    UnionAll,
    identity,
)
from mz_dagster.plan.rewriting import can_fail, moved, reference
from mz_dagster.scalars.scalar import Scalar, columns_of
from mz_dagster.storage.numerics import stored_value
from mz_dagster.storage.plain_cells import stored_cells

#: The comparisons that say within what a column is.
_COMPARE = {"lt": lt, "le": le, "gt": gt, "ge": ge}
#: Returns the updates, before the end of the interval, of what is linear over a collection that keys of it meet.
LookupElsewhere = Callable[[Physical, ReadCollection, LookupKeys], pa.Table]

#: Why Spark looks for what falls due.
MUCH_DUE = "much may fall due"


class UpdateOperators(LocalOperators):
    """Computes operators over the updates of an interval that begins after the first time.

    Args:
        elsewhere: Computes maps, filters and projections that are not this process's.
        looked_up: Looks up by keys what this process does not; `Declined` if it finds too much.
        reads: Reads collections.
        lower: The beginning of the interval.
        upper: Its end.
        own: The collection that is stepped, which has been hydrated: if a state is the root of its plan, its state.
    """

    def __init__(
        self,
        elsewhere: LinearElsewhere,
        looked_up: LookupElsewhere,
        reads: StepReads,
        lower: int,
        upper: int,
        own: ReadCollection,
    ) -> None:
        super().__init__(elsewhere, lower, upper)
        self._looked_up = looked_up
        self._reads = reads
        self._own = own
        self._whole: dict[object, pa.Table] = {}

    def _stored(self, read: ReadCollection, used: Collection[int]) -> pa.Table:
        if self._reads.skips_all(read, self._lower, self._upper):
            return no_updates_of(read)
        return self._reads.read_table(read.id, self._lower, self._upper, used)

    def read(self, node: ReadCollection, user: Physical, bound: Mapping[int, Any]) -> pa.Table | None:
        """Returns a collection's updates in the interval; None if no batch has any."""
        return super().read(node, user, bound) if self._reads.new_rows(node.id, self._lower, self._upper) else None

    def constant(self, node: ConstantRows) -> None:
        """Returns nothing: the interval begins after they came."""

    def join(self, node: DeltaJoin, inputs: Sequence[pa.Table | None], compared: tuple[Comparison, ...]) -> pa.Table:
        """Returns the updates of a join, whose inputs' histories are looked up."""
        # What cancels out, as an update of a column that the join does not read, need not be looked up.
        changes = [
            no_updates_of(one) if found is None else of_one_sign(found)
            for one, found in zip(node.inputs, inputs, strict=True)
        ]
        if not any(one.num_rows for one in changes):
            return no_updates_of(node)
        meeting = meeting_terms([span(one, self._upper, self._reads) for one in node.inputs])
        known: dict[int, tuple[pa.Table, pa.Table]] = {}

        def lookup(i: int, j: int, sought: Sought) -> pa.Table:
            if self._is_little(node.inputs[j]):
                return self._little(node.inputs[j])
            found = self._history(node.inputs[j], sought, path(node, i, j))
            if j not in known or known[j][0] is not found:
                known[j] = found, compacted(found, self._lower - 1)
            return known[j][1]

        return join_updates(node, changes, meeting, lookup, compared)

    def _history(self, node: Physical, sought: Sought, common: LookupPath | None = None) -> pa.Table:
        """Returns the updates of a join's input, before the end of the interval, that values of its columns meet.

        What it is made of is looked up by the columns that are only passed on.
        """
        if leaf(node) is not None:
            return self._found(node, sought, common)
        if isinstance(node, ConstantRows):
            return constant(node, FIRST_TIME)
        below = []
        for one, passes in passed_inputs(node):
            columns = {passes(position): values for position, values in sought.columns.items()}
            computed = [(_passed(scalar, passes), values) for scalar, values in sought.computed]
            known = Sought(
                {k: values for k, values in columns.items() if k is not None},
                [(scalar, values) for scalar, values in computed if scalar is not None],
            )
            below.append(self._history(one, known))
        if isinstance(node, UnionAll):
            return self.union(node, below)
        if isinstance(node, EachUpdate):
            return of_each_update(self, node, below[0])
        raise InternalError("the history of this operator is an arrangement's, not computed")

    def _held(self, node: Accumulate | Staged, keys: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        # Not kept: it is another in each step.
        return self._all(self._own) if self._is_little(self._own) else self._found(self._own, Sought(keys), None)

    def _due(self, node: TemporalState) -> pa.Table:
        if not self._reads.changes_by_itself(self._own.id, self._upper):
            return no_updates_of(node)
        if self.is_much_due():
            raise Declined(MUCH_DUE)
        return self._all(self._own)

    def is_much_due(self) -> bool:
        """Returns whether so much may fall due in the interval that Spark looks for it; no job."""
        cells = self._reads.rows(self._own.id, self._upper) * self._own.relation_type.arity
        return self._reads.changes_by_itself(self._own.id, self._upper) and cells > budget().decoded_cells

    def _found(self, node: Physical, sought: Sought, common: LookupPath | None) -> pa.Table:
        """Returns the updates of a join's input, before the end of the interval, that what is sought may meet."""
        if self._is_little(node):
            return self._little(node)
        read = _leaf(node)
        columns = in_shard(read.relation_type.columns)
        by = sought.columns.items()
        bound = {below: values for k, values in by if (below := passed_down(node, k)) is not None}
        scalars = [*((reference(node.relation_type, k), values) for k, values in by), *sought.computed]
        if not bound:
            key = computed_key(node, scalars)
            if key is not None:
                rows = self._reads.find_computed(read.id, self._upper, key, used_columns(node), read.where)
                if rows is not None:
                    return self._over(node, rows.rename_columns(plan_schema(read).names))
            return self._scanned(node, read, sought.within)
        keys = LookupKeys.of(
            {k: columns[k] for k in sorted(bound)}, [pa.table({str(k): bound[k] for k in sorted(bound)})]
        )
        if common is not None:
            shared = self._reads.common_table(common, self._lower, self._upper, len(keys))
            if shared is not None:
                return self._over(node, shared)
        is_told = len(scalars) == 1 and keys.values is not None
        closer = None if is_told else cache(partial(computed_key, node, scalars))  # which each file may ask
        found = self._reads.find_table(read.id, self._upper, keys, used_columns(node), read.where, closer)
        if found is not None:
            return self._over(node, found.rename_columns(plan_schema(read).names))
        return self._looked_up(node, read, keys)

    def _scanned(self, node: Physical, read: ReadCollection, within: Sequence[ValueBound]) -> pa.Table:
        """Returns the updates of much within some bounds, which nothing tells where to find."""
        used = used_columns(node)
        if self._reads.rows(read.id, self._upper) * len(used) > budget().decoded_cells:
            raise Declined("nothing tells which rows of much are asked for")
        columns = in_shard(read.relation_type.columns)
        conditions, over = [], []
        for one in () if _may_fail(node) else within:
            if (below := passed_down(node, one.column)) is not None:
                value = stored_cells([one.value], columns[below].type)[0]
                over.append(columns[below])
                conditions.append(_COMPARE[one.operation](stored_value(columns[below], columns), value))
        condition = reduce(and_, conditions) if conditions else None
        rows = self._reads.read_table(read.id, None, self._upper, used, read.where, condition, over)
        return self._over(node, rows.rename_columns(plan_schema(read).names))

    def _is_little(self, node: Physical) -> bool:
        """Returns whether a lookup reads all of a join's input, as no join or group is in it and it has few updates."""
        read = leaf(node)
        return read is not None and self._reads.rows(read.id, self._upper) <= budget().whole_rows

    def _little(self, node: Physical) -> pa.Table:
        """Returns what `_all` does, in which most of what was taken back before the interval is gone."""
        known = identity(node)
        if known not in self._whole:
            id = _leaf(node).id
            self._whole[known] = self._reads.kept_table(
                known, id, self._lower, self._upper, lambda since: self._all(node, since), compacted
            )
        return self._whole[known]

    def _all(self, node: Physical, since: int | None = None) -> pa.Table:
        """Returns all updates of what is linear over a collection before the interval's end, or those since a time."""
        read = _leaf(node)
        rows = self._reads.read_table(read.id, since, self._upper, used_columns(node), read.where)
        return self._over(node, rows.rename_columns(plan_schema(read).names))

    def _over(self, node: Physical, rows: pa.Table) -> pa.Table:
        """Returns the updates of what is linear over a collection, in the place of which a table stands."""
        return self.linear(node, self._over(node.input, rows)) if isinstance(node, Linear) else rows


def _leaf(node: Physical) -> ReadCollection:
    found = leaf(node)
    assert found is not None
    return found


def _passed(scalar: Scalar, passes: Callable[[int], int | None]) -> Scalar | None:
    """Returns a scalar over an operator's columns as one over its input's; None if one of them is made by it."""
    places = {position: place for position in columns_of(scalar) if (place := passes(position)) is not None}
    if len(places) < len(columns_of(scalar)):
        return None
    return moved(scalar, places)


def _may_fail(node: Physical) -> bool:
    """Returns whether what is linear over a collection may make an error of a row, which must then be looked at."""
    if not isinstance(node, Linear):
        return False
    return any(can_fail(scalar) for _, scalar in node.mfp.steps) or _may_fail(node.input)
