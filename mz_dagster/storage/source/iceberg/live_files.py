"""Which data files a snapshot has, and which delete files may take rows of each.

A snapshot s is the multiset

    content(s) = { (data file, the delete files that apply to it) }

and its rows are the sum of what each pair leaves, so two snapshots differ by what is in one content and not in the
other. A delete file applies to data files of its own partition (equality deletes of an unpartitioned table: to all):
equality deletes to those of an earlier sequence number, position deletes also to those of the same. A deletion vector
applies to one data file, and takes the place of its position deletes. Bounds that manifests say may leave a pair out
that no row would match.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from struct import error as StructError
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import DoubleType, FloatType, PrimitiveType

from mz_dagster.storage.source.errors import UnknownFeature
from mz_dagster.storage.source.iceberg.data_files import PATH_ID
from mz_dagster.storage.source.iceberg.manifests import is_vector, live_entries, manifests_of
from mz_dagster.storage.source.iceberg.table_schema import Fields

_Partition = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of a snapshot.

    Attributes:
        path: Which.
        deletes: The delete files that may take rows of it, by what tells them apart: their paths, and of deletion
            vectors also where in the file they are.
    """

    path: str
    deletes: frozenset[str]


@dataclass(frozen=True)
class LiveFiles:
    """The files of a table's snapshots.

    Attributes:
        table: What the table is called.
        metadata: Of the table.
        fields: Its columns.
        io: What opens its files.
        data: The data files that were met, by their paths.
        deletes: The delete files, by what tells them apart.
    """

    table: str
    metadata: TableMetadata
    fields: Fields
    io: FileIO
    data: dict[str, DataFile] = field(default_factory=dict)
    deletes: dict[str, DataFile] = field(default_factory=dict)
    _entries: dict[str, Sequence[ManifestEntry]] = field(default_factory=dict)

    def difference(self, before: Snapshot | None, after: Snapshot | None) -> Mapping[LiveFile, int]:
        """Returns the files whose rows are those of `after` less those of `before`, with how often each counts.

        Raises:
            UnknownFeature: A file is of a kind that is not read.
        """
        sides = [(self._manifests(after), 1), (self._manifests(before), -1)]
        indexes = [_DeleteIndex(self, self._of(manifests, ManifestContent.DELETES)) for manifests, _ in sides]
        shared: set[str] = set()
        if indexes[0].known == indexes[1].known:
            shared = {one.manifest_path for one in sides[0][0]} & {one.manifest_path for one in sides[1][0]}
        net: Counter[LiveFile] = Counter()
        for (manifests, sign), index in zip(sides, indexes, strict=True):
            for entry in self._of(manifests, ManifestContent.DATA, shared):
                file = entry.data_file
                self.data[file.file_path] = file
                net[LiveFile(file.file_path, index.of(entry))] += sign
        return {file: count for file, count in net.items() if count}

    def _manifests(self, snapshot: Snapshot | None) -> Sequence[ManifestFile]:
        return () if snapshot is None else manifests_of(snapshot, self.io)

    def _of(
        self, manifests: Sequence[ManifestFile], content: ManifestContent, without: set[str] | None = None
    ) -> Iterator[ManifestEntry]:
        """Yields the entries of the manifests of one kind, but for some."""
        for manifest in manifests:
            path = manifest.manifest_path
            if manifest.content != content or path in (without or ()):
                continue
            if path not in self._entries:
                self._entries[path] = live_entries(manifest, self.io)
                for entry in self._entries[path]:
                    self._check(entry.data_file)
            yield from self._entries[path]

    def _check(self, file: DataFile) -> None:
        """Raises if a file is not read here."""
        asked = None
        if file.key_metadata is not None:
            asked = "encrypted files"
        elif is_vector(file) and file.referenced_data_file is None:
            asked = "deletion vectors of no file"
        elif file.file_format is not FileFormat.PARQUET and not is_vector(file):
            asked = f"files of {file.file_format.value.capitalize()}"
        elif file.content is DataFileContent.EQUALITY_DELETES and any(
            isinstance(self.fields[id].field_type, FloatType | DoubleType) for id in file.equality_ids or ()
        ):
            asked = "equality deletes by floats"
        if asked is not None:
            raise UnknownFeature(
                f"{self.table} has {asked}, which are not read",
                detail=f'One is "{file.file_path}".',
                hint="Have it rewritten with Parquet files, without encryption and without deletes by floats; then "
                "ALTER SOURCE ... RESET reads the difference between what the source holds and the newest snapshot.",
            )


