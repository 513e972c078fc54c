"""A source's updates over an interval, made in this process: what `ingest` has Spark make of more.

What the keys of an upsert held before is looked up as in-process plans look up: in little by reading it whole, in much
in the files that may hold the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mz_dagster.budget import budget
from mz_dagster.catalog import Binding, CollectionRow
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.envelope.local import fresh, insertions, memories, upserts
from mz_dagster.storage.source import FileSource

if TYPE_CHECKING:
    import pyarrow as pa


def why_ingested_by_spark(source: FileSource, bindings: Sequence[Binding]) -> str:
    """Returns why files are too much to be decoded in this process; empty if they are not."""
    size = source.held_bytes(bindings, budget().ingested_bytes + 1)
    if size > budget().ingested_bytes:
        return f"files hold {size} bytes, more than {budget().ingested_bytes}"
    rows = source.counted_rows(bindings)
    return f"files have {rows} rows, more than {budget().ingested_rows}" if rows > budget().ingested_rows else ""


def first_updates(
    row: CollectionRow, source: FileSource, bindings: Sequence[Binding], memory: CollectionRow | None
) -> pa.Table:
    """Returns the updates that bindings make of a source's collection that was empty before: see `local_ingest`."""
    records = source.read_here(bindings)
    if source.envelope == "none":
        return insertions(records, columns=row.columns)
    records, key = _fresh(row, memory, records, None, source.stored_key)
    return upserts(records, None, columns=row.columns, key=key)


def local_ingest(
    row: CollectionRow,
    source: FileSource,
    bindings: Sequence[Binding],
    reads: StepReads,
    *,
    has_prior: bool,
    memory: CollectionRow | None,
) -> pa.Table | None:
    """Returns the updates that the bindings make of the source's collection; None if they are left to Spark.

    They are, if much would have to be read to know what keys held before.

    Args:
        row: The collection.
        source: Its files, which are as they were bound.
        bindings: Those of the interval, by tick.
        reads: Reads the earlier updates of the collection and of `memory`.
        has_prior: Whether there are any of the collection.
        memory: The collection that has what keys were told, if there is one; perhaps it is the one that is filled.
    """
    if source.envelope == "none":
        return insertions(source.read_here(bindings), columns=row.columns)
    lower, key = bindings[0].tick, source.stored_key
    records = source.read_here(bindings)
    known = None
    if memory is not None and reads.rows(memory.id, lower):
        names = [column.name for column in memory.columns]
        found = held_of(memory, lower, records.select(list(key)).rename_columns(names[:-1]), reads)
        if found is None:
            return None
        known = consolidated(found, lower - 1).select(names).rename_columns([*key, "mz_known"])
    records, key = _fresh(row, memory, records, known, key)
    if not has_prior:
        return upserts(records, None, columns=row.columns, key=key)
    names = [column.name for column in row.columns if column.name in key]
    found = held_of(row, lower, records.select(names), reads)
    if found is None:
        return None
    return upserts(records, consolidated(found, lower - 1), columns=row.columns, key=key)


def _fresh(
    row: CollectionRow, memory: CollectionRow | None, records: pa.Table, known: pa.Table | None, key: tuple[str, ...]
) -> tuple[pa.Table, tuple[str, ...]]:
    """Returns a collection's records without those that are stale, and their key; of the memory its own records."""
    if memory is None:
        return records, key
    records = fresh(records, known, key=key)
    if row.id != memory.id:
        return records, key
    names = [column.name for column in row.columns]
    return memories(records, columns=names, key=key), tuple(names[:-1])


def held_of(row: CollectionRow, lower: int, keys: pa.Table | None, reads: StepReads) -> pa.Table | None:
    """Returns a collection's updates before a time, at least those of some keys; None if that is much to be read.

    Of a collection that is little they are all, which is less than to look keys up.

    Args:
        row: The collection.
        lower: The time.
        keys: Columns of the collection with the keys; None for all updates.
        reads: Reads them.
    """
    everything = range(len(row.columns))
    if keys is None or reads.rows(row.id, lower) <= budget().whole_rows:
        return reads.read_table(row.id, None, lower, everything)
    bound = {i: column for i, column in enumerate(row.columns) if column.name in keys.column_names}
    sought = LookupKeys.of(bound, [keys.select([column.name for column in bound.values()])])
    return reads.find_table(row.id, lower, sought, everything)
