"""A source's updates over an interval: what its bindings say, through its envelope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.catalog import Binding, CollectionRow
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.compute.spark.spark_use import SparkUse
from mz_dagster.compute.step.local_ingest import (
    FreshRecords,
    first_portions,
    first_updates,
    held_of,
    is_spilled,
    local_ingest,
    placed_ingest,
    portions_reader,
)
from mz_dagster.compute.walk.handover import Handover
from mz_dagster.formalism import GlobalId
from mz_dagster.scalars.types import RelationType
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.envelope import debezium, none, upsert
from mz_dagster.storage.envelope.dropped_errors import without_dropped, without_dropped_by_spark
from mz_dagster.storage.late_pyspark import functions as F
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.source import ChangeSource, FileSource, Source
from mz_dagster.storage.source.unreadable_files import named_if_unreadable
from mz_dagster.storage.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def ingested(
    row: CollectionRow,
    source: Source,
    bindings: Sequence[Binding],
    before: Binding | None,
    reads: StepReads,
    spark: SparkUse,
    *,
    has_prior: bool,
    memory: CollectionRow | None,
    shared: dict[GlobalId, FreshRecords],
) -> Iterator[DataFrame | pa.Table | pa.RecordBatchReader]:
    """Makes what `_ingested` does; of errors that bindings drop, their ends."""

    def held() -> pa.Table:
        lower = bindings[0].tick
        return consolidated(reads.error_table(row.id, lower), lower - 1)

    read = [one for one in bindings if not one.drops_errors]
    found: AbstractContextManager[DataFrame | pa.Table | pa.RecordBatchReader] = nullcontext(_nothing(row))
    if read:
        is_first = not has_prior and len(read) == len(bindings)
        is_first = is_first and (memory is None or not reads.rows(memory.id, bindings[0].tick))
        found = _ingested(
            row,
            source,
            read,
            before,
            reads,
            spark,
            has_prior=has_prior,
            is_first=is_first,
            memory=memory,
            shared=shared,
        )
    with found as updates:
        yield _with_ends(row, bindings, updates, held, spark, memory)


def _with_ends(
    row: CollectionRow,
    bindings: Sequence[Binding],
    updates: DataFrame | pa.Table | pa.RecordBatchReader,
    held: Callable[[], pa.Table],
    spark: SparkUse,
    memory: CollectionRow | None,
) -> DataFrame | pa.Table | pa.RecordBatchReader:
    """Returns the updates that bindings make, with those that drop errors, of the updates that all others make.

    Args:
        row: The collection. What keys were told has no errors.
        bindings: Those of the interval.
        updates: What the files make.
        held: Returns the errors before the interval, consolidated.
        spark: Has a session, if the updates are a frame.
        memory: As `_ingested` says.
    """
    ticks = [one.tick for one in bindings if one.drops_errors]
    if not ticks or (memory is not None and row.id == memory.id):
        return updates
    assert not isinstance(updates, pa.RecordBatchReader), "what drops errors reads files"
    if isinstance(updates, pa.Table):
        return without_dropped(updates, held(), ticks, bindings[0].tick)
    before = Handover(spark).to_spark(held(), RelationType(row.columns)).toDF(*updates.columns)
    return without_dropped_by_spark(updates, before, ticks, bindings[0].tick)


def _nothing(row: CollectionRow) -> pa.Table:
    return update_schema(row.columns).empty_table()


@contextmanager
def _ingested(
    row: CollectionRow,
    source: Source,
    bindings: Sequence[Binding],
    before: Binding | None,
    reads: StepReads,
    spark: SparkUse,
    *,
    has_prior: bool,
    is_first: bool,
    memory: CollectionRow | None,
    shared: dict[GlobalId, FreshRecords],
) -> Iterator[DataFrame | pa.Table | pa.RecordBatchReader]:
    """Makes the updates that bindings make of a source's collection: of little in this process, else a frame.

    What is much of a first load comes as a reader, portion by portion. A frame is to be computed in the block, at
    whose end it is known that the files were still.

    Args:
        row: The collection.
        source: What fills it.
        bindings: Those of the interval, by tick.
        before: The last one before it, of a source with offsets.
        reads: Reads the collection's own earlier updates, and those of `memory`.
        spark: Opens Spark.
        has_prior: Whether there are any of its own.
        is_first: Whether there are none, nor any of `memory`, and nothing else is made of what comes of the bindings.
        memory: The collection that has what keys were told (`envelope.debezium`), if there is one; perhaps it is itself
            the one that is filled.
        shared: What was made in this process for a memory, until its source has it, too.

    Raises:
        BoundFileChanged: A bound file is gone or has another content.
        SourceUnreadable: Spark cannot read one of them.
    """
    if isinstance(source, ChangeSource):
        is_version = before is None and len(bindings) == 1 and source.envelope == "none"
        if is_version and source.size(bindings) > budget().small_file_bytes:
            yield portions_reader(row, source.insertions(bindings[0], row.columns))
            return
        yield source.updates(bindings, before, partial(_held, row, bindings[0].tick, reads), row.columns)
        return
    assert isinstance(source, FileSource), "no other source has records"
    placed, here = placed_ingest(source, bindings, is_first=is_first), None
    spark.placements.append(placed)
    if is_first and not placed.is_spark and is_spilled(source, bindings):
        with first_portions(row, source, bindings, memory) as updates:
            yield updates
        return
    if not placed.is_spark:
        here = local_ingest(row, source, bindings, reads, has_prior=has_prior, memory=memory, shared=shared)
    if here is not None:
        yield here
        return
    why = placed.because or "what the keys held before is looked up in much"
    if not placed.is_spark:
        spark.placements.append(Placement("files", True, 0, budget().decoded_cells, "decoded_cells", why))
    session, shards = spark.open(why)
    with _for_spark(session, source, bindings) as (found, bound):
        yield ingest(session, shards, row, found, bound, reads, has_prior=has_prior, memory=memory)


@contextmanager
def _for_spark(
    session: SparkSession, source: FileSource, bindings: Sequence[Binding]
) -> Iterator[tuple[FileSource, Sequence[Binding]]]:
    """Has what bindings name in a folder in which Spark reads it, and names the file that it cannot read."""
    with (
        source.found_by_spark(bindings) as (found, bound),
        found.verified_unchanged(bound),
        named_if_unreadable(session, found, bound),
    ):
        yield found, bound


def _held(row: CollectionRow, lower: int, reads: StepReads, keys: pa.Table | None = None) -> pa.Table:
    """Returns what a collection holds before `lower`, at least of some keys if there are any."""
    found = held_of(row, lower, keys, reads)
    if found is None:
        found = held_of(row, lower, None, reads)
    assert found is not None, "all of a collection can be read"
    return consolidated(found, lower - 1)


def ingest(
    session: SparkSession,
    shards: Shards[DataFrame],
    row: CollectionRow,
    source: FileSource,
    bindings: Sequence[Binding],
    reads: StepReads,
    *,
    has_prior: bool,
    memory: CollectionRow | None = None,
) -> DataFrame:
    """Returns the update frame that the bindings make of the source's collection.

    Args:
        session: The session to read with.
        shards: What consolidates.
        row: The collection.
        source: Its files.
        bindings: Those of the interval, by tick.
        reads: Reads the earlier updates of the collection and of `memory`.
        has_prior: Whether there are any of the collection.
        memory: As `ingested` says.
    """
    records = source.read(session, bindings)
    columns, key = [column.name for column in row.columns], source.stored_key
    if source.envelope == "none":
        return none.updates(records, columns=columns)
    lower = bindings[0].tick
    few = sum(file.size for one in bindings for file in one.files) <= budget().sought_file_bytes
    known = None
    if memory is not None and reads.rows(memory.id, lower):
        names = [column.name for column in memory.columns]
        records = reads.shared(records) if few else records
        as_stored = records.select(*(F.col(quoted(a)).alias(b) for a, b in zip(key, names[:-1], strict=True)))
        found = _before(shards, memory, as_stored, names[:-1], lower, reads, few=few)
        known = found.select(*(F.col(quoted(b)).alias(a) for a, b in zip((*key, "mz_known"), names, strict=True)))
    records, key = _fresh(row, memory, records, known, key)
    if not has_prior:
        return upsert.updates(records, None, columns=columns, key=key)
    records = reads.shared(records) if few and reads.prunes(row.id, lower, range(len(key))) else records
    before = _before(shards, row, records, key, lower, reads, few=few)
    return upsert.updates(records, before, columns=columns, key=key)


def _fresh(
    row: CollectionRow, memory: CollectionRow | None, records: DataFrame, known: DataFrame | None, key: tuple[str, ...]
) -> tuple[DataFrame, tuple[str, ...]]:
    """Returns a collection's records without those that are stale, and their key; of the memory its own records."""
    if memory is None:
        return records, key
    records = debezium.fresh(records, known, key=key)
    if row.id != memory.id:
        return records, key
    names = [column.name for column in row.columns]
    return debezium.memories(records, columns=names, key=key), tuple(names[:-1])


