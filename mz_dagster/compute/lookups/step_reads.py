"""What the step of one collection reads: whole histories, or only the files that hold the keys it touches.

A lookup in much begins with its keys (`lookup_keys`): they are fetched, by one small job, and tell the files and pages
to read, of which only the rows of those keys go on. In little, everything is read and no job runs. Which of the two it
is, is known from the catalog.

Counts the rows of all files that it hands out, which is what the step reads at most.

The keys come from updates whose computation may be costly, and are needed twice, to be fetched and for
the lookup itself: `shared` keeps such a frame on the server until the step of the collection is over.

Not for use by several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.budget import budget
from mz_dagster.catalog import Batch, BatchFile, CollectionRow
from mz_dagster.compute.algebra.frame import named
from mz_dagster.compute.lookups.common_lookups import CommonLookups, LookupPath
from mz_dagster.compute.lookups.lookup_keys import LookupKeys, fetched
from mz_dagster.compute.lookups.shared_reads import SharedReads
from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ReadCollection
from mz_dagster.progress import advance
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Column
from mz_dagster.storage.arrow_schema import update_schema
from mz_dagster.storage.clustering import TouchedHashes, may_hold
from mz_dagster.storage.kept_tables import KeptTable
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.lookup import ComputedKey
from mz_dagster.storage.shards import Shards, StoredFile

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

#: Of what is kept of a collection, this part of its updates may cancel, and `Budget.loose_rows`; then it is compacted.
_LOOSE_PART = 8


class StepReads:
    """Reads collections for the step of one; use it as a context manager, for as long as its frames are used.

    Args:
        spark: Returns the session where their frames live, and where they are; called when it is needed.
        rows: The collections by their ids.
        listed: Returns the batches of a collection that may hold updates with `lower <= time < upper`, leased.
        is_grouped: Whether what is read will be grouped or joined, so that it should be together if it is little.
        common: Lookups by what changed, which others of the step may make, too.
        local: Reads in this process; None if nothing is to be read here.
        shared: What others of the step have found.
        resume: Called when this process goes on after what Spark may have had a part in.

    Attributes:
        rows_read: How many rows the files have that were handed out so far.
    """

    def __init__(
        self,
        spark: Callable[[], tuple[SparkSession, Shards[DataFrame]]],
        rows: Mapping[GlobalId, CollectionRow],
        listed: Callable[[GlobalId, int | None, int], Sequence[Batch]],
        *,
        is_grouped: bool = True,
        common: CommonLookups | None = None,
        local: LocalShards | None = None,
        shared: SharedReads | None = None,
        resume: Callable[[], None] = lambda: None,
    ) -> None:
        self._resume = resume
        self._found = SharedReads() if shared is None else shared
        self._is_grouped = is_grouped
        self._common = common
        self._local = local
        self._spark = spark
        self._rows = rows
        self._listed = listed
        self._files: dict[object, tuple[StoredFile, ...]] = {}
        self._shared: dict[str, DataFrame] = {}
        self.rows_read = 0

    def __enter__(self) -> StepReads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, frame in self._shared.items():
            with suppress(Exception):  # it goes with its session at the latest; the step has its own errors to tell
                frame.unpersist()
                self._session.catalog.dropTempView(name)

    def read(self, id: GlobalId, lower: int | None, upper: int, where: Sequence[Scalar] = ()) -> DataFrame:
        """Returns the updates of a collection with `lower <= time < upper`, under its columns' own names.

        Those that fail the predicates `where`, over the collection's columns, may be missing.
        """
        row, batches = self._rows[id], self._listed(id, lower, upper)
        read = self._stored(row, batches, where) if where else [batch.stats for batch in batches]
        rows = sum(one.rows for one in read)
        return self._counted(self._shards.read(row, batches, lower=lower, upper=upper, where=where), rows)

    def rows(self, id: GlobalId, upper: int) -> int:
        """Returns how many updates a collection's batches hold that may have some before `upper`; no job."""
        return sum(batch.stats.rows for batch in self._listed(id, None, upper))

    def may_have_errors(self, id: GlobalId, lower: int | None, upper: int) -> bool:
        """Returns whether a collection may have updates of the error part with `lower <= time < upper`; no job."""
        return any(batch.stats.errors for batch in self._listed(id, lower, upper))

    def skips_all(self, read: ReadCollection, lower: int, upper: int) -> bool:
        """Returns whether storage tells that no update with `lower <= time < upper` passes what is asked; no job."""
        batches = self._listed(read.id, lower, upper)
        return bool(read.where) and not self._stored(self._rows[read.id], batches, read.where, here=True)

    def span(self, id: GlobalId, upper: int) -> tuple[int, int] | None:
        """Returns bounds of the times of a collection's updates before `upper`, None if there are none; no job."""
        batches = self._listed(id, None, upper)

        def find() -> tuple[int, int] | None:
            times = [file.times for file in self._stored(self._rows[id], batches, here=True) if file.times]
            if not times:
                return None
            return min(first for first, _ in times), min(max(last for _, last in times), upper - 1)

        return self._found.of(("span", upper), batches, find)

    def prunes(self, id: GlobalId, upper: int, positions: Sequence[int]) -> bool:
        """Returns whether a lookup by these columns, before `upper`, should begin with its keys; no job."""
        return self.rows(id, upper) > budget().pruned_rows and bool(positions)

    def lookup(
        self,
        id: GlobalId,
        upper: int,
        keys: DataFrame,
        by_position: Mapping[int, SparkColumn],
        where: Sequence[Scalar] = (),
    ) -> DataFrame | None:
        """Returns the updates of some keys of a collection before `upper`, perhaps with others; runs a job over `keys`.

        Of the error part it may have any or none.

        Args:
            id: The collection.
            upper: The first time that is too late.
            keys: A frame, a row for each key, which may repeat.
            by_position: For positions of the collection's columns: the column of `keys` that they must equal, NULL
                being equal to NULL.
            where: As in `read`.

        Returns:
            None if there are none or too many to look at: then all that there is has to be read.
        """
        columns = self._key_columns(id, by_position)
        if not columns:
            return None
        own = [by_position[position].alias(f"k{i}") for i, position in enumerate(columns)]
        known = fetched(keys.select(*own), list(columns.values()))
        found = None if known is None else LookupKeys.of(columns, [known])
        return self.find(id, upper, found, where) if found is not None and found.are_few else None

    def find(self, id: GlobalId, upper: int, keys: LookupKeys, where: Sequence[Scalar] = ()) -> DataFrame:
        """Returns the updates of few keys of a collection before `upper`; no job. Of errors it has any or none."""
        row, batches = self._rows[id], self._listed(id, None, upper)
        hashes, chosen = self._chosen(row, batches, keys, where)
        frame = self._shards.read(row, batches, upper=upper, touched=hashes, where=where)
        if (within := keys.within(chosen)) is not None:
            frame = frame.where(within)
        frame = self._counted(frame, sum(one.rows for one in chosen))
        return keys.matching(self._session, frame, [one.name for one in keys.columns.values()])

    def common(self, path: LookupPath, lower: int, upper: int) -> DataFrame | None:
        """Returns an operator's frame of all that a lookup by what changed in `[lower, upper)` can find.

        None if the lookup is not one to be made so (`CommonLookups.of`). May run a job.
        """
        return None if self._common is None else self._common.of(path, lower, upper, self)

    def changed_keys(self, id: GlobalId, positions: Sequence[int], lower: int, upper: int) -> pa.Table | None:
        """Returns columns of a collection's updates with `lower <= time < upper`; no job. Rows may repeat.

        None if the updates are many.
        """
        few = self.new_rows(id, lower, upper) <= budget().one_task_rows
        if self._common is None or not few:
            return None
        return self._common.keys_of(id, tuple(positions), lower, upper)

    def changes_by_itself(self, id: GlobalId, upper: int) -> bool:
        """Returns whether a temporal filter's state may change before `upper` without a change of its input; no job."""
        return self._rows[id].is_due(upper)

    def new_rows(self, id: GlobalId, lower: int, upper: int) -> int:
        """Returns how many updates with `lower <= time < upper` a collection has at most; no job."""
        return sum(batch.stats.rows for batch in self._listed(id, lower, upper))

    def read_table(
        self,
        id: GlobalId,
        lower: int | None,
        upper: int,
        used: Collection[int],
        where: Sequence[Scalar] = (),
        condition: pc.Expression | None = None,
        over: Collection[Column] | None = None,
    ) -> pa.Table:
        """Returns what `read` does, read in this process; columns whose positions are not among `used` are NULL.

        Of the data part only rows for which a `condition` is true, if there is one; it is over these columns as they
        are stored.
        """
        row, batches = self._rows[id], self._listed(id, lower, upper)
        self._count(sum(batch.stats.rows for batch in batches))
        if lower is not None and condition is None and batches and all(batch.stats.inlined for batch in batches):
            # It is in memory, and what is not used of it costs nothing.
            whole = range(len(row.columns))
            return self._found.of(
                (lower, upper), batches, lambda: stored_table(self._here, row, batches, lower, upper, whole)
            )
        return stored_table(self._here, row, batches, lower, upper, used, where, condition, over)

    def error_table(self, id: GlobalId, upper: int) -> pa.Table:
        """Returns the error part of a collection's updates before `upper`, read in this process."""
        found = self._here.errors(self._rows[id], self._listed(id, None, upper), upper=upper, columns=None)
        self._count(len(found))
        return found

    def kept_table(
        self,
        key: Hashable,
        id: GlobalId,
        lower: int,
        upper: int,
        make: Callable[[int | None], pa.Table],
        compacted: Callable[[pa.Table, int], pa.Table],
    ) -> pa.Table:
        """Returns what is made of all updates of a collection before `upper`, kept from one step to the next.

        What came since is added. Some updates before `lower` may cancel.

        Args:
            key: What names it, other than which updates there are.
            id: The collection.
            lower: Where the step's interval begins.
            upper: Where it ends.
            make: Returns what is made of the updates from a time on, or of all, which it reads by `read_table`.
            compacted: Returns updates with equal ones summed where they are at most at a time.
        """
        row, batches = self._rows[id], self._listed(id, None, upper)
        files, hashes = self._found.of(("files", upper), batches, lambda: _listed_files(batches, upper))
        if not hashes:
            return compacted(make(None), lower - 1)
        key = key, row.version  # with other columns the same files are other rows
        kept = self._here.kept.find(key, hashes)
        new = files if kept is None else files[len(kept.files) :]
        if kept is None or kept.as_of >= lower or any(file.times and file.times[0] < kept.upper for file in new):
            found, as_of, loose = compacted(make(None), lower - 1), lower - 1, self.new_rows(id, lower, upper)
        else:
            stored = partial(self._stored, row, batches, here=True)
            self._found.of("checked", batches, lambda: self._here.check_files(row, batches, stored()))
            self._count(self.rows(id, upper))
            if not new:
                return kept.table
            found, as_of, loose, more = kept.table, kept.as_of, kept.loose, make(kept.upper)
            if more.num_rows:
                found, loose = pa.concat_tables([found, more]).combine_chunks(), loose + more.num_rows
            if loose > budget().loose_rows + found.num_rows // _LOOSE_PART:
                found, as_of, loose = compacted(found, lower - 1), lower - 1, more.num_rows
        self._here.kept.keep(key, KeptTable(hashes, found, as_of, upper, loose))
        return found

    def find_table(
        self,
        id: GlobalId,
        upper: int,
        keys: LookupKeys,
        used: Collection[int],
        where: Sequence[Scalar] = (),
        closer: Callable[[], ComputedKey | None] | None = None,
    ) -> pa.Table | None:
        """Returns what `find` does, as `read_table`; None if the files that may hold the keys have too much.

        That is more cells to decode than `Budget.decoded_cells`. What `closer` returns finds fewer rows than the values
        of one column that are integers, if there is such a column, and perhaps some without the keys.
        """
        row, batches = self._rows[id], self._listed(id, None, upper)
        _, chosen = self._chosen(row, batches, keys, where, here=True)
        rows = sum(one.rows for one in chosen)
        names = [column.name for position, column in enumerate(row.columns) if position in used]
        most = budget().decoded_cells
        if rows * len(names) > most and self._here.is_much_to_decode(row, chosen, names, most):
            return None
        condition = keys.condition(row.columns)
        over = list(keys.columns.values())
        values = keys.values
        key = values._replace(closer=closer) if values is not None else None if closer is None else closer()
        found = self._here.read_files(
            row, batches, chosen, upper=upper, columns=names, condition=condition, over=over, key=key
        )
        self._count(rows)
        return _widened(found, row)

    def find_computed(
        self, id: GlobalId, upper: int, key: ComputedKey, used: Collection[int], where: Sequence[Scalar] = ()
    ) -> pa.Table | None:
        """Returns the updates of the rows that have a computed key, and perhaps others, as `find_table` does."""
        row, batches = self._rows[id], self._listed(id, None, upper)
        files = self._stored(row, batches, where, here=True)
        names = [column.name for position, column in enumerate(row.columns) if position in used]
        most = budget().decoded_cells
        if sum(one.rows for one in files) * len(names) > most and self._here.is_much_to_decode(row, files, names, most):
            return None
        found = self._here.read_files(row, batches, files, upper=upper, columns=names, key=key)
        self._count(len(found))
        return _widened(found, row)

    def common_table(self, path: LookupPath, lower: int, upper: int, asked: int) -> pa.Table | None:
        """Returns what `common` does, in this process, for a join of so many keys; see `CommonLookups.table`."""
        if self._common is None:
            return None
        found = self._common.table(path, lower, upper, self, budget().common_rows, asked)
        self._resume()
        return found

    @property
    def _session(self) -> SparkSession:
        return self._spark()[0]

    @property
    def _shards(self) -> Shards[DataFrame]:
        return self._spark()[1]

    @property
    def _here(self) -> LocalShards:
        if self._local is None:
            raise InternalError("a step reads here what is to be read by Spark")
        return self._local

    def shared(self, frame: DataFrame) -> DataFrame:
        """Returns the frame, computed only once however often it is used, until the end of the block.

        It is under a name, so that it is analyzed only once, too, and not in each query that it is a part of.
        """
        name = named(frame)
        self._shared[name] = self._session.table(name)
        return self._shared[name].persist()

    def _count(self, rows: int) -> None:
        self.rows_read += rows
        advance(rows, "rows")

    def _counted(self, frame: DataFrame, rows: int) -> DataFrame:
        self.rows_read += rows
        return frame.coalesce(1) if self._is_grouped and rows <= budget().one_task_rows else frame

    def _key_columns(self, id: GlobalId, positions: Iterable[int]) -> dict[int, Column]:
        """Returns a collection's columns at `positions`."""
        columns = self._rows[id].columns
        return {position: columns[position] for position in sorted(positions)}

    def _chosen(
        self,
        row: CollectionRow,
        batches: Sequence[Batch],
        keys: LookupKeys,
        where: Sequence[Scalar],
        *,
        here: bool = False,
    ) -> tuple[list[TouchedHashes], list[StoredFile]]:
        """Returns the hashes that keys have, and the files of the batches that may hold them."""
        files = self._stored(row, batches, where, tuple(keys.columns.values()), here=here)
        hashes = keys.hashes_in(files)
        return hashes, [one for one in files if may_hold(one.bucket, hashes)]

    def _stored(
        self,
        row: CollectionRow,
        batches: Sequence[Batch],
        where: Sequence[Scalar] = (),
        bounds: tuple[Column, ...] = (),
        *,
        here: bool = False,
    ) -> tuple[StoredFile, ...]:
        """Returns files of the batches; that they are there is found out now, or, if they are read `here`, then."""
        is_here = here and self._local is not None
        asked = row.id, tuple([batch.id for batch in batches]), tuple(where), bounds, is_here
        if asked not in self._files:
            shards: Shards[Any] = self._here if is_here else self._shards
            self._files[asked] = shards.files(row, batches, where=where, bounds=bounds)
        return self._files[asked]


