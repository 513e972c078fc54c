"""The protocol of shards: what an implementation must do so that append, read, compaction and sweep are right.

A shard is the folder of one collection, a Delta table with the columns `mz_batch` and `mz_bucket` (the partition),
`mz_timestamp`, `mz_diff`, `mz_error` and the collection's data columns, a numeric being two (`numerics`). All rows
under one `mz_batch` come from one append, which is one commit; a batch is never appended to twice. What the catalog
does not list does not exist, so an implementation may leave garbage anywhere except under a listed batch. `mz_bucket`
says which keys a file may hold (`clustering`).

`Shards` is generic over its frames: a Spark DataFrame or a pyarrow Table. The columns of an *update frame* are the data
columns under their SQL names, in order, then `mz_timestamp`, `mz_diff`, `mz_error`.

`tests/storage/test_shards_conformance.py` runs against every implementation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from mz_dagster.catalog import Batch, BatchId, BatchStats, CollectionRow
from mz_dagster.errors import DamageError, DataError, InternalError, OperationalError
from mz_dagster.formalism import Antichain
from mz_dagster.plan.bounding import BOUNDED_KINDS
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Column
from mz_dagster.storage.clustering import Bucket, TouchedHashes
from mz_dagster.storage.skipping import Bounds

TIME, DIFF, ERROR, BATCH, BUCKET = "mz_timestamp", "mz_diff", "mz_error", "mz_batch", "mz_bucket"
UPDATE_COLUMNS = (TIME, DIFF, ERROR)
"""What follows the data columns in every update frame."""

Frame = TypeVar("Frame")

Interval = tuple[Antichain[int], Antichain[int]]
"""The lower and the upper of an append: times beyond the one and not beyond the other."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file of a batch, as the catalog lists it or the table's log has it.

    Attributes:
        path: Relative to the table.
        rows: How many updates it holds.
        errors: How many of them are of the error part.
        bytes: Its size.
        times: The least and the greatest time of its updates; None if one has no time.
        bucket: Which keys it may hold; None for any.
        bounds: What the log says of the columns that were asked for, by their names, if it was asked.
        hash: Of its bytes, as the catalog has it; None of a batch of a version that kept none.
        inlined: The batch, if this stands for its updates in the catalog, and there is no such file.
    """

    path: str
    rows: int
    errors: int
    bytes: int
    times: tuple[int, int] | None
    bucket: Bucket | None
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    hash: str | None = None
    inlined: Batch | None = None


class Shards(Protocol[Frame]):
    """Stores and reads the batches of shards; knows nothing of states, leases or frontiers."""

    @property
    def clusters(self) -> bool:
        """Whether it lays large batches out by key; what another has laid out it reads all the same."""
        ...

    def create(self, collection: CollectionRow) -> None:
        """Makes a collection's empty table, unless it is there already. Safe to race."""
        ...

    def append(
        self,
        collection: CollectionRow,
        batch: BatchId,
        frame: Frame,
        interval: Interval | None = None,
        *,
        key: Sequence[int] = (),
        rows: int | None = None,
    ) -> BatchStats:
        """Writes an update frame under a fresh batch id, in one commit, and returns its stats from that commit.

        By then the batch is on disk, with everything that it is read through: no power cut takes it back. A frame
        without rows commits nothing. The table is created if need be. Columns are taken by name.

        Args:
            collection: The collection.
            batch: The fresh id.
            frame: The updates.
            interval: What all their times must be in; None for a merge, which moves times to since.
            key: Positions of the columns by which it may be laid out in buckets, if it is large; none for never.
            rows: About how many updates there are at most, if that is known; without it there are no buckets.

        Raises:
            UpdateNotBeyondLower: An update is before the interval, or has no time; the batch must not be sealed.
            UpdateBeyondUpper: An update is after it; the batch must not be sealed.
            ShardUnavailable: The table cannot be written. Whether it took effect does not matter: the id is spent, and
                the caller retries under a new one.
        """
        ...

    def inline(self, collection: CollectionRow, frame: Frame, interval: Interval | None = None) -> BatchStats | None:
        """Returns the stats of a batch of these updates, and the updates in them, if it is to be stored with its seal.

        None if they are to be appended: they are many, or nobody knows how many, or nothing is inlined.

        Raises:
            UpdateNotBeyondLower: As in `append`.
            UpdateBeyondUpper: As in `append`.
        """
        ...

    def read(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        lower: int | None = None,
        upper: int | None = None,
        columns: Sequence[str] | None = None,
        touched: Sequence[TouchedHashes] = (),
        where: Sequence[Scalar] = (),
    ) -> Frame:
        """Returns the updates of exactly these batches with `lower <= mz_timestamp < upper`.

        With `touched`, updates of other keys may be left out: those in files that hold none of the touched keys. With
        `where`, so may rows that do not pass: those in files of which the log tells that none passes.

        Args:
            collection: The collection.
            batches: Leased by the caller for as long as the frame is used.
            lower: The least time wanted; None for no bound.
            upper: The least time not wanted; None for no bound.
            columns: The data columns wanted, in the order wanted; None for all.
            touched: The hashes of the keys that are wanted, for each layout that is to be used; none for all keys.
            where: Predicates over the collection's columns that the caller asks of each row; none for all rows.

        Raises:
            BatchIncomplete: It does not hold as many rows of a batch as the catalog says, or lost a file.
            FileDamaged: A file is not the one that was written.
            LogDamaged: The table's log, if it is asked, names other files of a batch than the catalog.
            ShardUnavailable: The table cannot be read.
        """
        ...

    def files(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        where: Sequence[Scalar] = (),
        bounds: Sequence[Column] = (),
    ) -> tuple[StoredFile, ...]:
        """Returns the files of exactly these batches, opening none: what a `read` of them would read.

        With `where`, without those that hold no error and of which it is known that none of their rows passes. With
        `bounds`, they say within which bounds those columns are, in batches that are not small.

        Raises:
            BatchIncomplete: As in `read`.
            ShardUnavailable: The table cannot be read.
        """
        ...

    def consolidate(
        self, collection: CollectionRow, frame: Frame, as_of: int, *, columns: Sequence[str] | None = None
    ) -> Frame:
        """Returns the frame with all times set to `as_of`, equal `(data, error)` summed and zeros dropped.

        Data are equal if they are equal bit by bit, so 0.0 and -0.0 stay apart; but all NaN are equal, and all NULL.

        Args:
            collection: Whose updates.
            frame: Some of them.
            as_of: The time.
            columns: The data columns that the frame has; None for all.
        """
        ...

    def merge(
        self,
        collection: CollectionRow,
        parts: Sequence[Batch],
        since: int,
        batch: BatchId,
        sort_key: Sequence[str],
        *,
        key: Sequence[int] = (),
    ) -> BatchStats:
        """Writes the updates of `parts`, compacted to `since`, under a fresh batch id, and returns its stats.

        By then the batch is on disk, as after `append`.
        Times before `since` become `since`, diffs of equal `(data, time, error)` are summed, zeros dropped, the rest
        sorted by `sort_key`, and laid out by `key` as in `append`. Equality is that of `consolidate`.

        Raises:
            BatchIncomplete: As in `read`.
            ShardUnavailable: As in `append`.
        """
        ...

    def inline_merge(
        self, collection: CollectionRow, parts: Sequence[Batch], since: int, sort_key: Sequence[str]
    ) -> BatchStats | None:
        """Returns the stats of what `merge` would write, and the updates in them, if that is to be inlined; or None."""
        ...

    def delete(self, collection: CollectionRow, batches: Collection[BatchId], *, aside: Path | None = None) -> None:
        """Deletes all rows and files of dead batches, also uncommitted ones; those that are not there are no error.

        With `aside`, their files are moved into that folder, under their paths below the root of all shards.
        """
        ...

    def stored_batches(self, collection: CollectionRow) -> frozenset[BatchId]:
        """Returns the ids of all batches of which the shard holds rows or files, committed or not."""
        ...

    def given_up_columns(self, collection: CollectionRow) -> frozenset[str]:
        """Returns the columns of the table that the collection has not: an alteration was given up behind its files."""
        ...

    def vacuum(self, collection: CollectionRow) -> None:
        """Checkpoints the table's log and removes log entries beyond their retention. Never touches data files."""
        ...

    def folders(self) -> frozenset[str]:
        """Returns the folders of all shards that there are, known or not, as `CollectionRow.shard` names them."""
        ...

    def destroy(self, shard: str) -> None:
        """Removes a dropped collection's folder; it is no error if there is none."""
        ...


