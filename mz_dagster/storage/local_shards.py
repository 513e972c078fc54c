"""Shards in process, on `deltalake` and pyarrow: for rows that are already in Python, where a Spark job costs too much.

Serves small INSERTs, point reads, sweeps and most crash and race tests; reads and writes the same tables as Spark does.

*Reading* opens no log: the catalog lists the files of each batch, with size and hash. A file is written once and read
only if it is the one that was written; so either all rows come or a file is gone, which is `BatchIncomplete`. A log is
asked for what only it knows: the bounds of columns in large batches, and which files a batch has if it is of a version
that did not list them.

What is little is not written to the shard at all, but handed on to be stored in the catalog (`inlined`); reads find it
there, or in memory.

*Deleting* takes the batches out of the log, in one commit without looking at a row, and then removes their partitions'
folders: everything in the folder of a dead batch is garbage, committed or not. So no vacuum ever has to guess whether
an uncommitted file still has a writer.

It leaves out files by key, given the hashes, and by predicates as Spark does, and lays nothing out itself: what is
written here is small.

Memory: a frame; `merge` holds all its parts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from mz_dagster.budget import budget
from mz_dagster.catalog import NO_ROWS, Batch, BatchId, BatchStats, CollectionRow
from mz_dagster.errors import DamageError, InternalError
from mz_dagster.progress import advance
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Column
from mz_dagster.storage.arrow_schema import UPDATE_FIELDS, update_schema
from mz_dagster.storage.batch_stats import files_by_batch, in_one_line, listed_files, stored_files
from mz_dagster.storage.clustering import NO_LAYOUT, TouchedHashes, may_hold
from mz_dagster.storage.consolidation import consolidated
from mz_dagster.storage.decoded_files import DecodedFiles, HotFile
from mz_dagster.storage.hot_files import HotFiles, Ordered
from mz_dagster.storage.inlined import NOTHING, InlinedFrames, Inlining, PayloadStore, inlined_stats, payload_of
from mz_dagster.storage.kept_tables import KeptTables
from mz_dagster.storage.known_files import KnownFiles
from mz_dagster.storage.lookup import ComputedKey, KeyValue, KeyValues
from mz_dagster.storage.numerics import short_fields, shortened, stored_names, whole
from mz_dagster.storage.parquet_file import open_parquet
from mz_dagster.storage.shard_files import filled, read_whole, scanned, stored_schema
from mz_dagster.storage.shard_place import FOLDER, NewTable, ShardFolder, ShardPlace, settled_stats
from mz_dagster.storage.shards import (
    BATCH,
    BUCKET,
    ERROR,
    TABLE_PROPERTIES,
    TIME,
    UPDATE_COLUMNS,
    BatchIncomplete,
    FileDamaged,
    Interval,
    ShardUnavailable,
    StoredFile,
    skipping_columns,
)
from mz_dagster.storage.skipping import asked_columns, may_pass

_RETRIES = CommitProperties(max_commit_retries=1000)
"""A lost race for a version only has to be run again."""

_CONFLICTS = 50
"""How many conflicts a commit runs into before it gives up."""

_CONFLICTING = ("concurrent", "Metadata changed")
"""What a commit's failure says that is a conflict."""

Result = TypeVar("Result")


