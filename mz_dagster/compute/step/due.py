"""When a temporal filter's state changes next by itself.

The least due time is found in the rows that a step wrote, which are few, and only if the one known before has come in
the whole state. It may be early, never late: a row that was retracted since still counts until the state is compacted,
and a step at its due time then finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def next_due(
    row: CollectionRow,
    upper: int,
    written: Sequence[Batch],
    listed: Callable[[], Sequence[Batch]],
    shards: Callable[[], Shards[DataFrame]],
    local: LocalShards | None,
) -> int | None:
    """Returns the least time, not before `upper`, at which a state changes by itself, or None.

    Args:
        row: The state's collection before the step.
        upper: The step's.
        written: The batch that the step wrote, if it wrote one.
        listed: Returns all of the state's batches, the one written included.
        shards: Returns what reads them on Spark; called when they are many.
        local: Reads them in this process, if there are few updates.
    """
    if row.is_due(upper):
        return _least(row, upper, listed(), shards, local)
    found = _least(row, upper, written, shards, local)
    return min((one for one in (row.next_due, found) if one is not None), default=None)


def _least(
    row: CollectionRow,
    upper: int,
    batches: Sequence[Batch],
    shards: Callable[[], Shards[DataFrame]],
    local: LocalShards | None,
) -> int | None:
    if not batches:
        return None
    names = [column.name for column in row.columns[-3:]]
    if local is not None and sum(batch.stats.rows for batch in batches) <= budget().due_rows:
        found = (_least_in(local.read(row, [one], columns=names), names, upper) for one in batches)
        return min((one for one in found if one is not None), default=None)
    frame = shards().read(row, batches)  # first: there are no expressions of Spark's before there is a session
    starts, ends, valid = (sf.col(quoted(name)) for name in names)
    due = frame.where((~valid & (starts >= upper)) | (valid & (ends >= upper)))
    least: int | None = due.agg(sf.min(sf.when(valid, ends).otherwise(starts))).collect()[0][0]
    return least


def _least_in(table: pa.Table, names: Sequence[str], upper: int) -> int | None:
    starts, ends, valid = (table.column(name) for name in names)
    due = pc.if_else(valid, ends, starts)
    found: int | None = pc.min(pc.filter(due, pc.greater_equal(due, upper))).as_py()
    return found
