"""Shards in process, on `deltalake` and pyarrow: for rows that are already in Python, where a Spark job costs too much.

Serves small INSERTs, point reads, sweeps and most crash and race tests; reads and writes the same tables as Spark does.

*Reading* opens the newest snapshot once, checks that it holds as many rows of each listed batch as the catalog
says, and reads exactly the files of those batches that the snapshot names. A snapshot does not change, and a file is
written once; so either all rows come or a file is gone, which is `BatchIncomplete`.

*Deleting* takes the batches out of the log, in one commit without looking at a row, and then removes their partitions'
folders: everything in the folder of a dead batch is garbage, committed or not. So no vacuum ever has to guess whether
an uncommitted file still has a writer.

It leaves out files by key, given the hashes, and by predicates as Spark does, and lays nothing out itself: what is
written here is small.

Memory: a frame; `merge` holds all its parts.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from mz_dagster.catalog import NO_ROWS, Batch, BatchId, BatchStats, CollectionRow
from mz_dagster.catalog.disk import sync
from mz_dagster.plan.scalar import Scalar
from mz_dagster.plan.types import Column, Kind, ScalarType
from mz_dagster.plan.values import to_stored
from mz_dagster.storage.batch_stats import files_by_batch, files_of, in_one_line, stats_on_disk, stored_files
from mz_dagster.storage.clustering import NO_LAYOUT, Touched, may_hold
from mz_dagster.storage.known_files import KnownFiles
from mz_dagster.storage.numerics import short_fields, shortened, stored_names, whole
from mz_dagster.storage.open_tables import OpenTables, up_to_date
from mz_dagster.storage.shards import (
    BATCH,
    BUCKET,
    DIFF,
    ERROR,
    TABLE_PROPERTIES,
    TIME,
    UPDATE_COLUMNS,
    BatchIncomplete,
    Interval,
    MultiplicityOverflow,
    ShardUnavailable,
    StoredFile,
    skipping_columns,
)
from mz_dagster.storage.table_sync import LOG, TableSync

_TYPES: dict[Kind, pa.DataType] = {
    Kind.BOOL: pa.bool_(),
    Kind.INT2: pa.int16(),
    Kind.INT4: pa.int32(),
    Kind.INT8: pa.int64(),
    Kind.FLOAT4: pa.float32(),
    Kind.FLOAT8: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.MZ_TIMESTAMP: pa.int64(),
    Kind.TIME: pa.int64(),
    Kind.INTERVAL: pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())]),
    Kind.UUID: pa.string(),
    Kind.BYTEA: pa.binary(),
    Kind.JSONB: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.CHAR: pa.string(),
}

_UPDATE_FIELDS = (
    pa.field(TIME, pa.int64()),
    pa.field(DIFF, pa.int64()),
    pa.field(ERROR, pa.string()),
)

_RETRIES = CommitProperties(max_commit_retries=1000)
"""A lost race for a version only has to be run again."""

_CONFLICTS = 50
"""How many conflicts a commit runs into before it gives up."""

_FIRST_TIME = -(2**63)
"""No time is before it."""

Result = TypeVar("Result")

_PARQUET = ds.ParquetFileFormat(read_options={"coerce_int96_timestamp_unit": "us"})


def arrow_type(scalar: ScalarType) -> pa.DataType:
    """Returns the Arrow type that holds exactly the values of `scalar`.

    Example:
        >>> from mz_dagster.plan.types import numeric
        >>> str(arrow_type(numeric(2)))
        'decimal128(38, 2)'
    """
    if scalar.element is not None:
        # Delta's name of the field, which a cast would otherwise have to change.
        return pa.list_(pa.field("element", arrow_type(scalar.element)))
    if scalar.kind is Kind.RECORD:
        return pa.struct([(f"f{i}", arrow_type(one)) for i, (_, one) in enumerate(scalar.fields, 1)])
    return pa.decimal128(38, scalar.scale) if scalar.kind is Kind.NUMERIC else _TYPES[scalar.kind]


def update_schema(columns: Sequence[Column]) -> pa.Schema:
    """Returns the schema of an update frame with these data columns, all of them nullable.

    Example:
        >>> from mz_dagster.plan.types import INT4
        >>> update_schema([Column("a", INT4, nullable=False)]).names
        ['a', 'mz_timestamp', 'mz_diff', 'mz_error']
    """
    return pa.schema([*(pa.field(column.name, arrow_type(column.type)) for column in columns), *_UPDATE_FIELDS])


def update_table(
    columns: Sequence[Column],
    updates: Sequence[tuple[Sequence[Any], int, int] | tuple[Sequence[Any], int, int, str | None]],
) -> pa.Table:
    """Returns the update frame of `(data, time, diff)` or `(data, time, diff, error)` tuples.

    Example:
        >>> from mz_dagster.plan.types import INT4
        >>> update_table([Column("a", INT4)], [((1,), 5, 1), ((None,), 6, 1, "22012 division by zero")]).num_rows
        2
    """
    schema = update_schema(columns)
    data = [
        pa.array([to_stored(one[0][position], column.type) for one in updates], schema.field(position).type)
        for position, column in enumerate(columns)
    ]
    rest = [
        pa.array([one[1] for one in updates], pa.int64()),
        pa.array([one[2] for one in updates], pa.int64()),
        pa.array([one[3] if len(one) == 4 else None for one in updates], pa.string()),
    ]
    return pa.Table.from_arrays([*data, *rest], schema=schema)


def summed(frame: pa.Table) -> pa.Table:
    """Returns an update frame with equal updates summed and without those of diff 0; equality is `consolidate`'s.

    Example:
        >>> from mz_dagster.plan.types import INT4
        >>> frame = update_table([Column("a", INT4)], [((1,), 5, 1), ((2,), 5, 1), ((1,), 5, -1)])
        >>> summed(frame).to_pylist()
        [{'a': 2, 'mz_timestamp': 5, 'mz_diff': 1, 'mz_error': None}]
    """
    return _consolidate(frame, _FIRST_TIME, only_before=True)


def without_error_data(frame: pa.Table) -> pa.Table:
    """Returns an update frame with all data NULL in updates of the error part, where they mean nothing.

    Example:
        >>> from mz_dagster.plan.types import INT4
        >>> without_error_data(update_table([Column("a", INT4)], [((1,), 5, 1, "22012 x")])).column("a").to_pylist()
        [None]
    """
    good = pc.is_null(frame.column(ERROR))
    if pc.all(good).as_py() is not False:
        return frame
    for position, field in enumerate(frame.schema):
        if field.name not in UPDATE_COLUMNS:
            numbers = pc.if_else(good, pa.array(range(len(frame)), pa.int64()), pa.scalar(None, pa.int64()))
            frame = frame.set_column(position, field, frame.column(position).take(numbers))
    return frame


class LocalShards:
    """Keeps the shards below a root folder, without Spark.

    Args:
        root: The folder under which each collection has the folder `CollectionRow.shard`.
    """

    clusters = False

    def __init__(self, root: Path) -> None:
        self._root = root
        self._disk = TableSync(root)
        self._tables = OpenTables()
        self._known = KnownFiles()

    def path(self, collection: CollectionRow) -> Path:
        """Returns the folder of a collection's shard."""
        return self._root / collection.shard

    def create(self, collection: CollectionRow) -> None:
        """Makes a collection's empty table; see `Shards.create`."""
        path = self.path(collection)
        # A log's first entry goes with all that are beyond their retention, once there is a checkpoint.
        if any((path / LOG / name).exists() for name in (f"{0:020d}.json", "_last_checkpoint")):
            return
        fields = [
            pa.field(BATCH, pa.int64()),
            pa.field(BUCKET, pa.string()),
            *_UPDATE_FIELDS,
            *list(update_schema(collection.columns))[:-3],
            *short_fields(collection.columns),
        ]
        properties = {**TABLE_PROPERTIES, "delta.dataSkippingStatsColumns": skipping_columns(collection.columns)}
        try:
            path.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                str(path),
                pa.schema(fields),
                mode="ignore",
                partition_by=[BATCH, BUCKET],
                configuration=properties,
            )
        except (DeltaError, OSError) as error:
            if not DeltaTable.is_deltatable(str(path)):  # else another process was faster
                raise _unavailable("create", path, error) from error

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
        """Writes an update frame under a fresh batch id, never in buckets; see `Shards.append`."""
        if not frame.num_rows:
            return NO_ROWS
        self.create(collection)
        path = self.path(collection)
        data = frame.select([*UPDATE_COLUMNS, *(column.name for column in collection.columns)])
        data = data.cast(pa.schema([*_UPDATE_FIELDS, *list(update_schema(collection.columns))[:-3]]))
        data = shortened(data, collection.columns)
        data = data.add_column(0, pa.field(BATCH, pa.int64()), pa.repeat(pa.scalar(int(batch), pa.int64()), len(data)))
        data = data.add_column(1, pa.field(BUCKET, pa.string()), pa.repeat(pa.scalar(NO_LAYOUT), len(data)))
        try:
            return _run_again(lambda: self._append(path, batch, data, interval))
        except (DeltaError, OSError) as error:
            raise _unavailable("append to", path, error) from error

    def read(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        lower: int | None = None,
        upper: int | None = None,
        columns: Sequence[str] | None = None,
        touched: Sequence[Touched] = (),
        where: Sequence[Scalar] = (),
        condition: pc.Expression | None = None,
    ) -> pa.Table:
        """Returns the updates of exactly these batches in `[lower, upper)`; see `Shards.read`.

        With a `condition` over stored columns, also over such that are not wanted, only those of rows for which it is
        true, and of the error part.
        """
        files = [one for one in self.files(collection, batches, where=where) if may_hold(one.bucket, touched)]
        return self.read_files(
            collection, batches, files, lower=lower, upper=upper, columns=columns, condition=condition
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
    ) -> pa.Table:
        """Returns what `read` would of the batches if these files of theirs, from the log, were all."""
        schema = update_schema(collection.columns)
        names = [*(schema.names[:-3] if columns is None else columns), *UPDATE_COLUMNS]
        wanted = pa.schema([schema.field(name) for name in names])
        stored = pa.schema([*schema, *short_fields(collection.columns)])
        if not files:
            return wanted.empty_table()
        path = self.path(collection)
        paths = [str(path / one.path) for one in files]
        asked = _all_of(
            None if lower is None else ds.field(TIME) >= lower,
            None if upper is None else ds.field(TIME) < upper,
            None if condition is None else condition | ds.field(ERROR).is_valid(),
        )
        try:
            dataset = ds.dataset(paths, schema=stored, format=_PARQUET)
            found = dataset.to_table(columns=stored_names(names, collection.columns), filter=asked)
        except (FileNotFoundError, OSError) as error:
            self._known.forget(collection.shard, [batch.id for batch in batches])
            raise self._incomplete(collection, batches, error) from error
        return whole(found, collection.columns).cast(wanted)

    def head(self, collection: CollectionRow, batch: Batch, rows: int) -> pa.Table:
        """Returns the first updates of a batch, at most `rows` of them; of its files it decodes no more than that.

        Raises:
            BatchIncomplete: As in `read`.
            ShardUnavailable: As in `read`.
        """
        wanted = update_schema(collection.columns)
        found = [wanted.empty_table()]
        names = stored_names(wanted.names, collection.columns)
        try:
            for one in self.files(collection, [batch]):
                path = self.path(collection) / one.path
                with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                    for read in file.iter_batches(rows, columns=names):
                        frame = whole(pa.Table.from_batches([read]), collection.columns)
                        found.append(frame.select(wanted.names).cast(wanted))
                        if sum(len(part) for part in found) >= rows:
                            return pa.concat_tables(found).slice(0, rows)
        except (FileNotFoundError, OSError) as error:
            raise self._incomplete(collection, [batch], error) from error
        return pa.concat_tables(found)

    def errors(self, collection: CollectionRow, batches: Sequence[Batch], *, upper: int | None = None) -> pa.Table:
        """Returns time, diff and error of the batches' updates of the error part; opens no file that holds none.

        Raises:
            BatchIncomplete: As in `read`.
            ShardUnavailable: As in `read`.
        """
        holding = [batch for batch in batches if batch.stats.errors]
        paths = [str(self.path(collection) / one.path) for one in self.files(collection, holding) if one.errors]
        wanted = pa.schema(_UPDATE_FIELDS)
        if not paths:
            return wanted.empty_table()
        condition = ds.field(ERROR).is_valid()
        if upper is not None:
            condition &= ds.field(TIME) < upper
        try:
            found = ds.dataset(paths, schema=wanted, format=_PARQUET).to_table(filter=condition)
        except (FileNotFoundError, OSError) as error:
            raise self._incomplete(collection, holding, error) from error
        return found.cast(wanted)

    def consolidate(
        self, collection: CollectionRow, frame: pa.Table, as_of: int, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Returns the frame as it stands at `as_of`; see `Shards.consolidate`."""
        return _consolidate(frame, as_of)

    def committed(self, collection: CollectionRow, batch: BatchId, interval: Interval | None = None) -> BatchStats:
        """Returns the stats of a batch that another has committed, once it is on disk; `NO_ROWS` if it has no rows.

        Raises:
            UpdateNotBeyondLower: An update is before the interval, if one is given, or has no time.
            UpdateBeyondUpper: An update is after it.
            ShardUnavailable: The table cannot be read, or not be forced to disk; the batch must not be sealed.
        """
        path = self.path(collection)
        try:
            with self._tables.newest(path) as table:
                return stats_on_disk(self._disk, path, table, batch, interval)
        except OSError as error:
            raise _unavailable("force to disk", path, error) from error

    def sync_log(self, collection: CollectionRow) -> None:
        """Returns once a table's log is on disk."""
        path = self.path(collection)
        try:
            with self._tables.newest(path) as table:
                if table is not None:
                    self._disk.sync_log(path, table.version())
                    sync(path)
        except OSError as error:
            raise _unavailable("force to disk the log of", path, error) from error

    def files(
        self,
        collection: CollectionRow,
        batches: Sequence[Batch],
        *,
        where: Sequence[Scalar] = (),
        bounds: Sequence[Column] = (),
    ) -> tuple[StoredFile, ...]:
        """Returns the files of the batches in the newest snapshot; see `Shards.files`."""
        if not batches:
            return ()
        with self._tables.newest(self.path(collection)) as table:
            return files_of(table, collection, batches, where, bounds)

    def known_files(
        self, collection: CollectionRow, batches: Sequence[Batch], *, bounds: Sequence[Column] = ()
    ) -> list[StoredFile]:
        """Returns the files of the batches; opens no table if they were asked for before.

        They may be gone, which only `read_files` finds out.

        Args:
            collection: The collection.
            batches: The batches.
            bounds: The columns whose bounds are wanted.

        Raises:
            BatchIncomplete: As in `read`.
            ShardUnavailable: As in `read`.
        """

        def ask(missing: Sequence[Batch]) -> list[tuple[StoredFile, ...]]:
            with self._tables.newest(self.path(collection)) as table:
                return files_by_batch(table, collection, missing, bounds)

        return self._known.of(collection.shard, batches, tuple(one.name for one in bounds), ask)

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
        merged = _consolidate(self.read(collection, parts), since, only_before=True)
        order = [*dict.fromkeys([*sort_key, *merged.schema.names[:-3], TIME, ERROR])]
        order = [name for name in order if not pa.types.is_nested(merged.schema.field(name).type)]
        merged = merged.sort_by([(name, "ascending") for name in order])
        return self.append(collection, batch, merged)

    def delete(self, collection: CollectionRow, batches: Collection[BatchId]) -> None:
        """Deletes all rows and files of dead batches; see `Shards.delete`."""
        if not batches:
            return
        path = self.path(collection)
        try:
            _run_again(lambda: self._delete(path, batches))
            for batch in batches:
                _remove(path / f"{BATCH}={int(batch)}")
        except (DeltaError, OSError) as error:
            if (path / LOG).exists():  # else another process has destroyed it meanwhile
                raise _unavailable("delete from", path, error) from error

    def stored_batches(self, collection: CollectionRow) -> frozenset[BatchId]:
        """Returns the batches of which there are rows or files; see `Shards.stored_batches`."""
        path = self.path(collection)
        with self._tables.newest(path) as table:
            committed = set() if table is None else set(stored_files(table))
        folders = path.glob(f"{BATCH}=*")
        return frozenset(committed | {BatchId(int(one.name.partition("=")[2])) for one in folders if _names_batch(one)})

    def vacuum(self, collection: CollectionRow) -> None:
        """Checkpoints the log and removes what is beyond its retention; see `Shards.vacuum`."""
        path = self.path(collection)
        try:
            with self._tables.newest(path) as table:
                if table is not None:
                    table.create_checkpoint()
                    self._disk.sync_log(path, table.version())
                    table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            if (path / LOG).exists():
                raise _unavailable("clean the log of", path, error) from error

    def destroy(self, collection: CollectionRow) -> None:
        """Removes a dropped collection's folder; see `Shards.destroy`."""
        path = self.path(collection)
        try:
            # Out of the way first, so that others find the whole table or none.
            with suppress(FileNotFoundError):
                path.rename(path.with_name(f".{path.name}.removed-{uuid4().hex}"))
            for removed in path.parent.glob(f".{path.name}.removed-*"):
                _remove(removed)
        except OSError as error:
            raise _unavailable("remove", path, error) from error

    def _append(self, path: Path, batch: BatchId, data: pa.Table, interval: Interval | None) -> BatchStats:
        with self._tables.newest(path) as table:
            if table is None:
                raise FileNotFoundError("there is no table")
            known = {one.name for one in table.schema().fields}
            write_deltalake(
                table,
                data,
                mode="append",
                # A table from before has no columns for short numerics.
                schema_mode=None if known.issuperset(data.column_names) else "merge",
                commit_properties=_RETRIES,
                writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=128 * 1024),
            )
            return stats_on_disk(self._disk, path, up_to_date(path, table), batch, interval)

    def _delete(self, path: Path, batches: Collection[BatchId]) -> None:
        with self._tables.newest(path) as table:
            stored = [] if table is None else sorted(stored_files(table, batches))
            if table is not None and stored:
                listed = ", ".join(str(int(one)) for one in stored)
                table.delete(f"{BATCH} IN ({listed})", commit_properties=_RETRIES)

    def _incomplete(self, collection: CollectionRow, batches: Sequence[Batch], error: OSError) -> Exception:
        """Returns the error that says which batch lost a file under a reader, or that the folder cannot be read."""
        path = self.path(collection)
        for batch in batches:
            if not (path / f"{BATCH}={int(batch.id)}").is_dir() or f"{BATCH}={int(batch.id)}/" in str(error):
                return BatchIncomplete(collection.id, batch.id, batch.stats.rows, None)
        return _unavailable("read", path, error)