class BatchIncomplete(OperationalError):
    """A shard lacks rows of a listed batch: it was swept, or the shard is damaged.

    A read under an expired lease may see this, and is right when it is repeated with a fresh list.

    Attributes:
        collection: The collection's id.
        batch: The batch.
    """

    sqlstate = "58030"

    def __init__(self, collection: str, batch: int, expected: int, found: int | None) -> None:
        super().__init__(
            f'batch {batch} of "{collection}" is incomplete',
            detail=f"The catalog says {expected} rows, the shard holds "
            f"{'a reference to a file that is gone' if found is None else found}.",
            hint="Read again with a fresh lease; if that fails too, the shard is damaged: see what "
            '"mz-dagster doctor" says.',
        )
        self.collection = collection
        self.batch = batch


class FileDamaged(DamageError):
    """A data file that cannot be read, or is not the one that was written.

    Attributes:
        path: The file, or what the object is called.
        collection: The id of the collection whose it is, if that is known.
    """

    def __init__(self, path: Path | str, detail: str, collection: str | None = None) -> None:
        of = "" if collection is None else f' of "{collection}"'
        super().__init__(f'data file "{path}"{of} is damaged', detail=f"{detail}.")
        self.path = path
        self.collection = collection


class LogDamaged(DamageError):
    """A shard whose log does not name the files that the catalog lists.

    Attributes:
        collection: The collection's id.
        batch: The batch.
    """

    def __init__(self, collection: str, batch: int) -> None:
        super().__init__(
            f'the log of the shard of "{collection}" is damaged',
            detail=f"It names other files of batch {batch} than were written.",
        )
        self.collection = collection
        self.batch = batch


