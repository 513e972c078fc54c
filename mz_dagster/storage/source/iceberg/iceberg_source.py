"""An Iceberg table as a source: the collection at a tick is the table at the snapshot that is bound to it.

An offset is

    {"snapshot": 7305…, "table": "<the table's id>", "names": {"a": "1", ...}, "files": 3, "bytes": 1234}

(`table_source` has what RESET adds to it). `names` are the numbers of the columns, by which files know them. A table
that nothing was written to yet has no snapshot: null.

Between two snapshots only the files are read in which they differ; of the first of all, each. Snapshots that were
expired before they were read make that an error, and so does another table in the place of this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from mz_dagster.catalog import Binding, Offset
from mz_dagster.errors import Error
from mz_dagster.scalars.types import Column
from mz_dagster.storage.iceberg_catalog import IcebergCatalog
from mz_dagster.storage.source.errors import ColumnsChanged, SourceUnreadable, TableReplaced, VersionsLost
from mz_dagster.storage.source.iceberg.data_files import TableFiles
from mz_dagster.storage.source.iceberg.deletes import Deletes, Left
from mz_dagster.storage.source.iceberg.live_files import LiveFile, LiveFiles, commits, is_rewrite, spans
from mz_dagster.storage.source.iceberg.opening import opened
from mz_dagster.storage.source.iceberg.table_schema import Fields, columns_of
from mz_dagster.storage.source.read_together import rows_of_files
from mz_dagster.storage.source.source import Gain, Ledger
from mz_dagster.storage.source.table_rows import ReadColumn, row_updates
from mz_dagster.storage.source.table_source import TableSource
from mz_dagster.storage.table_place import reason


@dataclass(frozen=True)
class IcebergSource(TableSource):
    """An Iceberg table, wherever its catalog says that it is.

    Attributes:
        catalog: What to ask for it.
        table: Its name, behind those of its namespaces.
        columns: The declared columns, in order; the table may have more.
        root: Where relative paths lead from.
        may_read: Raises if a path of this machine is not to be read.
        start_snapshot: The snapshot with which the source begins; None for the newest one.
        key: Of an upsert source: the columns that tell what a row replaces. Without it the table's rows are the
            collection's.
    """

    catalog: IcebergCatalog
    table: str
    columns: tuple[Column, ...]
    root: Path
    may_read: Callable[[str], object]
    start_snapshot: int | None = None
    key: tuple[str, ...] = ()

    kind: ClassVar[str] = "ICEBERG"
    version: ClassVar[str] = "snapshot"

    @property
    def called(self) -> str:
        """Its name."""
        return self.table

    @property
    def places(self) -> tuple[Path, ...]:
        """Nothing: the catalog has to be asked."""
        return ()

    @property
    def places_show_all(self) -> bool:
        """No."""
        return False

    @property
    def _named(self) -> str:
        return f'Iceberg table "{self.table}"'

    def declaration(self) -> str:
        """Returns all columns of the table as CREATE SOURCE declares them; raises as `gain`."""
        return columns_of(self._named, self._opened().schema()).declaration()

    # ---- what is there

    def gain(self, ledger: Ledger) -> Gain:
        """Returns the newest snapshot if it is not bound yet, of which all files are there that will be read for it.

        Raises:
            SourceUnreadable: There is no such table, or it cannot be read.
            UnknownFeature: It has what is not read here.
            ColumnsChanged: It does not have the source's columns.
            TableReplaced: It is another one than before.
            VersionsLost: What was not read yet is gone.
        """
        last = ledger.last
        if last is None or last.offset is None:
            ledger.check()
            return self.begun()
        table = self._opened()
        self._check_same(table, last.offset)
        names = self._names(table)
        if names != last.offset["names"]:
            raise ColumnsChanged(
                f"{self._named} has other columns under the names of those that were read",
                detail="They were renamed, or dropped and added again.",
                hint="ALTER SOURCE ... RESET reads the difference between what it holds and the newest snapshot.",
            )
        newest = table.current_snapshot()
        if newest is None or newest.snapshot_id == last.offset["snapshot"]:
            return Gain()
        ledger.check()
        before = self._snapshot(table, last.offset["snapshot"])
        with self._named_if_broken(newest):
            files = self._files(table)
            paths = {one.path for net in self._differences(files, before, newest) for one in net}
            self._check_there(files, newest, paths)
        return self._gain(table, newest, names, [files.data[path] for path in paths])

    def begun(self) -> Gain:
        """Returns the snapshot with which the source begins, to be read whole; raises as `gain`."""
        table = self._opened()
        return self._whole(table, self._snapshot(table, self.start_snapshot or _newest(table)))

    def newest(self) -> Gain:
        """Returns the newest snapshot, to be read whole; raises as `gain`."""
        table = self._opened()
        return self._whole(table, self._snapshot(table, _newest(table)))

    def _whole(self, table: Table, snapshot: Snapshot | None) -> Gain:
        names = self._names(table)
        with self._named_if_broken(snapshot):
            files = self._files(table)
            found = files.difference(None, snapshot)
        return self._gain(table, snapshot, names, [files.data[one.path] for one in found])

    def _gain(
        self, table: Table, snapshot: Snapshot | None, names: Mapping[str, str], files: Sequence[DataFile]
    ) -> Gain:
        offset = {
            "snapshot": None if snapshot is None else snapshot.snapshot_id,
            "table": str(table.metadata.table_uuid),
            "names": dict(names),
            "files": len(files),
            "bytes": sum(one.file_size_in_bytes for one in files),
        }
        return Gain(offset=offset, count=len(files))

    def _names(self, table: Table) -> dict[str, str]:
        """Returns the numbers of the columns, by their names."""
        found = columns_of(self._named, table.schema()).names_of(self.columns)
        return {column.name: name for column, name in zip(self.columns, found, strict=True)}

    def _check_same(self, table: Table, offset: Offset) -> None:
        """Raises if the table is not the one of an offset.

        Raises:
            TableReplaced: It is another one.
        """
        if str(table.metadata.table_uuid) != offset["table"]:
            raise TableReplaced(self._named, f"Its id is {table.metadata.table_uuid}.")

    def _snapshot(self, table: Table, id: object) -> Snapshot | None:
        """Returns a snapshot of a table, None for that of one that nothing was written to.

        Raises:
            VersionsLost: The table does not know it.
        """
        found = None if id is None else table.snapshot_by_id(cast(int, id))
        if found is None and id is not None:
            raise self._lost(id, "The table does not know it: it was expired.")
        return found

    def _check_there(self, files: LiveFiles, snapshot: Snapshot, paths: Collection[str]) -> None:
        """Raises if one of some files is not there.

        Raises:
            VersionsLost: It is gone.
        """
        for path in sorted(paths):
            if not files.io.new_input(path).exists():
                raise self._lost(snapshot.snapshot_id, f'File "{path}" is gone.')

    # ---- what it says

    def _groups(
        self, before: Binding | None, binding: Binding, columns: Sequence[Column]
    ) -> Iterator[Iterator[pa.Table]]:
        """Yields the updates that lead from one binding to the next; see `TableSource`."""
        assert binding.offset is not None
        table = self._opened()
        self._check_same(table, binding.offset)
        snapshot = self._snapshot(table, binding.offset["snapshot"])
        read = self._read_columns(cast(Mapping[str, str], binding.offset["names"]), columns)
        files = self._files(table)
        with self._named_if_broken(snapshot):
            if before is None:
                found: Sequence[Mapping[LiveFile, int]] = [files.difference(None, snapshot)]
            else:
                assert before.offset is not None
                found = self._differences(files, self._snapshot(table, before.offset["snapshot"]), snapshot)
        for net in found:
            yield self._updates(files, snapshot, net, read, binding.tick)

    def _differences(
        self, files: LiveFiles, before: Snapshot | None, after: Snapshot | None
    ) -> Sequence[Mapping[LiveFile, int]]:
        """Returns the files whose rows are those of one snapshot less those of another; with a key, commit by commit.

        Raises:
            VersionsLost: With a key, if it is not known which commits lead there.
        """
        if after is None:
            return [files.difference(before, None)]
        if not self.key:
            net: dict[LiveFile, int] = defaultdict(int)
            for start, end in spans(files.metadata, before, after):
                for file, count in files.difference(start, end).items():
                    net[file] += count
            return [{file: count for file, count in net.items() if count}]
        way = commits(files.metadata, before, after)
        if way is None:
            raise self._lost(
                after.snapshot_id,
                "What was bound before does not lead to it, as far as the table knows: snapshots between them were "
                "expired, or the table was rolled back. Which row of a key is the newest cannot be told.",
            )
        return [
            files.difference(start, end) for start, end in zip((before, *way), way, strict=False) if not is_rewrite(end)
        ]

    def _updates(
        self,
        files: LiveFiles,
        snapshot: Snapshot | None,
        net: Mapping[LiveFile, int],
        columns: Sequence[ReadColumn],
        tick: int,
    ) -> Iterator[pa.Table]:
        """Yields the updates that the rows of some files are; with no columns it only looks whether they are there."""
        if not columns:
            if snapshot is not None:
                self._check_there(files, snapshot, {one.path for one in net})
            return
        reader = TableFiles(files.fields, files.metadata, files.io)
        deletes = Deletes(reader, files.deletes)
        by_path: dict[str, list[LiveFile]] = defaultdict(list)
        for one in net:
            by_path[one.path].append(one)
        readers = [
            partial(self._rows, reader, deletes, files.data[path], {one: net[one] for one in some}, columns)
            for path, some in by_path.items()
        ]
        with self._named_if_broken(snapshot):
            for batch, diffs in rows_of_files(readers, come_and_go=min(net.values(), default=0) < 0):
                yield row_updates(batch, diffs, columns, {}, tick, self.key)

    def _rows(
        self,
        reader: TableFiles,
        deletes: Deletes,
        file: DataFile,
        net: Mapping[LiveFile, int],
        columns: Sequence[ReadColumn],
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Yields the rows of a data file with their diffs, by what deletes leave of it."""
        sides: dict[object, tuple[Left, int]] = {}
        for one, count in net.items():
            left = deletes.left(one)
            sides[left.same_as] = (left, sides.get(left.same_as, (left, 0))[1] + count)
        if differing := [one for one in sides.values() if one[1]]:
            yield from file_rows(reader, file, differing, [one.physical for one in columns])

    def _files(self, table: Table) -> LiveFiles:
        return LiveFiles(self._named, table.metadata, Fields(self._named, table.metadata), table.io)

    def _opened(self) -> Table:
        return opened(self.catalog, self.table, self.root, self.may_read)

    @contextmanager
    def _named_if_broken(self, snapshot: Snapshot | None) -> Iterator[None]:
        """Names the snapshot if what it has cannot be read in the block.

        Raises:
            VersionsLost: A file is gone.
            SourceUnreadable: One is damaged, or cannot be reached.
        """
        try:
            yield
        except Error:
            raise
        except FileNotFoundError as error:
            raise self._lost(None if snapshot is None else snapshot.snapshot_id, f"{reason(error)}.") from error
        except Exception as error:  # whatever Avro's reader, pyiceberg and stores raise over what they got
            raise SourceUnreadable(
                f"cannot read {self._named}: {reason(error) or type(error).__name__}",
                hint="Have whoever writes the table mend its files, or make them readable; the next poll tries again.",
            ) from error

    def _lost(self, snapshot: object, detail: str) -> VersionsLost:
        return VersionsLost(f"snapshot {snapshot} of {self._named}", detail)


def file_rows(
    files: TableFiles, file: DataFile, sides: Sequence[tuple[Left, int]], names: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
    """Yields a data file's rows with their diffs, in portions, without those of diff 0.

    Args:
        files: What reads it.
        file: Which.
        sides: What deletes leave of it, with how often that counts.
        names: The columns to read, by their numbers.

    Raises:
        FileNotFoundError: It is gone.
        SourceUnreadable: It is damaged.
    """
    ids = set(map(int, names)).union(*(left.ids for left, _ in sides))
    first = 0
    for batch in files.portions(file, {id: files.type_of(id) for id in sorted(ids)}):
        diffs: NDArray[np.int64] = np.zeros(batch.num_rows, np.int64)
        for left, count in sides:
            diffs += count * left.mask(batch, first).astype(np.int64)
        first += batch.num_rows
        if diffs.any():
            yield batch.select(names).filter(pa.array(diffs != 0)), diffs[diffs != 0]


def _newest(table: Table) -> int | None:
    return table.metadata.current_snapshot_id