class LocalShards:
    """Keeps the shards in their place, without Spark.

    Args:
        place: Where the shards are, or the folder that they are in: each under its `CollectionRow.shard`.
        payloads: Holds the updates of inlined batches: the catalog. Without it nothing is inlined.
        inlining: Which batches are inlined; by default those that the budget says.
        hot_bytes: How many bytes of files that are read again are kept in memory; by default as the budget says.
        decoded: Keeps on disk what was decoded of large ones, for the processes that come after this one.

    Attributes:
        place: Where they are.
        kept: What others make of the shards' updates, kept for the next time.
        rows_decoded: How many rows the files had that were opened and decoded so far.
    """

    clusters = False

    def __init__(
        self,
        place: ShardPlace | Path,
        payloads: PayloadStore | None = None,
        inlining: Inlining | None = None,
        hot_bytes: int | None = None,
        decoded: DecodedFiles | None = None,
    ) -> None:
        self.place = ShardFolder(place) if isinstance(place, Path) else place
        self._inlines = payloads is not None
        self._inlining = inlining
        self._inlined = InlinedFrames(payloads)
        self._known = KnownFiles()
        self._hot = HotFiles(hot_bytes, decoded)
        self.kept = KeptTables(hot_bytes)
        self._counting = threading.Lock()
        self.rows_decoded = 0

    def path(self, collection: CollectionRow) -> Path:
        """Returns the folder in which this process finds a collection's data files, once they were checked."""
        return self.place.root / collection.shard

    def create(self, collection: CollectionRow) -> None:
        """Makes a collection's empty table; see `Shards.create`."""
        if self.place.has_table(collection.shard):
            return
        try:
            self.place.create(collection.shard, new_table(collection))
        except (DeltaError, OSError) as error:
            raise self._unavailable("create", collection.shard, error) from error

    def append(
        self,
        collection: CollectionRow,
        batch: BatchId,
        frame: pa.Table,
        interval: Interval | None = None,
        *,
        key: Sequence[int] = (),
        rows: int | None = None,
    ) -> BatchStats:
        """Writes an update frame under a fresh batch id, never in buckets; see `Shards.append`.

        A reader of frames is written part by part, each in its own commit, so that all of them need not fit memory.
        """
        if isinstance(frame, pa.RecordBatchReader):
            return self._streamed(collection, batch, frame, interval)
        if not frame.num_rows:
            return NO_ROWS
        self.create(collection)
        data = _in_batch(_stored(frame, collection), batch)
        try:
            return self._appended(collection, batch, data, interval)
        except (DeltaError, OSError) as error:
            raise self._unavailable("append to", collection.shard, error) from error

    def _streamed(
        self, collection: CollectionRow, batch: BatchId, frames: pa.RecordBatchReader, interval: Interval | None
    ) -> BatchStats:
        # Its own reader of frames, deltalake's, reads on while it writes, and all that waits is in memory.
        self.create(collection)
        shard = collection.shard
        try:
            with self.draft(collection) as draft, self.place.drafted(shard, draft, is_newest=True) as table:
                if table is None:
                    raise FileNotFoundError("there is no table")
                for part in _parts(frames, budget().streamed_bytes):
                    _add(table, _in_batch(_stored(part, collection), batch))
                return settled_stats(self.place, shard, draft, table, batch, interval)
        except (DeltaError, OSError) as error:
            raise self._unavailable("append to", collection.shard, error) from error

    def inline(self, collection: CollectionRow, frame: pa.Table, interval: Interval | None = None) -> BatchStats | None:
        """Returns the stats of a batch of few updates, with its payload; see `Shards.inline`."""
        if not self._inlines or isinstance(frame, pa.RecordBatchReader):
            return None
        if not frame.num_rows:
            return NOTHING
        limit = self._limit()
        if frame.num_rows > limit.rows or frame.nbytes > limit.bytes:
            return None
        stats = self.in_memory(collection, frame, interval)
        return None if stats.bytes > limit.bytes else stats

    def is_inlined(self, stats: BatchStats) -> bool:
        """Returns whether a batch that brings its updates along is one that the catalog stores."""
        limit = self._limit()
        return self._inlines and stats.rows <= limit.rows and stats.bytes <= limit.bytes

    def in_memory(self, collection: CollectionRow, frame: pa.Table, interval: Interval | None = None) -> BatchStats:
        """Returns the stats of a batch that brings its updates along, however many they are.

        A `Batch` of them is read as any other, by this process and by Spark, as long as somebody has it.
        """
        stored = _stored(frame, collection)
        stats = inlined_stats(stored, payload_of(stored), interval)
        self._inlined.keep(collection.id, stats, stored)
        return stats

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
        condition: pc.Expression | None = None,
        over: Collection[Column] | None = None,
    ) -> pa.Table:
        """Returns the updates of exactly these batches in `[lower, upper)`; see `Shards.read`.

        With a `condition` over stored columns, also over such that are not wanted, only those of rows for which it is
        true, and of the error part. Which of the collection's it is `over` tells what to keep in memory.
        """
        files = [one for one in self.files(collection, batches, where=where) if may_hold(one.bucket, touched)]
        return self.read_files(
            collection, batches, files, lower=lower, upper=upper, columns=columns, condition=condition, over=over
        )

    def read_files(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        files: Sequence[StoredFile],
        *,
        lower: int | None = None,
        upper: int | None = None,
        columns: Sequence[str] | None = None,
        condition: pc.Expression | None = None,
        over: Collection[Column] | None = None,
        key: KeyValue | KeyValues | ComputedKey | None = None,
    ) -> pa.Table:
        """Returns what `read` would of the batches if these files of theirs, from the log, were all.

        A `key` is part of the condition, or all of it; without a condition rows that do not have it may be missing.
        """
        schema = update_schema(collection.columns)
        names = [*(schema.names[:-3] if columns is None else columns), *UPDATE_COLUMNS]
        wanted = pa.schema([schema.field(name) for name in names])
        inlined = [one for one in files if one.inlined is not None]
        files = [one for one in files if one.inlined is None]
        stored = stored_names(names, collection.columns)
        only = None if condition is None else condition | pc.field(ERROR).is_valid()

        is_within = partial(_is_within, lower=lower, upper=upper)

        def asked(some: Iterable[StoredFile]) -> pc.Expression | None:
            # Most are read whole: to ask each row costs more than all else.
            if all(map(is_within, some)):
                return only
            return _all_of(
                None if lower is None else pc.field(TIME) >= lower,
                None if upper is None else pc.field(TIME) < upper,
                only,
            )

        parts = []
        if inlined:
            payloads = self._inlined.of([one.inlined for one in inlined if one.inlined is not None])
            rows = asked(inlined)
            kept = stored_schema(collection.columns)
            columns = stored if rows is None else kept.names
            found = pa.concat_tables(filled(one, kept, columns) for one in payloads)
            parts.append(found if rows is None else found.filter(rows).select(stored))
        if files:
            looked_at = None if condition is not None and over is None else [one.name for one in over or ()]
            parts += self._scanned(collection, batches, files, stored, asked, looked_at, key, is_within)
        read = [whole(one, collection.columns) for one in parts]
        cast = [one if one.schema.equals(wanted) else one.cast(wanted) for one in read]
        return pa.concat_tables(cast or [wanted.empty_table()])

    def _scanned(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        files: Sequence[StoredFile],
        names: Sequence[str],
        asked: Callable[[Iterable[StoredFile]], pc.Expression | None],
        looked_at: Sequence[str] | None,
        key: KeyValue | KeyValues | ComputedKey | None,
        is_within: Callable[[StoredFile], bool],
    ) -> list[pa.Table]:
        """Returns columns of the rows of data files for which what is asked of these is true, as they are stored.

        What is in memory is not read; `looked_at` are the columns of the collection that tell what is asked beside
        times and errors, None if that is not known. A `key` is found in the order of what is in memory.
        """
        schema = stored_schema(collection.columns)
        path = self.path(collection)

        def decoded(some: Sequence[StoredFile], only: pc.Expression | None) -> pa.Table:
            with self._counting:
                self.rows_decoded += sum(one.rows for one in some)
            return scanned([path / one.path for one in some], schema, names, only)

        def decoded_whole(one: StoredFile, columns: Sequence[str]) -> pa.Table:
            with self._counting:
                self.rows_decoded += one.rows
            return read_whole(path / one.path, schema, columns)

        def kept(one: StoredFile, file: HotFile, columns: Sequence[str], by: ComputedKey | None) -> pa.Table | None:
            """Returns what is kept of a file: columns of it, and what is computed of its rows."""
            if by is None:
                return self._hot.columns(file, one.rows, columns, partial(decoded_whole, one), schema)

            def read(missing: Sequence[str]) -> pa.Table:
                if by.column not in missing:
                    return decoded_whole(one, missing)
                inputs = stored_names(by.inputs, collection.columns)
                names = [name for name in dict.fromkeys([*inputs, *missing]) if name != by.column]
                stored = decoded_whole(one, names)
                try:
                    numbers = by.compute(whole(stored.select(inputs), collection.columns).select(by.inputs))
                except pa.ArrowException as error:  # which is no damage of the file
                    raise InternalError(f"a key of {', '.join(by.inputs)} is not computed: {error}") from error
                return stored.append_column(by.column, numbers).select(missing)

            added = schema.append(pa.field(by.column, by.values.type))
            return self._hot.columns(file, one.rows, [*columns, by.column], read, added)

        try:
            self._check(collection, files)
            hot: dict[str, pa.Table] = {}
            found, done = [], set[str]()
            if looked_at is not None:
                wanted = list(dict.fromkeys([*names, *stored_names([*looked_at, TIME, ERROR], collection.columns)]))
                for one in files:
                    if one.hash is not None:
                        file = HotFile(collection.shard, one.path, one.hash)
                        sought = key if key is not None and not one.errors and key.is_sought_in(one.rows) else None
                        table = kept(one, file, wanted, sought if isinstance(sought, ComputedKey) else None)
                        if table is None:
                            continue
                        if sought is not None:
                            places = sought.places_in(self._hot.ordered(file, table, sought.column))
                            if isinstance(sought, KeyValues) and (closer := sought.closer_in(len(places))) is not None:
                                closely = kept(one, file, wanted, closer)
                                if closely is not None:
                                    places = closer.places_in(self._hot.ordered(file, closely, closer.column))
                            table = table.take(places)
                            if sought.is_all and is_within(one):
                                found.append(table.select(list(names)))
                                done.add(one.path)
                                continue
                        hot[one.path] = table.select(wanted)
            if hot:
                table = pa.concat_tables(hot.values())
                rows = asked(one for one in files if one.path in hot)
                found.append((table if rows is None else table.filter(rows)).select(list(names)))
            if cold := [one for one in files if one.path not in hot and one.path not in done]:
                found.append(decoded(cold, asked(cold)))
            return found
        except (OSError, pa.ArrowException) as error:
            self._known.forget(collection.shard, [batch.id for batch in batches])
            raise self._failed(collection, batches, files, error) from error

    def is_much_to_decode(
        self, collection: CollectionRow, files: Iterable[StoredFile], names: Sequence[str], most: int
    ) -> bool:
        """Returns whether more than so many cells of some columns are in data files and not in memory.

        Where there is room on disk for what is decoded it is not much, for it takes so long only once.
        """
        stored = stored_names(names, collection.columns)
        known = [(one, HotFile(collection.shard, one.path, one.hash or "")) for one in files]
        cold = [(one, file) for one, file in known if one.hash is None or not self._hot.has(file, one.rows, stored)]
        cells = len(names) * sum(one.rows for one, _ in cold)
        return cells > most and not self._hot.expects({file: one.rows for one, file in cold if one.hash}, len(names))

    def in_order(
        self, collection: CollectionRow, file: StoredFile, key: str, names: Sequence[str]
    ) -> tuple[Ordered, pa.Table] | None:
        """Returns the rows of a data file in the order of a column, with some columns; None if it is not in memory."""
        if file.hash is None:
            return None
        hot, schema = HotFile(collection.shard, file.path, file.hash), stored_schema(collection.columns)

        def read(missing: Sequence[str]) -> pa.Table:
            self._check(collection, [file])
            return read_whole(self.path(collection) / file.path, schema, missing)

        table = self._hot.columns(hot, file.rows, names, read, schema)
        return None if table is None else (self._hot.ordered(hot, table, key), table)

    def check_files(self, collection: CollectionRow, batches: Sequence[Batch], files: Sequence[StoredFile]) -> None:
        """Returns if these files of the batches, which another is to read, are those that were written.

        Raises:
            BatchIncomplete: One is gone.
            FileDamaged: One is another.
            ShardUnavailable: One cannot be read.
        """
        try:
            self._check(collection, files)
        except OSError as error:
            raise self._failed(collection, batches, files, error) from error

    def head(self, collection: CollectionRow, batch: Batch, rows: int) -> pa.Table:
        """Returns the first updates of a batch, at most `rows` of them; of its files it decodes no more than that.

        Raises:
            BatchIncomplete: As in `read`.
            ShardUnavailable: As in `read`.
        """
        wanted = update_schema(collection.columns)
        if batch.stats.inlined is not None:
            return self.read(collection, [batch]).slice(0, rows)
        found = [wanted.empty_table()]
        names, schema = stored_names(wanted.names, collection.columns), stored_schema(collection.columns)
        files = self.files(collection, [batch])
        try:
            for one in files:
                path = self.path(collection) / one.path
                self._check(collection, [one])
                with open_parquet(path) as file:
                    for read in file.iter_batches(rows, columns=names):
                        stored = filled(pa.Table.from_batches([read]), schema, names)
                        frame = whole(stored, collection.columns)
                        found.append(frame.select(wanted.names).cast(wanted))
                        if sum(len(part) for part in found) >= rows:
                            return pa.concat_tables(found).slice(0, rows)
        except (OSError, pa.ArrowException) as error:
            raise self._failed(collection, [batch], files, error) from error
        return pa.concat_tables(found)

    def errors(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        upper: int | None = None,
        columns: Sequence[str] | None = (),
    ) -> pa.Table:
        """Returns the batches' updates of the error part; opens no file that holds none.

        They are time, diff and error, with some of the collection's columns, or with all for None.

        Raises:
            BatchIncomplete: As in `read`.
            ShardUnavailable: As in `read`.
        """
        holding = [batch for batch in batches if batch.stats.errors]
        files = [one for one in self.files(collection, holding) if one.errors]
        return self.read_files(collection, holding, files, upper=upper, columns=columns, condition=pc.scalar(False))

    def consolidate(
        self, collection: CollectionRow, frame: pa.Table, as_of: int, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Returns the frame as it stands at `as_of`; see `Shards.consolidate`."""
        return consolidated(frame, as_of)

    def draft(self, collection: CollectionRow) -> AbstractContextManager[Path]:
        """Yields the folder of a table in which another is to write a batch; see `ShardPlace.draft`."""
        return self.place.draft(collection.shard, new_table(collection))

    def committed(
        self, collection: CollectionRow, batch: BatchId, draft: Path, interval: Interval | None = None
    ) -> BatchStats:
        """Returns the stats of a batch that another has committed in a draft, once it lasts; `NO_ROWS` without rows.

        Raises:
            UpdateNotBeyondLower: An update is before the interval, if one is given, or has no time.
            UpdateBeyondUpper: An update is after it.
            ShardUnavailable: The table cannot be read, or not be forced to disk; the batch must not be sealed.
        """
        try:
            with self.place.drafted(collection.shard, draft, is_newest=True) as table:
                return settled_stats(self.place, collection.shard, draft, table, batch, interval)
        except OSError as error:
            raise self._unavailable("force to disk", collection.shard, error) from error

    def sync_log(self, collection: CollectionRow) -> None:
        """Returns once a table's log is on disk."""
        try:
            with self.place.newest(collection.shard) as table:
                if table is not None:
                    self.place.sync_log(collection.shard, table.version())
        except OSError as error:
            raise self._unavailable("force to disk the log of", collection.shard, error) from error

    def files(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        where: Sequence[Scalar] = (),
        bounds: Sequence[Column] = (),
    ) -> tuple[StoredFile, ...]:
        """Returns the files of the batches, by the catalog's lists; see `Shards.files`.

        They may be gone, which is found out when they are read. Of the log is asked what the catalog does not know, and
        once for a batch: the files of one of a version that did not list them, and the bounds in one that is large.
        """
        asked = tuple(dict.fromkeys((*asked_columns(where, collection.columns), *bounds)))
        found: dict[BatchId, tuple[StoredFile, ...]] = {}
        for batch in batches:
            listed = listed_files(batch)
            is_small = batch.stats.inlined is not None or batch.stats.rows <= budget().unbounded_rows
            if listed is not None and (is_small or not asked):
                found[batch.id] = listed

        def ask(missing: Sequence[Batch]) -> list[tuple[StoredFile, ...]]:
            with self.place.newest(collection.shard) as table:
                return files_by_batch(table, collection, missing, asked)

        others = [batch for batch in batches if batch.id not in found]
        found |= self._known.of(collection.shard, others, tuple(one.name for one in asked), ask)
        files = (one for batch in batches for one in found[batch.id])
        columns = collection.columns
        return tuple(one for one in files if one.errors or all(may_pass(part, columns, one.bounds) for part in where))

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
        """Writes the compacted updates of `parts` under a fresh batch id; see `Shards.merge`."""
        return self.append(collection, batch, self._merged(collection, parts, since, sort_key))

    def inline_merge(
        self, collection: CollectionRow, parts: Sequence[Batch], since: int, sort_key: Sequence[str]
    ) -> BatchStats | None:
        """Returns the stats of the compacted updates of `parts`, with their payload; see `Shards.inline_merge`."""
        if sum(part.stats.rows for part in parts) > self._limit().rows:
            return None
        return self.inline(collection, self._merged(collection, parts, since, sort_key))

    def _merged(
        self, collection: CollectionRow, parts: Sequence[Batch], since: int, sort_key: Sequence[str]
    ) -> pa.Table:
        merged = consolidated(self.read(collection, parts), since, only_before=True)
        advance(sum(part.stats.rows for part in parts), "rows")
        order = [*dict.fromkeys([*sort_key, *merged.schema.names[:-3], TIME, ERROR])]
        order = [name for name in order if not pa.types.is_nested(merged.schema.field(name).type)]
        return merged.sort_by([(name, "ascending") for name in order])

    def delete(self, collection: CollectionRow, batches: Collection[BatchId], *, aside: Path | None = None) -> None:
        """Deletes all rows and files of dead batches; see `Shards.delete`."""
        if not batches:
            return
        shard, folders = collection.shard, [f"{BATCH}={int(batch)}" for batch in batches]
        try:
            _run_again(lambda: self._delete(shard, batches))
            for folder in folders:
                self.place.remove(shard, folder, aside)
            self._hot.forget(shard, folders)
        except (DeltaError, OSError) as error:
            if self._is_there(shard):  # else another process has destroyed it meanwhile
                raise self._unavailable("delete from", shard, error) from error

    def stored_batches(self, collection: CollectionRow) -> frozenset[BatchId]:
        """Returns the batches of which there are rows or files; see `Shards.stored_batches`."""
        with self.place.newest(collection.shard) as table:
            committed = set() if table is None else set(stored_files(table))
        ids = (one.partition("=")[2] for one in self.place.batch_folders(collection.shard))
        return frozenset(committed | {BatchId(int(one)) for one in ids if one.isdigit()})

    def given_up_columns(self, collection: CollectionRow) -> frozenset[str]:
        """Returns the columns of the table that the collection has not; see `Shards.given_up_columns`."""
        try:
            with self.place.newest(collection.shard) as table:
                known = new_table(collection).schema.names
                return frozenset() if table is None else frozenset(one.name for one in table.schema().fields) - {*known}
        except (DeltaError, OSError) as error:
            raise self._unavailable("read the log of", collection.shard, error) from error

    def vacuum(self, collection: CollectionRow) -> None:
        """Checkpoints the log and removes what is beyond its retention; see `Shards.vacuum`."""
        shard = collection.shard
        try:
            with self.place.newest(shard) as table:
                if table is not None:
                    table.create_checkpoint()
                    self.place.sync_log(shard, table.version())
                    table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            if self._is_there(shard):
                raise self._unavailable("clean the log of", shard, error) from error

    def folders(self) -> frozenset[str]:
        """Returns the folders of all shards, those half removed, too; see `Shards.folders`."""
        try:
            return self.place.shards()
        except OSError as error:
            raise self._unavailable("list", FOLDER, error) from error

    def destroy(self, shard: str) -> None:
        """Removes a dropped collection's folder; see `Shards.destroy`."""
        try:
            self.place.destroy(shard)
            self._hot.forget(shard)
        except OSError as error:
            raise self._unavailable("remove", shard, error) from error

    def _is_there(self, shard: str) -> bool:
        """Returns whether a shard has a table, as far as can be told."""
        try:
            return self.place.has_table(shard)
        except OSError:
            return True

    def _appended(
        self, collection: CollectionRow, batch: BatchId, data: pa.Table, interval: Interval | None
    ) -> BatchStats:
        """Appends to the snapshot that there is, without a look at the log; to the newest where that fails."""
        try:
            return self._append(collection, batch, data, interval, is_newest=False)
        except DeltaError:
            # Something that was committed since is in the way, or its entries are gone behind a checkpoint.
            with self.place.newest(collection.shard) as table:
                if table is None or stored_files(table, [batch]):
                    raise
        return _run_again(lambda: self._append(collection, batch, data, interval, is_newest=True))

    def _append(
        self,
        collection: CollectionRow,
        batch: BatchId,
        data: pa.Table,
        interval: Interval | None,
        *,
        is_newest: bool,
    ) -> BatchStats:
        shard = collection.shard
        with self.draft(collection) as draft, self.place.drafted(shard, draft, is_newest=is_newest) as table:
            if table is None:
                raise FileNotFoundError("there is no table")
            data = data.combine_chunks()
            _add(table, data)
            stats = settled_stats(self.place, shard, draft, table, batch, interval)
        # Several pieces are written in any order; what is kept has the rows of the file, in its order.
        is_one_piece = all(one.num_chunks <= 1 for one in data.columns)
        if is_one_piece and stats.file_list is not None and len(stats.file_list) == 1 and stats.rows == len(data):
            (file,) = stats.file_list
            if file.hash is not None:
                self._hot.keep(HotFile(shard, file.path, file.hash), data.drop_columns([BATCH, BUCKET]))
        return stats

    def _delete(self, shard: str, batches: Collection[BatchId]) -> None:
        with self.place.newest(shard) as table:
            stored = [] if table is None else sorted(stored_files(table, batches))
            if table is not None and stored:
                listed = ", ".join(str(int(one)) for one in stored)
                table.delete(f"{BATCH} IN ({listed})", commit_properties=_RETRIES)

    def _limit(self) -> Inlining:
        return self._inlining or Inlining(budget().inlined_rows, budget().inlined_bytes)

    def _check(self, collection: CollectionRow, files: Sequence[StoredFile]) -> None:
        for one in files:
            if one.inlined is not None:
                self._inlined.of([one.inlined])
        self.place.check(collection.shard, [one for one in files if one.inlined is None], collection.id)

    def incomplete(
        self, collection: CollectionRow, batches: Sequence[Batch], files: Sequence[StoredFile]
    ) -> BatchIncomplete | None:
        """Returns the error of the first file of batches that is gone; None if all are there.

        Raises:
            ShardUnavailable: The place cannot be asked.
        """
        gone = self.place.first_gone(collection.shard, [one for one in files if one.inlined is None])
        if gone is None:
            return None
        batch = next(one for one in batches if gone.path.startswith(f"{BATCH}={int(one.id)}/"))
        return BatchIncomplete(collection.id, batch.id, batch.stats.rows, None)

    def _failed(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        files: Sequence[StoredFile],
        error: OSError | pa.ArrowException,
    ) -> Exception:
        """Returns the error that says why files of batches could not be read.

        One was taken from under the reader; or the disk, or the right to read, fails; or one is damaged.
        """
        path = self.path(collection)
        files = [one for one in files if one.inlined is None]
        if (incomplete := self.incomplete(collection, batches, files)) is not None:
            return incomplete
        if isinstance(error, OSError) and error.errno is not None:
            return self._unavailable("read", collection.shard, error)
        for one in files:
            try:
                pq.ParquetFile(path / one.path, page_checksum_verification=True).read()
            except (OSError, pa.ArrowException) as cause:
                return FileDamaged(path / one.path, f"It cannot be read: {in_one_line(cause)}", collection.id)
        return DamageError(f'the shard of "{collection.id}" cannot be read', detail=f"{in_one_line(error)}.")

    def _unavailable(self, what: str, shard: str, error: Exception) -> ShardUnavailable:
        return ShardUnavailable(
            f'cannot {what} the shard at "{self.place.called(shard)}": {self.place.message_of(error)}',
            hint=self.place.hint_for(error),
            may_have_taken_effect=False,
        )


def new_table(collection: CollectionRow) -> NewTable:
    """Returns a collection's table as it is created."""
    fields = [
        pa.field(BATCH, pa.int64()),
        pa.field(BUCKET, pa.string()),
        *UPDATE_FIELDS,
        *list(update_schema(collection.columns))[:-3],
        *short_fields(collection.columns),
    ]
    properties = {**TABLE_PROPERTIES, "delta.dataSkippingStatsColumns": skipping_columns(collection.columns)}
    return NewTable(pa.schema(fields), properties)


def _add(table: DeltaTable, data: pa.Table) -> None:
    """Writes rows into files of a table, and commits these."""
    known = {one.name for one in table.schema().fields}
    write_deltalake(
        table,
        data,
        mode="append",
        # A table from before has no columns for short numerics, and one whose alteration was given up has more.
        schema_mode=None if known == set(data.schema.names) else "merge",
        commit_properties=_RETRIES,
        writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=128 * 1024),
    )


