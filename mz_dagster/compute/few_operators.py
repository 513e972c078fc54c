"""The walk over plans of few updates, in this process, with Spark for what it alone can do.

To have Spark compute with few rows costs a tenth of a second and more for each query, before a row is looked at. So
joins are made (`few_join`), sums kept (`few_sums`), tournaments held (`few_staged`) and temporal filters advanced
(`few_temporal`) here, and Spark evaluates what Python does not: it is sent the rows, and sends back what they come to.

Whether a plan is evaluated here hangs on how many updates its inputs have, which the catalog tells, and on its
operators. Where more is found on the way than was to be expected, it is left to Spark after all.

Where updates come from is the subclasses': `few_plans` has those of an interval, `few_contents` all from the beginning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.compute.common_lookups import used_columns
from mz_dagster.compute.few_join import NotFew, is_joined_here
from mz_dagster.compute.few_linear import (
    MOST_FETCHED,
    MOST_ROWS,
    evaluated,
    is_simple,
    negated,
    plan_schema,
    repeated,
    unnested,
)
from mz_dagster.compute.few_staged import few_staged, is_staged_here
from mz_dagster.compute.few_sums import few_sums, is_summed_here
from mz_dagster.compute.few_temporal import few_temporal, is_temporal_here
from mz_dagster.compute.frame import by_position, ensure_exact
from mz_dagster.compute.linear import linear
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
    identity,
)
from mz_dagster.plan.types import RelationType
from mz_dagster.storage.local_shards import without_error_data
from mz_dagster.storage.spark_shards import update_schema as spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Of more updates than this a plan is left to Spark.
MOST_CHANGES = 20_000


class FewOperators(ABC):
    """Evaluates plans over few updates.

    Args:
        session: Returns where Spark evaluates; called when it has to.
        lower: The beginning of the interval.
        upper: Its end.
    """

    def __init__(self, session: Callable[[], SparkSession], lower: int, upper: int) -> None:
        self._open = session
        self._lower = lower
        self._upper = upper
        self._found: dict[object, pa.Table] = {}

    def frame(self, table: pa.Table, columns: RelationType) -> DataFrame:
        """Returns updates as an operator's frame."""
        return self._session.createDataFrame(table, spark_schema(by_position(columns)))

    @property
    def _session(self) -> SparkSession:
        session = self._open()
        ensure_exact(session)
        return session

    @abstractmethod
    def _read(self, read: ReadCollection, used: Collection[int]) -> pa.Table:
        """Returns a collection's updates; columns whose positions are not among `used` may be NULL."""

    @abstractmethod
    def _constant(self, node: ConstantRows) -> pa.Table:
        """Returns the updates of constant rows."""

    @abstractmethod
    def _joined(self, node: DeltaJoin) -> pa.Table:
        """Returns the updates of a join that `is_joined_here`."""

    @abstractmethod
    def _held(self, node: Accumulate | Staged, keys: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        """Returns the updates of a state, by the values that its columns must have, and perhaps others."""

    @abstractmethod
    def _due(self, node: TemporalState) -> pa.Table:
        """Returns the updates of a state before the interval that fall due in it, and perhaps others."""

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
                return is_joined_here(node) and all(map(self._is_met_here, node.inputs))
            case Accumulate():
                return is_summed_here(node) and self._is_here(node.input)
            case Staged():
                return is_staged_here(node) and self._is_here(node.input)
            case TemporalState():
                return is_temporal_here(node) and self._is_here(node.input)

    def _is_met_here(self, node: Physical) -> bool:
        """Returns whether what a join looks up in one of its inputs is evaluated here."""
        return self._is_here(node)

    def _evaluated(self, node: Physical) -> pa.Table | None:
        """Returns the updates of a plan that `_is_here`; None if they are not few after all."""
        try:
            return without_error_data(self._updates(node))
        except NotFew:
            return None

    def _updates(self, node: Physical) -> pa.Table:
        match node:
            case ReadCollection():
                return self._changes(node, node)
            case ConstantRows():
                return self._constant(node)
            case Linear():
                read = node.input
                below = self._changes(read, node) if isinstance(read, ReadCollection) else self._updates(read)
                return self._linear(node, below)
            case NegateAll():
                return negated(self._updates(node.input))
            case UnionAll():
                return pa.concat_tables(list(map(self._updates, node.inputs)))
            case Repeat():
                return repeated(self._updates(node.input), node)
            case Unnest():
                return unnested(self._updates(node.input), node)
            case DeltaJoin():
                known = identity(node)
                if known not in self._found:
                    self._found[known] = self._joined(node)
                return self._found[known]
            case Accumulate():
                return self._summed(node)
            case Staged():
                return few_staged(self._updates(node.input), node, partial(self._held, node))
            case TemporalState():
                due = self._due(node)
                return few_temporal(self._updates(node.input), due, node, self._lower, self._upper)

    def _changes(self, read: ReadCollection, node: Physical) -> pa.Table:
        """Returns a collection's updates; columns that `node` does not use may be NULL."""
        found = self._read(read, used_columns(node))
        return without_error_data(found.rename_columns(plan_schema(read).names))

    def _linear(self, node: Linear, below: pa.Table) -> pa.Table:
        if not below.num_rows:
            return plan_schema(node).empty_table()
        if not node.mfp.steps or (is_simple(node.mfp) and below.num_rows <= MOST_ROWS):
            return evaluated(below, node)
        return self._fetched(linear(self.frame(below, node.input.relation_type), node.mfp), node)

    def _fetched(self, frame: DataFrame, node: Physical) -> pa.Table:
        # Told its columns, the client need not have the plan analyzed to know them.
        wanted = spark_schema(by_position(node.relation_type))
        found = frame.limit(MOST_FETCHED + 1).to(wanted).toArrow()
        if found.num_rows > MOST_FETCHED:
            raise NotFew("a lookup finds much")
        return found.cast(plan_schema(node))

    def _summed(self, node: Accumulate) -> pa.Table:
        changes = self._updates(node.input)
        if not changes.num_rows:
            return plan_schema(node).empty_table()
        keys = {k: changes.column(f"c{k}") for k in range(node.key_arity)}
        return few_sums(changes, self._held(node, keys), node)
