"""A source of files in a folder: what is new, and what the bound files say.

Invariant: a binding is definite. What `read` returns for a binding depends on nothing but the binding and the
source's declaration, because every bound file is hashed again before it is read.

Ingestion is a total order: records are ordered by tick, path (by code point, relative to the folder) and position.

Does not decide which tick a file belongs to (the catalog mints that), nor what an earlier record of the same key
means (`envelope`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mz_dagster.catalog import Binding, BoundFile
from mz_dagster.plan.types import Column
from mz_dagster.storage.source.csv_header import read_header
from mz_dagster.storage.source.errors import BoundFileChanged
from mz_dagster.storage.source.folder import hash_file, identity, ready_paths
from mz_dagster.storage.source.parquet_schema import check_pages, read_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format = Literal["json", "csv", "parquet"]
Envelope = Literal["none", "upsert"]


@dataclass(frozen=True)
class FileSource:
    """Is a folder of files of one format.

    Attributes:
        folder: Absolute. It must be the same folder for this process and for Spark.
        pattern: A glob for paths relative to the folder, see `folder.ready_paths`.
        format: Of every file.
        columns: The declared columns, in order.
        key: The key's columns for `upsert`, else None.
        envelope: `none`: a record is a row. `upsert`: a record is the new state of its key.
    """

    folder: Path
    pattern: str
    format: Format
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None = None
    envelope: Envelope = "none"
    _hashed: dict[str, tuple[tuple[int, int, int, int], BoundFile]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if (self.envelope == "upsert") != bool(self.key):
            raise ValueError("the upsert envelope, and it alone, has a key")
        if not names or len(set(names)) != len(names) or not set(self.key or ()) <= set(names):
            raise ValueError("columns must be there, be unique and hold the key")
        if not self.folder.is_absolute():
            raise ValueError(f"{self.folder} is not absolute")
        object.__setattr__(self, "folder", Path(os.path.abspath(self.folder)))

    def poll(self, bound: Mapping[str, BoundFile]) -> tuple[BoundFile, ...]:
        """Returns the files that are ready and not yet bound, sorted by path, without Spark.

        Reads every new file once, and a Parquet file's pages too, so that what cannot be read is refused before it is
        bound. Of a bound file it compares the size, and the hash if this object has seen the file written to; `read`
        compares every hash.

        Raises:
            SourceUnreadable: The folder or a new file cannot be read, or a file is not of the declared format and
                columns. Nothing is bound; once the file is replaced or moved away, the next poll succeeds.
            BoundFileChanged: A bound file is gone or has another content.
        """
        paths = ready_paths(self.folder, self.pattern)
        for path, binding in bound.items():
            self._check_seen(path, binding)
        found = []
        for path in paths:
            if path in bound:
                continue
            file = self._hash(path)
            if file is not None:
                found.append(file)
        return tuple(found)

    def ready(self) -> Mapping[str, int]:
        """Returns the sizes in bytes of the files that are ready, bound or not, by path, without reading any.

        Raises:
            SourceUnreadable: The folder cannot be listed, or holds a name that cannot be read.
        """
        sizes = {path: self._identity(path) for path in ready_paths(self.folder, self.pattern)}
        return {path: found[1] for path, found in sizes.items() if found is not None}

    def verify(self, bindings: Sequence[Binding]) -> None:
        """Compares size and hash of every bound file of `bindings`.

        Raises:
            BoundFileChanged: One of them is gone or has another content.
            SourceUnreadable: One of them cannot be read.
        """
        for binding in bindings:
            for file in binding.files:
                _compare(file, hash_file(self.folder, file.path))

    @contextmanager
    def kept_still(self, bindings: Sequence[Binding]) -> Iterator[None]:
        """Makes sure that no bound file of `bindings` was written to or replaced in the block.

        `read` compares hashes when it is called, and its frame reads the files when it is evaluated: in this block both
        see the same files.

        Raises:
            BoundFileChanged: One was, so what the block read of it may be anything.
        """
        paths = [file.path for binding in bindings for file in binding.files]
        before = [self._identity(path) for path in paths]
        yield
        for path, identified in zip(paths, before, strict=True):
            if identified is None or self._identity(path) != identified:
                raise BoundFileChanged(path, "It was written to or replaced while it was read.")

    def _identity(self, path: str) -> tuple[int, int, int, int] | None:
        try:
            return identity(os.stat(self.folder / path))
        except OSError:
            return None

    def read(self, spark: SparkSession, bindings: Sequence[Binding]) -> DataFrame:
        """Returns the records of the bound files.

        Args:
            spark: Any session, Classic or Connect.
            bindings: Of this source, one per tick.

        Returns:
            A lazy frame: the declared columns, `mz_timestamp` (the binding's tick), `mz_path`, `mz_block`, `mz_row`
            (the order within a tick), `mz_deleted`, `mz_error`; see `record`. A malformed row is a record with an
            `mz_error`.

        Raises:
            BoundFileChanged: A bound file is gone or has another content.
            SourceUnreadable: A bound file cannot be read.
        """
        from mz_dagster.storage.source.record import read_records

        self.verify(bindings)
        return read_records(spark, self, bindings)

    def _hash(self, path: str) -> BoundFile | None:
        try:
            now = identity(os.stat(self.folder / path))
        except OSError:
            return None
        seen = self._hashed.get(path)
        if seen is not None and seen[0] == now:
            return seen[1]
        file = hash_file(self.folder, path)
        if file is None:
            return None
        if self.format == "csv":
            read_header(self.folder, path, self.columns)
        elif self.format == "parquet":
            read_schema(self.folder, path, self.columns)
            check_pages(self.folder, path)
        self._hashed[path] = (now, file)
        return file

    def _check_seen(self, path: str, bound: BoundFile) -> None:
        try:
            status = os.stat(self.folder / path)
        except OSError:
            _compare(bound, None)
            return
        seen = self._hashed.get(path)
        if status.st_size == bound.size and (seen is None or seen[0] == identity(status)):
            return
        file = hash_file(self.folder, path)
        _compare(bound, file)
        self._hashed[path] = (identity(status), bound)


def _compare(bound: BoundFile, found: BoundFile | None) -> None:
    if found is None:
        raise BoundFileChanged(bound.path, "The file is gone, or is being written to.")
    if found.size != bound.size:
        raise BoundFileChanged(bound.path, f"It had {bound.size} bytes and has {found.size}.")
    if found.sha256 != bound.sha256:
        raise BoundFileChanged(bound.path, f"Its SHA-256 was {bound.sha256} and is {found.sha256}.")
