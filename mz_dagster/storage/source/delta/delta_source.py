"""A Delta table as a source: the collection at a tick is the table at the version that is bound to it.

An offset is

    {"version": 7, "commit": "<SHA-256 of the commit>", "table": "<the table's id>", "names": {...},
     "files": 3, "bytes": 1234}

(`table_source` has what RESET adds to it). `names` are the columns' names in the files, which only a table that
maps its columns has others for.

Between two versions only what the commits between them change is read; of the first version of all, each file. Who
removes files that were not read yet (VACUUM, log cleanup) makes that an error, and so does another table in the place
of this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from numpy.typing import NDArray

from mz_dagster.catalog import Binding, Offset
from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.delta.commits import (
    ChangedFile,
    Commit,
    check_inside,
    commits,
    digest_of,
    net_files,
    newest_version,
    versions_lost,
)
from mz_dagster.storage.source.delta.data_files import changed_rows, file_rows
from mz_dagster.storage.source.delta.table_schema import DeltaColumns, check_protocol
from mz_dagster.storage.source.errors import ColumnsChanged, SourceUnreadable, TableReplaced, VersionsLost
from mz_dagster.storage.source.read_together import rows_of_files
from mz_dagster.storage.source.source import Gain, Ledger
from mz_dagster.storage.source.table_rows import ReadColumn, row_updates
from mz_dagster.storage.source.table_source import TableSource, version_of
from mz_dagster.storage.table_place import LOG, TablePlace, commit_path, reason

if TYPE_CHECKING:
    from deltalake.table import Metadata


#: The values of partition columns, by physical names, as the log spells them.
_Constants = tuple[tuple[str, str | None], ...]
#: Before the names of partition columns, in what delta-rs says of files.
_PARTITION = "partition."


@dataclass(frozen=True)
class DeltaSource(TableSource):
    """A Delta table, in a folder of this machine or in an object store.

    Attributes:
        table: Where it is.
        columns: The declared columns, in order; the table may have more.
        start_version: The version with which the source begins; None for the newest one.
        key: Of an upsert source: the columns that tell what a row replaces. Without it the table's rows are the
            collection's.
    """

    table: TablePlace
    columns: tuple[Column, ...]
    start_version: int | None = None
    key: tuple[str, ...] = ()

    kind: ClassVar[str] = "DELTA"
    version: ClassVar[str] = "version"

    @property
    def called(self) -> str:
        """Where it is."""
        return str(self.table)

    @property
    def places(self) -> tuple[Path, ...]:
        """What looks different after each commit."""
        return self.table.watched

    @property
    def places_show_all(self) -> bool:
        """Whether nothing is committed without them looking different."""
        return bool(self.table.watched)

    def declaration(self) -> str:
        """Returns all columns of the table as CREATE SOURCE declares them; raises as `gain`."""
        return _schema_of(self.table, self._opened(None)).declaration()

    # ---- what is there

    def gain(self, ledger: Ledger) -> Gain:
        """Returns the newest version if it is not bound yet, of which all files are there that will be read for it.

        Raises:
            SourceUnreadable: There is no such table, or it cannot be read.
            UnknownFeature: It asks of its readers what this one does not know.
            ColumnsChanged: It does not have the source's columns.
            TableReplaced: It is another one than before.
            VersionsLost: What was not read yet is gone.
        """
        last = ledger.last
        if last is None or last.offset is None:
            ledger.check()
            return self.begun()
        known = version_of(last, self.version)
        try:
            newest = newest_version(self.table, known)
            self._check_same(last.offset, newest)
            if newest == known:
                return Gain()
            ledger.check()
            return self._gone_on(last.offset, newest)
        except (OSError, DeltaError) as error:
            raise SourceUnreadable(
                f'cannot reach Delta table "{self.table}": {reason(error)}',
                hint="Nothing was bound; once the table can be reached, the next poll goes on.",
            ) from error

    def begun(self) -> Gain:
        """Returns the version with which the source begins, to be read whole; raises as `gain`."""
        return self._whole_version(self.start_version)

    def newest(self) -> Gain:
        """Returns the newest version, to be read whole; raises as `gain`."""
        return self._whole_version(None)

    def _whole_version(self, version: int | None) -> Gain:
        opened = self._opened(version)
        version = opened.version()
        schema = _schema_of(self.table, opened)
        names = self._names(schema)
        files = pa.table(opened.get_add_actions(flatten=True))
        for path in files.column("path").to_pylist():
            check_inside(self.table, unquote(path))
        size = int(pc.sum(files.column("size_bytes")).as_py() or 0)
        return self._gain(version, schema.id, names, files.num_rows, size)

    def _gone_on(self, last: Offset, newest: int) -> Gain:
        known = cast(int, last["version"])
        found = list(commits(self.table, known + 1, newest))
        id, names = str(last["table"]), cast(Mapping[str, str], last["names"])
        schema = next((one.schema for one in reversed(found) if one.schema is not None), None)
        if schema is not None:
            id = schema.id
            if self._names(schema) != names:
                raise ColumnsChanged(
                    f'Delta table "{self.table}" has other columns under the names of those that were read',
                    detail="Its files name them otherwise: they were renamed, or dropped and added again.",
                    hint="ALTER SOURCE ... RESET reads the difference between what it holds and the newest version.",
                )
        changed = [file for files in self._read_for(found) for file in files]
        for file in changed:
            if not self.table.exists(file.path):
                raise self._lost(known + 1, newest, file)
        return self._gain(newest, id, names, len(changed), sum(file.size for file in changed))

    def _read_for(self, found: Sequence[Commit]) -> Sequence[Mapping[ChangedFile, int]]:
        """Returns the files to be read for commits, with how often each counts; with a key, those of each commit."""
        return [net_files([one]) for one in found] if self.key else [net_files(found)]

    def _gain(self, version: int, id: str, names: Mapping[str, str], count: int, size: int) -> Gain:
        """Returns a version as it is bound, once its commit is on disk: what a tick binds, no power cut may change."""
        digest = digest_of(self.table, version)
        if digest is not None:
            try:
                self.table.sync(commit_path(version))
            except OSError as error:
                raise SourceUnreadable(
                    f'cannot force the log of Delta table "{self.table}" to disk: {reason(error)}',
                    hint="Nothing was bound. Check that its disk works.",
                ) from error
        offset = {
            "version": version,
            "commit": digest,
            "table": id,
            "names": dict(names),
            "files": count,
            "bytes": size,
        }
        return Gain(offset=offset, count=count)

    def _names(self, schema: DeltaColumns) -> dict[str, str]:
        """Returns by which names the files have those columns that they have under others."""
        names = zip(self.columns, schema.names_of(self.columns), strict=True)
        return {column.name: name for column, name in names if name != column.name}

    def _check_same(self, offset: Offset, newest: int) -> None:
        """Raises if a version that was bound is not that any more.

        Raises:
            TableReplaced: It is another table's.
            VersionsLost: Its commit and those that follow are gone.
        """
        version, digest = cast(int, offset["version"]), digest_of(self.table, cast(int, offset["version"]))
        if digest is not None:
            if offset["commit"] not in (None, digest):
                raise TableReplaced(f'Delta table "{self.table}"', f"Its version {version} is another one.")
            return
        if newest > version:
            return  # the log was cleaned up behind it
        opened = self._opened(None)
        there, id = opened.version(), _schema_of(self.table, opened).id
        if there < version or id != offset["table"]:
            raise TableReplaced(f'Delta table "{self.table}"', f"It is at version {there}, and its id is {id}.")
        if there > version:
            detail = f"Commits from {version + 1} on are not in the log any more."
            raise versions_lost(self.table, version + 1, there, detail)

    # ---- what it says

    def _groups(
        self, before: Binding | None, binding: Binding, columns: Sequence[Column]
    ) -> Iterator[Iterator[pa.Table]]:
        """Yields the updates that lead from one binding to the next; see `TableSource`."""
        assert binding.offset is not None
        version = version_of(binding, self.version)
        if digest_of(self.table, version) not in (None, binding.offset["commit"]):
            raise TableReplaced(f'Delta table "{self.table}"', f"Its version {version} is another one.")
        names = cast(Mapping[str, str], binding.offset["names"])
        read = self._read_columns(names, columns)
        if before is None:
            yield self._whole(version, str(binding.offset["table"]), binding.tick, read)
            return
        first = version_of(before, self.version) + 1
        vectors = _Vectors(self.table)
        for files in self._read_for(list(commits(self.table, first, version))):
            yield self._updates(files, (first, version), binding.tick, read, vectors)

    def _updates(
        self,
        files: Mapping[ChangedFile, int],
        versions: tuple[int, int],
        tick: int,
        columns: Sequence[ReadColumn],
        vectors: _Vectors,
    ) -> Iterator[pa.Table]:
        """Yields the updates that the rows of files make which commits of some versions add or remove.

        With no columns it only looks whether the files are there.
        """
        physical = {one.physical for one in columns}
        moved: dict[_Constants, dict[str, list[ChangedFile]]] = defaultdict(lambda: defaultdict(list))
        for file, count in files.items():
            check_inside(self.table, file.path)
            said = tuple((name, value) for name, value in file.partition if name in physical)
            if not columns:
                with self._named(self._lost(*versions, file), file.path):
                    if not self.table.exists(file.path):
                        raise FileNotFoundError
            elif file.holds_changes:
                names, constants = _names_and_constants(columns, said)
                with self._named(self._lost(*versions, file), file.path):
                    for batch, diffs in changed_rows(self.table, file.path, names, count):
                        yield row_updates(batch, diffs, columns, constants, tick, self.key)
            else:
                moved[said][file.path].append(file)
        for said, by_path in moved.items():
            names, constants = _names_and_constants(columns, said)
            readers = [
                partial(self._rows, {one: files[one] for one in some}, versions, names, vectors)
                for some in sorted(by_path.values(), key=lambda some: -some[0].size)
            ]
            signs = {files[one] > 0 for some in by_path.values() for one in some}
            for batch, diffs in rows_of_files(readers, come_and_go=len(signs) == 2):
                yield row_updates(batch, diffs, columns, constants, tick, self.key)

    def _rows(
        self, sides: Mapping[ChangedFile, int], versions: tuple[int, int], names: Sequence[str], vectors: _Vectors
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Yields a file's rows with their diffs, by the deletion vectors that it has on either side."""
        file = next(iter(sides))
        with self._named(self._lost(*versions, file), file.path):
            left = [(vectors.kept(one), count) for one, count in sides.items()]
            yield from file_rows(self.table, file.path, names, left)

    def _whole(self, version: int, id: str, tick: int, columns: Sequence[ReadColumn]) -> Iterator[pa.Table]:
        try:
            opened = self._opened(version)
        except SourceUnreadable as error:
            raise versions_lost(self.table, version, version, f"{error.message}.") from error
        if _schema_of(self.table, opened).id != id:
            raise TableReplaced(f'Delta table "{self.table}"', f"Its id at version {version} is another one.")
        has_vectors = "deletionVectors" in (opened.protocol().reader_features or ())
        try:
            kept = vectors_of(self.table, opened) if has_vectors and columns else {}
        except (OSError, DeltaError) as error:
            raise self._unreadable(LOG, error) from error
        files = pa.table(opened.get_add_actions(flatten=True))
        partitions = [one for one in columns if f"{_PARTITION}{one.declared.name}" in files.column_names]
        for row in range(files.num_rows):
            path = unquote(files.column("path")[row].as_py())
            check_inside(self.table, path)
            constants = {one.physical: files.column(f"{_PARTITION}{one.declared.name}")[row] for one in partitions}
            with self._named(versions_lost(self.table, version, version, f'File "{path}" is gone.'), path):
                if columns:
                    names = [one.physical for one in columns if one.physical not in constants]
                    for batch, diffs in file_rows(self.table, path, names, [(kept.get(self.table.key(path)), 1)]):
                        yield row_updates(batch, diffs, columns, constants, tick, self.key)
                elif not self.table.exists(path):
                    raise FileNotFoundError

    def _opened(self, version: int | None) -> DeltaTable:
        """Returns the table at a version, or the newest one.

        Raises:
            SourceUnreadable: There is none there, or delta-rs cannot read it.
            UnknownFeature: It asks of its readers what this one does not know.
        """
        try:
            opened = self.table.opened(version)
            protocol = opened.protocol()
        except (TableNotFoundError, FileNotFoundError) as error:
            raise SourceUnreadable(
                f'"{self.table}" is no Delta table',
                detail=f"{reason(error)}.",
                hint="Name in URI the folder that holds _delta_log; the source begins once the table is there.",
            ) from error
        except (DeltaError, OSError) as error:
            at = "" if version is None else f" at version {version}"
            raise SourceUnreadable(
                f'cannot read Delta table "{self.table}"{at}',
                detail=f"{reason(error)}.",
                hint="Nothing was bound; once the table can be read, the next poll goes on.",
            ) from error
        check_protocol(str(self.table), protocol.min_reader_version, protocol.reader_features or ())
        return opened

    @contextmanager
    def _named(self, lost: VersionsLost, path: str) -> Iterator[None]:
        """Names a file if it cannot be read in the block.

        Args:
            lost: What to raise if it is gone.
            path: Which.

        Raises:
            VersionsLost: It is gone.
            SourceUnreadable: It cannot be read.
        """
        try:
            yield
        except FileNotFoundError:
            raise lost from None
        except (OSError, DeltaError) as error:
            raise self._unreadable(path, error) from error

    def _unreadable(self, path: str, error: BaseException) -> SourceUnreadable:
        return SourceUnreadable(
            f'cannot read file "{path}" of Delta table "{self.table}": {reason(error)}',
            hint="Make it readable for this process; the next step tries again.",
        )

    def _lost(self, first: int, last: int, file: ChangedFile) -> VersionsLost:
        return versions_lost(self.table, first, last, f'File "{file.path}" is gone, as VACUUM removes files.')


