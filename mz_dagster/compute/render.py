"""Rendering: physical plans to frames of updates.

Owns the walk over a plan's nodes; each operator has its file. Invariant: for every interval [l, u) and every split of
it, the sum of `updates` is the difference of the snapshots at its ends, at every time. What is provably empty is not
planned: `updates` then returns None, and no job runs for it. It reads through a function it is given, writes nothing
and runs nothing.

`updates` is what changed in an interval; `snapshot` the content at a time, as updates at that time; `history` all
updates before a time, as the lookups of a join need them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.accumulate import accumulate_snapshot, accumulate_updates
from mz_dagster.compute.constant import FIRST_TIME, constant
from mz_dagster.compute.delta_join import DeltaJoinRendering
from mz_dagster.compute.few_plans import FewPlans
from mz_dagster.compute.frame import ERROR, at_time, ensure_exact, with_names, with_positions, without_error_data
from mz_dagster.compute.histories import Histories
from mz_dagster.compute.linear import linear
from mz_dagster.compute.lookup_keys import is_key
from mz_dagster.compute.negate import negate
from mz_dagster.compute.repeat import repeat
from mz_dagster.compute.staged import staged_snapshot, staged_updates
from mz_dagster.compute.state import OwnState
from mz_dagster.compute.step_reads import StepReads
from mz_dagster.compute.temporal import temporal_snapshot, temporal_updates
from mz_dagster.compute.union import union
from mz_dagster.compute.unnest import unnest
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
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
    is_linear,
    physical_inputs,
)
from mz_dagster.plan.scalar import Scalar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Returns the updates of a collection with `lower <= time < upper`, None being no bound: its shard's data columns under
#: their names, then `mz_timestamp`, `mz_diff` and `mz_error`. Rows that fail the predicates, which are over the
#: collection's columns, may be missing.
Read = Callable[[GlobalId, int | None, int, Sequence[Scalar]], "DataFrame"]
#: Tells whether a collection is known to have no updates in the interval of the step.
IsEmpty = Callable[[GlobalId], bool]
#: Tells whether a collection's updates in the interval of the step are few enough to be broadcast.
IsSmall = Callable[[GlobalId], bool]


def _few(_: GlobalId) -> bool:
    return True


class Renderer:
    """Renders physical plans over collections.

    The frames it returns bear the names of the plan's columns (`frame.shard_names`), have NULL data in rows of the
    error part, and are not consolidated.

    Args:
        session: Where the frames live. Its settings are made exact (`frame.REQUIRED_CONF`).
        read: Reads collections.
        is_small: For `updates`; by default every interval's updates are taken to be few.
        own: For `updates` of a state operator, which is the root of its plan: its own collection before the interval.
        reads: Prunes a join's lookups by key; None to look up whole histories.
        few: For `updates`: evaluates what it can without rendering it.
    """

    def __init__(
        self,
        session: SparkSession,
        read: Read,
        *,
        is_small: IsSmall = _few,
        own: OwnState | None = None,
        reads: StepReads | None = None,
        few: FewPlans | None = None,
    ) -> None:
        ensure_exact(session)
        self._reads = reads
        self._own = own
        self._few = few
        self._session = session
        self._read = read
        self._is_small = is_small
        self._repeated: set[object] = set()
        self._joined: dict[object, DataFrame | None] = {}

    def snapshot(self, node: Physical, as_of: int) -> DataFrame:
        """Returns the content of `node` at `as_of`, as updates at `as_of`.

        Hydration is this; so is a peek. The collections read must be readable at `as_of`.
        """
        self._begin(node)
        return self._finished(self._snapshot(node, as_of), node)

    def updates(self, node: Physical, lower: int, upper: int, is_empty: IsEmpty) -> DataFrame | None:
        """Returns the updates of `node` with `lower <= time < upper`, or None if there are provably none.

        The collections read must be readable at `lower - 1`, if `lower` is not the first time, and complete before
        `upper`.
        """
        if lower >= upper:
            return None
        self._begin(node)
        found = self._updates(node, lower, upper, is_empty)
        return None if found is None else self._finished(found, node)

    def history(self, node: Physical, upper: int) -> DataFrame:
        """Returns all updates of `node`, a tree of linear operators, before `upper`."""
        return self._finished(self._histories(FIRST_TIME, upper).of(node), node)

    def _finished(self, frame: DataFrame, node: Physical) -> DataFrame:
        return with_names(without_error_data(frame, node.relation_type.arity), node.relation_type)

    def _snapshot(self, node: Physical, as_of: int) -> DataFrame:
        if isinstance(node, DeltaJoin):
            joined = self._once(node, lambda: self._joined_at(node, as_of))
            assert joined is not None
            return joined
        match node:
            case ReadCollection():
                frame = with_positions(self._read(node.id, None, as_of + 1, node.where), node.relation_type)
                return at_time(frame, node.relation_type.arity, as_of)
            case ConstantRows():
                return constant(self._session, node, as_of)
            case Linear():
                return linear(self._snapshot(node.input, as_of), node.mfp)
            case NegateAll():
                return negate(self._snapshot(node.input, as_of), node.relation_type.arity)
            case UnionAll():
                return union([self._snapshot(one, as_of) for one in node.inputs])
            case Repeat():
                below = self._snapshot(node.input, as_of)
                return repeat(below, node.count, node.input.relation_type.arity)
            case Unnest():
                return unnest(self._snapshot(node.input, as_of), node)
            case Accumulate():
                return accumulate_snapshot(self._snapshot(node.input, as_of), node, as_of)
            case Staged():
                return staged_snapshot(self._snapshot(node.input, as_of), node, as_of)
            case TemporalState():
                return temporal_snapshot(self._snapshot(node.input, as_of), node, as_of)
            case _:
                assert_never(node)

    def _updates(self, node: Physical, lower: int, upper: int, is_empty: IsEmpty) -> DataFrame | None:
        match node:
            case ReadCollection():
                if is_empty(node.id) or (self._reads is not None and self._reads.skips_all(node, lower, upper)):
                    return None
                return with_positions(self._read(node.id, lower, upper, node.where), node.relation_type)
            case ConstantRows():
                present = lower <= FIRST_TIME < upper and node.rows
                return constant(self._session, node) if present else None
            case Linear():
                below = self._updates(node.input, lower, upper, is_empty)
                return None if below is None else linear(below, node.mfp)
            case NegateAll():
                below = self._updates(node.input, lower, upper, is_empty)
                return None if below is None else negate(below, node.relation_type.arity)
            case UnionAll():
                parts = [self._updates(one, lower, upper, is_empty) for one in node.inputs]
                present_parts = [part for part in parts if part is not None]
                return union(present_parts) if present_parts else None
            case DeltaJoin():
                if self._few is not None and (here := self._few.updates(node)) is not None:
                    return self._few.frame(here, node.relation_type) if here.num_rows else None
                return self._once(node, lambda: self._joined_updates(node, lower, upper, is_empty))
            case Repeat():
                below = self._updates(node.input, lower, upper, is_empty)
                return None if below is None else repeat(below, node.count, node.input.relation_type.arity)
            case Unnest():
                below = self._updates(node.input, lower, upper, is_empty)
                return None if below is None else unnest(below, node)
            case Accumulate():
                changes, touched = self._changes(node, range(node.key_arity), lower, upper, is_empty)
                return None if changes is None else accumulate_updates(changes, self._state(), node, touched)
            case Staged():
                asked = node.group if node.monotonic else ()
                changes, touched = self._changes(node, asked, lower, upper, is_empty)
                return None if changes is None else staged_updates(changes, self._state(), node, touched)
            case TemporalState():
                below = self._updates(node.input, lower, upper, is_empty)
                return temporal_updates(below, self._state(), node, lower, upper)
            case _:
                assert_never(node)

    def _joined_at(self, node: DeltaJoin, as_of: int) -> DataFrame:
        return DeltaJoinRendering(node).snapshot([self._snapshot(one, as_of) for one in node.inputs], as_of)

    def _joined_updates(self, node: DeltaJoin, lower: int, upper: int, is_empty: IsEmpty) -> DataFrame | None:
        return DeltaJoinRendering(node).updates(
            [self._updates(one, lower, upper, is_empty) for one in node.inputs],
            self._histories(lower, upper),
            lambda i: all(self._is_small(id) for id in collections_read(node.inputs[i])),
        )

    def _begin(self, node: Physical) -> None:
        """Notes which joins a plan has several times."""
        times = Counter(identity(one) for one in _joins(node))
        self._repeated = {one for one, count in times.items() if count > 1}
        self._joined = {}

    def _once(self, node: DeltaJoin, compute: Callable[[], DataFrame | None]) -> DataFrame | None:
        """Returns what `compute` makes of a join, computed once for all of its uses in the plan."""
        known = identity(node)
        if known not in self._repeated:
            return compute()
        if known not in self._joined:
            found = compute()
            if found is not None and self._reads is not None:
                found = self._reads.shared(found)
            self._joined[known] = found
        return self._joined[known]

    def _histories(self, lower: int, upper: int) -> Histories:
        return Histories(self._session, self._read, lower, upper, self._reads)

    def _changes(
        self, node: Accumulate | Staged, group: Sequence[int], lower: int, upper: int, is_empty: IsEmpty
    ) -> tuple[DataFrame | None, pa.Table | None]:
        """Returns the changes of a state operator's input, and the values of `group` if these are known here.

        The changes are computed once, if that takes more than to read them.
        """
        input = node.input
        if self._few is not None and not is_linear(input) and (here := self._few.updates(input)) is not None:
            if not here.num_rows:
                return None, None
            return self._few.frame(here, input.relation_type), self._groups(here, input, group)
        below = self._updates(input, lower, upper, is_empty)
        if below is None:
            return None, None
        touched = self._touched(input, group, lower, upper)
        return below if is_linear(input) else self._state().kept(below), touched

    def _groups(self, changes: pa.Table, input: Physical, group: Sequence[int]) -> pa.Table | None:
        """Returns the groups of what changes, if a state is looked up by them."""
        columns = input.relation_type.columns
        if not group or not self._state().prunes or not all(is_key(columns[position]) for position in group):
            return None
        good = changes.filter(pc.is_null(changes.column(ERROR)))
        return good.select([f"c{position}" for position in group])

    def _touched(self, input: Physical, group: Sequence[int], lower: int, upper: int) -> pa.Table | None:
        """Returns the groups of what changes, if a state is looked up by them and they can be read without Spark."""
        if self._reads is None or not group or not self._state().prunes:
            return None
        positions = list(group)
        while isinstance(input, Linear):
            passed = [position for one in positions if (position := input.mfp.passed(one)) is not None]
            if len(passed) < len(positions):
                return None
            input, positions = input.input, passed
        return (
            self._reads.changed_keys(input.id, positions, lower, upper) if isinstance(input, ReadCollection) else None
        )

    def _state(self) -> OwnState:
        if self._own is None:
            raise InternalError("a state operator is rendered without its state")
        return self._own


def _joins(node: Physical) -> Iterator[DeltaJoin]:
    """Yields the joins of a plan, but for those below joins."""
    if isinstance(node, DeltaJoin):
        yield node
        return
    for one in physical_inputs(node):
        yield from _joins(one)
