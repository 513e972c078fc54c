"""What a batch holds, from Delta's own metadata: never a job to count.

Every data file that a commit adds carries its number of rows and of NULLs per column; `errors` is the rows less the
NULLs of `mz_error`, and the bounds of `mz_timestamp` tell whether all updates are of their append's interval. Shared by
all implementations of shards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from mz_dagster.catalog import INLINED, Batch, BatchFile, BatchId, CollectionRow
from mz_dagster.formalism import Antichain, UpdateBeyondUpper, UpdateNotBeyondLower
from mz_dagster.scalars.types import Column
from mz_dagster.storage.clustering import Bucket, bucket_of
from mz_dagster.storage.shards import (
    BATCH,
    BUCKET,
    ERROR,
    TIME,
    BatchIncomplete,
    LogDamaged,
    StatsMissing,
    StoredFile,
)
from mz_dagster.storage.skipping import Bounds

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BACKTRACE = re.compile(r"\d+: |stack backtrace", re.IGNORECASE)


def in_one_line(error: Exception) -> str:
    r"""Returns what a library of Rust says, without its colours and backtrace.

    Example:
        >>> in_one_line(OSError("disk error\n  \x1b[31m↳\x1b[0m full\n   0: <unknown>\n  1: clone3\n"))
        'disk error: full'
    """
    lines = [_COLOUR.sub("", line).strip(" ↳") for line in str(error).splitlines()]
    told = takewhile(lambda line: not _BACKTRACE.match(line), lines)
    return ": ".join(line for line in told if line) or type(error).__name__


def stored_files(
    table: DeltaTable, batches: Collection[BatchId] | None = None, columns: Sequence[Column] = ()
) -> dict[BatchId, list[StoredFile]]:
    """Returns the files of the batches, or of all, in a snapshot; a batch without files is not in the answer.

    Args:
        table: The snapshot.
        batches: Which; None for all.
        columns: Of which columns to say what bounds they have, as far as the log knows.

    Raises:
        StatsMissing: A file was committed without its row counts.
    """
    actions: Any = pa.table(table.get_add_actions(flatten=True))
    names = set(actions.column_names)
    if not actions.num_rows:
        return {}
    wanted = [
        f"partition.{BATCH}",
        f"partition.{BUCKET}",
        "path",
        "num_records",
        "size_bytes",
        *(f"null_count.{ERROR}", f"null_count.{TIME}", f"min.{TIME}", f"max.{TIME}"),
    ]
    if not names.issuperset(wanted):
        raise StatsMissing("a shard's log has no row counts", detail=f"It lacks {sorted(set(wanted) - names)}.")
    if batches is not None:
        listed = pc.is_in(actions.column(f"partition.{BATCH}"), pa.array(list(batches), pa.int64()))
        actions = actions.filter(listed)
    bounds = {column.name: list(_bounds(actions, column.name)) for column in columns}
    found: dict[BatchId, list[StoredFile]] = {}
    for number, (batch, bucket, path, rows, size, nulls, timeless, *times) in enumerate(
        zip(*(column.to_pylist() for column in actions.select(wanted).columns), strict=True)
    ):
        if rows is None or nulls is None or timeless is None:
            raise StatsMissing(f"a file of batch {batch} was committed without its row counts", detail=f"File {path}.")
        known = None if timeless else (int(times[0]), int(times[1]))
        known_bounds = {name: of_files[number] for name, of_files in bounds.items()}
        found.setdefault(BatchId(batch), []).append(
            StoredFile(path, rows, rows - nulls, size, known, bucket_of(bucket), known_bounds)
        )
    return found


def _bounds(actions: pa.Table, column: str) -> Iterator[Bounds]:
    """Yields what a log says of a column, file by file."""
    nulls, least, greatest = (f"{fact}.{column}" for fact in ("null_count", "min", "max"))
    if not {nulls, least, greatest} <= set(actions.column_names):
        yield from [Bounds(None, None, all_null=False)] * actions.num_rows
        return
    all_null = pc.equal(actions.column(nulls), actions.column("num_records")).to_pylist()
    for low, high, null in zip(_plain(actions.column(least)), _plain(actions.column(greatest)), all_null, strict=True):
        yield Bounds(low, high, bool(null))


def _plain(values: pa.ChunkedArray) -> list[Any]:
    """Returns numbers and texts; days and microseconds for dates and moments, of which Python does not have all."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return list(values.to_pylist())