def _parts(frames: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """Yields frames together, as many as have so many bytes; no part is without rows."""
    held, size = list[pa.RecordBatch](), 0
    for one in frames:
        if held and size + one.nbytes > most:
            yield pa.Table.from_batches(held)
            held, size = [], 0
        if one.num_rows:
            held.append(one)
            size += one.nbytes
    if held:
        yield pa.Table.from_batches(held)


def _run_again(attempt: Callable[[], Result]) -> Result:
    """Runs a commit until it wins.

    `deltalake` takes an append that began before another batch's delete, or before one that adds columns, and two
    deletes, for conflicts. No batch's rows ever depend on another's, and a commit that failed so has not happened, so
    it is right to run it again; what it wrote lies under its own batch id, uncommitted, and goes with the batch.
    """
    for _ in range(_CONFLICTS):
        try:
            return attempt()
        except CommitFailedError as error:
            if not any(one in str(error) for one in _CONFLICTING):
                raise
    return attempt()


def _stored(frame: pa.Table, collection: CollectionRow) -> pa.Table:
    """Returns an update frame in the form in which it is stored."""
    data = frame.select([*UPDATE_COLUMNS, *(column.name for column in collection.columns)])
    data = data.cast(pa.schema([*UPDATE_FIELDS, *list(update_schema(collection.columns))[:-3]]))
    return shortened(data, collection.columns)


def _in_batch(stored: pa.Table, batch: BatchId) -> pa.Table:
    """Returns updates in stored form with the columns that say of which batch they are, and in which bucket."""
    ids = pa.repeat(pa.scalar(int(batch), pa.int64()), len(stored))
    stored = stored.add_column(0, pa.field(BATCH, pa.int64()), ids)
    return stored.add_column(1, pa.field(BUCKET, pa.string()), pa.repeat(pa.scalar(NO_LAYOUT), len(stored)))


def _is_within(file: StoredFile, lower: int | None, upper: int | None) -> bool:
    """Returns whether all times of a file are in `[lower, upper)`."""
    if file.times is None:
        return lower is None and upper is None
    return (lower is None or file.times[0] >= lower) and (upper is None or file.times[1] < upper)


def _all_of(*conditions: Any) -> Any:
    """Returns the conjunction of the conditions that are not None; None if there are none."""
    return reduce(lambda left, right: right if left is None else left if right is None else left & right, conditions)
