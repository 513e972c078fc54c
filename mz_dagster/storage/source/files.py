"""A source of files: what is new, and what the bound files say.

Invariant: a binding is definite. What `read` returns for a binding depends on nothing but the binding and the
source's declaration, because every bound file is hashed again before it is read.

Ingestion is a total order: records are ordered by tick, path (by code point, relative to the place) and position.

Files that Spark would not find as they are read, because they are compressed or in an object store, are copied into a
folder for as long as Spark reads them (`found_by_spark`).

Does not decide which tick a file belongs to (the catalog mints that), nor what an earlier record of the same key
means (`envelope`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import sha256
from io import BytesIO
from itertools import groupby
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, Literal

import pyarrow as pa

from mz_dagster.budget import budget
from mz_dagster.catalog import Binding, BoundFile, shard_names
from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError
from mz_dagster.progress import advance
from mz_dagster.scalars.types import Column
from mz_dagster.storage.source import avro_files, orc_files
from mz_dagster.storage.source.avro_changes import lines_of_avro
from mz_dagster.storage.source.compression import blocks, codec_of, most_held
from mz_dagster.storage.source.csv_header import LONGEST_HEADER, read_header
from mz_dagster.storage.source.described import is_of_lines
from mz_dagster.storage.source.errors import BoundFileChanged
from mz_dagster.storage.source.file_place import FilePlace, Listing
from mz_dagster.storage.source.folder import InFolder
from mz_dagster.storage.source.parquet_schema import check_pages, read_schema, row_count
from mz_dagster.storage.source.partition_folders import check_partition
from mz_dagster.storage.source.source import Envelope, Gain, Ledger, RecordSource
from mz_dagster.storage.source.whole_lines import whole_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format = Literal["json", "csv", "parquet", "avro", "orc"]

#: What writes files of other formats as Parquet, as which they are read, and what people call them.
_AS_PARQUET = {"avro": (avro_files.write_as_parquet, "Avro"), "orc": (orc_files.write_as_parquet, "ORC")}

#: What a record has beside its data, under names that no column of a source can have.
RECORD_COLUMNS = frozenset(("mz_path", "mz_block", "mz_row", "mz_deleted", "mz_place", "mz_known"))
#: What ends the name of a copy: a name that says nothing of a compression, by which Spark would go.
_COPY = ".copy"
#: What is made of a file of Avro or ORC is in memory up to so many bytes.
_IN_MEMORY = 64 << 20
#: How the folders of copies begin, and after how long one that is still there was left by a process that was killed.
_COPIES = ".copies_"
_LEFT_AFTER_MS = 86_400_000
#: How much later than its place among ascending names an object may come, in the timeline's milliseconds.
_LATE_MS = 3_600_000
#: Of how many compressed files it is known what they hold.
_MOST_COUNTED = 10_000


@dataclass(frozen=True)
class FileSource(RecordSource):
    """A folder of files of one format, here or in an object store.

    Attributes:
        place: Where the files are.
        pattern: A glob for paths relative to the place, see `folder.pattern_to_regex`.
        format: Of every file.
        columns: The declared columns, in order.
        key: The key's columns for `upsert`, else None.
        envelope: `none`: a record is a row. `upsert`: a record is the new state of its key.
        debezium: Whether a record is a change as Debezium writes it, of a key's row.
        partition: The columns whose values folders say, see `partition_folders`.
        spool: The folder in which files are copied for Spark, the same folder for it; that of the files themselves if
            it is not said.
        copies: What the names of the files in the place have at their ends that those of the records do not.
        names_ascend: Whether new names sort behind those that were bound an hour before, so that the others need not be
            listed again.
        added_at: Of the last columns, which were added later, the ticks from which on files are read for them; what was
            bound before has NULL there.
        version: How often the source was altered.
    """

    place: FilePlace
    pattern: str
    format: Format
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None = None
    envelope: Envelope = "none"
    debezium: bool = False
    partition: tuple[str, ...] = ()
    spool: Path | None = None
    copies: str = ""
    names_ascend: bool = False
    added_at: tuple[int, ...] = ()
    version: int = 0
    _hashed: dict[str, BoundFile] = field(default_factory=dict, init=False, compare=False, repr=False)
    _seen: dict[BoundFile, str] = field(default_factory=dict, init=False, compare=False, repr=False)
    #: How many bytes compressed files hold.
    _held: dict[BoundFile, int] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if (self.envelope == "upsert") != bool(self.key):
            raise ValueError("the upsert envelope, and it alone, has a key")
        if not names or len(set(names)) != len(names) or not set(self.key or ()) <= set(names):
            raise ValueError("columns must be there, be unique and hold the key")

    @property
    def operators(self) -> str:
        """What makes the collection, for people."""
        return f"ENVELOPE {'DEBEZIUM' if self.debezium else self.envelope.upper()}"

    @property
    def places(self) -> tuple[Path, ...]:
        """The folder itself, which looks different once a file has come or gone in it; a store has to be asked."""
        return () if self.place.folder is None else (self.place.folder,)

    @property
    def places_show_all(self) -> bool:
        """Whether all files are in the folder itself."""
        return self.place.folder is not None and "/" not in self.pattern

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
        listing = self.place.listing(self.pattern, self._seen_up_to(ledger))
        listed = frozenset(listing.paths)
        upper = row.upper.only
        needed = min(upper, upper - ledger.expect_files_ms)  # from here on, files have to be there
        bindings = catalog.bindings(row.id, min(row.since.only, needed))
        bound = {file.path: file for one in bindings for file in one.files if one.tick >= needed or file.path in listed}
        try:
            catalog.note_identities(row.id, self._check(bound.values(), listing))
        except BoundFileChanged as changed:
            if any(file.path == changed.path for one in bindings if one.tick >= needed for file in one.files):
                raise
            raise BoundFileChanged(changed.path, changed.detail or "", is_sealed=True) from None
        others = [path for path in listing.paths if path not in bound]
        known = catalog.known_paths(row.id, others)
        files = self.place.lasting(self._new_files((path for path in others if path not in known), listing))
        return Gain(files, count=len(files))

    def _seen_up_to(self, ledger: Ledger) -> str:
        """Returns behind which path all that may be new is; nothing if it may be anywhere."""
        last = ledger.catalog.last_tick(str(ledger.row.timeline)) if self.names_ascend else None
        return "" if last is None else ledger.catalog.last_path(ledger.row.id, last - _LATE_MS)

    def size(self, bindings: Sequence[Binding]) -> int:
        """Returns how many bytes the bound files have."""
        return sum(file.size for one in bindings for file in one.files)

    def described(self, bindings: Sequence[Binding]) -> str:
        """Returns how many files bindings name, and how large they are."""
        count = sum(len(one.files) for one in bindings)
        return f"{count} file{'' if count == 1 else 's'}, {self.size(bindings)} bytes"

    @property
    def file_columns(self) -> tuple[Column, ...]:
        """The declared columns that files have; those of the key, too, have always a value."""
        key = self.key or ()
        of_files = [column for column in self.columns if column.name not in self.partition]
        return tuple(replace(one, nullable=one.nullable and one.name not in key) for one in of_files)

    @property
    def _read_as(self) -> Format:
        """The format in which files are decoded: those of Avro and ORC become others first."""
        if self.format not in _AS_PARQUET:
            return self.format
        return "json" if self.debezium else "parquet"

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
        listing = self.place.listing(self.pattern)
        self._check(bound.values(), listing)
        return self._new_files((path for path in listing.paths if path not in bound), listing)

    def _check(self, bound: Iterable[BoundFile], listing: Listing) -> Mapping[str, str]:
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
            now = listing.look(file.path)
            if now is not None and now.identity == self._seen.get(file, file.identity):
                continue
            found = self.place.hashed(file.path)
            _compare(file, found)
            if found is not None and found.identity is not None:
                hashed[file.path] = found.identity
        kept = {file: self._seen[file] for file in bound if file in self._seen}
        self._seen.clear()
        self._seen.update(kept | {file: hashed[file.path] for file in bound if file.path in hashed})
        return hashed

    def _new_files(self, paths: Iterable[str], listing: Listing) -> tuple[BoundFile, ...]:
        """Returns those of the files that are still there and keep still, as they may be bound; without Spark.

        Reads each of them once, and a Parquet file's pages too, so that what cannot be read is refused before it is
        bound.

        Raises:
            SourceUnreadable: A file cannot be read, or is not of the declared format and columns. Nothing is bound;
                once the file is replaced or moved away, the next poll succeeds.
        """
        found = {path: file for path in paths if (file := self._hash(path, listing)) is not None}
        self._hashed.clear()  # of what is bound by the next call, nothing need be known here
        self._hashed.update(found)
        if len(self._held) > _MOST_COUNTED:
            self._held.clear()  # a step that needs it counts again
        return tuple(found.values())

    def ready(self) -> Mapping[str, int]:
        """Returns the sizes in bytes of the files that are ready, bound or not, by path, without reading any.

        Raises:
            SourceUnreadable: The folder cannot be listed, or holds a name that cannot be read.
        """
        listing = self.place.listing(self.pattern)
        looks = {path: listing.look(path) for path in listing.paths}
        return {path: found.size for path, found in looks.items() if found is not None}

    def verify(self, bindings: Sequence[Binding]) -> None:
        """Compares size and hash of every bound file of `bindings`.

        Raises:
            BoundFileChanged: One of them is gone or has another content.
            SourceUnreadable: One of them cannot be read.
        """
        for binding in bindings:
            for file in binding.files:
                _compare(file, self.place.hashed(file.path))

    def lost(self, bindings: Sequence[Binding]) -> Mapping[str, str]:
        """Returns what became of the bound files that are not there as they were bound, by path, a sentence each.

        Raises:
            SourceUnreadable: A file is there and cannot be read.
        """
        found = {}
        for binding in bindings:
            for file in binding.files:
                try:
                    _compare(file, self.place.hashed(file.path))
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
        before = [self.place.look(path) for path in paths]
        yield
        for path, identified in zip(paths, before, strict=True):
            if identified is None or self.place.look(path) != identified:
                raise BoundFileChanged(path, "It was written to or replaced while it was read.")

    @contextmanager
    def found_by_spark(self, bindings: Sequence[Binding]) -> Iterator[tuple[FileSource, Sequence[Binding]]]:
        """Has bound files in a folder in which Spark finds them as they are to be read.

        Yields:
            A source of that folder, and what the bindings are there, which have the same records.

        Raises:
            BoundFileChanged: A bound file is gone or has another content.
            SourceUnreadable: A bound file cannot be read.
        """
        files = [file for binding in bindings for file in binding.files]
        is_found = self.place.folder is not None and self._read_as == self.format
        if is_found and not any(codec_of(file.path, self.format) for file in files):
            yield self, bindings
            return
        with self.spool_folder() as folder:
            copied = [
                replace(one, files=tuple(source._copy(file, folder) for file in one.files))
                for source, some in self._as_bound(bindings)
                for one in some
            ]
            found = replace(self, place=InFolder(folder), copies=_COPY)
            yield (found if self._read_as == self.format else replace(found, format=self._read_as)), copied

    @contextmanager
    def spool_folder(self) -> Iterator[Path]:
        """Yields an empty folder for what is written while files are read; it is gone after the block."""
        spool = self.spool or self.place.folder
        assert spool is not None, "it is said of a place that is no folder"
        spool.mkdir(parents=True, exist_ok=True)
        _remove_left(spool)
        with TemporaryDirectory(prefix=_COPIES, dir=spool) as folder:
            yield Path(folder)

    def _copy(self, bound: BoundFile, folder: Path) -> BoundFile:
        """Copies what a bound file holds into a folder, and returns it as it is there."""
        path = f"{bound.path}{_COPY}"
        digest, size = sha256(), 0
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with self._fetched(bound) as fetched, open(folder / path, "wb") as copy:
                for block in self._blocks(fetched, bound):
                    copy.write(block)
                    digest.update(block)
                    size += len(block)
        except OSError as error:
            raise OperationalError(
                f'cannot copy file "{bound.path}" for Spark: {error.strerror or error}',
                detail=f'Copies of what is compressed or in an object store are in "{folder.parent}".',
                hint='Make room there, or let the setting "engine" be "local" for a step; nothing was read.',
            ) from error
        return BoundFile(path, size, digest.hexdigest())

    @contextmanager
    def _fetched(self, bound: BoundFile) -> Iterator[Path]:
        """Has a bound file, as it was bound, in a folder of this machine during the block, and yields that."""
        with self.place.fetched(bound.path) as fetched:
            _compare(bound, None if fetched is None else fetched[1])
            assert fetched is not None, "there is none only where it is not as it was bound"
            yield fetched[0]

    def _blocks(self, folder: Path, file: BoundFile) -> Iterator[bytes]:
        """Yields what a file holds that is in a folder of this machine."""
        with open(folder / file.path, "rb") as stored:
            yield from self._held_in(stored, file)

    def _held_in(self, stored: BinaryIO, file: BoundFile) -> Iterator[bytes]:
        """Yields what a file holds that is open."""
        codec = codec_of(file.path, self.format)
        if self.format == "avro" and self.debezium:
            yield from lines_of_avro(stored, file.path)
        elif self.format in _AS_PARQUET:
            write_as_parquet, _ = _AS_PARQUET[self.format]
            with SpooledTemporaryFile(_IN_MEMORY) as target:
                write_as_parquet(stored, file.path, self.file_columns, target)
                target.seek(0)
                while block := target.read(1 << 20):
                    yield block
        elif codec is not None:
            yield from blocks(stored, file.path, codec, file.size)
        else:
            while block := stored.read(1 << 20):
                yield block

    def read(self, spark: SparkSession, bindings: Sequence[Binding]) -> DataFrame:
        """Returns the records of the bound files, which Spark finds as they are (`found_by_spark`).

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
        from mz_dagster.storage.source.record import read_records, with_all_columns

        self.verify(bindings)
        if not (self.added_at and bindings):
            return read_records(spark, self, bindings)
        frames = [with_all_columns(read_records(spark, one, some), self) for one, some in self._as_bound(bindings)]
        return reduce(lambda whole, one: whole.unionByName(one), frames)

    def read_here(self, bindings: Sequence[Binding]) -> pa.Table:
        """Returns the records of the bound files, as `read` does, decoded in this process and in ingestion order.

        `mz_block` is missing: a file's lines are read one after the other.

        Raises:
            BoundFileChanged: A bound file is gone or has another content.
            SourceUnreadable: A bound file cannot be read.
        """
        from mz_dagster.storage.source.local.record import record_schema

        return pa.concat_tables([record_schema(self).empty_table(), *self.portions_here(bindings)])

    def portions_here(self, bindings: Sequence[Binding]) -> Iterator[pa.Table]:
        """Yields what `read_here` returns, some records at a time; that a file was changed is perhaps known at its end.

        Raises:
            BoundFileChanged: A bound file is gone or has another content.
            SourceUnreadable: A bound file cannot be read.
        """
        from mz_dagster.storage.source.local.record import record_portions, record_schema

        nothing = record_schema(self).empty_table()
        for source, some in self._as_bound(bindings):
            files = [(one.tick, file) for one in some for file in sorted(one.files, key=lambda file: file.path)]
            decoded = replace(source, format="json") if self._read_as == "json" else source
            for portion in record_portions(decoded, source._contents(files)):
                yield pa.concat_tables([nothing, portion], promote_options="default")

    @property
    def is_in_portions(self) -> bool:
        """Whether files are decoded portion by portion in this process, so that no more than one is in memory."""
        return self.format == "parquet" or is_of_lines(self.format)

    def _as_bound(self, bindings: Sequence[Binding]) -> Iterator[tuple[FileSource, Sequence[Binding]]]:
        """Yields bindings by their ticks, with the source that reads them: with the columns that it had by then."""

        def arity(binding: Binding) -> int:
            return len(self.columns) - sum(binding.tick < first for first in self.added_at)

        for count, some in groupby(sorted(bindings, key=lambda one: one.tick), arity):
            is_whole = count == len(self.columns)
            yield self if is_whole else replace(self, columns=self.columns[:count], added_at=()), tuple(some)

    def held_bytes(self, bindings: Sequence[Binding], enough: int) -> int:
        """Returns how many bytes the bound files hold, uncompressed; of many at least `enough`.

        What compressed files hold was counted when they were polled; if not by this process, they are read again,
        unless they are so small that they cannot hold so much.
        """
        files = [file for one in bindings for file in one.files]
        least = sum(self._held.get(file, file.size) for file in files)
        if least >= enough:
            return least
        unknown = [file for file in files if file not in self._held and codec_of(file.path, self.format)]
        if least + sum(most_held(file.size) for file in unknown) > enough:
            for file in unknown:
                with self._fetched(file) as fetched:
                    self._held[file] = sum(map(len, self._blocks(fetched, file)))
        return sum(self._held.get(file, file.size) for file in files)

    def counted_rows(self, bindings: Sequence[Binding]) -> int:
        """Returns how many rows the bound files say that they have; of a format that does not say so none."""
        files = [file for one in bindings for file in one.files]
        if self.format == "parquet":
            return sum(row_count(self.place, file.path) for file in files)
        found = 0
        if self.format in _AS_PARQUET:
            for file in files:
                with suppress(OSError), self.place.opened(file.path) as opened:  # who reads it says what is wrong
                    is_avro = self.format == "avro"
                    found += avro_files.row_count(opened) if is_avro else orc_files.row_count(opened, file.path)
        return found

    def _contents(self, files: Sequence[tuple[int, BoundFile]]) -> Iterator[tuple[int, str, Iterator[bytes] | Path]]:
        for tick, file in files:
            if self.format == "parquet" and file.size > budget().text_bytes:
                with self._unchanged(file) as folder:
                    yield tick, file.path, folder
            else:
                yield tick, file.path, self._pieces(file)
            advance(file.size, "bytes")  # whoever took it has decoded it

    def _pieces(self, bound: BoundFile) -> Iterator[bytes]:
        """Yields what a bound file holds, whose bytes are those that were bound: of many lines some at a time.

        So what is in memory of a file does not grow with it. That it was not changed meanwhile is known at the end.
        """
        is_compressed = codec_of(bound.path, self.format) is not None
        if not is_of_lines(self.format) or (bound.size <= budget().text_bytes and not is_compressed):
            yield self._content(bound)
            return
        with self._unchanged(bound) as folder:
            yield from whole_lines(self._blocks(folder, bound), budget().text_bytes)

    @contextmanager
    def _unchanged(self, bound: BoundFile) -> Iterator[Path]:
        """Does what `_fetched` does; that the file was not changed in the block is known at its end."""
        with self._fetched(bound) as folder:
            yield folder
            if self.place.folder is not None:  # else it was a copy
                _compare(bound, self.place.hashed(bound.path))

    def _content(self, bound: BoundFile) -> bytes:
        """Returns what a bound file holds, whose bytes are those that were bound."""
        content = self.place.read(bound.path)
        _compare(bound, None if content is None else BoundFile(bound.path, len(content), sha256(content).hexdigest()))
        assert content is not None, "there is none only where it is not as it was bound"
        return content if self._read_as == self.format else b"".join(self._held_in(BytesIO(content), bound))

    def _hash(self, path: str, listing: Listing) -> BoundFile | None:
        now, seen = listing.look(path), self._hashed.get(path)
        if now is None:
            return None
        if seen is not None and seen.identity == now.identity:
            return seen
        check_partition(path, [column for column in self.columns if column.name in self.partition])
        with self.place.fetched(path) as fetched:
            if fetched is None:
                return None
            folder, file = fetched
            head = None
            if codec_of(path, self.format) is not None:
                head, self._held[file] = b"", 0
                for block in self._blocks(folder, file):
                    head += block[: LONGEST_HEADER - len(head)]
                    self._held[file] += len(block)
            if self.format == "csv":
                read_header(folder, path, self.file_columns, head)
            elif self.format == "parquet":
                read_schema(folder, path, self.file_columns)
                check_pages(folder, path)
            elif self._read_as == "json" != self.format:
                for _ in self._blocks(folder, file):
                    pass  # it is read, so that one that is damaged is refused
            elif self.format in _AS_PARQUET:
                _, called = _AS_PARQUET[self.format]
                with TemporaryDirectory(prefix="mz_parquet_") as other:
                    (Path(other) / path).parent.mkdir(parents=True, exist_ok=True)
                    with open(Path(other) / path, "wb") as target:
                        target.writelines(self._blocks(folder, file))
                    read_schema(Path(other), path, self.file_columns, called=called)
            return file


def _remove_left(spool: Path) -> None:
    """Removes the copies that killed processes left."""
    for one in spool.glob(f"{_COPIES}*"):
        with suppress(FileNotFoundError):
            if SYSTEM_CLOCK.now_ms() - one.stat().st_mtime_ns // 1_000_000 > _LEFT_AFTER_MS:
                shutil.rmtree(one, ignore_errors=True)


def _compare(bound: BoundFile, found: BoundFile | None) -> None:
    if found is None:
        raise BoundFileChanged(bound.path, "The file is gone, or is being written to.")
    if found.size != bound.size:
        raise BoundFileChanged(bound.path, f"It had {bound.size} bytes and has {found.size}.")
    if found.sha256 != bound.sha256:
        raise BoundFileChanged(bound.path, f"Its SHA-256 was {bound.sha256} and is {found.sha256}.")
