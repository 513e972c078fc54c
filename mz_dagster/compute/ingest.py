"""A source's updates over an interval: what its bindings say, through its envelope."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from mz_dagster.catalog import Batch, Binding, CollectionRow
from mz_dagster.storage.envelope import none, upsert
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.source import FileSource


def ingest(
    session: SparkSession,
    shards: Shards[DataFrame],
    row: CollectionRow,
    source: FileSource,
    bindings: Sequence[Binding],
    prior: Sequence[Batch],
) -> DataFrame:
    """Returns the update frame that the bindings make of the source's collection.

    Args:
        session: The session to read with.
        shards: Where the collection's own earlier updates are.
        row: The collection.
        source: Its files.
        bindings: Those of the interval, by tick.
        prior: The collection's batches before the interval.
    """
    records = source.read(session, bindings)
    columns = [column.name for column in row.columns]
    if source.envelope == "none":
        return none.updates(records, columns=columns)
    key = source.key or ()
    state: DataFrame | None = None
    if prior:
        lower = bindings[0].tick
        touched = upsert.touched_keys(records, key=key)
        before = upsert.restrict_to(shards.read(row, prior, upper=lower), touched, key=key)
        state = shards.consolidate(row, before, lower - 1)
    return upsert.updates(records, state, columns=columns, key=key)
