"""What stands around a tournament: the state's columns, how many buckets, and the filter of the result's level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.plan.lowering.fusion import selected
from mz_dagster.plan.physical import Physical, Staged, StageFunction
from mz_dagster.plan.rewriting import reference
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, INT8, Column, RelationType

#: A group, or a bucket, of so many rows is recomputed as a whole.
BUCKET_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Stages:
    """How a tournament is held: the buckets of its stages, and whether losers are forgotten."""

    buckets: tuple[int, ...]
    monotonic: bool = False


ONE_STAGE = Stages((1,))
_META = (Column("level", INT4, nullable=False), Column("bucket", INT8, nullable=False))


def buckets_for(group_size: int | None) -> tuple[int, ...]:
    """Returns the buckets of the stages for groups of at most `group_size` rows; None if nobody said.

    Example:
        >>> buckets_for(10), buckets_for(None), buckets_for(10**7)
        ((1,), (1024, 1), (1048576, 1024, 1))
    """
    if group_size is None:
        return (BUCKET_ROWS, 1)
    stages = [1]
    while group_size > stages[0] * BUCKET_ROWS:
        stages.insert(0, stages[0] * BUCKET_ROWS)
    return tuple(stages)


def staged(
    below: Physical,
    group: Sequence[int],
    function: StageFunction,
    stages: Stages,
    results: Sequence[Column] = (),
) -> Staged:
    """Returns the tournament over `below`, whose results' columns are `results`."""
    columns = (*_META, *(replace(one, nullable=True) for one in (*below.relation_type.columns, *results)))
    return Staged(below, tuple(group), function, stages.buckets, stages.monotonic, RelationType(columns))


def state_key(node: Staged) -> tuple[int, ...]:
    """Returns the columns by which the state is looked up: level, bucket, group.

    With a single level and bucket the group alone, by which joins may look up its result, too.
    """
    group = tuple(2 + position for position in node.group)
    return group if node.monotonic and group else (0, 1, *group)


def results_of(node: Staged, state: Physical, scalars: Sequence[int], relation_type: RelationType) -> Physical:
    """Returns the columns at `scalars` of the result's level of `state`; they count without level and bucket."""
    level = Call("eq_int4", (ColumnRef(0, INT4, False, "level"), Literal(node.last_level, INT4)), BOOL, False)
    chosen: list[Scalar] = [reference(node.relation_type, 2 + position) for position in scalars]
    return selected(state, [level], chosen, relation_type)