class _DeleteIndex:
    """The delete files of a snapshot, by what they may apply to."""

    def __init__(self, files: LiveFiles, entries: Iterator[ManifestEntry]) -> None:
        self._files = files
        self._everywhere: list[ManifestEntry] = []
        self._of_partition: dict[_Partition, list[ManifestEntry]] = defaultdict(list)
        self._of_path: dict[str, list[ManifestEntry]] = defaultdict(list)
        #: What it has.
        self.known: set[tuple[str, int]] = set()
        specs = files.metadata.specs()
        for entry in entries:
            file = entry.data_file
            files.deletes[_key(file)] = file
            self.known.add((_key(file), _sequence(entry)))
            path = file.referenced_data_file if is_vector(file) else _only_path(file)
            if file.content is DataFileContent.EQUALITY_DELETES and _is_unpartitioned(specs[file.spec_id]):
                self._everywhere.append(entry)
            elif path is not None:
                self._of_path[path].append(entry)
            else:
                self._of_partition[_partition(file)].append(entry)

    def of(self, entry: ManifestEntry) -> frozenset[str]:
        """Returns the delete files that may take rows of a data file."""
        if not self.known:
            return frozenset()
        file = entry.data_file
        deletes = [*self._everywhere, *self._of_partition[_partition(file)], *self._of_path[file.file_path]]
        found = [one.data_file for one in deletes if self._applies(one, entry)]
        if any(is_vector(one) for one in found):  # which has what position deletes said before it
            found = [one for one in found if is_vector(one) or one.content is DataFileContent.EQUALITY_DELETES]
        return frozenset(map(_key, found))

    def _applies(self, delete: ManifestEntry, entry: ManifestEntry) -> bool:
        if delete.data_file.content is DataFileContent.EQUALITY_DELETES:
            return _sequence(delete) > _sequence(entry) and self._may_match(delete.data_file, entry.data_file)
        is_later = _sequence(delete) >= _sequence(entry)
        return is_later and (is_vector(delete.data_file) or _may_name(delete.data_file, entry.data_file.file_path))

    def _may_match(self, delete: DataFile, file: DataFile) -> bool:
        """Returns whether a row of a data file may have the values of a row of an equality delete file."""
        for id in delete.equality_ids or ():
            type_ = self._files.fields[id].field_type
            assert isinstance(type_, PrimitiveType), "deletes are by values"
            if all((one.null_value_counts or {}).get(id, 1) for one in (delete, file)):
                continue  # both may have NULL
            sides = [
                (_bound(one.lower_bounds, id, type_), _bound(one.upper_bounds, id, type_)) for one in (delete, file)
            ]
            (least, greatest), (lower, upper) = sides
            if None not in (least, greatest, lower, upper) and (greatest < lower or upper < least):
                return False
        return True


def commits(metadata: TableMetadata, before: Snapshot | None, after: Snapshot) -> Sequence[Snapshot] | None:
    """Returns the snapshots after one up to another, in order; None if it is not known that the one leads there."""
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    found: list[Snapshot] = []
    at: Snapshot | None = after
    while at is not None and (before is None or at.snapshot_id != before.snapshot_id):
        found.append(at)
        if at.parent_snapshot_id is None:
            return found[::-1] if before is None else None
        at = by_id.get(at.parent_snapshot_id)
    return None if at is None else found[::-1]


def is_rewrite(snapshot: Snapshot) -> bool:
    """Returns whether a snapshot says that it has its parent's rows."""
    return snapshot.summary is not None and snapshot.summary.operation is Operation.REPLACE


def spans(
    metadata: TableMetadata, before: Snapshot | None, after: Snapshot
) -> Sequence[tuple[Snapshot | None, Snapshot]]:
    """Returns pairs of snapshots whose differences sum to that of two, and which leave out what only rewrites."""
    way = commits(metadata, before, after)
    if way is None:
        return [(before, after)]
    found: list[tuple[Snapshot | None, Snapshot]] = []
    start = at = before
    for one in way:
        if is_rewrite(one):
            if at is not None and at is not start:
                found.append((start, at))
            start = one
        at = one
    if at is not None and at is not start:
        found.append((start, at))
    return found


def _key(file: DataFile) -> str:
    """Returns what tells a delete file from others: many deletion vectors are in one file."""
    return f"{file.file_path}#{file.content_range[0]}" if is_vector(file) else file.file_path


def _sequence(entry: ManifestEntry) -> int:
    return entry.sequence_number or 0


def _is_unpartitioned(spec: PartitionSpec) -> bool:
    return all(isinstance(one.transform, VoidTransform) for one in spec.fields)


def _partition(file: DataFile) -> _Partition:
    """Returns a file's partition, by texts: values that are not equal to themselves are one."""
    return file.spec_id, tuple(repr(file.partition[place]) for place in range(len(file.partition)))


def _only_path(delete: DataFile) -> str | None:
    """Returns the only data file that a position delete file names, if it says so."""
    lower, upper = ((bounds or {}).get(PATH_ID) for bounds in (delete.lower_bounds, delete.upper_bounds))
    is_one = delete.content is DataFileContent.POSITION_DELETES and lower is not None and lower == upper
    return lower.decode() if is_one and lower is not None else None


def _may_name(delete: DataFile, path: str) -> bool:
    lower, upper = ((bounds or {}).get(PATH_ID) for bounds in (delete.lower_bounds, delete.upper_bounds))
    return lower is None or upper is None or lower <= path.encode() <= upper


def _bound(bounds: Mapping[int, bytes] | None, id: int, type_: PrimitiveType) -> Any:
    """Returns a bound, None if it is not known; of before a type was widened it is not."""
    content = (bounds or {}).get(id)
    try:
        return None if content is None else from_bytes(type_, content)
    except (StructError, ValueError, TypeError):
        return None
