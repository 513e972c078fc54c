"""Where a Delta table is: in a folder of this machine, or in an object store.

Paths are relative to the table, with `/` between their parts, as they are once the log's escapes are undone. What is
not there is a `FileNotFoundError`; what cannot be reached an `OSError` or a `DeltaError`, which `reason` tells.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.fs as pa_fs
from deltalake import DeltaTable, write_deltalake
from deltalake.fs import DeltaStorageHandler

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.disk import make_folder, sync, sync_files
from mz_dagster.storage.object_store import ObjectStore

#: Where in a table its log is.
LOG = "_delta_log"
#: For how long a store may keep us waiting, as its client is told.
_PATIENCE = {"connect_timeout": "5s", "timeout": "60s", "max_retries": "5", "retry_timeout": "30s"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST_REASON = 400


#: What stores say of a bucket that is full, or whose quota is used up: HTTP's own status, MinIO, Ceph, and disks.
_FULL = ("507 Insufficient", "StorageFull", "QuotaExceeded", "InsufficientStorage", "No space left", "quota exceeded")


def commit_path(version: int) -> str:
    """Returns where in a table a commit is."""
    return f"{LOG}/{version:020}.json"


class TablePlace(ABC):
    """Where one table is; `str` is what it is called."""

    @property
    @abstractmethod
    def watched(self) -> tuple[Path, ...]:
        """What looks different on disk after each commit; nothing if that cannot be told cheaply."""

    @abstractmethod
    def opened(self, version: int | None = None) -> DeltaTable:
        """Returns the table at a version, by default the newest."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Returns what a file has."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Returns whether a file is there."""

    @abstractmethod
    def file(self, path: str) -> AbstractContextManager[BinaryIO | pa.NativeFile]:
        """Opens a file, of which parts will be read."""

    @abstractmethod
    def contains(self, path: str) -> bool:
        """Returns whether a path leads nowhere else."""

    @abstractmethod
    def key(self, path: str) -> str:
        """Returns what tells a file from others, whether its path is relative or says where the table is."""

    @abstractmethod
    def is_taken(self) -> bool:
        """Returns whether there is something, where there is no table."""

    @abstractmethod
    def add(self, path: str, content: bytes) -> int:
        """Writes a file, which lasts once this returns, and returns when that was, in milliseconds."""

    @abstractmethod
    def write(self, data: pa.Table, **options: Any) -> None:
        """Writes a table anew by delta-rs, which is told `options`."""

    @abstractmethod
    def sync(self, *paths: str) -> None:
        """Returns once files last, with the folders that name them, which the table's own is one of."""


