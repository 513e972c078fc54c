"""A source's updates over an interval, made in this process: what `ingest` has Spark make of more.

What the keys of an upsert held before is looked up as in-process plans look up: in little by reading it whole, in much
in the files that may hold the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.catalog import Binding, CollectionRow, in_shard
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.lookups.lookup_keys import LookupKeys
from mz_dagster.compute.lookups.step_reads import StepReads
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.envelope.local import fresh, insertions, memories, upserts
from mz_dagster.storage.envelope.spilled import SpilledRecords
from mz_dagster.storage.shards import ERROR, TIME
from mz_dagster.storage.source import FileSource


def placed_ingest(source: FileSource, bindings: Sequence[Binding], *, is_first: bool) -> Placement:
    """Returns who decodes files: Spark, if they are too much for this process.

    Args:
        source: What they are files of.
        bindings: Which they are.
        is_first: Whether nothing is there of what they fill.
    """
    of = "loaded" if is_first and source.is_in_portions else "ingested"
    name, name_of_rows = f"{of}_bytes", f"{of}_rows"
    most, most_rows = (int(getattr(budget(), one)) for one in (name, name_of_rows))
    size = source.held_bytes(bindings, most + 1)
    if size > most:
        why = f"files hold {size} bytes or more, more than {most} ({name})"
        return Placement("files", True, size, most, name, why)
    if (rows := source.counted_rows(bindings)) > most_rows:
        why = f"files have {rows} rows, more than {most_rows} ({name_of_rows})"
        return Placement("files", True, rows, most_rows, name_of_rows, why)
    return Placement("files", False, size, most, name, f"files hold {size} bytes, at most {most} ({name})")


@dataclass(frozen=True, slots=True)
class FreshRecords:
    """The records of an interval that are not stale: a source's memory of its keys is made of them, and then it itself.

    Attributes:
        ticks: Those of the interval's bindings.
        records: The records, with what is remembered behind each (`envelope.local.fresh`).
    """

    ticks: tuple[int, ...]
    records: pa.Table


def is_spilled(source: FileSource, bindings: Sequence[Binding]) -> bool:
    """Returns whether records of a first load are so many that they are not all in memory at once."""
    most = budget().spilled_bytes
    is_large = source.held_bytes(bindings, most + 1) > most or source.counted_rows(bindings) > budget().portion_rows
    return is_large and source.is_in_portions


def first_updates(
    row: CollectionRow, source: FileSource, bindings: Sequence[Binding], memory: CollectionRow | None
) -> pa.Table:
    """Returns the updates that bindings make of a source's collection that was empty before: see `local_ingest`."""
    return _first_of(row, source, memory, source.read_here(bindings))


@contextmanager
def first_portions(
    row: CollectionRow, source: FileSource, bindings: Sequence[Binding], memory: CollectionRow | None
) -> Iterator[pa.Table | pa.RecordBatchReader]:
    """Makes what `first_updates` returns, portion by portion, as it is read in the block; an empty table of nothing.

    Of records without a key each portion is decoded as it is read; keyed ones go to a folder first.
    """
    if source.envelope == "none":
        yield portions_reader(row, (insertions(one, columns=row.columns) for one in source.portions_here(bindings)))
        return
    types = {column.name: column.type for column in in_shard(source.columns)}
    with source.spool_folder() as folder:
        kept = [*types, TIME, "mz_deleted", ERROR, *(["mz_place"] if memory is not None else [])]
        records = (one.select(kept) for one in source.portions_here(bindings))
        key = {name: types[name] for name in source.stored_key}
        spilled = SpilledRecords.of(records, folder, key, compares_all=memory is not None)

        def alone(some: pa.Table) -> pa.Table:
            is_deleted = some.column("mz_deleted")
            stays = some.filter(pc.invert(is_deleted)) if pc.any(is_deleted).as_py() else some
            return insertions(stays, columns=row.columns)

        yield portions_reader(row, spilled.updates(alone, partial(_first_of, row, source, memory)))


def portions_reader(row: CollectionRow, portions: Iterator[pa.Table]) -> pa.Table | pa.RecordBatchReader:
    """Returns updates that come portion by portion as a reader; an empty table of nothing."""
    schema = update_schema(row.columns)
    batches = (batch for one in portions for batch in one.to_batches() if len(batch))
    if (first := next(batches, None)) is None:
        return schema.empty_table()
    return pa.RecordBatchReader.from_batches(schema, chain([first], batches))


def _first_of(row: CollectionRow, source: FileSource, memory: CollectionRow | None, records: pa.Table) -> pa.Table:
    """Returns the updates that records make of a source's collection of which there is nothing of their keys."""
    key = source.stored_key
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
