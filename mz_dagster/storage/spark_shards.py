"""Shards through Spark: what steps and compactions read and write.

Implements the `Shards` protocol for Spark DataFrames. Owns the two Spark plans of storage, the blind append of a
batch and the merge of several; what metadata answers (creating, counting, deleting, vacuuming) is left to
`LocalShards`, which needs no job for it. Invariant: a frame that `read` returns holds exactly the listed
batches, or evaluating it fails. It seals nothing and keeps no list of batches: that is the catalog's.

A frame reads the batches' Parquet files, whose names and row counts the catalog lists. Reading the table through
Spark's Delta source would reconstruct its snapshot with jobs of its own after every commit (`docs/performance.md`),
and, being resolved only when evaluated, silently lose the rows of a batch that was swept under an expired lease. What
is little is read in this process, and the frame holds it; so does one of inlined batches, however much is in them:
merges keep that to a few of the largest that are inlined.

A batch is laid out by key (`clustering`) where it is large and its size known. Then each bucket's rows meet in one task
and become one file, sorted by key: one shuffle more than an append without layout, and none for a merge, which shuffles
by bucket instead of by row.

Safe for use from several threads of one session: appends to different shards, or to the same one, run
concurrently and do not conflict, since each adds a partition of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.budget import budget
from mz_dagster.catalog import Batch, BatchId, BatchStats, CollectionRow
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import INT8, TEXT, Column
from mz_dagster.storage.clustering import NO_LAYOUT, TouchedHashes, bucket_count, bucket_prefix, layout_key, may_hold
from mz_dagster.storage.late_pyspark import functions as sf
from mz_dagster.storage.late_pyspark import types
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.numerics import SHORT_DIGITS, short_fields, short_names
from mz_dagster.storage.shards import (
    BATCH,
    BUCKET,
    DIFF,
    ERROR,
    TIME,
    UPDATE_COLUMNS,
    Interval,
    StoredFile,
)
from mz_dagster.storage.spark.deadline import reporting_lost_spark
from mz_dagster.storage.spark.floats import FLOATS, represented, restored
from mz_dagster.storage.spark.globs import escaped_glob
from mz_dagster.storage.spark.hashing import hash_modulo
from mz_dagster.storage.spark.local_rows import frame_of_rows
from mz_dagster.storage.spark.schema import quoted, spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession


class SparkShards:
    """Keeps shards as Delta tables below `root` and reads and writes them with `session`.

    Args:
        root: The folder of all shards, seen under the same path by this process and by Spark.
        session: The session.
        local: The shards in this process, which have what is not in files; by default those of a project in which
            nothing is inlined.
    """

    clusters = True

    def __init__(self, root: Path, session: SparkSession, local: LocalShards | None = None) -> None:
        self.root = root
        self.session = session
        self._local = local or LocalShards(root)

    def create(self, collection: CollectionRow) -> None:
        """Creates the empty table of `collection` if it is not there; no job."""
        self._local.create(collection)

    def append(
        self,
        collection: CollectionRow,
        batch: BatchId,
        frame: DataFrame,
        interval: Interval | None = None,
        *,
        key: Sequence[int] = (),
        rows: int | None = None,
    ) -> BatchStats:
        """Writes the updates of `frame` under the fresh id `batch`, in one execution and one commit.

        A frame without rows makes no commit. Without layout the order of the rows within a partition of the frame is
        kept, and its partitions become files of at most `Budget.file_rows` rows.

        Returns:
            What the commit says was written.

        Raises:
            OperationalError: Spark was lost; rows may have been written, under an id that no list names.
            UpdateNotBeyondLower: An update is before the interval, if one is given, or has no time.
            UpdateBeyondUpper: An update is after it.
        """
        count = bucket_count(rows) if key else 1
        if count == 1:
            return self._write(collection, batch, frame, sf.lit(NO_LAYOUT), interval)
        frame = _in_buckets(frame, collection, key, count)
        frame = frame.sortWithinPartitions(BUCKET, *(quoted(collection.columns[p].name) for p in key), TIME)
        return self._write(collection, batch, frame, sf.col(BUCKET), interval)

    def inline(
        self, collection: CollectionRow, frame: DataFrame, interval: Interval | None = None
    ) -> BatchStats | None:
        """Returns None: how much a frame has, only a job tells."""
        return None

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
    ) -> DataFrame:
        """Returns the updates of exactly `batches` with `lower <= mz_timestamp < upper`; starts no job.

        The frame reads the files that the catalog lists for the batches, and no others: it is the same
        however late it is evaluated, and fails if a file has gone by then.

        Args:
            collection: Whose updates.
            batches: The listed batches, under the caller's lease.
            lower: The least time, or None for no bound.
            upper: The first time that is too late, or None for no bound.
            columns: The data columns wanted, in that order; None for all. Time, diff and error always follow.
            touched: The hashes of the keys wanted; files that hold none of them are not read.
            where: What the caller asks of each row; files in which no row passes are not read.

        Raises:
            BatchIncomplete: A listed batch has not as many rows in the table as the catalog says, or lost a file.
        """
        chosen = [one for one in self.files(collection, batches, where=where) if may_hold(one.bucket, touched)]
        rows = sum(one.rows for one in chosen)
        if rows <= budget().handed_rows and sum(one.bytes for one in chosen) <= budget().handed_bytes:
            found = self._local.read_files(collection, batches, chosen, lower=lower, upper=upper, columns=columns)
            if found.nbytes <= budget().handed_bytes:
                return self._handed(found, _named(collection, columns))
        inlined = [one for one in chosen if one.inlined is not None]
        if not inlined:
            return self._scanned(collection, batches, chosen, lower, upper, columns)
        found = self._local.read_files(collection, batches, inlined, lower=lower, upper=upper, columns=columns)
        # However much is inlined, no part of a plan is large.
        step = max(1, len(found) * budget().handed_bytes // max(found.nbytes, 1))
        named = _named(collection, columns)
        frames = [self._handed(found.slice(start, step), named) for start in range(0, max(len(found), 1), step)]
        if len(inlined) < len(chosen):
            stored = [one for one in chosen if one.inlined is None]
            frames.append(self._scanned(collection, batches, stored, lower, upper, columns))
        return reduce(lambda one, other: one.union(other), frames)

    def _scanned(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        files: Sequence[StoredFile],
        lower: int | None,
        upper: int | None,
        columns: Sequence[str] | None,
    ) -> DataFrame:
        """Returns an update frame that reads data files."""
        path = self._path(collection)
        self._local.check_files(collection, batches, files)
        stored = self.session.read.schema(_stored_schema(collection.columns))
        stored = stored.option("parquet.page.verify-checksum.enabled", "true")
        frame = stored.parquet(*(escaped_glob(str(path / one.path)) for one in files))
        # A bound that all updates keep is left out: it would make the code that Spark compiles another at each step.
        if lower is not None and any(one.lower.only < lower for one in batches):
            frame = frame.where(sf.col(TIME) >= sf.lit(lower))
        if upper is not None and any(one.upper.is_empty or one.upper.only > upper for one in batches):
            frame = frame.where(sf.col(TIME) < sf.lit(upper))
        data = _whole(collection, columns)
        if not any(one.errors for one in files):
            return _without_errors(frame, data)
        return frame.select(*data, *UPDATE_COLUMNS)

    def _handed(self, found: pa.Table, columns: Sequence[Column]) -> DataFrame:
        """Returns an update frame that itself holds the rows that were found."""
        frame = frame_of_rows(self.session, found, update_schema(columns))
        has_errors = found.column(ERROR).null_count < len(found)
        return frame if has_errors else _without_errors(frame, [sf.col(quoted(column.name)) for column in columns])

    def consolidate(
        self, collection: CollectionRow, frame: DataFrame, as_of: int, *, columns: Sequence[str] | None = None
    ) -> DataFrame:
        """Returns the frame with all times set to `as_of`, equal `(data, error)` summed and zeros dropped; no job.

        Cost when evaluated: one shuffle. See `Shards.consolidate`.
        """
        data = _named(collection, columns)
        time = sf.lit(as_of).cast("bigint").alias(TIME)
        return summed(frame, data, [ERROR]).select(*[quoted(c.name) for c in data], time, DIFF, ERROR)

    def files(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        where: Sequence[Scalar] = (),
        bounds: Sequence[Column] = (),
    ) -> tuple[StoredFile, ...]:
        """Returns the files of the batches, if they are there; no job."""
        files = self._local.files(collection, batches, where=where, bounds=bounds)
        if (incomplete := self._local.incomplete(collection, batches, files)) is not None:
            raise incomplete
        return files

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
        """Writes `parts` as one batch, consolidated and laid out by `key`, sorted by `sort_key`.

        Times before `since` become `since`; updates equal in data, time and error are summed, zeros dropped. Cost: one
        read of the parts, one shuffle (two and a sample where the result has several files and no layout), one write.

        Returns:
            What was written; no rows if everything cancelled.
        """
        times = sf.greatest(sf.col(TIME), sf.lit(since)).alias(TIME)
        data = [quoted(one.name) for one in collection.columns]
        frame = self.read(collection, parts).select(*data, times, DIFF, ERROR)
        order = [*map(quoted, sort_key), TIME]
        rows = sum(part.stats.rows for part in parts)
        count = bucket_count(rows) if key else 1
        if count > 1:
            # Equal rows are in one bucket: what brings buckets together brings them together, too.
            total = summed(_in_buckets(frame, collection, key, count), collection.columns, [TIME, ERROR, BUCKET])
            return self._write(collection, batch, total.sortWithinPartitions(BUCKET, *order), sf.col(BUCKET))
        total = summed(frame, collection.columns, [TIME, ERROR])
        files = -(-rows // budget().file_rows)
        laid_out = total.coalesce(1) if files <= 1 else total.repartitionByRange(files, *order)
        return self._write(collection, batch, laid_out.sortWithinPartitions(*order), sf.lit(NO_LAYOUT))

    def inline_merge(
        self, collection: CollectionRow, parts: Sequence[Batch], since: int, sort_key: Sequence[str]
    ) -> BatchStats | None:
        """Returns what the shards in this process make of parts that are little."""
        return self._local.inline_merge(collection, parts, since, sort_key)

    def delete(self, collection: CollectionRow, batches: Collection[BatchId], *, aside: Path | None = None) -> None:
        """Deletes all rows and files of dead batches; no job."""
        self._local.delete(collection, batches, aside=aside)

    def stored_batches(self, collection: CollectionRow) -> frozenset[BatchId]:
        """Returns the ids of all batches of which the shard holds rows or files, committed or not; no job."""
        return self._local.stored_batches(collection)

    def given_up_columns(self, collection: CollectionRow) -> frozenset[str]:
        """Returns the columns of the table that the collection has not; no job."""
        return self._local.given_up_columns(collection)

    def vacuum(self, collection: CollectionRow) -> None:
        """Checkpoints the table's log and shortens it; no job."""
        self._local.vacuum(collection)

    def folders(self) -> frozenset[str]:
        """Returns the folders of all shards; see `Shards.folders`."""
        return self._local.folders()

    def destroy(self, shard: str) -> None:
        """Removes a dropped collection's folder."""
        self._local.destroy(shard)

    def _path(self, collection: CollectionRow) -> Path:
        return self._local.path(collection).absolute()

    def _write(
        self,
        collection: CollectionRow,
        batch: BatchId,
        frame: DataFrame,
        bucket: SparkColumn,
        interval: Interval | None = None,
    ) -> BatchStats:
        """Writes a frame, each row into the file of its bucket, in one execution and one commit."""
        self.create(collection)
        partition = sf.lit(int(batch)).cast("bigint").alias(BATCH)
        with self._local.draft(collection) as draft:
            with reporting_lost_spark(writing=True):
                data = _shortened(collection.columns)
                laid_out = frame.select(*data, *UPDATE_COLUMNS, partition, bucket.alias(BUCKET))
                # A table from before has no columns for short numerics.
                writer = laid_out.write.format("delta").mode("append").option("mergeSchema", "true")
                writer.option("maxRecordsPerFile", str(budget().file_rows)).save(str(draft.absolute()))
            return self._local.committed(collection, batch, draft, interval)


