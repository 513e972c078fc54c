"""A source whose contents are damaged, read again from the files that its bindings name.

A binding says which files a source gained at a tick, with their hashes, and none is ever forgotten. So what a source
consists of can be computed again, update by update at the times at which it came, as long as every file that it ever
read is still there as it was. The collection keeps its id, its frontiers and its readers: one batch takes the place of
all that should be on its list, in one transaction. What was replaced is swept; of a table whose log is damaged, the
whole folder goes to the quarantine first. What a source remembers of its keys is made again with it.

If files are missing, nothing is changed and they are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from mz_dagster.adapter import Engine, leading
from mz_dagster.budget import engine_of
from mz_dagster.catalog import Binding, CollectionRow, Leadership, Replaced
from mz_dagster.compute import Progress, SparkUse, quiet
from mz_dagster.compute.step.ingest import ingested_again
from mz_dagster.errors import Error, OperationalError, ProgrammingError
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.operations.quarantine import quarantine_of
from mz_dagster.sql.errors import UndefinedTable
from mz_dagster.storage.append import BatchWriter
from mz_dagster.storage.open_tables import open_table
from mz_dagster.storage.shards import Shards
from mz_dagster.storage.source import Source
from mz_dagster.storage.table_log import damaged_entries

_MOST_NAMED = 10


class NoSource(ProgrammingError):
    """An object that reads no files."""

    sqlstate = "42809"


class FilesLost(OperationalError):
    """A source cannot be read again, since files that it read are gone or changed.

    Attributes:
        files: What became of each, by path, a sentence.
    """

    sqlstate = "58P01"

    def __init__(self, name: str, files: Mapping[str, str]) -> None:
        named = " ".join(f'"{path}": {what}' for path, what in sorted(files.items())[:_MOST_NAMED])
        more = f" And {len(files) - _MOST_NAMED} more." if len(files) > _MOST_NAMED else ""
        super().__init__(
            f'source "{name}" cannot be read again: {len(files)} of its files are not there as they were read',
            detail=f"{named}{more}",
            hint="Put them back, byte by byte as they were, and try again. Else put the files of its batches back with "
            '"mz-dagster doctor --from-backup FOLDER", or restore the backup.',
        )
        self.files = files


@dataclass(frozen=True, slots=True)
class Reread:
    """What it took to read a source again: files, and the updates that they made."""

    files: int
    updates: int


def reread(engine: Engine, name: str, progress: Progress = quiet) -> Reread:
    """Reads all files again that a source ever read, and puts what they say in the place of what it consists of.

    Args:
        engine: The project.
        name: The source's name or id.
        progress: Receives lines that read as the story of it.

    Raises:
        UndefinedTable: Nothing bears the name.
        NoSource: It is no source.
        FilesLost: Files are gone or changed; nothing was done.
        SecondRunner: Another runner leads the timeline; nothing was done.
        OperationalError: The outside world failed; the source is as damaged as it was.
    """
    found = engine.catalog.resolve_name(name) or next(
        (one for one in engine.catalog.objects() if one.id == GlobalId(name)), None
    )
    if found is None:
        raise UndefinedTable.named(name, engine.definitions.names(), kind="source")
    if found.kind != "source":
        raise NoSource(f'"{name}" is a {found.kind} and reads no files', hint='See "mz-dagster rebuild".')
    with leading(engine, str(found.timeline)) as lead:
        row = engine.catalog.collection(found.id)
        source = engine.definitions.source(row.id)
        bindings = engine.catalog.bindings(row.id, 0, row.upper.only)
        count = sum(len(one.files) for one in bindings)
        progress(f'comparing {count} files of "{name}" with what was read')
        if lost := source.lost(bindings):
            raise FilesLost(name, lost)
        memory = next(map(engine.catalog.collection, engine.catalog.state().owned.get(row.id, ())), None)
        updates = _reread(engine, row, source, bindings, memory, lead, progress)
        if memory is not None:
            _reread(engine, memory, source, bindings, memory, lead, progress)
    return Reread(count, updates)


def _reread(
    engine: Engine,
    row: CollectionRow,
    source: Source,
    bindings: Sequence[Binding],
    memory: CollectionRow | None,
    lead: Leadership,
    progress: Progress,
) -> int:
    """Puts what files say in the place of what a collection consists of; returns the updates that they made."""
    if kept := _set_aside(engine, row):
        progress(f"its log is damaged; the shard is in the quarantine: {kept}")
    lower = Antichain.of(row.upper.lattice, 0)
    if not lower < row.upper:
        return 0
    progress(f"reading {sum(len(one.files) for one in bindings)} files")
    spark = SparkUse(engine.spark.open)
    with (
        engine_of(engine.project.engine, unless_chosen=True),
        ingested_again(row, source, bindings, spark, memory) as updates,
        BatchWriter(engine.catalog, holder=engine.holder, ttl_ms=engine.project.lease_ms) as writer,
    ):
        shards: Shards[Any] = engine.shards if isinstance(updates, pa.Table | pa.RecordBatchReader) else spark.open()[1]
        batch, stats = writer.write(shards, row, lower, row.upper, updates)
        done = engine.catalog.replace_all(row.id, batch, stats, lead)
    if not isinstance(done, Replaced):
        raise OperationalError(f'"{row.id}" was not read again: {done}', hint="Try again.")
    return stats.rows


def _set_aside(engine: Engine, row: CollectionRow) -> str | None:
    """Moves a shard whose log is damaged to the quarantine, since nothing can be written beside it; returns where."""
    place = engine.shards.place
    try:
        open_table(place.table(row.shard))
        with place.as_it_lies(row.shard, None) as root:
            is_damaged = bool(damaged_entries(root / row.shard))
    except Error:
        is_damaged = True
    kept = place.set_shard_aside(row.shard, quarantine_of(engine.project)) if is_damaged else None
    return None if kept is None else str(kept)
