"""A source's updates over an interval: what its bindings say, through its envelope."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mz_dagster.catalog import Binding, CollectionRow
from mz_dagster.compute.step_reads import StepReads
from mz_dagster.storage.envelope import none, upsert
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.source import FileSource
from mz_dagster.storage.spark.schema import quoted

#: Up to how many bytes of files have little in them.
FEW_BYTES = 10_000_000
#: Up to how many have few keys, so that what they touch is looked at before the state is.
LOOKED_AT_BYTES = 200_000_000


def ingest(
    session: SparkSession,
    shards: Shards[DataFrame],
    row: CollectionRow,
    source: FileSource,
    bindings: Sequence[Binding],
    reads: StepReads,
    *,
    has_prior: bool,
) -> DataFrame:
    """Returns the update frame that the bindings make of the source's collection.

    Args:
        session: The session to read with.
        shards: What consolidates.
        row: The collection.
        source: Its files.
        bindings: Those of the interval, by tick.
        reads: Reads the collection's own earlier updates.
        has_prior: Whether there are any.
    """
    records = source.read(session, bindings)
    columns = [column.name for column in row.columns]
    if source.envelope == "none":
        return none.updates(records, columns=columns)
    key = source.key or ()
    state: DataFrame | None = None
    if has_prior:
        lower = bindings[0].tick
        by_name = {name: position for position, name in enumerate(columns)}
        bound = {by_name[name]: F.col(quoted(name)) for name in key}
        found: DataFrame | None = None
        if sum(file.size for one in bindings for file in one.files) <= LOOKED_AT_BYTES and reads.prunes(
            row.id, lower, tuple(bound)
        ):
            records = reads.shared(records)
            found = reads.lookup(row.id, lower, upsert.touched_keys(records, key=key), bound)
        if found is None:
            found = reads.read(row.id, None, lower)
        before = upsert.restrict_to(found, upsert.touched_keys(records, key=key), key=key)
        state = shards.consolidate(row, before, lower - 1)
    return upsert.updates(records, state, columns=columns, key=key)
