"""What a batch is read through is on disk before the catalog may list it.

    the folders above the table -> the table's folder -> its log: the newest checkpoint and every commit after it
                                                      -> the batch's folder, and every file in it

Neither Delta's writers nor Spark force any of that to disk. After a power cut a file that was not forced there may be
gone, or be there and be empty; a gap in the log, or a torn checkpoint, would hide every batch of the table. So also
commits of others that lie before one's own are forced to disk, and nothing of a log is removed before the checkpoint
that stands for it is there (tables have `delta.enableExpiredLogCleanup` off, since writers would not wait).

The log goes first: an entry that names files which are gone harms nobody, if nobody lists their batch. What a power cut
may tear is thus only what was written in the moment before; a commit that is torn is empty, and read as none. A torn
checkpoint is a damaged log, which `mz-dagster doctor --repair` makes anew from the files.

What is forced to disk is closed to other users at the same time: Delta's writers go by the process's umask.

This holds on file systems of this machine. On one of the network a file that another machine wrote is as durable as
that machine's closing it made it.
"""

from __future__ import annotations

from pathlib import Path

from mz_dagster.disk import sync, sync_tree

LOG = "_delta_log"
_LAST_CHECKPOINT = "_last_checkpoint"


class TableSync:
    """Forces tables to disk, and remembers how far their logs are there. Safe for use from several threads.

    Args:
        root: The folder of all shards. It is on disk.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._newest: dict[Path, tuple[int, int]] = {}

    def sync_batch(self, table: Path, version: int, batch_folder: str) -> bool:
        """Returns once a batch is on disk with everything that it is read through.

        Args:
            table: The table's folder.
            version: Of a snapshot that holds the batch.
            batch_folder: The name of the batch's folder.

        Returns:
            Whether a checkpoint was forced to disk, too: what lies before it in the log may go.
        """
        is_new = table not in self._newest
        has_checkpoint = self.sync_log(table, version)
        sync_tree(table / batch_folder, private=True)
        sync(table, private=True)
        if is_new:
            for folder in table.parents:
                if not folder.is_relative_to(self._root):
                    break
                sync(folder)
        return has_checkpoint

    def sync_log(self, table: Path, version: int) -> bool:
        """Returns once the newest checkpoint up to a version and every commit from there to it are on disk.

        Cost: a commit that was forced to disk by this object before, and those before it, are not looked at again.

        Returns:
            Whether a checkpoint was among them.
        """
        log, known, newest = table / LOG, self._newest.get(table), None
        has_checkpoint = False
        for number in range(version, -1, -1):
            found = _identity(log / f"{number:020d}.json")
            newest = newest or found
            has_checkpoint = _sync_if_there(log, f"{number:020d}.checkpoint.parquet")
            if found is not None and found != known:
                _sync_if_there(log, f"{number:020d}.json")
                _sync_if_there(log, f"{number:020d}.crc")  # Spark's summary of the snapshot
            if found in (None, known) or has_checkpoint:
                break
        if has_checkpoint:
            _sync_if_there(log, _LAST_CHECKPOINT)
        sync(log, private=True)
        if newest is not None:
            self._newest[table] = newest
        return has_checkpoint


def _identity(path: Path) -> tuple[int, int] | None:
    """Returns what tells a file from every other that has had its name; None if it is not there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _sync_if_there(folder: Path, name: str) -> bool:
    """Forces a file to disk, with the checksums that Spark keeps beside it; returns whether it was there."""
    for one in (f".{name}.crc", name):
        try:
            sync(folder / one, private=True)
        except FileNotFoundError:
            there = False
        else:
            there = True
    return there