def _before(
    shards: Shards[DataFrame],
    row: CollectionRow,
    records: DataFrame,
    key: Sequence[str],
    lower: int,
    reads: StepReads,
    *,
    few: bool,
) -> DataFrame:
    """Returns what a collection holds before a time of the keys in records, consolidated.

    Args:
        shards: What consolidates.
        row: The collection.
        records: A frame with the key's columns, under the names that they have in the collection.
        key: The key's columns.
        lower: The time.
        reads: Reads the collection.
        few: Whether the records are so few that the keys may be looked up.
    """
    touched = upsert.touched_keys(records, key=key)
    by_name = {column.name: position for position, column in enumerate(row.columns)}
    bound = {by_name[name]: F.col(quoted(name)) for name in key}
    found = reads.lookup(row.id, lower, touched, bound) if few and reads.prunes(row.id, lower, tuple(bound)) else None
    if found is None:
        found = reads.read(row.id, None, lower)
    return shards.consolidate(row, upsert.restrict_to(found, touched, key=key), lower - 1)


@contextmanager
def ingested_again(
    row: CollectionRow, source: Source, bindings: Sequence[Binding], spark: SparkUse, memory: CollectionRow | None
) -> Iterator[DataFrame | pa.Table | pa.RecordBatchReader]:
    """Makes the updates of a source's whole collection, of all its bindings from the first on: see `ingested`.

    Args:
        row: The collection.
        source: What fills it.
        bindings: All before its upper.
        spark: Opens Spark.
        memory: As `ingested` says.
    """
    if isinstance(source, ChangeSource):
        yield source.updates(bindings, None, lambda _: _nothing(row), row.columns)
        return
    assert isinstance(source, FileSource), "no other source has records"
    read = [one for one in bindings if not one.drops_errors]
    with _read_again(row, source, read, spark, memory, is_first=len(read) == len(bindings)) as updates:
        yield _with_ends(row, bindings, updates, lambda: _nothing(row), spark, memory)


@contextmanager
def _read_again(
    row: CollectionRow,
    source: FileSource,
    bindings: Sequence[Binding],
    spark: SparkUse,
    memory: CollectionRow | None,
    *,
    is_first: bool,
) -> Iterator[DataFrame | pa.Table | pa.RecordBatchReader]:
    if not (why := placed_ingest(source, bindings, is_first=is_first).because):
        if is_first and is_spilled(source, bindings):
            with first_portions(row, source, bindings, memory) as updates:
                yield updates
        else:
            yield first_updates(row, source, bindings, memory)
        return
    session = spark.session(why)
    with _for_spark(session, source, bindings) as (found, bound):
        columns, records = [column.name for column in row.columns], found.read(session, bound)
        if source.envelope == "none":
            yield none.updates(records, columns=columns)
        else:
            records, key = _fresh(row, memory, records, None, source.stored_key)
            yield upsert.updates(records, None, columns=columns, key=key)
