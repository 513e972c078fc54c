"""The log of a shard's table, looked at entry by entry, and made anew from the data files if it is lost.

A snapshot needs the newest checkpoint and every commit after it; what is older is only history. All that a log says of
a live batch is also in the catalog (how many rows, files and bytes) and in the files themselves, so it can be made
again whenever the files on disk are exactly as many as the catalog says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.shard_copy import adopt, read_footer
from mz_dagster.storage.shards import BATCH, FileDamaged

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\..*)?\.parquet")


def damaged_entries(table: Path) -> tuple[str, ...]:
    """Returns what is wrong with the log of the table in a folder, a clause for each; nothing if nothing is.

    Cost: one read of the commits after the newest checkpoint.
    """
    found = _damaged(table / LOG)
    # A log is cleaned up while others look at it; what is really missing is missing the second time, too.
    return _damaged(table / LOG) if found else ()


def rebuild_log(shards: LocalShards, collection: CollectionRow, batches: Sequence[Batch]) -> str | None:
    """Makes a table's log anew from the files of its live batches, if those are exactly what the catalog says.

    The caller sees to it that nobody writes meanwhile.

    Returns:
        Where the old log is kept, or None if it is right not to touch it: files are missing, damaged or too many.
    """
    place, shard = shards.place, collection.shard
    stored = [batch for batch in batches if batch.stats.inlined is None]
    listed = [one.path for batch in stored for one in batch.stats.file_list or ()]
    with place.as_it_lies(shard, listed) as root:
        folder, paths = root / shard, list[str]()
        for batch in stored:
            if batch.stats.file_list is None:
                files = sorted((folder / f"{BATCH}={int(batch.id)}").glob("mz_bucket=*/*.parquet"))
            else:
                files = [folder / one.path for one in batch.stats.file_list]
            try:
                footers = [read_footer(path) for path in files]
            except FileDamaged:
                return None
            held = [sum(column) for column in zip(*((f.rows, f.errors, 1, f.bytes) for f in footers), strict=True)]
            stats = batch.stats
            if held != [stats.rows, stats.errors, stats.files, stats.bytes]:
                return None
            paths += [path.relative_to(folder).as_posix() for path in files]
        kept = place.set_log_aside(shard)
        adopt(LocalShards(root), collection, paths)
        place.replace_log(shard, root)
    return kept


def _damaged(log: Path) -> tuple[str, ...]:
    if not log.is_dir():
        return ("there is no log",)
    names = [path.name for path in log.iterdir()]
    commits = {int(found[1]) for name in names if (found := _COMMIT.fullmatch(name))}
    checkpoints = {int(found[1]): name for name in names if (found := _CHECKPOINT.fullmatch(name))}
    if not commits and not checkpoints:
        return ("the log is empty",)
    broken = []
    newest = max(checkpoints, default=-1)
    if checkpoints:
        try:
            pq.read_table(log / checkpoints[newest])
        except (OSError, pa.ArrowException):
            broken.append(f"the checkpoint of version {newest} cannot be read")
    for version in range(newest + 1, max(commits, default=newest) + 1):
        if version not in commits:
            broken.append(f"version {version} is missing")
            continue
        try:
            for line in (log / f"{version:020d}.json").read_text(encoding="utf-8").splitlines():
                json.loads(line)
        except (OSError, ValueError):
            broken.append(f"version {version} cannot be read")
    return tuple(broken)
