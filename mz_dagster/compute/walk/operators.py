"""The one walk over physical plans, and the protocol of operators that each engine implements for it.

    plan ──> Walk ──> Operators[Table]       local.updates, local.content
                 └──> Operators[DataFrame]   spark.updates, spark.content, spark.histories

A *frame* is updates in an engine's own form: columns `c0`, `c1`, ..., then time, diff and error, not consolidated.
Which updates they are, of an interval, the content at one time, or all before a time, is the operators' to know: the
walk visits each node once, its inputs first. None stands for a frame of which it is known, without computing it, that
nothing is in it; what is linear over nothing is nothing.

Invariant: for each node, either engine's frames sum to the same updates, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, assert_never

import pyarrow as pa

from mz_dagster.compute.algebra.each_update import EachUpdateOperators, of_each_update
from mz_dagster.compute.algebra.lineage import passed_inputs
from mz_dagster.compute.algebra.operator_costs import OperatorCosts
from mz_dagster.compute.placement.portioned import repeated_joins
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
    is_linear,
)

F = TypeVar("F")

#: For columns of what is read: what their values are restricted to, in an engine's own form; others may be missing.
Bound = Mapping[int, Any]


class Operators(EachUpdateOperators[F], Protocol[F]):
    """Says what an engine makes of each operator, given the frames of its inputs."""

    def read(self, node: ReadCollection, user: Physical, bound: Bound) -> F | None:
        """Returns a collection's updates.

        Args:
            node: What to read.
            user: What is made of them at once, the node itself or linear over it: other columns may be NULL.
            bound: Which of them to read, if not all.
        """
        ...

    def constant(self, node: ConstantRows) -> F | None:
        """Returns constant rows, which come at the first time."""
        ...

    def union(self, node: UnionAll, parts: Sequence[F]) -> F:
        """Returns all updates of some frames, at least one."""
        ...

    def compared(self, node: DeltaJoin, user: Physical) -> tuple[Comparison, ...]:
        """Returns comparisons that `user`, right above a join, makes first: what fails them need not be joined."""
        ...

    def join(self, node: DeltaJoin, inputs: Sequence[F | None], compared: tuple[Comparison, ...]) -> F | None:
        """Returns the updates of a join; rows that do not compare so may be missing."""
        ...

    def accumulate(self, node: Accumulate, changes: F, known: pa.Table | None) -> F | None:
        """Returns the updates of counts and sums.

        Args:
            node: The operator.
            changes: Of its input.
            known: The same, where this process computed them for the other engine.
        """
        ...

    def tournament(self, node: Staged, changes: F, known: pa.Table | None) -> F | None:
        """Returns the updates of a tournament, or of a window's groups; see `accumulate`."""
        ...

    def temporal(self, node: TemporalState, changes: F | None) -> F | None:
        """Returns the updates of a temporal filter's state."""
        ...

    def shared(self, frame: F) -> F:
        """Returns a frame that is computed once, though it is used several times."""
        ...

    def is_empty(self, frame: F) -> bool:
        """Returns whether it is known, without computing it, that nothing is in a frame."""
        ...


@dataclass(frozen=True, slots=True)
class Handed(Generic[F]):
    """Updates that the other engine computed.

    Attributes:
        frame: They, handed over; None if there are none.
        table: They, as this process has them.
    """

    frame: F | None
    table: pa.Table


class Walk(Generic[F]):
    """Computes plans with one engine's operators, and with the other engine what that takes over.

    Joins that are equal are computed once, as long as the walk is used.

    Args:
        operators: The engine's.
        taken_over: Returns what the other engine computes of a subtree, None if it does not. It is asked for joins and
            for what is grouped.
        costs: Notes what each operator costs; None for an engine whose operators only say what is to be computed.
    """

    def __init__(
        self,
        operators: Operators[F],
        taken_over: Callable[[Physical], Handed[F] | None] = lambda _: None,
        costs: OperatorCosts | None = None,
    ) -> None:
        self._operators = operators
        self._costs = costs
        self._taken_over = taken_over
        self._joined: dict[object, F | None] = {}
        self._repeated: frozenset[object] = frozenset()

    def frame(self, plan: Physical, bound: Bound | None = None) -> F | None:
        """Returns the updates of a plan.

        Args:
            plan: What to compute.
            bound: For columns of what is linear: what to restrict them to where they are read.
        """
        self._repeated = repeated_joins(plan)
        return self._frame(plan, {} if bound is None else bound)

    def _frame(self, node: Physical, bound: Bound, user: Physical | None = None) -> F | None:
        if self._costs is None:
            found = self._made(node, bound, user)
        else:
            found = self._costs.measured(node, lambda: self._made(node, bound, user))
        return None if found is None or self._operators.is_empty(found) else found

    def _made(self, node: Physical, bound: Bound, user: Physical | None) -> F | None:
        operators = self._operators
        if isinstance(node, EachUpdate):
            (below,) = self._below(node, bound)
            return None if below is None else of_each_update(operators, node, below)
        match node:
            case ReadCollection():
                return operators.read(node, user or node, bound)
            case ConstantRows():
                return operators.constant(node)
            case UnionAll():
                parts = [part for part in self._below(node, bound) if part is not None]
                return operators.union(node, parts) if parts else None
            case DeltaJoin():
                compared = operators.compared(node, user or node)
                own = identity(node)
                if (own, compared) not in self._joined:
                    self._joined[own, compared] = self._join(node, compared, is_repeated=own in self._repeated)
                return self._joined[own, compared]
            case Accumulate():
                changes, table = self._changes(node.input)
                return None if changes is None else operators.accumulate(node, changes, table)
            case Staged():
                changes, table = self._changes(node.input)
                return None if changes is None else operators.tournament(node, changes, table)
            case TemporalState():
                return operators.temporal(node, self._frame(node.input, {}))
            case _:
                assert_never(node)

    def _below(self, node: Physical, bound: Bound) -> list[F | None]:
        """Returns the frames of a linear operator's inputs, restricted as far as columns are only passed on."""
        found = []
        for one, passes in passed_inputs(node):
            own = {passes(position): values for position, values in bound.items()}
            kept = {position: values for position, values in own.items() if position is not None}
            found.append(self._frame(one, kept, node if isinstance(node, Linear) else None))
        return found

    def _join(self, node: DeltaJoin, compared: tuple[Comparison, ...], *, is_repeated: bool) -> F | None:
        handed = self._taken_over(node)
        if handed is not None:
            return handed.frame
        found = self._operators.join(node, [self._frame(one, {}) for one in node.inputs], compared)
        return self._operators.shared(found) if found is not None and is_repeated else found

    def _changes(self, node: Physical) -> tuple[F | None, pa.Table | None]:
        """Returns the updates of what is grouped, and the same of this process if it computed them."""
        if not is_linear(node) and (handed := self._taken_over(node)) is not None:
            return handed.frame, handed.table
        return self._frame(node, {}), None
