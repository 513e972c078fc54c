"""Copies of shards: exactly the files of listed batches, in a new table whose log names them and nothing else.

Inlined batches have none: they go with the catalog, and are only looked at.

A copy needs no history of its original's log, and nothing that the log names beside the listed batches: dead batches,
strays, and what was appended meanwhile. What a new log says of a file is taken from the file's own footer, so that a
file which cannot be read, or is not what its table's log says, is noticed when it is copied and not when it is missed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.progress import advance
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shards import BATCH, BUCKET, DIFF, ERROR, TIME, FileDamaged, ShardUnavailable, StoredFile

_BLOCK = 1 << 20
#: How many files are looked up at a time.
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Footer:
    """What a data file says of itself.

    Attributes:
        rows: How many updates it holds.
        errors: How many of them are of the error part.
        times: The least and the greatest time; None if it has no updates.
        diffs: The least and the greatest diff; None if it has no updates.
        bytes: Its size.
    """

    rows: int
    errors: int
    times: tuple[int, int] | None
    diffs: tuple[int, int] | None
    bytes: int


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file that was copied.

    Attributes:
        path: Relative to the root of the copy, with `/` between parts.
        size: In bytes.
        sha256: Of what was copied.
    """

    path: str
    size: int
    sha256: str


def read_footer(path: Path) -> Footer:
    """Returns what a data file's footer says, without reading a row.

    Raises:
        FileDamaged: It is gone, is no Parquet file, or has no statistics of the update's own columns.
    """
    try:
        size = path.stat().st_size
        with pq.ParquetFile(path) as file:
            found = file.metadata
    except (OSError, pa.ArrowException) as error:
        raise FileDamaged(path, str(error).rstrip(".")) from error
    nulls, times, diffs = 0, list[int](), list[int]()
    for number in range(found.num_row_groups):
        group = found.row_group(number)
        columns = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
        of_time, of_diff, of_error = (columns.get(name) for name in (TIME, DIFF, ERROR))
        if of_time is None or of_diff is None or of_error is None or not of_error.has_null_count:
            raise FileDamaged(path, "Its footer has no statistics")
        nulls += of_error.null_count
        if of_time.has_min_max and of_diff.has_min_max:
            times += [int(of_time.min), int(of_time.max)]
            diffs += [int(of_diff.min), int(of_diff.max)]
    return Footer(
        found.num_rows,
        found.num_rows - nulls,
        (min(times), max(times)) if times else None,
        (min(diffs), max(diffs)) if diffs else None,
        size,
    )


def adopt(shards: LocalShards, collection: CollectionRow, paths: Sequence[str]) -> None:
    """Makes a collection's table anew, naming data files that lie in its folder already, in one commit.

    By the end its log is on disk.

    Args:
        shards: Where the folder is; it has no log yet.
        collection: The collection.
        paths: The files, relative to the folder, each `mz_batch=.../mz_bucket=.../...`.

    Raises:
        FileDamaged: A file cannot be read.
        ShardUnavailable: The log cannot be written.
    """
    shards.create(collection)
    folder = shards.path(collection)
    adds: list[AddAction | RemoveAction] = []
    for path in paths:
        footer = read_footer(folder / path)
        statistics = {
            "numRecords": footer.rows,
            "nullCount": {TIME: 0, DIFF: 0, ERROR: footer.rows - footer.errors},
        }
        for position, bound in enumerate(("minValues", "maxValues")):
            if footer.times is not None and footer.diffs is not None:
                statistics[bound] = {TIME: footer.times[position], DIFF: footer.diffs[position]}
        batch, bucket = (part.partition("=")[2] for part in path.split("/")[:2])
        changed_ms = (folder / path).stat().st_mtime_ns // 1_000_000
        partition = {BATCH: batch, BUCKET: bucket}
        adds.append(AddAction(path, footer.bytes, partition, changed_ms, True, json.dumps(statistics)))
    try:
        table = DeltaTable(str(folder))
        table.create_write_transaction(adds, "append", table.schema(), partition_by=[BATCH, BUCKET])
    except (DeltaError, OSError) as error:
        raise ShardUnavailable(
            f'cannot write the log of the shard at "{folder}": {error}',
            hint="Check the folder's permissions and free space, then try again.",
        ) from error
    shards.sync_log(collection)


def copy_shard(
    shards: LocalShards, collection: CollectionRow, batches: Sequence[Batch], target: LocalShards
) -> Iterator[CopiedFile]:
    """Copies the files of listed batches, and makes the table that names them; yields each data file once it is copied.

    Args:
        shards: Where from.
        collection: The collection.
        batches: Leased by the caller until the end.
        target: Where to; nothing of the collection is there yet.

    Raises:
        BatchIncomplete: The shard lacks rows of a batch.
        PayloadDamaged: An inlined batch is not the one that was written.
        FileDamaged: A file is not what the shard's log says.
    """
    shards.read(collection, [batch for batch in batches if batch.stats.inlined is not None])
    files = [one for one in shards.files(collection, batches) if one.inlined is None]
    if not files:
        return
    for start in range(0, len(files), _AT_ONCE):
        some = files[start : start + _AT_ONCE]
        with shards.place.as_it_lies(collection.shard, [one.path for one in some]) as root:
            for one in some:
                path = f"{collection.shard}/{one.path}"
                yield _copied(root / path, target.path(collection) / one.path, one, path, shards.place.called(path))
    adopt(target, collection, [one.path for one in files])


def _copied(source: Path, copy: Path, file: StoredFile, path: str, called: str) -> CopiedFile:
    """Copies a file of a shard if it is the one that was written."""
    try:
        size, sha256 = copy_file(source, copy)
    except FileNotFoundError as error:
        raise FileDamaged(called, "It is gone") from error
    found = read_footer(copy)
    if (size, found.rows, found.errors) != (file.bytes, file.rows, file.errors):
        raise FileDamaged(
            called,
            f"It has {size} bytes and {found.rows} rows, {found.errors} of them errors; "
            f"written were {file.bytes} bytes and {file.rows} rows, {file.errors} of them errors",
        )
    return CopiedFile(path, size, sha256)


def copy_file(source: Path, target: Path) -> tuple[int, str]:
    """Copies a file's bytes, making the folders above it, and returns how many there were and their SHA-256."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with open(source, "rb") as reader, open(target, "wb") as writer:
        while block := reader.read(_BLOCK):
            digest.update(block)
            size += len(block)
            writer.write(block)
            advance(len(block), "bytes")
    return size, digest.hexdigest()
