"""The operators of this process, over update tables, but for what depends on which updates these are.

`updates` and `content` say that: what is read, what a join meets and what a state holds. Scalars that Python does not
evaluate are another engine's; how it gets the rows is the walk's to know.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.frame import DIFF
from mz_dagster.compute.local.accumulate import accumulate_updates
from mz_dagster.compute.local.declined import Declined
from mz_dagster.compute.local.gathered import gathered_updates
from mz_dagster.compute.local.linear_operators import (
    caught,
    evaluated,
    is_simple,
    negated,
    no_updates_of,
    plan_schema,
    repeated,
    unnested,
)
from mz_dagster.compute.local.staged import staged_updates
from mz_dagster.compute.local.temporal import temporal_updates
from mz_dagster.compute.local.windowed import windowed_updates
from mz_dagster.compute.lookups.common_lookups import used_columns
from mz_dagster.plan.bounding import Comparison, leading_comparisons
from mz_dagster.plan.physical import (
    Accumulate,
    Catch,
    ConstantRows,
    DeltaJoin,
    Gathered,
    Linear,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    TemporalState,
    UnionAll,
    Unnest,
    Windowed,
)
from mz_dagster.storage.arrow_schema import without_error_data
from mz_dagster.storage.consolidation import summed

#: Returns what a map, filter and project makes of updates, where another engine computes it; `Declined` if too much.
LinearElsewhere = Callable[[Linear, pa.Table], pa.Table]


def of_one_sign(updates: pa.Table) -> pa.Table:
    """Returns updates, consolidated unless all have the same diff."""
    bounds = pc.min_max(updates.column(DIFF)).as_py()
    return updates if bounds["min"] == bounds["max"] else summed(updates)


class LocalOperators(ABC):
    """Computes operators over tables: columns `c0`, `c1`, ..., then time, diff and error; nothing is an empty one.

    Args:
        elsewhere: Computes maps, filters and projections that are not this process's.
        lower: The beginning of the interval.
        upper: Its end.
    """

    def __init__(self, elsewhere: LinearElsewhere, lower: int, upper: int) -> None:
        self._elsewhere = elsewhere
        self._lower = lower
        self._upper = upper

    @abstractmethod
    def _stored(self, read: ReadCollection, used: Collection[int]) -> pa.Table:
        """Returns a collection's updates; columns whose positions are not among `used` may be NULL."""

    @abstractmethod
    def _held(self, node: Accumulate | Staged, keys: Mapping[int, pa.ChunkedArray]) -> pa.Table:
        """Returns the updates of a state, by the values that its columns must have, and perhaps others."""

    @abstractmethod
    def _due(self, node: TemporalState) -> pa.Table:
        """Returns the updates of a state before the interval that fall due in it, and perhaps others."""

    @abstractmethod
    def constant(self, node: ConstantRows) -> pa.Table | None:
        """Returns the updates of constant rows."""

    @abstractmethod
    def join(self, node: DeltaJoin, inputs: Sequence[pa.Table | None], compared: tuple[Comparison, ...]) -> pa.Table:
        """Returns the updates of a join; rows that do not compare so may be missing."""

    def compared(self, node: DeltaJoin, user: Physical) -> tuple[Comparison, ...]:
        """Returns comparisons that a map, filter and project right above a join makes first."""
        return leading_comparisons(user.mfp.steps, node.relation_type.arity) if isinstance(user, Linear) else ()

    def read(self, node: ReadCollection, user: Physical, _: Mapping[int, Any]) -> pa.Table | None:
        """Returns a collection's updates; columns that `user` does not use may be NULL."""
        found = self._stored(node, used_columns(user))
        return without_error_data(found.rename_columns(plan_schema(node).names))

    def linear(self, node: Linear, below: pa.Table) -> pa.Table:
        """Returns what a map, filter and project makes of updates."""
        if not below.num_rows:
            return no_updates_of(node)
        if not node.mfp.steps:
            return evaluated(below, node)
        if is_simple(node.mfp) and below.num_rows <= budget().frame_rows:
            with suppress(Declined):
                return evaluated(below, node)
        return self._elsewhere(node, below)

    def negate(self, node: NegateAll, below: pa.Table) -> pa.Table:
        """Returns updates with the opposite diffs."""
        return negated(below)

    def union(self, node: UnionAll, parts: Sequence[pa.Table]) -> pa.Table:
        """Returns all updates of some tables."""
        return pa.concat_tables(parts)

    def repeat(self, node: Repeat, below: pa.Table) -> pa.Table:
        """Returns updates with their diffs times a column."""
        return repeated(below, node)

    def catch(self, node: Catch, below: pa.Table) -> pa.Table:
        """Returns updates in which errors are rows."""
        return caught(below, node)

    def unnest(self, node: Unnest, below: pa.Table) -> pa.Table:
        """Returns updates with elements in the places of arrays."""
        return unnested(below, node)

    def accumulate(self, node: Accumulate, changes: pa.Table, known: pa.Table | None = None) -> pa.Table:
        """Returns the updates of counts and sums."""
        # What cancels out changes nothing, so that its keys need not be looked up: a row that is there once more is as
        # distinct as it was.
        changes = of_one_sign(changes)
        if not changes.num_rows:
            return no_updates_of(node)
        keys = {k: changes.column(f"c{k}") for k in range(node.key_arity)}
        return accumulate_updates(changes, self._held(node, keys), node)

    def tournament(self, node: Staged, changes: pa.Table, known: pa.Table | None = None) -> pa.Table:
        """Returns the updates of a tournament, or of a window's groups."""
        match node.function:
            case Windowed():
                advanced = windowed_updates
            case Gathered():
                advanced = gathered_updates
            case _:
                advanced = staged_updates
        return advanced(changes, node, partial(self._held, node))

    def temporal(self, node: TemporalState, changes: pa.Table | None) -> pa.Table:
        """Returns the updates of a temporal filter's state."""
        new = no_updates_of(node.input) if changes is None else changes
        return temporal_updates(new, self._due(node), node, self._lower, self._upper)

    def shared(self, frame: pa.Table) -> pa.Table:
        """Returns the table, which is computed."""
        return frame

    def is_empty(self, frame: pa.Table) -> bool:
        """Returns whether a table has no rows."""
        return not frame.num_rows
