"""A source's updates over an interval, made in this process: what `ingest` has Spark make of more.

What the keys of an upsert held before is looked up as in-process plans look up: in little by reading it whole, in much
in the files that may hold the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.catalog import Binding, CollectionRow
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.envelope.local import fresh, insertions, memories, upserts
from mz_dagster.storage.source import FileSource


def placed_ingest(source: FileSource, bindings: Sequence[Binding]) -> Placement:
    """Returns who decodes files: Spark, if they are too much for this process."""
    most = budget().ingested_bytes
    size = source.held_bytes(bindings, most + 1)
    if size > most:
        why = f"files hold {size} bytes or more, more than {most} (ingested_bytes)"
        return Placement("files", True, size, most, "ingested_bytes", why)
    if (rows := source.counted_rows(bindings)) > (few := budget().ingested_rows):
        why = f"files have {rows} rows, more than {few} (ingested_rows)"
        return Placement("files", True, rows, few, "ingested_rows", why)
    return Placement("files", False, size, most, "ingested_bytes",
                     f"files hold {size} bytes, at most {most} (ingested_bytes)")  # fmt: skip


@dataclass(frozen=True, slots=True)
class FreshRecords:
    """The records of an interval that are not stale: a source's memory of its keys is made of them, and then it itself.

    Attributes:
        ticks: Those of the interval's bindings.
        records: The records, with what is remembered behind each (`envelope.local.fresh`).
    """

    ticks: tuple[int, ...]
    records: pa.Table


def first_updates(
    row: CollectionRow, source: FileSource, bindings: Sequence[Binding], memory: CollectionRow | None
) -> pa.Table:
    """Returns the updates that bindings make of a source's collection that was empty before: see `local_ingest`."""
    records, key = source.read_here(bindings), source.stored_key
    if source.envelope == "none":
        return insertions(records, columns=row.columns)
    if memory is not None:
        records, key = _own(row, memory, fresh(records, None, key=key), key)
    return upserts(records, None, columns=row.columns, key=key)


def local_ingest(
    row: CollectionRow,
    source: FileSource,
    bindings: Sequence[Binding],
    reads: StepReads,
    *,
    has_prior: bool,
    memory: CollectionRow | None,
    shared: dict[GlobalId, FreshRecords],
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
        shared: What was made for a memory, until its source has it, too.
    """
    lower, key = bindings[0].tick, source.stored_key
    if memory is None:
        records = source.read_here(bindings)
        if source.envelope == "none":
            return insertions(records, columns=row.columns)
    else:
        ticks, made = tuple(one.tick for one in bindings), shared.pop(memory.id, None)
        found = made.records if made is not None and made.ticks == ticks else None
        if found is None:
            found = _fresh(source.read_here(bindings), memory, lower, reads, key)
        if found is None:
            return None
        if row.id == memory.id:
            shared[memory.id] = FreshRecords(ticks, found)
        records, key = _own(row, memory, found, key)
    if not has_prior:
        return upserts(records, None, columns=row.columns, key=key)
    names = [column.name for column in row.columns if column.name in key]
    held = held_of(row, lower, records.select(names), reads)
    return None if held is None else upserts(records, consolidated(held, lower - 1), columns=row.columns, key=key)


def _fresh(
    records: pa.Table, memory: CollectionRow, lower: int, reads: StepReads, key: tuple[str, ...]
) -> pa.Table | None:
    """Returns the records that are not stale; None if much would have to be read to tell."""
    if not reads.rows(memory.id, lower):
        return fresh(records, None, key=key)
    names = [column.name for column in memory.columns]
    found = held_of(memory, lower, records.select(list(key)).rename_columns(names[:-1]), reads)
    if found is None:
        return None
    known = consolidated(found, lower - 1).select(names).rename_columns([*key, "mz_known"])
    return fresh(records, known, key=key)


def _own(
    row: CollectionRow, memory: CollectionRow, records: pa.Table, key: tuple[str, ...]
) -> tuple[pa.Table, tuple[str, ...]]:
    """Returns a collection's records of those that are not stale, and their key; of the memory what it is to have."""
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