def listed_files(batch: Batch) -> tuple[StoredFile, ...] | None:
    """Returns the files of a batch as the catalog lists them, without bounds; None if it does not.

    Raises:
        BatchIncomplete: They do not hold as many rows as the catalog says.
    """
    if (listed := batch.stats.file_list) is None:
        return None
    rows = sum(one.rows for one in listed)
    if rows != batch.stats.rows:
        raise BatchIncomplete(batch.collection, batch.id, batch.stats.rows, rows)
    if (inlined := batch.stats.inlined) is not None:
        path = f"{BATCH}={int(batch.id)}/{INLINED}"
        return (StoredFile(path, rows, inlined.errors, inlined.bytes, inlined.times, None, inlined=batch),)
    return tuple(
        StoredFile(one.path, one.rows, one.errors, one.bytes, one.times, _bucket_in(one.path), hash=one.hash)
        for one in listed
    )


def _bucket_in(path: str) -> Bucket | None:
    """Returns which bucket the path of a file, relative to its table, names."""
    folder = path.split("/", 2)[1]
    return bucket_of(folder.removeprefix(f"{BUCKET}="))


def files_by_batch(
    table: DeltaTable | None, collection: CollectionRow, batches: Sequence[Batch], bounds: Sequence[Column] = ()
) -> list[tuple[StoredFile, ...]]:
    """Returns the files of each of some listed batches in a snapshot, None being that of no table.

    Args:
        table: The snapshot.
        collection: The collection.
        batches: The batches.
        bounds: The columns whose bounds are wanted.

    Raises:
        BatchIncomplete: It does not hold as many rows of a batch as the catalog says.
        LogDamaged: It names other files of a batch than the catalog lists.
        StatsMissing: A file was committed without its row counts.
    """
    stored = {} if table is None else stored_files(table, [batch.id for batch in batches], bounds)
    files: list[tuple[StoredFile, ...]] = []
    for batch in batches:
        found = stored.get(batch.id, [])
        rows = sum(file.rows for file in found)
        if rows != batch.stats.rows:
            raise BatchIncomplete(collection.id, batch.id, batch.stats.rows, rows)
        files.append(_as_listed(collection, batch, found))
    return files


def _as_listed(collection: CollectionRow, batch: Batch, found: Sequence[StoredFile]) -> tuple[StoredFile, ...]:
    """Returns the files that the log names of a batch, with the hashes that the catalog has of them."""
    if batch.stats.file_list is None:
        return tuple(found)
    listed = {one.path: one for one in batch.stats.file_list}
    if {one.path: (one.bytes, one.rows, one.errors) for one in found} != {
        path: (one.bytes, one.rows, one.errors) for path, one in listed.items()
    }:
        raise LogDamaged(collection.id, batch.id)
    return tuple(replace(one, hash=listed[one.path].hash) for one in found)


def check_times(files: Sequence[StoredFile | BatchFile], lower: Antichain[int], upper: Antichain[int]) -> None:
    """Refuses updates outside of `[lower, upper)`, on a total order: the least and the greatest time tell."""
    for file in files:
        if file.times is None:
            raise UpdateNotBeyondLower("without a time", lower)
        least, greatest = file.times
        if not lower.less_equal(least):
            raise UpdateNotBeyondLower(f"at {least}", lower)
        if upper.less_equal(greatest):
            raise UpdateBeyondUpper(f"at {greatest}", upper)
