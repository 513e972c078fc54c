r"""Where the shards of a project lie: in a folder of its own, or in a bucket of an object store.

    LocalShards, SparkShards          what a batch is, how it is read, written, merged
            |
        ShardPlace                    where its files and its table's log are, and when they are durable
        /        \
    ShardFolder  ShardBucket

Every path is relative to the place and says the shard first: `shards/u1/mz_batch=7/mz_bucket=all/part-0.parquet`. A
data file is written once, under a name that no other ever has, and never changed: the catalog lists it with size and
hash. So all that is asked of a place is small:

*Writing.* The writers of batches, `deltalake` and Spark, write a Delta table in a folder, the *draft*, and the place
settles the batch: once `settle` has returned, no power cut takes it back. In a folder the draft is the shard itself,
and to settle is to force to disk (`table_sync`). For a bucket the draft is an empty table of this machine; to settle is
to put its new files, each of which must not be there yet, then to commit them to the log of the table in the bucket,
by a put that must not be there either. A put that the store has answered is durable: there is nothing to force.

*What the log is for.* Which batches count the catalog says, and it alone; a batch is sealed by one transaction there.
Of the log only this is needed: that no commit is overwritten by another, since appends, merges and sweeps of one shard
run beside each other. Conditional puts see to that, and a store that does not keep them is refused when a project first
claims its place there. Nothing is ever read through the log but the bounds of columns in large batches. Spark's own
commit to a bucket would need a lock table, and jars for each kind of store; so Spark writes its draft here as well, and
the commit is this process's, for all stores alike.

*Reading.* `check` returns once the files of a batch are below `root` and are those that were written. A bucket keeps
copies there, fetched many at a time, each held against the catalog's hash on its way; what was just written is there
from the start. Copies are only that: the folder may be deleted at any time, and those not used for long go once they
are too many bytes. Both engines read files of this machine, then, and Spark needs to see that folder, as it needs to
see the shards of a project that keeps them in a folder. (Executors that do not share it would read the bucket by
themselves: that needs another place, or this one to hand out URIs; the protocol has room for either.)

*Deleting.* Everything under a dead batch is garbage, committed or not: a folder or a prefix with that batch's id. An
object that a killed writer has put lies under an id that the catalog knows no live writer of, and the sweep finds it.
A file that a reader misses is asked after (`first_gone`), so that what was swept is not taken for an outage.

*Whose it is.* `ownership` marks a place with the project's id, by a write that the first one wins.

What is there no more is a `FileNotFoundError`; what cannot be done an `OSError` or a `DeltaError`, or of a bucket a
`ShardUnavailable`, which names no secret.
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from mz_dagster.catalog import BatchFile, BatchId, BatchStats
from mz_dagster.disk import make_folder, make_private, make_private_folder, sync, sync_files
from mz_dagster.storage.batch_stats import check_times, in_one_line, stored_files
from mz_dagster.storage.file_hashes import FileHashes
from mz_dagster.storage.open_tables import OpenTables
from mz_dagster.storage.shards import BATCH, BUCKET, Interval, StoredFile
from mz_dagster.storage.table_place import InStore
from mz_dagster.storage.table_summary import summarize_creation
from mz_dagster.storage.table_sync import LOG, TableSync

FOLDER = "shards"
"""What is above all shards in their place."""

MARK = ".project"
"""The file in it that holds the project's id."""

_REMOVED = ".removed-"


@dataclass(frozen=True, slots=True)
class NewTable:
    """A shard's table as it is created.

    Attributes:
        schema: Of its columns.
        properties: As Delta has them.
    """

    schema: pa.Schema
    properties: Mapping[str, str]

    def create(self, where: str, options: Mapping[str, str] | None = None) -> None:
        """Creates it at a path or URI, unless there is a table."""
        DeltaTable.create(
            where,
            self.schema,
            mode="ignore",
            partition_by=[BATCH, BUCKET],
            configuration=dict(self.properties),
            storage_options=None if options is None else dict(options),
        )


