"""Histories: all updates before a time of what is linear over collections, as the lookups of a join need them.

Owns the walk from an input of a join down to the collections that it reads. Keys go down with it: a column that a
linear operator only passes on binds the column below it, and of a large collection whose columns are bound so, only
the rows of the keys are read. What is returned then lacks updates of other keys, and may have some, so the join still
compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from mz_dagster.compute.common_lookups import path
from mz_dagster.compute.constant import FIRST_TIME, constant
from mz_dagster.compute.frame import with_positions
from mz_dagster.compute.linear import linear
from mz_dagster.compute.negate import negate
from mz_dagster.compute.repeat import repeat
from mz_dagster.compute.step_reads import StepReads
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
    physical_inputs,
)
from mz_dagster.plan.rewriting import can_fail
from mz_dagster.plan.scalar import Scalar

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


#: A read of so many rows takes about as long as a small job.
LARGE_ROWS = 500_000


@dataclass(frozen=True, slots=True)
class Keys:
    """Is the keys of a lookup.

    Attributes:
        frame: A row for each key, which may repeat.
        by_position: For columns of what is looked up: the column of `frame` that they must equal.
    """

    frame: DataFrame
    by_position: Mapping[int, Column]


class Histories:
    """Reads histories up to the end of an interval.

    Args:
        session: Where constants live.
        read: Reads a collection's updates with `lower <= time < upper`; those that fail predicates may be missing.
        lower: The beginning of the interval.
        upper: Its end.
        reads: Prunes lookups by key; None to read everything.
    """

    def __init__(
        self,
        session: SparkSession,
        read: Callable[[GlobalId, int | None, int, Sequence[Scalar]], DataFrame],
        lower: int,
        upper: int,
        reads: StepReads | None = None,
    ) -> None:
        self._session = session
        self._read = read
        self._lower = lower
        self._upper = upper
        self._reads = reads

    def of(self, node: Physical, keys: Keys | None = None) -> DataFrame:
        """Returns all updates of `node`, a tree of linear operators.

        Given keys, those of others and those of the error part may be missing.
        """
        match node:
            case ReadCollection():
                if keys is None or self._reads is None:
                    return with_positions(self._read(node.id, None, self._upper, node.where), node.relation_type)
                found = self._reads.lookup(node.id, self._upper, keys.frame, keys.by_position, node.where)
                return self.of(node) if found is None else with_positions(found, node.relation_type)
            case ConstantRows():
                return constant(self._session, node)
            case Linear():
                return linear(self._below(node, 0, keys), node.mfp)
            case NegateAll():
                return negate(self._below(node, 0, keys), node.relation_type.arity)
            case UnionAll():
                return union([self._below(node, n, keys) for n in range(len(node.inputs))])
            case Repeat():
                return repeat(self._below(node, 0, keys), node.count, node.input.relation_type.arity)
            case Unnest():
                return unnest(self._below(node, 0, keys), node)
            case DeltaJoin() | Accumulate() | Staged() | TemporalState():
                raise InternalError("the history of this operator is an arrangement's, not computed")
            case _:
                assert_never(node)

    def common(self, join: DeltaJoin, i: int, j: int) -> DataFrame | None:
        """Returns all updates of input j that updates of input i in the interval can meet, and perhaps others.

        None if the lookup is not one to be made by what changed alone (`CommonLookups.of`).
        """
        by = None if self._reads is None else path(join, i, j)
        found = None if by is None or self._reads is None else self._reads.common(by, self._lower, self._upper)
        return None if found is None else linear_over(join.inputs[j], found)

    def span(self, node: Physical) -> tuple[int, int] | None:
        """Returns bounds of the times of all updates of `node`, None if there are none; no job."""
        return span(node, self._upper, self._reads)

    def may_have_errors(self, node: Physical, *, is_change: bool) -> bool:
        """Returns whether updates of `node` may be of the error part; no job.

        Args:
            node: A tree of linear operators.
            is_change: Whether the interval's are asked about, or all before its end.
        """
        if self._reads is None:
            return True
        match node:
            case ReadCollection():
                return self._reads.may_have_errors(node.id, self._lower if is_change else None, self._upper)
            case Linear() if any(can_fail(scalar) for _, scalar in node.mfp.steps):
                return True
            case DeltaJoin() | Accumulate() | Staged() | TemporalState():
                return True
            case _:
                return any(self.may_have_errors(one, is_change=is_change) for one in physical_inputs(node))

    def prunes(self, node: Physical, positions: Sequence[int]) -> bool:
        """Returns whether a lookup in `node` by the columns at `positions` should begin with its keys; no job."""
        if self._reads is None:
            return False
        if isinstance(node, ReadCollection):
            return self._reads.prunes(node.id, self._upper, positions)
        return any(
            self.prunes(one, [p for p in map(passes, positions) if p is not None]) for one, passes in _down(node)
        )

    def is_large(self, node: Physical) -> bool:
        """Returns whether to read `node` whole costs more than to see first whether anything looks for it."""
        if self._reads is None:
            return False
        return sum(self._reads.rows(id, self._upper) for id in collections_read(node)) > LARGE_ROWS

    def shared(self, frame: DataFrame) -> DataFrame:
        """Returns the frame, computed only once however often it is used."""
        return frame if self._reads is None else self._reads.shared(frame)

    def _below(self, node: Physical, input: int, keys: Keys | None) -> DataFrame:
        below, passes = _down(node)[input]
        if keys is None:
            return self.of(below)
        bound = {passes(position): column for position, column in keys.by_position.items()}
        return self.of(below, Keys(keys.frame, {p: column for p, column in bound.items() if p is not None}))


def span(node: Physical, upper: int, reads: StepReads | None) -> tuple[int, int] | None:
    """Returns bounds of the times of all updates before `upper` of what is linear, None if there are none; no job."""
    match node:
        case ReadCollection():
            return (FIRST_TIME, upper - 1) if reads is None else reads.span(node.id, upper)
        case ConstantRows():
            return (FIRST_TIME, FIRST_TIME) if node.rows else None
        case DeltaJoin() | Accumulate() | Staged() | TemporalState():
            raise InternalError("the history of this operator is an arrangement's, not computed")
        case _:
            spans = [found for one, _ in _down(node) if (found := span(one, upper, reads)) is not None]
            return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def linear_over(node: Physical, leaf: DataFrame) -> DataFrame:
    """Returns the updates of what is linear over a collection, in the place of which a frame stands."""
    return linear(linear_over(node.input, leaf), node.mfp) if isinstance(node, Linear) else leaf


def _down(node: Physical) -> list[tuple[Physical, Callable[[int], int | None]]]:
    """Returns the inputs of a linear operator, each with what tells for an output column which input column it is."""
    match node:
        case Linear():
            return [(node.input, node.mfp.passed)]
        case NegateAll():
            return [(node.input, lambda p: p)]
        case Repeat():
            count = node.count
            return [(node.input, lambda p: p if p < count else p + 1)]
        case Unnest():
            kept = node.input.relation_type.arity - node.arrays
            return [(node.input, lambda p: p if p < kept else None)]
        case UnionAll():
            return [(one, lambda p: p) for one in node.inputs]
        case _:
            return []