def _names_and_constants(
    columns: Sequence[ReadColumn], partition: _Constants
) -> tuple[Sequence[str], Mapping[str, pa.Scalar]]:
    """Returns which columns of a file are to be read, and what all of its rows have in others."""
    constants = {name: pa.scalar(value, pa.string()) for name, value in partition}
    return [one.physical for one in columns if one.physical not in constants], constants


class _Vectors:
    """Reads which rows files with deletion vectors still have, each version once, for several threads."""

    def __init__(self, table: TablePlace) -> None:
        self._table = table
        self._lock = Lock()
        self._found: dict[int, Mapping[str, Sequence[bool]]] = {}

    def kept(self, file: ChangedFile) -> Sequence[bool] | None:
        """Returns which rows of a file are there, None for all.

        Raises:
            FileNotFoundError: The vector is gone, or no version that has it can be read.
        """
        if file.vector is None:
            return None
        with self._lock:
            if file.version not in self._found:
                try:
                    self._found[file.version] = vectors_of(self._table, self._table.opened(file.version))
                except (DeltaError, FileNotFoundError) as error:
                    raise FileNotFoundError(file.path) from error
        found = self._found[file.version].get(self._table.key(file.path))
        if found is None:
            raise FileNotFoundError(file.path)
        return found


def vectors_of(table: TablePlace, opened: DeltaTable) -> Mapping[str, Sequence[bool]]:
    """Returns which rows files still have, of those that have not all, by the files' keys."""
    read = pa.RecordBatchReader.from_stream(opened.deletion_vectors()).read_all().to_pylist()
    return {table.key(unquote(row["filepath"])): row["selection_vector"] for row in read}


def _schema_of(table: TablePlace, opened: DeltaTable) -> DeltaColumns:
    said: Metadata = opened.metadata()
    return DeltaColumns.of(str(table), str(said.id), opened.schema().to_json(), said.configuration)