def update_schema(columns: Sequence[Column]) -> types.StructType:
    """Returns the schema of a frame of updates with these data columns, all of them nullable.

    Example:
        >>> update_schema([Column("a", TEXT)]).simpleString()
        'struct<a:string,mz_timestamp:bigint,mz_diff:bigint,mz_error:string>'
    """
    every = [*columns, Column(TIME, INT8), Column(DIFF, INT8), Column(ERROR, TEXT)]
    return types.StructType([types.StructField(column.name, spark_type(column.type)) for column in every])


def _stored_schema(columns: Sequence[Column]) -> types.StructType:
    """Returns the schema of the files of a collection with these data columns; see `numerics`."""
    shorts = [(one.name, types.DecimalType(one.type.precision, one.type.scale)) for one in short_fields(columns)]
    return types.StructType([*update_schema(columns), *(types.StructField(name, type_) for name, type_ in shorts)])


def _shortened(columns: Sequence[Column]) -> list[SparkColumn]:
    """Returns the columns to store for the data columns of a frame."""
    shorts, found = short_names(columns), []
    for one in columns:
        value = sf.col(quoted(one.name))
        if one.name in shorts:
            short = value.try_cast(types.DecimalType(SHORT_DIGITS, one.type.scale))
            found.append(short.alias(shorts[one.name]))
            value = sf.when(short.isNull(), value).alias(one.name)
        found.append(value)
    return found


