"""What the step of one collection reads: whole histories, or only the files that hold the keys it touches.

A lookup is worth pruning where much can be left out: then the distinct bucket numbers of its keys are collected, a
thousand small integers at most, by one small job, and only those buckets are read. Otherwise everything is read
and no job runs. Which of the two it is, is known from the catalog and the shard's log.

Counts the rows of all files that it hands out, which is what the step reads at most.

The keys come from updates whose computation may be costly, and are needed twice, for their buckets and for
the lookup itself: `shared` keeps such a frame on the server until the step of the collection is over.

Not for use by several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from mz_dagster.catalog import Batch, CollectionRow
from mz_dagster.compute.common_lookups import CommonLookups, Path
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import ReadCollection
from mz_dagster.plan.scalar import Scalar
from mz_dagster.storage.clustering import Touched, may_hold, moduli
from mz_dagster.storage.shards import Shards, StoredFile
from mz_dagster.storage.spark.hashing import hash_modulo

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Up to so many rows are read by one task. What groups or joins them then needs no shuffle, each of which costs more.
ONE_TASK_ROWS = 50_000
#: A lookup is pruned if touching a single key would leave out more rows than this.
WORTH_ROWS = 200_000


class StepReads:
    """Reads collections for the step of one; use it as a context manager, for as long as its frames are used.

    Args:
        shards: Where they are.
        rows: The collections by their ids.
        listed: Returns the batches of a collection that may hold updates with `lower <= time < upper`, leased.
        is_grouped: Whether what is read will be grouped or joined, so that it should be together if it is little.
        common: Lookups that others of the step make, too.

    Attributes:
        rows_read: How many rows the files have that were handed out so far.
    """

    def __init__(
        self,
        shards: Shards[DataFrame],
        rows: Mapping[GlobalId, CollectionRow],
        listed: Callable[[GlobalId, int | None, int], Sequence[Batch]],
        *,
        is_grouped: bool = True,
        common: CommonLookups | None = None,
    ) -> None:
        self._is_grouped = is_grouped
        self._common = common
        self._shards = shards
        self._rows = rows
        self._listed = listed
        self._files: dict[tuple[tuple[Batch, ...], tuple[Scalar, ...]], tuple[StoredFile, ...]] = {}
        self._shared: list[DataFrame] = []
        self.rows_read = 0

    def __enter__(self) -> StepReads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._shared:
            with suppress(Exception):  # it goes with its session at the latest; the step has its own errors to tell
                frame.unpersist()

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

    def skips_all(self, read: ReadCollection, lower: int, upper: int) -> bool:
        """Returns whether storage tells that no update with `lower <= time < upper` passes what is asked; no job."""
        batches = self._listed(read.id, lower, upper)
        return bool(read.where) and not self._stored(self._rows[read.id], batches, read.where)

    def span(self, id: GlobalId, upper: int) -> tuple[int, int] | None:
        """Returns bounds of the times of a collection's updates before `upper`, None if there are none; no job."""
        times = [file.times for file in self._stored(self._rows[id], self._listed(id, None, upper)) if file.times]
        if not times:
            return None
        return min(first for first, _ in times), min(max(last for _, last in times), upper - 1)

    def prunes(self, id: GlobalId, upper: int, positions: Sequence[int]) -> bool:
        """Returns whether a lookup by the columns at `positions`, before `upper`, is worth pruning; no job."""
        return bool(self._prunable(id, upper, positions))

    def lookup(
        self,
        id: GlobalId,
        upper: int,
        keys: DataFrame,
        by_position: Mapping[int, Column],
        where: Sequence[Scalar] = (),
    ) -> DataFrame:
        """Returns the updates of a collection before `upper`, of which those of other keys may be missing.

        Runs a job over `keys` if that is worth it.

        Args:
            id: The collection.
            upper: The first time that is too late.
            keys: A frame, a row for each key, which may repeat.
            by_position: For positions of the collection's columns: the column of `keys` that they must equal, NULL
                being equal to NULL.
            where: As in `read`.
        """
        wanted = self._prunable(id, upper, tuple(by_position))
        if not wanted:
            return self.read(id, None, upper, where)
        row, batches = self._rows[id], self._listed(id, None, upper)
        touched = [
            Touched(key, modulus, self._hashes(row, keys, [by_position[position] for position in key], key, modulus))
            for key, modulus in wanted.items()
        ]
        rows = sum(one.rows for one in self._stored(row, batches, where) if may_hold(one.bucket, touched))
        return self._counted(self._shards.read(row, batches, upper=upper, touched=touched, where=where), rows)

    def common(self, path: Path, lower: int, upper: int) -> DataFrame | None:
        """Returns an operator's frame of all that a lookup by what changed in `[lower, upper)` can find.

        None unless others look the same up. May run a job.
        """
        return None if self._common is None else self._common.of(path, lower, upper, self)

    def shared(self, frame: DataFrame) -> DataFrame:
        """Returns the frame, computed only once however often it is used, until the end of the block."""
        kept = frame.persist()
        self._shared.append(kept)
        return kept

    def _counted(self, frame: DataFrame, rows: int) -> DataFrame:
        self.rows_read += rows
        return frame.coalesce(1) if self._is_grouped and rows <= ONE_TASK_ROWS else frame

    def _prunable(self, id: GlobalId, upper: int, positions: Sequence[int]) -> dict[tuple[int, ...], int]:
        """Returns the layouts by which a lookup is worth pruning, with the modulus of each; none if it is not."""
        if self.rows(id, upper) <= WORTH_ROWS:
            return {}
        batches = self._listed(id, None, upper)
        files = self._stored(self._rows[id], batches)
        found = moduli(files, positions)
        # Of a layout of n buckets, one key touches one.
        saved = sum(
            file.rows - file.rows // file.bucket.count
            for file in files
            if file.bucket is not None and file.bucket.key in found
        )
        return found if saved > WORTH_ROWS else {}

    def _stored(
        self, row: CollectionRow, batches: Sequence[Batch], where: Sequence[Scalar] = ()
    ) -> tuple[StoredFile, ...]:
        asked = tuple(batches), tuple(where)
        if asked not in self._files:
            self._files[asked] = self._shards.files(row, batches, where=where)
        return self._files[asked]

    def _hashes(
        self, row: CollectionRow, keys: DataFrame, columns: Sequence[Column], key: tuple[int, ...], modulus: int
    ) -> frozenset[int]:
        number = hash_modulo(columns, [row.columns[position].type for position in key], modulus)
        return frozenset(int(one[0]) for one in keys.select(number.alias("mz_hash")).distinct().collect())