class ShardPlace(ABC):
    """Where shards lie; `str` is what it is called. Safe for use from several threads.

    Attributes:
        root: The folder below which this process finds data files once they were checked.
        tables: Those that are open.
        hashes: Of the files below `root`.
        hint: What to do if something cannot be done there.
    """

    hint: ClassVar[str]

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tables = OpenTables()
        self.hashes = FileHashes()

    @abstractmethod
    def __str__(self) -> str: ...

    def called(self, path: str) -> str:
        """Returns what to call a shard or file before people."""
        return f"{self}/{path}"

    def message_of(self, error: Exception) -> str:
        """Returns what an error says, in a line, without a secret."""
        return in_one_line(error)

    def hint_for(self, error: Exception) -> str:
        """Returns what to do about an error."""
        return self.hint

    @abstractmethod
    def table(self, shard: str) -> Path | InStore:
        """Returns where a shard's table is."""

    def newest(self, shard: str) -> AbstractContextManager[DeltaTable | None]:
        """Lends the newest snapshot of a shard's table; see `OpenTables.newest`."""
        return self.tables.newest(self.table(shard))

    @abstractmethod
    def has_table(self, shard: str) -> bool:
        """Returns whether a shard's table was created."""

    @abstractmethod
    def create(self, shard: str, table: NewTable) -> None:
        """Creates a shard's table, unless it is there. Safe to race."""

    @abstractmethod
    def draft(self, shard: str, table: NewTable) -> AbstractContextManager[Path]:
        """Yields the folder of a table in which a batch of a shard is to be written; it goes with the block."""

    @abstractmethod
    def drafted(self, shard: str, draft: Path, *, is_newest: bool) -> AbstractContextManager[DeltaTable | None]:
        """Lends a snapshot of the table in a draft, the newest or any; see `OpenTables.lent`."""

    @abstractmethod
    def settle(self, shard: str, draft: Path, table: DeltaTable, batch_folder: str) -> None:
        """Returns once a batch that was committed in a draft is the shard's, with everything it is read through.

        By then its files are below `root`, and no power cut takes it back.

        Args:
            shard: The shard.
            draft: The draft.
            table: A snapshot of its table from after the commit.
            batch_folder: The name of the batch's folder.
        """

    @abstractmethod
    def check(self, shard: str, files: Sequence[StoredFile], collection: str) -> None:
        """Returns once data files of a shard are below `root`, if they are those that were written.

        Raises:
            FileDamaged: One is another.
            FileNotFoundError: One is gone.
            OSError: One cannot be read.
            ShardUnavailable: Likewise.
        """

    @abstractmethod
    def first_gone(self, shard: str, files: Sequence[StoredFile]) -> StoredFile | None:
        """Returns the first of some data files of a shard of which it is sure that it is gone; None if all are there.

        Raises:
            ShardUnavailable: The place cannot be asked.
        """

    @abstractmethod
    def remove(self, shard: str, batch_folder: str, aside: Path | None) -> None:
        """Removes all that lies under a dead batch, committed or not; with `aside` it is moved below that folder."""

    @abstractmethod
    def batch_folders(self, shard: str) -> Sequence[str]:
        """Returns the names of the folders of a shard that hold batches."""

    @abstractmethod
    def sync_log(self, shard: str, version: int) -> None:
        """Returns once the log of a shard's table lasts up to a version."""

    @abstractmethod
    def shards(self) -> frozenset[str]:
        """Returns the shards that there are, those half removed, too."""

    @abstractmethod
    def has_shard(self, shard: str) -> bool:
        """Returns whether there is anything of a shard."""

    @abstractmethod
    def destroy(self, shard: str) -> None:
        """Removes a shard with all that is in it; it is no error if there is none."""

    @abstractmethod
    def as_it_lies(self, shard: str, paths: Sequence[str] | None) -> AbstractContextManager[Path]:
        """Yields a folder below which files of a shard are as they lie in the place now, under their paths there.

        What is gone is not there. The folder is to be looked at only, and goes with the block.

        Args:
            shard: The shard.
            paths: The files, relative to the shard; None for all of its log.

        Raises:
            ShardUnavailable: The place cannot be asked.
        """

    @abstractmethod
    def sizes(self, shard: str, paths: Sequence[str]) -> Mapping[str, int]:
        """Returns how many bytes files of a shard have in the place now; of what is gone, nothing."""

    @abstractmethod
    def put_back(self, shard: str, path: str, copy: Path, aside: Path) -> Path | None:
        """Puts a file in the place of one that is damaged or gone, for good; returns where that is kept, below `aside`.

        Raises:
            OSError: It cannot be written.
            ShardUnavailable: Likewise.
        """

    @abstractmethod
    def set_log_aside(self, shard: str) -> str:
        """Keeps a damaged log beside that which will be made anew; returns where, in words."""

    @abstractmethod
    def replace_log(self, shard: str, root: Path) -> None:
        """Puts the log that was made in a folder which `as_it_lies` has yielded in the place of the shard's."""

    @abstractmethod
    def set_shard_aside(self, shard: str, folder: Path) -> Path | None:
        """Moves a shard with all that is in it below a folder; returns where it is now, None if there was nothing."""

    @abstractmethod
    def make_fit(self) -> None:
        """Sees to it that a place that is marked is fit to be used, wherever it came from.

        Raises:
            OSError: It is not.
            ShardUnavailable: Likewise.
        """

    @abstractmethod
    def mark(self) -> str | None:
        """Returns whose the place is marked as; None if it is not.

        Raises:
            OSError: It cannot be read.
        """

    @abstractmethod
    def set_mark(self, id: str) -> None:
        """Marks the place as a project's, unless it is marked by then; of two who race one wins.

        Raises:
            OSError: It cannot be written.
        """


