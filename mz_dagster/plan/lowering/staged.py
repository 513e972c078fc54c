"""What stands around a tournament: the state's columns, how many buckets, and the filter of the result's level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt

from mz_dagster.plan.lowering.fusion import selected
from mz_dagster.plan.physical import Physical, Staged, StageFunction
from mz_dagster.plan.rewriting import reference
from mz_dagster.scalars.scalar import Call, ColumnRef, Literal, Scalar
from mz_dagster.scalars.types import BOOL, INT4, INT8, Column, RelationType

#: A group, or a bucket, of so many rows is recomputed as a whole, where of each one row is kept.
BUCKET_ROWS = 1024
#: So many buckets of a stage are in one of the next, however many rows are kept.
_FEWEST_MERGED = 4


@dataclass(frozen=True, slots=True)
class Stages:
    """How a tournament is held: the buckets of its stages, and whether losers are forgotten."""

    buckets: tuple[int, ...]
    monotonic: bool = False


ONE_STAGE = Stages((1,))
_META = (Column("level", INT4, nullable=False), Column("bucket", INT8, nullable=False))


def buckets_for(group_size: int | None, kept: int = 1) -> tuple[int, ...]:
    """Returns the buckets of the stages for groups of at most `group_size` rows; None if nobody said.

    A stage that keeps `kept` rows of each of n buckets hands n times as many to the next, which compares them whenever
    one of them changes. So n falls with the square root of `kept`: in a group of a million rows, the finest buckets
    then have about as many rows as the last stage compares.

    Args:
        group_size: How many rows a group has.
        kept: How many rows a stage keeps of a bucket at most: a limit and its offset.

    Example:
        >>> buckets_for(10), buckets_for(None), buckets_for(10**7)
        ((1,), (1024, 1), (1048576, 1024, 1))
        >>> buckets_for(None, kept=100), buckets_for(10**7, kept=100), buckets_for(6_000, kept=100)
        ((64, 1), (4096, 64, 1), (1,))
    """
    kept = max(1, kept)
    # A power of two, so that the buckets of a stage are in as many of the next.
    merged = max(_FEWEST_MERGED, 1 << max(0, isqrt(BUCKET_ROWS**2 // kept).bit_length() - 1))
    if group_size is None:
        return (merged, 1)
    stages = [1]
    while group_size > stages[0] * merged * kept:
        stages.insert(0, stages[0] * merged)
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