def _whole(collection: CollectionRow, columns: Sequence[str] | None) -> list[SparkColumn]:
    """Returns data columns of a collection, all or those of these names, over the columns that are stored."""
    shorts, found = short_names(collection.columns), []
    for one in _named(collection, columns):
        value = sf.col(quoted(one.name))
        if one.name in shorts:
            short = sf.col(quoted(shorts[one.name])).cast(spark_type(one.type))
            value = sf.coalesce(short, value).alias(one.name)
        found.append(value)
    return found


def _without_errors(frame: DataFrame, data: Sequence[SparkColumn]) -> DataFrame:
    """Returns a frame of updates, these their data, and no errors, so that Spark knows that there are none.

    What it knows to be NULL it plans no work for: tests of each row, and all that is done with errors. A `withColumn`
    would have the server analyze the plan so far, which takes it three times as long as another projection.
    """
    return frame.select(*data, TIME, DIFF, sf.lit(None).cast("string").alias(ERROR))


def _named(collection: CollectionRow, columns: Sequence[str] | None) -> list[Column]:
    """Returns a collection's columns of these names, or all."""
    by_name = {column.name: column for column in collection.columns}
    return list(collection.columns) if columns is None else [by_name[name] for name in columns]


def _in_buckets(frame: DataFrame, collection: CollectionRow, key: Sequence[int], count: int) -> DataFrame:
    """Returns the frame with its column `mz_bucket`, all rows of a bucket in one partition."""
    columns = [collection.columns[position] for position in layout_key(key)]
    number = hash_modulo([sf.col(quoted(one.name)) for one in columns], [one.type for one in columns], count)
    prefix = sf.lit(bucket_prefix(layout_key(key), count))
    return frame.select("*", sf.concat(prefix, number.cast("string")).alias(BUCKET)).repartition(BUCKET)


def summed(frame: DataFrame, columns: Sequence[Column], beside: Sequence[str]) -> DataFrame:
    """Returns `frame` with the diffs of rows equal in `columns` and `beside` summed, and zeros dropped; no job.

    Its other columns are lost. Equal means the same value bit by bit, except that all NaNs are one. Cost when
    evaluated: one shuffle.
    """
    named = {one.name: one.type for one in columns}
    keys = {name: sf.col(quoted(name)) for name in named}
    floats = [name for name, type_ in named.items() if type_.kind in FLOATS or type_.holds(FLOATS)]
    if floats:
        # Spark groups -0.0 with 0.0. A selection: to replace a column has Spark analyze all below it, each time.
        apart = {name: represented(keys[name], named[name]).alias(name) for name in floats}
        frame = frame.select(*(apart.get(name, key) for name, key in keys.items()), *beside, DIFF)
    total = frame.groupBy(*map(quoted, keys), *beside).agg(sf.sum(DIFF).alias(DIFF)).where(sf.col(DIFF) != 0)
    again = {name: restored(keys[name], named[name]).alias(name) for name in floats}
    return total.select(*(again.get(name, key) for name, key in keys.items()), *beside, DIFF)
