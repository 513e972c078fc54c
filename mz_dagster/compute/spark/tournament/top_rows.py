"""The first rows of each bucket: `plan.physical.TopRows`.

Ties of the order go by the whole row, so the outcome is a function of the rows. A row of multiplicity n takes n places
and is cut where the limit falls inside; with ties, those are kept whole before which the order has fewer rows than the
limit. Best of best: the first n of a group are among the first n of its buckets.

Cost: one sort of each bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.compute.algebra.frame import DIFF
from mz_dagster.compute.spark.tournament.versions import Places, RowLayout
from mz_dagster.plan.physical import TopRows
from mz_dagster.plan.relation import ColumnOrder
from mz_dagster.storage.late_pyspark import Window
from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def top_rows(
    frame: DataFrame,
    shape: RowLayout,
    function: TopRows,
    keys: Sequence[str],
    partition: Sequence[str],
    subject: Column,
    *,
    last: Column,
) -> DataFrame:
    """Returns the rows that are not `subject`, and of the others the first ones of each partition.

    Args:
        frame: Rows of `shape` with a positive diff and `keys`.
        shape: Of the rows.
        function: Which rows.
        keys: Names of the further columns that are kept.
        partition: Names of the columns that part buckets.
        subject: Whether a row is one of a bucket.
        last: Whether this is the last stage, which leaves out the offset; over `partition`.

    Returns:
        `keys`, the columns of `shape` and the diff.
    """
    if function.ties:
        return _with_ties(frame, shape, function, keys, partition, subject)
    window = Window.partitionBy(*partition).orderBy(*(ordered(one) for one in function.order), *shape.ties())
    end = sf.sum(DIFF).over(window.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    frame = frame.select(*keys, *shape.row, DIFF, end.alias("mz_end"))
    start = sf.col("mz_end") - sf.col(DIFF)
    if function.offset:
        start = sf.when(last, sf.greatest(start, sf.lit(function.offset).cast("bigint"))).otherwise(start)
    stop = sf.col("mz_end")
    if function.limit is not None:
        stop = sf.least(stop, sf.lit(function.offset + function.limit).cast("bigint"))
    diff = sf.when(subject, stop - start).otherwise(sf.col(DIFF))
    return frame.where(~subject | (stop > start)).select(*keys, *shape.row, diff.alias(DIFF))


def _with_ties(
    frame: DataFrame,
    shape: RowLayout,
    function: TopRows,
    keys: Sequence[str],
    partition: Sequence[str],
    subject: Column,
) -> DataFrame:
    order = [ordered(one) for one in function.order]
    window = Window.partitionBy(*partition).orderBy(*(order or [sf.lit(0)]))
    until = sf.sum(DIFF).over(window.rangeBetween(Window.unboundedPreceding, Window.currentRow))
    own = sf.sum(DIFF).over(Window.partitionBy(*partition, *(sf.col(f"c{one.position}") for one in function.order)))
    frame = frame.select(*keys, *shape.row, DIFF, (until - own).alias("mz_before"))
    return frame.where(~subject | (sf.col("mz_before") < sf.lit(function.limit))).select(*keys, *shape.row, DIFF)


def places(function: TopRows) -> Places | None:
    """Returns which of a bucket's places a stage looks at; None for all."""
    if function.limit is None or function.ties:
        return None
    return Places(function.offset + function.limit, [ordered(one) for one in function.order])


def ordered(order: ColumnOrder) -> Column:
    """Returns one key of an order as Spark sorts by it."""
    column = sf.col(f"c{order.position}")
    if order.descending:
        return column.desc_nulls_first() if order.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if order.nulls_first else column.asc_nulls_last()