def _run_again(attempt: Callable[[], Result]) -> Result:
    """Runs a commit until it wins.

    `deltalake` takes an append that began before another batch's delete, and two deletes, for conflicts. No batch's
    rows ever depend on another's, and a commit that failed so has not happened, so it is right to run it again; what it
    wrote lies under its own batch id, uncommitted, and goes with the batch.
    """
    for _ in range(_CONFLICTS):
        try:
            return attempt()
        except CommitFailedError as error:
            if "concurrent" not in str(error):
                raise
    return attempt()


def _all_of(*conditions: Any) -> Any:
    """Returns the conjunction of the conditions that are not None; None if there are none."""
    return reduce(lambda left, right: right if left is None else left if right is None else left & right, conditions)


def _consolidate(frame: pa.Table, time: int, *, only_before: bool = False) -> pa.Table:
    """Sums diffs of equal `(data, time, error)` once times are `time`, or at least `time`; drops zeros."""
    times = frame.column(TIME)
    moved = pc.max_element_wise(times, pa.scalar(time, pa.int64())) if only_before else pa.array([time] * len(times))
    frame = frame.set_column(frame.schema.get_field_index(TIME), frame.schema.field(TIME), moved.cast(pa.int64()))
    keys: list[str] = [name for name in frame.schema.names if name != DIFF]
    # Group by bits, because Arrow's grouping is free to take 0.0 and -0.0 for one; but let all NaN be one.
    bits = frame
    nested: dict[str, list[Any]] = {}
    for position, field in enumerate(frame.schema):
        if pa.types.is_nested(field.type):  # which Arrow does not group by
            numbers, nested[field.name] = _numbered(frame.column(position).to_pylist())
            bits = bits.set_column(position, field.name, pa.array(numbers, pa.int64()))
        if pa.types.is_floating(field.type):
            column = frame.column(position)
            nan = pa.scalar(float("nan"), field.type)
            column = pc.if_else(pc.fill_null(pc.is_nan(column), False), nan, column)
            integer = pa.int32() if field.type.bit_width == 32 else pa.int64()
            views = [chunk.view(integer) for chunk in column.chunks]
            bits = bits.set_column(position, field.name, pa.chunked_array(views, integer))
    diffs = frame.column(DIFF)
    if _may_overflow(diffs):  # Arrow's sum of integers wraps; the cast of a decimal's back to one does not
        wide = diffs.cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 0))
        bits = bits.set_column(frame.schema.get_field_index(DIFF), DIFF, wide)
    grouped = bits.group_by(keys, use_threads=False).aggregate([(DIFF, "sum")])
    grouped = grouped.rename_columns([DIFF if name == f"{DIFF}_sum" else name for name in grouped.column_names])
    grouped = grouped.filter(pc.not_equal(grouped.column(DIFF), 0)).select(frame.schema.names)
    try:
        columns = [
            pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
            if pa.types.is_floating(field.type)
            else pa.array([nested[field.name][n] for n in column.to_pylist()], field.type)
            if field.name in nested
            else column.cast(field.type)
            for field, column in zip(frame.schema, grouped.columns, strict=True)
        ]
    except pa.ArrowInvalid as error:
        raise MultiplicityOverflow(
            "a row's multiplicity is out of range",
            detail=f"{error}.",
            hint="Delete some of its copies, a part at a time.",
        ) from error
    return pa.Table.from_arrays(columns, schema=frame.schema)


def _numbered(values: list[Any]) -> tuple[list[int], list[Any]]:
    """Returns a number for each value, equal where they have one text, and the value of each number."""
    numbers: dict[str, int] = {}
    kinds: list[Any] = []
    result: list[int] = []
    for value in values:
        text = repr(value)
        if text not in numbers:
            numbers[text] = len(kinds)
            kinds.append(value)
        result.append(numbers[text])
    return result, kinds


def _may_overflow(diffs: pa.ChunkedArray) -> bool:
    """Returns whether some of the diffs could sum to more than fits."""
    bounds = pc.min_max(diffs).as_py()
    return bool(len(diffs) * max(abs(bounds["min"] or 0), abs(bounds["max"] or 0)) >= 2**63)


def _names_batch(folder: Path) -> bool:
    return folder.name.partition("=")[2].isdigit()


def _remove(folder: Path) -> None:
    """Removes a folder with all that is in it; somebody else may do so at the same time."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        shutil.rmtree(folder)


def _unavailable(what: str, path: Path, error: Exception) -> ShardUnavailable:
    return ShardUnavailable(
        f'cannot {what} the shard at "{path}": {in_one_line(error)}',
        hint="Check the folder's permissions and free space, then try again.",
        may_have_taken_effect=False,
    )
