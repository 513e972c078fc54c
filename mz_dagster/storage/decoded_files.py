"""Decoded columns of data files on disk, which each process of a project maps into memory instead of decoding them.

A run of Dagster's is a process of its own, and what a process has in memory ends with it. To decode the files that a
step looks rows up in, and to order their rows by what is looked up, is what a process's first step mostly does. So the
columns that a process has decoded of a large file, and its orders of the rows, are written to disk as Arrow lays them
out in memory. Others map them: that takes a `stat` and a hash at the speed of memory, and the pages are the machine's
to share among processes, and to take back when they are needed elsewhere.

    .mz/decoded/<shard>/<folder of the batch>/<hash of the data file>.<hash of this one>.arrow

An empty `<hash of the data file>.asked` says that a process has read the file: the next one that does so keeps it.

Invariant: what is found is what the data file holds. An entry is found under the data file's hash, which the batch
list names; it is complete from the moment at which it has its name, is never changed, and its bytes are compared with
the hash in its name before a process uses it. One that differs, after a power cut or a fault of the disk, is removed
and made anew. It is no part of the project's state: the folder may be deleted whenever nothing runs.

Limits: so many bytes in all, and never the last tenth of the disk. For what is new goes what nobody has mapped for an
hour, the least lately mapped first; if there is no such thing, the new is not written. What many cells share, such as
the time of all updates of a hydration, is written once.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import xxhash

from mz_dagster.budget import budget
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.disk import files_below, make_private_folder, remove_least_used
from mz_dagster.storage.kept_columns import constant_of, repeated
from mz_dagster.storage.row_numbers import whole

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: What was mapped within so many seconds stays; of what is mapped that is noted no more often than that.
_STAYS_S, _NOTED_S = 3_600.0, 600.0
#: The part of the disk that is left free.
_FREE_PART = 10
#: An unfinished entry this old, in seconds, is of a process that was killed; that a file was asked for is forgotten.
_STRAY_S = 3_600.0
#: For how long it is known that there is no room.
_FULL_S = 60.0
_ENTRY = re.compile(r"(?P<file>[0-9a-f]+)\.(?P<own>[0-9a-f]{32})\.arrow")
_UNFINISHED, _ASKED = ".new-", ".asked"


class HotFile(NamedTuple):
    """Names a data file: the shard that it is in, its path there, and the hash of its content."""

    shard: str
    path: str
    hash: str

    @property
    def folder(self) -> str:
        """The folder of its batch."""
        return self.path.split("/", 1)[0]


class MappedColumn(NamedTuple):
    """A column that was mapped: the entry that it is in, all of that, its cells, and how many bytes it takes there."""

    entry: str
    pages: pa.Buffer
    cells: pa.ChunkedArray
    bytes: int


class DecodedFiles:
    """Keeps decoded columns in a folder. Safe for use from several threads and processes.

    Args:
        folder: Where; it is made, for its owner alone, when there is something to keep.
        most: How many bytes it may take; by default as the budget says.
    """

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self._folder = folder
        self._limit = most
        self._lock = threading.Lock()
        self._bytes: int | None = None
        self._full_until_s = 0.0
        self._count = 0

    @property
    def most(self) -> int:
        """How many bytes it may take."""
        return budget().decoded_bytes if self._limit is None else self._limit

    def columns(self, file: HotFile, known: Collection[str] = ()) -> dict[str, MappedColumn]:
        """Returns the columns that are kept of a file, by their names.

        Args:
            file: The file.
            known: Entries that were mapped before, and are left out.
        """
        found: dict[str, MappedColumn] = {}
        folder = self._folder_of(file)
        try:
            names = os.listdir(folder)
        except OSError:
            return found
        for name in names:
            entry = _ENTRY.fullmatch(name)
            if entry is None or entry["file"] != file.hash or name in known:
                continue
            try:
                found |= _mapped(folder / name, entry["own"])
            except FileNotFoundError:  # somebody made room
                continue
            except (OSError, pa.ArrowException, ValueError):
                with suppress(OSError):
                    os.unlink(folder / name)
        return found

    def was_asked_for(self, file: HotFile) -> bool:
        """Returns whether a file was asked for by another process or before, and notes that it is now."""
        folder = self._folder_of(file)
        try:
            self._make(folder)
            (folder / f"{file.hash}{_ASKED}").touch(exist_ok=False)
        except FileExistsError:
            return True
        except OSError:
            pass
        return False

    def keep(self, file: HotFile, columns: Mapping[str, pa.ChunkedArray]) -> dict[str, MappedColumn]:
        """Writes columns of a file; returns them as `columns` does, none if there is no room, or no disk that takes it.

        Args:
            file: The file.
            columns: By their names, each of as many cells as the file has rows, as `compacted` returns them.
        """
        table = _said_once(columns)
        size = _size(table)
        if not self.has_room(size):
            return {}
        folder = self._folder_of(file)
        with self._lock:
            self._count += 1
            new = folder / f"{_UNFINISHED}{os.getpid()}-{self._count}"
        try:
            self._make(folder)
            own = _write(new, table)
            name = f"{file.hash}.{own}.arrow"
            os.replace(new, folder / name)
            with self._lock:
                self._bytes = (self._bytes or 0) + size
            return _mapped(folder / name, own)
        except (OSError, pa.ArrowException, ValueError):
            with suppress(OSError):
                os.unlink(new)
            return {}

    def has_room(self, size: int) -> bool:
        """Returns whether so many bytes may be written, and removes what has to go for them."""
        most, now = self.most, SYSTEM_CLOCK.now_ms() / 1000
        with self._lock:
            if size > most or now < self._full_until_s:
                return False
            try:
                disk = shutil.disk_usage(self._folder.parent)
                if disk.free - size < disk.total // _FREE_PART:
                    return False
                if self._bytes is None or self._bytes + size > most:
                    self._make_room(size, most, now)
            except OSError:
                return False
            assert self._bytes is not None
            if self._bytes + size > most:
                self._full_until_s = now + _FULL_S
                return False
            return True

    def forget(self, shard: str, folders: Collection[str] | None = None) -> None:
        """Removes what is kept of the batches in some folders of a shard, or of all of it."""
        for one in [""] if folders is None else folders:
            shutil.rmtree(self._folder / shard / one, ignore_errors=True)

    def _make(self, folder: Path) -> None:
        make_private_folder(self._folder)
        folder.mkdir(parents=True, exist_ok=True)

    def _folder_of(self, file: HotFile) -> Path:
        return self._folder / file.shard / file.folder

    def _make_room(self, size: int, most: int, now: float) -> None:
        """Removes what was not used for long until there is room, and what was never finished; counts what is left."""
        entries = []
        for path, found in files_below(self._folder):
            if path.suffix == ".arrow":
                entries.append((found.st_mtime, found.st_size, path))
            elif now - found.st_mtime > _STRAY_S:
                with suppress(OSError):
                    path.unlink()
        self._bytes = remove_least_used(entries, most - size, now - _STAYS_S)


class _Hashed(io.RawIOBase):
    """A file that is written, and the hash of what was, so that it is in memory neither whole nor twice."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._out = open(path, "wb")  # noqa: SIM115 - closed with this one
        self._hash = xxhash.xxh3_128()

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        self._hash.update(data)
        return self._out.write(data)

    def close(self) -> None:
        self._out.close()
        super().close()

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def _write(path: Path, table: pa.RecordBatch) -> str:
    """Writes a file of Arrow's, buffer by buffer; returns the hash of its bytes.

    Raises:
        OSError: It cannot be written.
    """
    with _Hashed(path) as out:
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_batch(table)
        return out.hexdigest()


