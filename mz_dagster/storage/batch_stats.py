"""What a batch holds, from Delta's own metadata: never a job to count.

Every data file that a commit adds carries its number of rows and of NULLs per column; `errors` is the rows less the
NULLs of `mz_error`. Shared by all implementations of shards.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from mz_dagster.catalog import NO_ROWS, BatchId, BatchStats
from mz_dagster.storage.shards import BATCH, ERROR, ShardUnavailable, StatsMissing


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Is a data file of a batch, as the table's log has it.

    Attributes:
        path: Relative to the table.
        rows: How many updates it holds.
        errors: How many of them are of the error part.
        bytes: Its size.
    """

    path: str
    rows: int
    errors: int
    bytes: int


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
    wanted = [f"partition.{BATCH}", "path", "num_records", "size_bytes", f"null_count.{ERROR}"]
    if not names.issuperset(wanted):
        raise StatsMissing("a shard's log has no row counts", detail=f"It lacks {sorted(set(wanted) - names)}.")
    actions = actions.select(wanted)
    if batches is not None:
        actions = actions.filter(pc.is_in(actions.column(0), pa.array(list(batches), pa.int64())))
    found: dict[BatchId, list[StoredFile]] = {}
    for batch, path, rows, size, nulls in zip(*(column.to_pylist() for column in actions.columns), strict=True):
        if rows is None or nulls is None:
            raise StatsMissing(f"a file of batch {batch} was committed without its row counts", detail=f"File {path}.")
        found.setdefault(BatchId(batch), []).append(StoredFile(path, rows, rows - nulls, size))
    return found


def stats_of_batch(table_path: str | Path, batch: BatchId) -> BatchStats:
    """Returns the stats of a committed batch; `NO_ROWS` if the newest snapshot holds none of it.

    Raises:
        ShardUnavailable: The table cannot be read.
        StatsMissing: A file was committed without its row counts.
    """
    table = open_table(Path(table_path))
    return NO_ROWS if table is None else stats_in(table, batch)


def stats_in(table: DeltaTable, batch: BatchId) -> BatchStats:
    """Returns the stats of a batch in a snapshot."""
    files = stored_files(table, [batch]).get(batch, [])
    return BatchStats(
        sum(file.rows for file in files),
        sum(file.errors for file in files),
        len(files),
        sum(file.bytes for file in files),
    )
