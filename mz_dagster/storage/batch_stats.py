"""What a batch holds, from Delta's own metadata: never a job to count.

Every data file that a commit adds carries its number of rows and of NULLs per column; `errors` is the rows less the
NULLs of `mz_error`, and the bounds of `mz_timestamp` tell whether all updates are of their append's interval. Shared by
all implementations of shards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from mz_dagster.catalog import NO_ROWS, Batch, BatchId, BatchStats
from mz_dagster.formalism import Antichain, GlobalId, UpdateBeyondUpper, UpdateNotBeyondLower
from mz_dagster.storage.clustering import bucket_of
from mz_dagster.storage.shards import (
    BATCH,
    BUCKET,
    ERROR,
    TIME,
    BatchIncomplete,
    Interval,
    ShardUnavailable,
    StatsMissing,
    StoredFile,
)


def open_table(path: Path) -> DeltaTable | None:
    """Returns the newest snapshot of the table at `path`, or None if there is no table.

    Raises:
        ShardUnavailable: There is one that cannot be read.
    """
    try:
        return DeltaTable(str(path))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise ShardUnavailable(
            f'cannot open the shard at "{path}": {error}', hint="Check that the folder is there and can be read."
        ) from error


def stored_files(table: DeltaTable, batches: Collection[BatchId] | None = None) -> dict[BatchId, list[StoredFile]]:
    """Returns the files of the batches, or of all, in a snapshot; a batch without files is not in the answer.

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
    actions = actions.select(wanted)
    if batches is not None:
        actions = actions.filter(pc.is_in(actions.column(0), pa.array(list(batches), pa.int64())))
    found: dict[BatchId, list[StoredFile]] = {}
    for batch, bucket, path, rows, size, nulls, timeless, *times in zip(
        *(column.to_pylist() for column in actions.columns), strict=True
    ):
        if rows is None or nulls is None or timeless is None:
            raise StatsMissing(f"a file of batch {batch} was committed without its row counts", detail=f"File {path}.")
        known = None if timeless else (int(times[0]), int(times[1]))
        found.setdefault(BatchId(batch), []).append(
            StoredFile(path, rows, rows - nulls, size, known, bucket_of(bucket))
        )
    return found


def files_of(table: DeltaTable | None, collection: GlobalId, batches: Sequence[Batch]) -> tuple[StoredFile, ...]:
    """Returns the files of listed batches in a snapshot, None being that of no table.

    Raises:
        BatchIncomplete: It does not hold as many rows of a batch as the catalog says.
        StatsMissing: A file was committed without its row counts.
    """
    stored = {} if table is None else stored_files(table, [batch.id for batch in batches])
    files: list[StoredFile] = []
    for batch in batches:
        found = stored.get(batch.id, [])
        rows = sum(file.rows for file in found)
        if rows != batch.stats.rows:
            raise BatchIncomplete(collection, batch.id, batch.stats.rows, rows)
        files.extend(found)
    return tuple(files)


def stats_of_batch(table_path: str | Path, batch: BatchId, interval: Interval | None = None) -> BatchStats:
    """Returns the stats of a committed batch; `NO_ROWS` if the newest snapshot holds none of it.

    Raises:
        ShardUnavailable: The table cannot be read.
        StatsMissing: A file was committed without its row counts.
        UpdateNotBeyondLower: An update is before the interval, if one is given, or has no time.
        UpdateBeyondUpper: An update is after it.
    """
    table = open_table(Path(table_path))
    return NO_ROWS if table is None else stats_in(table, batch, interval)


def stats_in(table: DeltaTable, batch: BatchId, interval: Interval | None = None) -> BatchStats:
    """Returns the stats of a batch in a snapshot; checks its times as `stats_of_batch` does."""
    files = stored_files(table, [batch]).get(batch, [])
    if interval is not None:
        _check_times(files, *interval)
    return BatchStats(
        sum(file.rows for file in files),
        sum(file.errors for file in files),
        len(files),
        sum(file.bytes for file in files),
    )


def _check_times(files: Sequence[StoredFile], lower: Antichain[int], upper: Antichain[int]) -> None:
    """Refuses updates outside of `[lower, upper)`, on a total order: the least and the greatest time tell."""
    for file in files:
        if file.times is None:
            raise UpdateNotBeyondLower("without a time", lower)
        least, greatest = file.times
        if not lower.less_equal(least):
            raise UpdateNotBeyondLower(f"at {least}", lower)
        if upper.less_equal(greatest):
            raise UpdateBeyondUpper(f"at {greatest}", upper)