@dataclass(frozen=True)
class Folder(TablePlace):
    """A folder of this machine.

    Attributes:
        path: The folder, absolute.
    """

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def watched(self) -> tuple[Path, ...]:
        """The log's folder."""
        return (self.path / LOG,)

    def opened(self, version: int | None = None) -> DeltaTable:
        """Returns the table; see `TablePlace.opened`."""
        return DeltaTable(self.path, version=version)

    def read(self, path: str) -> bytes:
        """Returns what a file has."""
        return (self.path / path).read_bytes()

    def exists(self, path: str) -> bool:
        """Returns whether a file is there."""
        return (self.path / path).exists()

    def file(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Opens a file."""
        return open(self.path / path, "rb")

    def contains(self, path: str) -> bool:
        """Returns whether a path leads nowhere else, links included."""
        return (self.path / path).resolve().is_relative_to(self.path.resolve())

    def key(self, path: str) -> str:
        """Returns the path, absolute, where links lead."""
        return str((self.path / path.removeprefix("file://")).resolve())

    def is_taken(self) -> bool:
        """Returns whether the folder has something, or is none."""
        return self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir()))

    def add(self, path: str, content: bytes) -> int:
        """Writes a file; see `TablePlace.add`."""
        make_folder((self.path / path).parent)
        (self.path / path).write_bytes(content)
        sync(self.path / path)
        return (self.path / path).stat().st_mtime_ns // 1_000_000

    def write(self, data: pa.Table, **options: Any) -> None:
        """Writes a table anew; see `TablePlace.write`."""
        make_folder(self.path.parent)
        write_deltalake(self.path, data, **options)

    def sync(self, *paths: str) -> None:
        """Returns once files are on disk, with the folders that name them."""
        sync_files(self.path, paths)


@dataclass(frozen=True)
class InStore(TablePlace):
    """A prefix of a bucket. What is written there lasts once the store has said so.

    Attributes:
        uri: `s3://bucket/prefix`; or `gs`, or `az` with a container.
        store: What leads there.
        root: Where relative paths of secrets lead from.
    """

    uri: str
    store: ObjectStore
    root: Path

    def __str__(self) -> str:
        return self.uri

    @property
    def watched(self) -> tuple[Path, ...]:
        """Nothing: the store has to be asked."""
        return ()

    def message_of(self, error: BaseException) -> str:
        """Returns what an error says, in a line, without a secret."""
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        # obstore repeats below what it has said how it came about. A secret is looked for before anything is cut off.
        said, _, _ = str(error).partition("\n\nDebug source")
        return reason(Exception(self.store.without_secrets(said, self.root)))

    def settings(self) -> dict[str, str]:
        """Returns what delta-rs is to be told, secrets included: for that call, and not to be kept."""
        return {**_PATIENCE, **self.store.settings(self.root)}

    def _handler(self) -> DeltaStorageHandler:
        return DeltaStorageHandler(self.uri, self.settings())

    def opened(self, version: int | None = None) -> DeltaTable:
        """Returns the table; see `TablePlace.opened`."""
        return DeltaTable(self.uri, version=version, storage_options=self.settings())

    def read(self, path: str) -> bytes:
        """Returns what a file has."""
        with self.file(path) as file:
            return bytes(file.read())

    def exists(self, path: str) -> bool:
        """Returns whether a file is there."""
        (found,) = self._handler().get_file_info([path])
        return bool(found.type != pa_fs.FileType.NotFound)

    @contextmanager
    def file(self, path: str) -> Iterator[pa.NativeFile]:
        """Opens a file."""
        with pa_fs.PyFileSystem(self._handler()).open_input_file(path) as file:
            yield file

    def contains(self, path: str) -> bool:
        """Returns whether a path leads nowhere else."""
        return ".." not in path.split("/")

    def key(self, path: str) -> str:
        """Returns the path, relative to the table."""
        return path.removeprefix(self.uri).lstrip("/")

    def is_taken(self) -> bool:
        """Returns whether the bucket has something below the prefix."""
        return bool(self._handler().get_file_info_selector(pa_fs.FileSelector("", allow_not_found=True)))

    def add(self, path: str, content: bytes) -> int:
        """Writes a file; see `TablePlace.add`."""
        # By another client: what delta-rs opens for Arrow takes no buffers of Arrow's.
        from obstore.exceptions import BaseError

        from mz_dagster.storage.object_client import client_of

        try:
            client_of(self.uri, self.store.settings(self.root)).put(path, content)
        except BaseError as error:
            raise OSError(self.message_of(error)) from None
        return SYSTEM_CLOCK.now_ms()

    def write(self, data: pa.Table, **options: Any) -> None:
        """Writes a table anew; see `TablePlace.write`."""
        write_deltalake(self.uri, data, storage_options=self.settings(), **options)

    def sync(self, *paths: str) -> None:
        """Does nothing."""


def is_full(error: BaseException) -> bool:
    """Returns whether another's error says that there is no room for what was to be written.

    Example:
        >>> said = ("Server returned 507: XMinioStorageFull", "503: SlowDown", "00507.json exists")
        >>> [is_full(OSError(text)) for text in said]
        [True, False, False]
    """
    said = f"{error} {error.strerror}" if isinstance(error, OSError) else str(error)
    return any(one in said for one in _FULL)


def reason(error: BaseException) -> str:
    r"""Returns what another's error says, in a line and without a full stop.

    Example:
        >>> reason(OSError("Generic S3 error\n   \x1b[31m\u21b3\x1b[0m Connection refused."))
        'Generic S3 error: Connection refused'
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = (line.strip(" \u21b3\t") for line in _COLOURS.sub("", str(error)).splitlines())
    found = ": ".join(line for line in lines if line)
    if len(found) > _LONGEST_REASON:  # what was asked for is named first, what was answered stands last
        found = f"{found[: _LONGEST_REASON // 4]}...{found[-3 * _LONGEST_REASON // 4 :]}"
    return found.rstrip(".")
