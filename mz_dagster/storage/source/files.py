"""A source of files in a folder: what is new, and what the bound files say.

Invariant: a binding is definite. What `read` returns for a binding depends on nothing but the binding and the
source's declaration, because every bound file is hashed again before it is read.

Ingestion is a total order: records are ordered by tick, path (by code point, relative to the folder) and position.

Does not decide which tick a file belongs to (the catalog mints that), nor what an earlier record of the same key
means (`envelope`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mz_dagster.catalog import Binding, BoundFile, shard_names
from mz_dagster.disk import sync_files
from mz_dagster.errors import OperationalError
from mz_dagster.progress import advance
from mz_dagster.scalars.types import Column
from mz_dagster.storage.source.csv_header import read_header
from mz_dagster.storage.source.errors import BoundFileChanged
from mz_dagster.storage.source.folder import hash_file, identity, identity_text, ready_paths, unreadable
from mz_dagster.storage.source.parquet_schema import check_pages, read_schema, row_count
from mz_dagster.storage.source.source import Envelope, Gain, Ledger, RecordSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Format = Literal["json", "csv", "parquet"]

#: What a record has beside its data, under names that no column of a source can have.
RECORD_COLUMNS = frozenset(("mz_path", "mz_block", "mz_row", "mz_deleted"))


@dataclass(frozen=True)
class FileSource(RecordSource):
    """A folder of files of one format.

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
    _hashed: dict[str, BoundFile] = field(default_factory=dict, init=False, compare=False, repr=False)
    _seen: dict[BoundFile, str] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if (self.envelope == "upsert") != bool(self.key):
            raise ValueError("the upsert envelope, and it alone, has a key")
        if not names or len(set(names)) != len(names) or not set(self.key or ()) <= set(names):
            raise ValueError("columns must be there, be unique and hold the key")
        if not self.folder.is_absolute():
            raise ValueError(f"{self.folder} is not absolute")
        object.__setattr__(self, "folder", Path(os.path.abspath(self.folder)))

    @property
    def operators(self) -> str:
        """What makes the collection, for people."""
        return f"ENVELOPE {self.envelope.upper()}"

    @property
    def places(self) -> tuple[Path, ...]:
        """The folder itself, which looks different once a file has come or gone in it."""
        return (self.folder,)

    @property
    def places_show_all(self) -> bool:
        """Whether all files are in the folder itself."""
        return "/" not in self.pattern

    def gain(self, ledger: Ledger) -> Gain:
        """Returns the files that are new, on disk.

        Of the bound ones it looks at those that have to be there and at those that are there and not retired (see
        `catalog.ticks`); of how many were ever bound its cost does not depend.

        Raises:
            SourceUnreadable: The folder or a new file cannot be read.
            BoundFileChanged: A bound file is not as it was, or is gone and has to be there.
            OperationalError: New files cannot be forced to disk.
        """
        catalog, row = ledger.catalog, ledger.row
        paths = self.paths()
        listed = frozenset(paths)
        upper = row.upper.only
        needed = min(upper, upper - ledger.expect_files_ms)  # from here on, files have to be there
        bindings = catalog.bindings(row.id, min(row.since.only, needed))
        bound = {file.path: file for one in bindings for file in one.files if one.tick >= needed or file.path in listed}
        catalog.note_identities(row.id, self.check(bound.values()))
        others = [path for path in paths if path not in bound]
        known = catalog.known_paths(row.id, others)
        files = _on_disk(self.folder, self.new_files(path for path in others if path not in known))
        return Gain(files, count=len(files))

    def size(self, bindings: Sequence[Binding]) -> int:
        """Returns how many bytes the bound files have."""
        return sum(file.size for one in bindings for file in one.files)

    def described(self, bindings: Sequence[Binding]) -> str:
        """Returns how many files bindings name, and how large they are."""
        count = sum(len(one.files) for one in bindings)
        return f"{count} file{'' if count == 1 else 's'}, {self.size(bindings)} bytes"

    @property
    def stored_key(self) -> tuple[str, ...]:
        """The key's columns, as the source's shard calls them."""
        names = [column.name for column in self.columns]
        stored = dict(zip(names, shard_names(names), strict=True))
        return tuple(stored[name] for name in self.key or ())

    def poll(self, bound: Mapping[str, BoundFile]) -> tuple[BoundFile, ...]:
        """Returns the files that are ready and not yet bound, sorted by path, all of which must be as they were bound.

        Raises:
            SourceUnreadable: As `paths` and `new_files`.
            BoundFileChanged: As `check`.
        """
        paths = self.paths()
        self.check(bound.values())
        return self.new_files(path for path in paths if path not in bound)

    def paths(self) -> list[str]:
        """Returns the paths of the files that are ready, bound or not, sorted, without a look at any file.

        Raises:
            SourceUnreadable: The folder cannot be listed, or holds a name that cannot be read.
        """
        return ready_paths(self.folder, self.pattern)

    def check(self, bound: Iterable[BoundFile]) -> Mapping[str, str]:
        """Makes sure that bound files are there, as they were bound.

        A file that was not written to or replaced since it was hashed is not hashed again.

        Returns:
            The identities of those that were hashed, by path.

        Raises:
            BoundFileChanged: One of them is gone or has another content.
            SourceUnreadable: One of them cannot be read.
        """
        hashed = {}
        bound = list(bound)
        for file in bound:
            try:
                now = identity_text(os.stat(self.folder / file.path))
            except OSError:
                now = None
            if now is not None and now == self._seen.get(file, file.identity):
                continue
            found = hash_file(self.folder, file.path)
            _compare(file, found)
            if found is not None and found.identity is not None:
                hashed[file.path] = found.identity
        kept = {file: self._seen[file] for file in bound if file in self._seen}
        self._seen.clear()
        self._seen.update(kept | {file: hashed[file.path] for file in bound if file.path in hashed})
        return hashed

    def new_files(self, paths: Iterable[str]) -> tuple[BoundFile, ...]:
        """Returns those of the files that are still there and keep still, as they may be bound; without Spark.

        Reads each of them once, and a Parquet file's pages too, so that what cannot be read is refused before it is
        bound.

        Raises:
            SourceUnreadable: A file cannot be read, or is not of the declared format and columns. Nothing is bound;
                once the file is replaced or moved away, the next poll succeeds.
        """
        found = {path: file for path in paths if (file := self._hash(path)) is not None}
        self._hashed.clear()  # of what is bound by the next call, nothing need be known here
        self._hashed.update(found)
        return tuple(found.values())

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

    def lost(self, bindings: Sequence[Binding]) -> Mapping[str, str]:
        """Returns what became of the bound files that are not there as they were bound, by path, a sentence each.

        Raises:
            SourceUnreadable: A file is there and cannot be read.
        """
        found = {}
        for binding in bindings:
            for file in binding.files:
                try:
                    _compare(file, hash_file(self.folder, file.path))
                except BoundFileChanged as error:
                    found[file.path] = str(error.detail)
        return found

    @contextmanager
    def verified_unchanged(self, bindings: Sequence[Binding]) -> Iterator[None]:
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

    def read_here(self, bindings: Sequence[Binding]) -> pa.Table:
        """Returns the records of the bound files, as `read` does, decoded in this process and in ingestion order.

        `mz_block` is missing: a file is read in one piece.

        Raises:
            BoundFileChanged: A bound file is gone or has another content.
            SourceUnreadable: A bound file cannot be read.
        """
        from mz_dagster.storage.source.local.record import record_table

        ordered = sorted(bindings, key=lambda one: one.tick)
        files = [(one.tick, file) for one in ordered for file in sorted(one.files, key=lambda file: file.path)]
        return record_table(self, self._contents(files))

    def counted_rows(self, bindings: Sequence[Binding]) -> int:
        """Returns how many rows the bound files say that they have; of a format that does not say so none."""
        if self.format != "parquet":
            return 0
        paths = [self.folder / file.path for one in bindings for file in one.files]
        return sum(row_count(path) for path in paths)

    def _contents(self, files: Sequence[tuple[int, BoundFile]]) -> Iterator[tuple[int, str, bytes]]:
        for tick, file in files:
            yield tick, file.path, self._content(file)
            advance(file.size, "bytes")  # whoever took it has decoded it

    def _content(self, bound: BoundFile) -> bytes:
        """Returns the bytes of a bound file, which are those that were bound."""
        try:
            content = (self.folder / bound.path).read_bytes()
        except FileNotFoundError:
            content = None
        except OSError as error:
            raise unreadable(self.folder / bound.path, error) from error
        found = None if content is None else BoundFile(bound.path, len(content), sha256(content).hexdigest())
        _compare(bound, found)
        assert content is not None
        return content

    def _hash(self, path: str) -> BoundFile | None:
        try:
            now = identity_text(os.stat(self.folder / path))
        except OSError:
            return None
        seen = self._hashed.get(path)
        if seen is not None and seen.identity == now:
            return seen
        file = hash_file(self.folder, path)
        if file is None:
            return None
        if self.format == "csv":
            read_header(self.folder, path, self.columns)
        elif self.format == "parquet":
            read_schema(self.folder, path, self.columns)
            check_pages(self.folder, path)
        return file


def _on_disk(folder: Path, files: tuple[BoundFile, ...]) -> tuple[BoundFile, ...]:
    """Returns those of new files that are still there, once they are on disk: no power cut may change what is bound."""
    while files:
        try:
            sync_files(folder, (file.path for file in files))
            break
        except OSError as error:
            there = tuple(file for file in files if (folder / file.path).exists())
            if isinstance(error, FileNotFoundError) and len(there) < len(files):
                files = there  # somebody has taken one away since it was read
                continue
            raise OperationalError(
                f'cannot force new files in "{folder}" to disk: {error}',
                hint="Nothing was bound. Check that the files are still there and that their disk works.",
            ) from error
    return files


def _compare(bound: BoundFile, found: BoundFile | None) -> None:
    if found is None:
        raise BoundFileChanged(bound.path, "The file is gone, or is being written to.")
    if found.size != bound.size:
        raise BoundFileChanged(bound.path, f"It had {bound.size} bytes and has {found.size}.")
    if found.sha256 != bound.sha256:
        raise BoundFileChanged(bound.path, f"Its SHA-256 was {bound.sha256} and is {found.sha256}.")
