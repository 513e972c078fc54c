"""Tournaments of recomputed groups: `plan.physical.Staged`.

Keyed. The state is the output: level 0 is the input, level s + 1 what stage s makes of the buckets of level s, the last
level the result. For an interval [l, u) the changes of level 0 are the input's, and those of level s + 1 the
differences between consecutive versions of the buckets that level s touches (`versions.py`); the updates are the
changes of all levels. What the buckets held before is one lookup for all levels: the buckets that a changed row can
touch are known from its hash, and a stage whose level did not change after all has no versions.

First rows need no chain of stages (`top_stages.py`).

A monotonic input needs no level below the last: winners are found among the winners and what is new. That is so as long
as nothing is retracted; a retraction is an error that stays. Where one row of a group is left, no versions are made
(`winners.py`).

Cost of a step: the input's changes consolidated once, and read twice from there; for each stage one shuffle, of the
changes and of the touched buckets. Of a snapshot: a chain of stages, each a branch by itself, so that a filter on the
level leaves only those that are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from mz_dagster.compute.algebra.frame import DIFF, ERROR, META, TIME, at_time, spark_type
from mz_dagster.compute.algebra.times import PRIOR
from mz_dagster.compute.algebra.tournaments import leaves_one_row
from mz_dagster.compute.spark.state import OwnState
from mz_dagster.compute.spark.tournament.extremes import extremes
from mz_dagster.compute.spark.tournament.gathered import gathered
from mz_dagster.compute.spark.tournament.top_rows import places, top_rows
from mz_dagster.compute.spark.tournament.top_stages import top_updates
from mz_dagster.compute.spark.tournament.versions import (
    BUCKET,
    CARRIED,
    GOOD,
    LEVEL,
    RowLayout,
    bucket_at,
    bucket_of,
    consolidated,
    failed_where,
    hashed,
    held,
    partition,
    replaced,
    subject,
    versions,
)
from mz_dagster.compute.spark.tournament.winners import winners
from mz_dagster.compute.spark.union import union
from mz_dagster.compute.spark.window.windowed import windowed
from mz_dagster.errors import InternalError
from mz_dagster.functions.errors import NEGATIVE_MULTIPLICITY, RETRACTION
from mz_dagster.plan.physical import Extremes, Gathered, Staged, TopRows, Windowed
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def staged_updates(changes: DataFrame, own: OwnState, node: Staged, known: pa.Table | None = None) -> DataFrame:
    """Returns the state's updates that the input's `changes` make, at their times; equal ones may be several.

    Args:
        changes: Of the input.
        own: The state.
        node: The operator.
        known: The groups of the changes and perhaps others, if they are known here, of a state that prunes.
    """
    _check(node)
    shape = _shape(node)
    if node.monotonic and leaves_one_row(node.function):
        return _winners_updates(changes, own, shape, node, known)
    last = node.last_level
    if isinstance(node.function, TopRows) and not node.monotonic:
        flow = top_updates(changes, own, shape, node, node.function)
        return flow.select(*_columns(sf.col(LEVEL), sf.col(BUCKET), shape, node, 0))
    flow = _placed(consolidated(changes, shape), shape, node)
    flow = flow.unionAll(_before(flow, own, shape, node))
    for stage in range(last):
        final = stage == last - 1
        first = places(node.function) if isinstance(node.function, TopRows) else None
        rows = versions(flow, shape, stage, keeps_changes=not node.monotonic, places=first)
        results = _applied(rows, shape, node, list(CARRIED), partition(shape), subject(), last=final)
        extra = _results(shape, node) if final else []
        width = 1 if final else node.buckets[stage + 1]
        flow = replaced(results, shape, sf.lit(stage + 1), bucket_at(width), extra, consolidates=not final)
    return flow.select(*_columns(sf.col(LEVEL), sf.col(BUCKET), shape, node, len(_results(shape, node))))


def _winners_updates(
    changes: DataFrame, own: OwnState, shape: RowLayout, node: Staged, known: pa.Table | None
) -> DataFrame:
    """Returns the updates of a state that is one row for each group of an input that never retracts."""
    of_group = [2 + position for position in shape.group]
    if known is None:
        groups = [sf.col(f"c{position}").alias(f"k{2 + i}") for i, position in enumerate(shape.group)]
        level, bucket = sf.lit(node.last_level).alias("k0"), sf.lit(0).cast("bigint").alias("k1")
        found = own.lookup(changes.select(level, bucket, *groups), [0, 1, *of_group])
    else:
        found = own.find(known, of_group)
    data = [sf.col(f"c{2 + position}").alias(f"c{position}") for position in range(shape.arity)]
    before = found.select(*data, sf.lit(PRIOR).cast("bigint").alias(TIME), DIFF, ERROR)
    summed = consolidated(changes.unionAll(before), shape)
    rows = summed.select(*shape.row, TIME, *failed_where(sf.col(GOOD) < 0, RETRACTION))
    assert isinstance(node.function, TopRows | Extremes), "these leave one row"
    updates = winners(rows, shape, node.function)
    return updates.select(*_columns(sf.lit(node.last_level), sf.lit(0), shape, node, 0))


def staged_snapshot(content: DataFrame, node: Staged, as_of: int) -> DataFrame:
    """Returns the state over an input whose content at `as_of` is `content`, as updates at `as_of`."""
    _check(node)
    shape = _shape(node)
    whole = consolidated(at_time(content, shape.arity, as_of), shape)
    whole = whole.select("*", bucket_of(hashed(shape), node.buckets[0]).alias(BUCKET))
    # By a sum, not by the error, so that the filter stays above the consolidation, which is then computed once.
    good = sf.col(GOOD).isNotNull()
    negative = good & (sf.col(DIFF) < 0)
    code = RETRACTION if node.monotonic else NEGATIVE_MULTIPLICITY
    rows = whole.select(*shape.row, TIME, BUCKET, *failed_where(negative, code))
    parts = []
    if not node.monotonic and not node.once:
        parts.append(_level(whole.where(good), 0, shape, node))
        parts += [
            _level(_after(stage, whole.where(sf.col(GOOD) > 0), shape, node), stage + 1, shape, node)
            for stage in range(node.last_level - 1)
        ]
    result = _after(node.last_level - 1, rows, shape, node)
    level, bucket = sf.lit(node.last_level), sf.lit(0)
    return union([*parts, result.select(*_columns(level, bucket, shape, node, len(_results(shape, node))))])


def _after(stage: int, rows: DataFrame, shape: RowLayout, node: Staged) -> DataFrame:
    """Returns what the stages up to `stage` make of `rows`; errors stay."""
    keys = [BUCKET, TIME, ERROR]
    for s in range(stage + 1):
        final = s == node.last_level - 1
        if s:
            rows = rows.select(*shape.row, *META, bucket_at(node.buckets[s]).alias(BUCKET))
        own = sf.col(ERROR).isNull()
        rows = _applied(rows, shape, node, keys, [BUCKET, *shape.group_names, ERROR], own, last=final)
    return rows


def _level(rows: DataFrame, level: int, shape: RowLayout, node: Staged) -> DataFrame:
    """Returns rows without errors as a level below the last; a filter for the last sees that they are not of it."""
    bucket = bucket_at(node.buckets[level])
    frame = rows.select(*shape.row, TIME, DIFF, sf.lit(None).cast("string").alias(ERROR), BUCKET)
    return frame.select(*_columns(sf.lit(level), bucket, shape, node, 0))


def _check(node: Staged) -> None:
    function = node.function
    if isinstance(function, Gathered | Windowed) and len(node.buckets) > 1:
        raise InternalError("groups that are needed whole are made in one stage")
    keeps_winners = isinstance(function, Extremes) or (isinstance(function, TopRows) and not function.offset)
    if node.monotonic and not keeps_winners:
        raise InternalError("winners alone do not tell what new rows make of this")


def _shape(node: Staged) -> RowLayout:
    return RowLayout(node.input.relation_type, node.group)


def _placed(changes: DataFrame, shape: RowLayout, node: Staged) -> DataFrame:
    """Returns the input's changes as a flow."""
    good, diff_and_error = sf.col(GOOD).isNotNull(), [sf.col(DIFF), sf.col(ERROR)]
    if node.monotonic:
        retracted = sf.coalesce(sf.col(GOOD) < 0, sf.lit(False))
        diff_and_error = failed_where(retracted, RETRACTION)
        good = good & ~retracted
    level = sf.when(good, sf.lit(0)).alias(LEVEL)
    bucket = sf.when(good, bucket_of(hashed(shape), node.buckets[0])).alias(BUCKET)
    return changes.select(level, bucket, *shape.row, TIME, *diff_and_error)