class ShardFolder(ShardPlace):
    """A folder of this machine.

    Args:
        root: The folder.
    """

    hint = "Check the folder's permissions and free space, then try again."

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._disk = TableSync(root)

    def __str__(self) -> str:
        return str(self.root)

    def table(self, shard: str) -> Path:
        """Returns the shard's folder."""
        return self.root / shard

    def has_table(self, shard: str) -> bool:
        """Returns whether a shard's table was created."""
        # A log's first entry goes with all that are beyond their retention, once there is a checkpoint.
        log = self.table(shard) / LOG
        return any((log / name).exists() for name in (f"{0:020d}.json", "_last_checkpoint"))

    def create(self, shard: str, table: NewTable) -> None:
        """Creates a shard's table; see `ShardPlace.create`."""
        path = self.table(shard)
        try:
            path.mkdir(parents=True, exist_ok=True)
            table.create(str(path))
            summarize_creation(path / LOG)
        except (DeltaError, OSError):
            if not DeltaTable.is_deltatable(str(path)):  # else another process was faster
                raise

    def draft(self, shard: str, table: NewTable) -> AbstractContextManager[Path]:
        """Yields the shard's own folder."""
        return nullcontext(self.table(shard))

    def drafted(self, shard: str, draft: Path, *, is_newest: bool) -> AbstractContextManager[DeltaTable | None]:
        """Lends the shard's own table."""
        return self.tables.lent(draft, is_newest=is_newest)

    def settle(self, shard: str, draft: Path, table: DeltaTable, batch_folder: str) -> None:
        """Forces a batch to disk; see `ShardPlace.settle`."""
        if self._disk.sync_batch(draft, table.version(), batch_folder):
            table.cleanup_metadata()

    def check(self, shard: str, files: Sequence[StoredFile], collection: str) -> None:
        """Returns if files are those that were written; see `ShardPlace.check`."""
        folder = self.root / shard
        for one in files:
            self.hashes.check(folder / one.path, one, collection)

    def first_gone(self, shard: str, files: Sequence[StoredFile]) -> StoredFile | None:
        """Returns the first of some files that is not there."""
        folder = self.root / shard
        return next((one for one in files if _is_gone(folder / one.path)), None)

    def remove(self, shard: str, batch_folder: str, aside: Path | None) -> None:
        """Removes a batch's folder; see `ShardPlace.remove`."""
        folder = self.root / shard / batch_folder
        if aside is not None and folder.exists():
            set_aside(folder, aside / shard)
        _remove(folder)

    def batch_folders(self, shard: str) -> Sequence[str]:
        """Returns the names of batches' folders."""
        return [one.name for one in self.table(shard).glob(f"{BATCH}=*")]

    def sync_log(self, shard: str, version: int) -> None:
        """Forces a log to disk."""
        path = self.table(shard)
        self._disk.sync_log(path, version)
        sync(path)

    def shards(self) -> frozenset[str]:
        """Returns the shards whose folders there are."""
        try:
            names = {one.name for one in (self.root / FOLDER).iterdir() if one.name != MARK}
        except FileNotFoundError:
            return frozenset()
        removed = {name.removeprefix(".").partition(_REMOVED)[0] if _REMOVED in name else name for name in names}
        return frozenset(f"{FOLDER}/{name}" for name in removed)

    def has_shard(self, shard: str) -> bool:
        """Returns whether there is a shard's folder."""
        return (self.root / shard).exists()

    def destroy(self, shard: str) -> None:
        """Removes a shard's folder."""
        path = self.root / shard
        # Out of the way first, so that others find the whole table or none.
        with suppress(FileNotFoundError):
            path.rename(path.with_name(f".{path.name}{_REMOVED}{uuid4().hex}"))
        for removed in path.parent.glob(f".{path.name}{_REMOVED}*"):
            _remove(removed)

    def as_it_lies(self, shard: str, paths: Sequence[str] | None) -> AbstractContextManager[Path]:
        """Yields the folder itself."""
        return nullcontext(self.root)

    def sizes(self, shard: str, paths: Sequence[str]) -> Mapping[str, int]:
        """Returns the sizes of those files that are there."""
        folder, found = self.root / shard, dict[str, int]()
        for one in paths:
            with suppress(FileNotFoundError):
                found[one] = (folder / one).stat().st_size
        return found

    def put_back(self, shard: str, path: str, copy: Path, aside: Path) -> Path | None:
        """Puts a file back; see `ShardPlace.put_back`."""
        place = self.root / shard / path
        kept = set_aside(place, (aside / shard / path).parent) if place.exists() else None
        make_folder(place.parent)
        shutil.copyfile(copy, new := place.with_name(f".{place.name}.recovered"))
        sync(new)
        new.rename(place)
        sync_files(self.root, [f"{shard}/{path}"])
        return kept

    def set_log_aside(self, shard: str) -> str:
        """Renames the log's folder."""
        folder, number = self.root / shard, 1
        while (kept := folder / f"{LOG}.damaged-{number}").exists():
            number += 1
        if (folder / LOG).exists():
            (folder / LOG).rename(kept)
        return str(kept)

    def replace_log(self, shard: str, root: Path) -> None:
        """Does nothing: it was made in its place."""

    def set_shard_aside(self, shard: str, folder: Path) -> Path | None:
        """Moves the shard's folder."""
        path = self.root / shard
        return set_aside(path, (folder / shard).parent) if path.exists() else None

    def make_fit(self) -> None:
        """Closes the folder to other users."""
        if (self.root / FOLDER).is_dir():
            make_private(self.root / FOLDER)

    def mark(self) -> str | None:
        """Returns whose the folder is marked as."""
        try:
            words = (self.root / FOLDER / MARK).read_text(encoding="ascii").split()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise OSError(str(error)) from error
        return words[0] if words else None  # behind it is what a bucket says, if it was copied from there

    def set_mark(self, id: str) -> None:
        """Writes the mark; a link is made once, or not at all."""
        folder = self.root / FOLDER
        draft = folder / f"{MARK}.{uuid4().hex}"
        try:
            make_private_folder(folder)
            draft.write_text(f"{id}\n", encoding="ascii")
            make_private(draft)
            sync(draft)
            with suppress(FileExistsError):
                os.link(draft, folder / MARK)
            sync(folder)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def settled_stats(
    place: ShardPlace,
    shard: str,
    draft: Path,
    table: DeltaTable | None,
    batch: BatchId,
    interval: Interval | None = None,
) -> BatchStats:
    """Returns the stats of a batch that was committed in a draft, once it lasts; every append and merge ends here.

    Args:
        place: Where the shard is.
        shard: The shard.
        draft: The folder of the table that has the commit.
        table: A snapshot of it from after the commit, None being that of no table.
        batch: The batch; without rows it has no commit, and its stats are `NO_ROWS`.
        interval: What all times must be in, if given.

    Raises:
        StatsMissing: A file was committed without its row counts.
        UpdateNotBeyondLower: An update is before the interval, or has no time.
        UpdateBeyondUpper: An update is after it.
        OSError: It cannot be made to last; the batch must not be sealed.
        ShardUnavailable: Likewise.
    """
    files = [] if table is None else stored_files(table, [batch]).get(batch, [])
    if interval is not None:
        check_times(files, *interval)
    if table is not None and files:
        place.settle(shard, draft, table, f"{BATCH}={int(batch)}")
    folder = place.root / shard
    return BatchStats(
        sum(file.rows for file in files),
        sum(file.errors for file in files),
        len(files),
        sum(file.bytes for file in files),
        tuple(
            BatchFile(one.path, one.rows, one.errors, one.bytes, place.hashes.of(folder / one.path), one.times)
            for one in files
        ),
    )


def set_aside(path: Path, folder: Path) -> Path:
    """Moves a file or folder into a folder of the same file system, under a name that is free there; returns where."""
    make_folder(folder)
    target = free_path(folder / path.name)
    path.rename(target)
    sync(folder)
    sync(path.parent)
    return target


def free_path(wanted: Path) -> Path:
    """Returns a path, or if there is something one like it at which there is nothing."""
    path, number = wanted, 1
    while path.exists():
        number += 1
        path = wanted.with_name(f"{wanted.name}.{number}")
    return path


def _is_gone(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _remove(folder: Path) -> None:
    """Removes a folder with all that is in it; somebody else may do so at the same time."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        shutil.rmtree(folder)