def _size(table: pa.RecordBatch) -> int:
    """Returns how many bytes `_write` writes."""
    sink = pa.MockOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(table)
    return int(sink.size())


def _said_once(columns: Mapping[str, pa.ChunkedArray]) -> pa.RecordBatch:
    """Returns columns in one piece each, those whose cells are all the same as a run of one value."""
    return pa.record_batch([_run_or_whole(one) for one in columns.values()], names=list(columns))


def _run_or_whole(column: pa.ChunkedArray) -> pa.Array:
    constant = constant_of(column)
    if constant is None:
        return whole(column)
    return pa.RunEndEncodedArray.from_arrays(
        pa.array([len(column)], pa.int32()), pa.array([constant.as_py()], column.type)
    )


def _mapped(path: Path, hash: str) -> dict[str, MappedColumn]:
    """Returns the columns in a file, on its pages.

    Raises:
        ValueError: Its content is another.
        OSError: It cannot be read.
    """
    with pa.memory_map(str(path)) as source:
        content = source.read_buffer()
    if xxhash.xxh3_128_hexdigest(content) != hash:
        raise ValueError(f'"{path}" is not what was written')
    if SYSTEM_CLOCK.now_ms() / 1000 - path.stat().st_mtime > _NOTED_S:
        with suppress(OSError):
            os.utime(path)
    table = pa.ipc.open_file(content).read_all()
    columns = zip(table.column_names, table.columns, strict=True)
    return {name: MappedColumn(path.name, content, _in_full(one), one.nbytes) for name, one in columns}


def _in_full(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not isinstance(column.type, pa.RunEndEncodedType):
        return column
    return repeated(column.chunk(0).values[0], len(column))