def _listed_files(batches: Sequence[Batch], upper: int) -> tuple[list[BatchFile], tuple[str, ...]]:
    """Returns the files of batches, and their hashes; none of these if it is not known that all updates are before."""
    files = [file for batch in batches for file in batch.stats.file_list or ()]
    last = max((file.times[1] for file in files if file.times), default=upper)
    is_all_known = last < upper and all(batch.stats.file_list is not None for batch in batches)
    return files, tuple(file.hash for file in files) if is_all_known else ()


def stored_table(
    local: LocalShards,
    row: CollectionRow,
    batches: Sequence[Batch],
    lower: int | None,
    upper: int,
    used: Collection[int],
    where: Sequence[Scalar] = (),
    condition: pc.Expression | None = None,
    over: Collection[Column] | None = None,
) -> pa.Table:
    """Returns a collection's updates with `lower <= time < upper`; columns whose positions are not `used` are NULL."""
    names = [column.name for position, column in enumerate(row.columns) if position in used]
    return _widened(
        local.read(row, batches, lower=lower, upper=upper, columns=names, where=where, condition=condition, over=over),
        row,
    )


def stored_parts(
    local: LocalShards,
    row: CollectionRow,
    batches: Sequence[Batch],
    upper: int,
    used: Collection[int],
    where: Sequence[Scalar],
    rows: int | None,
) -> Iterator[pa.Table]:
    """Yields what `stored_table` returns up to a time, as much as is in files of so many rows at a time; None: all."""
    names = [column.name for position, column in enumerate(row.columns) if position in used]
    for files in _together(local.files(row, batches, where=where), rows):
        yield _widened(local.read_files(row, batches, files, upper=upper, columns=names), row)


def _together(files: Sequence[StoredFile], rows: int | None) -> Iterator[list[StoredFile]]:
    """Yields files, as many as have no more rows than so many, or one; at least once, and all at once for None."""
    held, size = list[StoredFile](), 0
    for one in files:
        if held and rows is not None and size + one.rows > rows:
            yield held
            held, size = [], 0
        held.append(one)
        size += one.rows
    yield held


def _widened(table: pa.Table, row: CollectionRow) -> pa.Table:
    """Returns updates with all columns of a collection, those that they lack being NULL."""
    schema = update_schema(row.columns)
    present = set(table.column_names)
    # One column of NULLs stands for all of its type: an unused one would take as much memory as a used one.
    nulls: dict[pa.DataType, pa.Array] = {}
    columns = []
    for field in schema:
        if field.name in present:
            columns.append(table.column(field.name))
            continue
        if field.type not in nulls:
            nulls[field.type] = pa.nulls(len(table), field.type)
        columns.append(nulls[field.type])
    return pa.Table.from_arrays(columns, schema=schema)
