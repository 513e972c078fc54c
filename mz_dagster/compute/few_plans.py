"""Plans over few updates, in this process, with Spark for what it alone can do.

What changes in a step is little, mostly, and to have Spark compute with it costs a tenth of a second and more for each
query, before a row is looked at. So updates are read here, joins made (`few_join`), sums kept (`few_sums`) and
tournaments held (`few_staged`), and what Spark does is to find, in what is large, the rows of keys that are known, and
to evaluate what Python does not: it is sent the rows, and sends back what they come to.

Whether a plan is evaluated here hangs on how many updates its inputs have in the interval, which the catalog tells, and
on its operators. Where more is found on the way than was to be expected, it is left to Spark after all.

What a lookup reads, the cheapest that will do: a collection that is little whole, once for all lookups; what several
joins of a step ask for alike, as `common_lookups` has it; the files of the keys, if these have few rows; else a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.compute.common_lookups import Path, leaf, passed_down, path, used_columns
from mz_dagster.compute.constant import FIRST_TIME
from mz_dagster.compute.delta_join import meeting_terms
from mz_dagster.compute.few_join import NotFew, few_join, is_joined_here
from mz_dagster.compute.few_linear import MOST_ROWS, evaluated, is_simple, negated, plan_schema
from mz_dagster.compute.few_staged import few_staged, is_staged_here
from mz_dagster.compute.few_sums import few_sums, is_summed_here
from mz_dagster.compute.frame import by_position, with_positions
from mz_dagster.compute.histories import Histories, linear_over
from mz_dagster.compute.linear import linear
from mz_dagster.compute.lookup_keys import LookupKeys, is_key
from mz_dagster.compute.repeat import repeat
from mz_dagster.compute.step_reads import StepReads
from mz_dagster.compute.unnest import unnest
from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    Linear,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    TemporalState,
    UnionAll,
    Unnest,
    collections_read,
    identity,
)
from mz_dagster.plan.types import RelationType
from mz_dagster.storage.local_shards import without_error_data
from mz_dagster.storage.spark_shards import update_schema as spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Of more updates than this a plan is left to Spark.
MOST_CHANGES = 20_000
#: A collection of up to so many rows is read whole.
WHOLE_ROWS = 20_000
#: More rows than this are not fetched from Spark.
MOST_FETCHED = 200_000


class FewPlans:
    """Evaluates plans over few updates, for the step of one collection.

    Args:
        session: Where Spark evaluates.
        reads: Reads collections.
        lower: The beginning of the interval, after the first time.
        upper: Its end.
        own: The collection that is stepped, which has been hydrated: if a state is the root of its plan, its state.
    """

    def __init__(self, session: SparkSession, reads: StepReads, lower: int, upper: int, own: ReadCollection) -> None:
        self._session = session
        self._reads = reads
        self._lower = lower
        self._upper = upper
        self._own = own
        self._histories = Histories(session, reads.read, lower, upper, reads)
        self._found: dict[object, pa.Table] = {}
        self._whole: dict[object, pa.Table] = {}

    def updates(self, node: Physical) -> pa.Table | None:
        """Returns the updates of a plan in the interval, not consolidated; None if it is left to Spark.

        They are a table with a column for each of the plan's, `c0`, `c1`, ..., then time, diff and error.
        """
        changes = sum(self._reads.new_rows(id, self._lower, self._upper) for id in collections_read(node))
        if self._lower <= FIRST_TIME or changes > MOST_CHANGES or not self._is_here(node):
            return None
        try:
            return self._updates(node)
        except NotFew:
            return None

    def frame(self, table: pa.Table, columns: RelationType) -> DataFrame:
        """Returns updates as an operator's frame."""
        return self._session.createDataFrame(table, spark_schema(by_position(columns)))

    def _is_here(self, node: Physical) -> bool:
        """Returns whether all operators of a plan are evaluated here, or by Spark for rows that it is sent."""
        match node:
            case ReadCollection() | ConstantRows():
                return True
            case Linear() | NegateAll() | Repeat() | Unnest():
                return self._is_here(node.input)
            case UnionAll():
                return all(map(self._is_here, node.inputs))
            case DeltaJoin():
                return is_joined_here(node) and all(leaf(one) is not None for one in node.inputs)
            case Accumulate():
                return is_summed_here(node) and self._is_here(node.input)
            case Staged():
                return is_staged_here(node) and self._is_here(node.input)
            case TemporalState():
                return False

    def _updates(self, node: Physical) -> pa.Table:
        match node:
            case ReadCollection():
                return self._changes(node, node)
            case ConstantRows():
                return plan_schema(node).empty_table()
            case Linear():
                read = node.input
                below = self._changes(read, node) if isinstance(read, ReadCollection) else self._updates(read)
                return self._linear(node, below)
            case NegateAll():
                return negated(self._updates(node.input))
            case UnionAll():
                return pa.concat_tables(list(map(self._updates, node.inputs)))
            case Repeat():
                below, count, arity = self._updates(node.input), node.count, node.input.relation_type.arity
                return self._by_spark(below, node.input, node, lambda frame: repeat(frame, count, arity))
            case Unnest():
                return self._by_spark(self._updates(node.input), node.input, node, partial(unnest, node=node))
            case DeltaJoin():
                known = identity(node)
                if known not in self._found:
                    self._found[known] = self._joined(node)
                return self._found[known]
            case Accumulate():
                return self._summed(node)
            case Staged():
                below = self._updates(node.input)
                return few_staged(below, node, lambda keys: self._met(self._own, keys, None))
            case TemporalState():
                raise AssertionError("such a plan is not evaluated here")

    def _changes(self, read: ReadCollection, node: Physical) -> pa.Table:
        """Returns a collection's updates in the interval; columns that `node` does not use are NULL."""
        if self._reads.skips_all(read, self._lower, self._upper):
            return plan_schema(read).empty_table()
        found = self._reads.few_rows(read.id, self._lower, self._upper, used_columns(node))
        return without_error_data(found.rename_columns(plan_schema(read).names))

    def _linear(self, node: Linear, below: pa.Table) -> pa.Table:
        if not below.num_rows:
            return plan_schema(node).empty_table()
        if not node.mfp.steps or (is_simple(node.mfp) and below.num_rows <= MOST_ROWS):
            return evaluated(below, node)
        return self._by_spark(below, node.input, node, lambda frame: linear(frame, node.mfp))

    def _by_spark(
        self, below: pa.Table, input: Physical, node: Physical, apply: Callable[[DataFrame], DataFrame]
    ) -> pa.Table:
        """Returns what Spark makes of some rows."""
        if not below.num_rows:
            return plan_schema(node).empty_table()
        return self._fetched(apply(self.frame(below, input.relation_type)), node)

    def _fetched(self, frame: DataFrame, node: Physical) -> pa.Table:
        # Told its columns, the client need not have the plan analyzed to know them.
        wanted = spark_schema(by_position(node.relation_type))
        found = frame.limit(MOST_FETCHED + 1).to(wanted).toArrow()
        if found.num_rows > MOST_FETCHED:
            raise NotFew("a lookup finds much")
        return found.cast(plan_schema(node))

    def _joined(self, node: DeltaJoin) -> pa.Table:
        changes = [self._updates(one) for one in node.inputs]
        if not any(one.num_rows for one in changes):
            return plan_schema(node).empty_table()
        meeting = meeting_terms([self._histories.span(one) for one in node.inputs])
        return few_join(node, changes, meeting, lambda i, j, by: self._met(node.inputs[j], by, path(node, i, j)))

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

    def _summed(self, node: Accumulate) -> pa.Table:
        changes = self._updates(node.input)
        if not changes.num_rows:
            return plan_schema(node).empty_table()
        keys = {k: changes.column(f"c{k}") for k in range(node.key_arity)}
        return few_sums(changes, self._met(self._own, keys, None), node)