class ShardUnavailable(OperationalError):
    """A shard's table cannot be read or written."""

    sqlstate = "58030"


class MultiplicityOverflow(DataError):
    """A row of which, or a group of whose rows, there are more than can be counted."""

    sqlstate = "22003"

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(
            "a row's multiplicity is out of range",
            detail=detail,
            hint="Delete some of its copies, a part at a time; a query may group them before it joins.",
        )


class StatsMissing(InternalError):
    """A commit lacks the statistics from which a batch's row counts are taken."""


TABLE_PROPERTIES = {
    # Frequent small commits: a short tail of log to replay, and a short history kept.
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 1 hours",
    # What is beyond it goes only once the checkpoint that stands for it is on disk (`table_sync`).
    "delta.enableExpiredLogCleanup": "false",
    # The sweep removes files itself, at once, so nobody needs to be told later which ones: checkpoints stay small.
    "delta.deletedFileRetentionDuration": "interval 1 seconds",
    # Batches go as whole partitions; a row is never deleted, so reading needs no deletion vectors.
    "delta.enableDeletionVectors": "false",
}
"""Table properties that every shard is created with, but for the column list of `skipping_columns`."""


def skipping_columns(columns: Sequence[Column]) -> str:
    """Returns the columns of which Delta keeps statistics: the three of every update, and up to 29 data columns.

    Naming them keeps the error count of wide tables. Left out are types whose bounds Delta's writers round without
    saying by how much (numeric, floats): skipping a file by such a bound would lose rows.

    Example:
        >>> from mz_dagster.scalars.types import FLOAT8, INT4
        >>> skipping_columns([Column("a", INT4), Column("b", FLOAT8)])
        'mz_timestamp,mz_diff,mz_error,a'
    """
    data = [
        column.name
        for column in columns
        if column.type.kind in BOUNDED_KINDS and column.name.isascii() and column.name.isidentifier()
    ]
    return ",".join([*UPDATE_COLUMNS, *data[:29]])
