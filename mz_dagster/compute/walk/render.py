"""Rendering: physical plans to frames of updates on Spark, with what this process takes over of them.

Invariant: for every interval [l, u) and every split of it, the sum of `updates` is the difference of the snapshots at
its ends, at every time. What is provably empty is not planned: `updates` then returns None, and no job runs for it. It
reads through a function it is given, writes nothing and runs nothing.

`updates` is what changed in an interval, and `snapshot` the content at a time, as updates at that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import ensure_exact, with_names, without_error_data
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.spark.content import ContentOperators
from mz_dagster.compute.spark.histories import Histories, HistoryOperators
from mz_dagster.compute.spark.operators import Read
from mz_dagster.compute.spark.state import OwnState
from mz_dagster.compute.spark.updates import Tells, UpdateOperators
from mz_dagster.compute.walk.local_plans import LocalUpdates
from mz_dagster.compute.walk.operators import Walk
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import Physical

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def _all(_: GlobalId) -> bool:
    return True


class Renderer:
    """Renders physical plans over collections.

    The frames it returns bear the names of the plan's columns in a shard (`shard_names`), have NULL data in rows of the
    error part, and are not consolidated.

    Args:
        session: Where the frames live. Its settings are made exact (`frame.REQUIRED_CONF`).
        read: Reads collections.
        is_small: For `updates`; by default every interval's updates are taken to be few.
        own: For `updates` of a state operator, which is the root of its plan: its own collection before the interval.
        reads: Prunes a join's lookups by key; None to look up whole histories.
        local: For `updates`: takes over what is this process's.
    """

    def __init__(
        self,
        session: SparkSession,
        read: Read,
        *,
        is_small: Tells = _all,
        own: OwnState | None = None,
        reads: StepReads | None = None,
        local: LocalUpdates | None = None,
    ) -> None:
        ensure_exact(session)
        self._reads = reads
        self._own = own
        self._local = local
        self._session = session
        self._read = read
        self._is_small = is_small

    def snapshot(self, node: Physical, as_of: int) -> DataFrame:
        """Returns the content of `node` at `as_of`, as updates at `as_of`.

        Hydration is this; so is a peek. The collections read must be readable at `as_of`.
        """
        operators = ContentOperators(self._session, self._read, as_of, self._reads)
        found = Walk(operators).frame(node)
        if found is None:
            raise InternalError("every plan has a content")
        return _finished(found, node)

    def updates(self, node: Physical, lower: int, upper: int, is_empty: Tells) -> DataFrame | None:
        """Returns the updates of `node` with `lower <= time < upper`, or None if there are provably none.

        The collections read must be readable at `lower - 1`, if `lower` is not the first time, and complete before
        `upper`.
        """
        if lower >= upper:
            return None
        operators = UpdateOperators(
            self._session,
            self._read,
            Histories(self._session, self._read, _history, lower, upper, self._reads),
            lower,
            upper,
            is_empty=is_empty,
            is_small=self._is_small,
            own=self._own,
            reads=self._reads,
        )
        walk = Walk(operators) if self._local is None else Walk(operators, self._local.taken_over)
        found = walk.frame(node)
        return None if found is None else _finished(found, node)


def _history(operators: HistoryOperators, node: Physical, bound: Mapping[int, Column]) -> DataFrame:
    found = Walk(operators).frame(node, bound)
    if found is None:
        raise InternalError("every plan has a history")
    return found


def _finished(frame: DataFrame, node: Physical) -> DataFrame:
    return with_names(without_error_data(frame, node.relation_type.arity), node.relation_type)