def _before(flow: DataFrame, own: OwnState, shape: RowLayout, node: Staged) -> DataFrame:
    """Returns what the buckets that `flow` may touch, at all levels, held before the interval, as a flow."""
    levels = [(node.last_level, 1)] if node.monotonic else list(enumerate(node.buckets))
    # The error part has no bucket, and finds nothing. To filter it out would consolidate the changes twice.
    placed = sf.col(BUCKET).isNotNull()
    places = [sf.struct(sf.lit(s).alias("k0"), sf.when(placed, bucket_at(n)).alias("k1")) for s, n in levels]
    group = [sf.col(f"c{position}").alias(f"k{2 + i}") for i, position in enumerate(shape.group)]
    keys = flow.select(sf.inline(sf.array(*places)), *group)
    found = own.lookup(keys, [0, 1, *(2 + position for position in shape.group)])
    if node.monotonic:
        return held(found, shape, sf.lit(0))
    # A lookup may find more than was asked for.
    return held(found.where(sf.col("c0") < node.last_level), shape, sf.col("c0"))


def _applied(
    rows: DataFrame, shape: RowLayout, node: Staged, keys: list[str], parting: list[str], own: Column, *, last: bool
) -> DataFrame:
    """Applies the stage function to each bucket, or each version of it; rows that are not `own` stay."""
    function = node.function
    match function:
        case TopRows():
            return top_rows(rows, shape, function, keys, parting, own, last=sf.lit(last))
        case Extremes():
            return extremes(rows, shape, function, keys, own)
        case Gathered():
            return gathered(rows, shape, function, keys, own)
        case Windowed():
            return windowed(rows, shape, function, parting, own)
        case _:
            assert_never(function)


def _results(shape: RowLayout, node: Staged) -> list[str]:
    """Returns the names of the columns that the last stage appends."""
    return [f"c{shape.arity + i}" for i in range(node.relation_type.arity - 2 - shape.arity)]


def _columns(level: Column, bucket: Column, shape: RowLayout, node: Staged, results: int) -> list[Column]:
    """Returns the state's columns, of which the last ones are NULL unless there are `results`, and the meta columns."""
    data = [shape.restored(position).alias(f"c{2 + position}") for position in range(shape.arity)]
    for i, name in enumerate(_results(shape, node)):
        type_ = spark_type(node.relation_type.columns[2 + shape.arity + i].type)
        data.append((sf.col(name) if i < results else sf.lit(None).cast(type_)).alias(f"c{2 + shape.arity + i}"))
    place = [level.cast("int").alias("c0"), bucket.cast("bigint").alias("c1")]
    return [*place, *data, *(sf.col(name) for name in META)]
