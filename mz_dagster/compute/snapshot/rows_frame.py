"""A collection's rows at one time as a frame, for readers outside of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.catalog import CollectionRow, ListedBatches
from mz_dagster.compute.snapshot.peek import CollectionHasErrors
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.read import check_readable, overlapping
from mz_dagster.storage.spark.schema import quoted
from mz_dagster.storage.spark_shards import SparkShards

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows_frame(
    spark: SparkSession, root: Path, local: LocalShards, row: CollectionRow, listed: ListedBatches, as_of: int
) -> DataFrame:
    """Returns the rows at `as_of`, each as often as its multiplicity says, without the engine's columns.

    Args:
        spark: The reader's session.
        root: The storage root.
        local: The shards in this process.
        row: The collection.
        listed: Its batches, leased for as long as the frame is used.
        as_of: The time.

    Raises:
        CollectionHasErrors: The error part does not sum to zero at `as_of`.
    """
    check_readable(row.id, listed, as_of)
    shards = SparkShards(root, spark, local)
    batches = overlapping(listed.batches, None, as_of + 1)
    total = shards.consolidate(row, shards.read(row, batches, upper=as_of + 1), as_of)
    if any(batch.stats.errors for batch in batches):
        errors = total.where(total["mz_error"].isNotNull()).select("mz_error").orderBy("mz_error").limit(100).collect()
        if errors:
            raise CollectionHasErrors(errors[0][0], len(errors) - 1)
    negative = F.raise_error(F.lit(f'"{row.id}" has a row with a negative multiplicity'))
    copies = F.when(total["mz_diff"] < 0, negative).otherwise(total["mz_diff"]).cast("int")
    data = [total[quoted(one.name)].alias(f"c{i}") for i, one in enumerate(row.columns)]
    each = F.explode(F.array_repeat(F.lit(1), copies)).alias("mz_copies")
    repeated = total.where(total["mz_error"].isNull()).select(*data, each)
    return repeated.drop("mz_copies").toDF(*row.names)
