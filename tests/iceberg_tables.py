"""Iceberg tables as others write them: by pyiceberg, and row-level deletes and compactions by its writers of manifests.

`rows_of` is the reference: row by row what the format's specification says. It is held to what pyiceberg reads, which
has no equality deletes, and DuckDB, which has none by NULL and none of partitions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, cast
from uuid import uuid4
from zlib import crc32

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.deletion_vector import DeletionVector, deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.typedef import Record, TableVersion
from pyiceberg.types import LongType, NestedField, PrimitiveType, StringType
from pyroaring import BitMap64

_POSITION_DELETES = Schema(
    NestedField(2147483546, "file_path", StringType(), required=True),
    NestedField(2147483545, "pos", LongType(), required=True),
)
_ids = count(1)


def catalog_in(folder: Path) -> SqlCatalog:
    """Returns a catalog in SQLite, with its tables beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    made = SqlCatalog("default", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    made.create_namespace_if_not_exists("db")
    return made


@contextmanager
def iceberg_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens a DuckDB that reads Iceberg, and brings no extension from elsewhere."""
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false")
        for one in (duckdb_extension_avro, duckdb_extension_iceberg):
            (path,) = (Path(one.__file__).parent / "extensions").glob("*/*.duckdb_extension")
            connection.load_extension(str(path))
        yield connection


def rows_of(table: Table, *columns: str) -> Counter[tuple[Any, ...]]:
    """Returns the rows of a table as its catalog has it."""
    found = read_rows(table)
    names = columns or [one.name for one in table.refresh().schema().fields]
    return Counter(tuple(row[one] for one in names) for row in found)


def read_rows(table: Table, snapshot: Snapshot | None = None) -> list[dict[str, Any]]:
    """Returns the rows of a table, each file and each delete by itself, as the specification says.

    Args:
        table: Which, as its catalog has it.
        snapshot: At which; None for the newest.
    """
    table = table.refresh()
    now = snapshot or table.current_snapshot()
    entries = entries_of(table, now)
    found = []
    for data in entries:
        if data.data_file.content is not DataFileContent.DATA:
            continue
        rows = _by_id(table, data.data_file)
        left = set(range(len(rows))) - positions_gone(table, entries, data)
        for delete in entries:
            kind, of = delete.data_file.content, delete.data_file
            same = (of.spec_id, repr(of.partition)) == (data.data_file.spec_id, repr(data.data_file.partition))
            everywhere = table.specs()[of.spec_id].is_unpartitioned()
            if kind is DataFileContent.EQUALITY_DELETES and (same or everywhere) and _at(delete) > _at(data):
                gone = {repr([one.get(id) for id in of.equality_ids or ()]) for one in _by_id(table, of)}
                left -= {place for place in left if repr([rows[place].get(id) for id in of.equality_ids or ()]) in gone}
        fields = table.schema().fields
        found += [{one.name: rows[place].get(one.field_id) for one in fields} for place in sorted(left)]
    return found


def entries_of(table: Table, snapshot: Snapshot | None) -> list[ManifestEntry]:
    """Returns the live entries of a snapshot's manifests."""
    manifests = snapshot.manifests(table.io) if snapshot is not None else ()
    return [entry for manifest in manifests for entry in manifest.fetch_manifest_entry(table.io)]


def positions_gone(table: Table, entries: Sequence[ManifestEntry], data: ManifestEntry) -> set[int]:
    """Returns the positions of a data file's rows that position deletes take, or the deletion vector that it has."""
    file = data.data_file
    by_rows: set[int] = set()
    by_vector: set[int] | None = None
    for delete in entries:
        of = delete.data_file
        same = (of.spec_id, repr(of.partition)) == (file.spec_id, repr(file.partition))
        if of.content is not DataFileContent.POSITION_DELETES or not same or _at(delete) < _at(data):
            continue
        if of.file_format is FileFormat.PUFFIN:
            for one in vectors_in(table, of):
                if one.referenced_data_file == file.file_path:
                    by_vector = set(one.to_vector().to_pylist())
        else:
            places = _by_id(table, of)
            by_rows |= {one[2147483545] for one in places if one[2147483546] == file.file_path}
    return by_rows if by_vector is None else by_vector


def vectors_in(table: Table, file: DataFile) -> list[DeletionVector]:
    """Returns the deletion vectors that are in a file."""
    with table.io.new_input(file.file_path).open() as opened:
        return deletion_vectors_from_puffin_file(PuffinFile(opened.read()))


def _at(entry: ManifestEntry) -> int:
    return entry.sequence_number or 0


def _by_id(table: Table, file: DataFile) -> list[dict[int, Any]]:
    with table.io.new_input(file.file_path).open() as opened:
        rows = pq.read_table(opened)
    ids = [int(one.metadata[b"PARQUET:field_id"]) for one in rows.schema]
    return [dict(zip(ids, row.values(), strict=True)) for row in rows.to_pylist()]


def rows_by_duckdb(duck: duckdb.DuckDBPyConnection, table: Table, *columns: str) -> Counter[tuple[Any, ...]]:
    """Returns the rows of a table as its catalog has it, as DuckDB reads them."""
    listed = ", ".join(f'"{one}"' for one in columns)
    location = table.refresh().metadata_location
    return Counter(duck.execute(f"SELECT {listed} FROM iceberg_scan('{location}')").fetchall())


def rows_by_pyiceberg(table: Table, *columns: str) -> Counter[tuple[Any, ...]]:
    """Returns the rows of a table without equality deletes as its catalog has it, as pyiceberg reads them."""
    found = table.refresh().scan().to_arrow().select(list(columns))
    return Counter(zip(*(one.to_pylist() for one in found.columns), strict=True))


# ---- commits that pyiceberg does not make


class _Manifest(ManifestWriterV2):
    """Writes manifests of either content, of version 3 if there are deletion vectors."""

    def __init__(self, content: ManifestContent, version: TableVersion, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._content = content
        self._version = version

    @property
    def version(self) -> TableVersion:
        return self._version

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(self.version)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)

    def content(self) -> ManifestContent:
        return self._content

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": self._content.name.lower()}


def commit(table: Table, operation: Operation, added: Sequence[DataFile] = (), removed: Collection[str] = ()) -> Table:
    """Makes a snapshot that adds files of data and of deletes, and removes some by their paths."""
    table = table.refresh()
    now = table.current_snapshot()
    id = table.metadata.new_snapshot_id()
    sequence = table.metadata.next_sequence_number()

    def written(content: ManifestContent, spec_id: int, entries: Sequence[ManifestEntry]) -> ManifestFile:
        output = table.io.new_output(f"{table.location()}/metadata/{uuid4()}-m.avro")
        version: TableVersion = 3 if any(len(one.data_file) > 16 for one in entries) else 2
        with _Manifest(content, version, table.specs()[spec_id], table.schema(), output, id, "null") as writer:
            for one in entries:
                writer.add_entry(one)
        return writer.to_manifest_file()

    manifests: list[ManifestFile] = []
    for manifest in now.manifests(table.io) if now is not None else ():
        entries = manifest.fetch_manifest_entry(table.io)
        if not any(one.data_file.file_path in removed for one in entries):
            manifests.append(manifest)
            continue
        if any(one.data_file.file_format is FileFormat.PUFFIN for one in entries):
            entries = _entries_of_version_3(manifest, table)
        for one in entries:
            gone = one.data_file.file_path in removed
            one.status = ManifestEntryStatus.DELETED if gone else ManifestEntryStatus.EXISTING
            if gone:
                one.snapshot_id = id
        manifests.append(written(manifest.content, manifest.partition_spec_id, entries))
    for content in ManifestContent:
        of = [one for one in added if (one.content is DataFileContent.DATA) == (content is ManifestContent.DATA)]
        for spec_id in {one.spec_id for one in of}:
            new = [
                ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=id, data_file=one)
                for one in of
                if one.spec_id == spec_id
            ]
            manifests.append(written(content, spec_id, new))
    path = f"{table.location()}/metadata/snap-{id}-{uuid4()}.avro"
    parent = None if now is None else now.snapshot_id
    with write_manifest_list(2, table.io.new_output(path), id, parent, sequence, "null") as writer:
        writer.add_manifests(manifests)
    snapshot = {
        "snapshot-id": id,
        "parent-snapshot-id": parent,
        "sequence-number": sequence,
        "timestamp-ms": max(int(datetime.now(UTC).timestamp() * 1000), table.metadata.last_updated_ms),
        "manifest-list": path,
        "summary": {"operation": operation.value},
        "schema-id": table.metadata.current_schema_id,
    }
    updates = (
        AddSnapshotUpdate(snapshot=Snapshot.model_validate(snapshot)),
        SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": id}),
    )
    table.catalog.commit_table(table, (), updates)
    return table.refresh()


def _entries_of_version_3(manifest: ManifestFile, table: Table) -> list[ManifestEntry]:
    """Returns live entries with the fields that deletion vectors have."""
    with AvroFile[ManifestEntry](
        table.io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        found = [one for one in reader if one.status is not ManifestEntryStatus.DELETED]
    for one in found:
        one.sequence_number = manifest.sequence_number if one.sequence_number is None else one.sequence_number
    return found


def _file(
    table: Table, content: DataFileContent, schema: Schema, rows: pa.Table, spec_id: int, partition: Record, **more: Any
) -> DataFile:
    path = f"{table.location()}/data/{next(_ids)}-{uuid4()}.parquet"
    output = table.io.new_output(path)
    with output.create() as stream:
        pq.write_table(rows.cast(schema_to_pyarrow(schema)), stream)
    made = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=len(rows),
        file_size_in_bytes=len(output),
        **more,
    )
    made.spec_id = spec_id
    return made


def data_files(table: Table, content: DataFileContent = DataFileContent.DATA) -> list[DataFile]:
    """Returns the live files of one kind."""
    now = table.refresh().current_snapshot()
    manifests = [] if now is None else now.manifests(table.io)
    entries = (entry for one in manifests for entry in one.fetch_manifest_entry(table.io))
    return [one.data_file for one in entries if one.data_file.content is content]


def position_deletes(table: Table, of: Mapping[str, Sequence[int]], like: DataFile, *, bounds: bool = True) -> DataFile:
    """Returns a written file of position deletes.

    Args:
        table: Where.
        of: The positions of rows, by the paths of their files.
        like: A file of the same partition.
        bounds: Whether the manifest is to say which files it names.
    """
    pairs = sorted((path, place) for path, places in of.items() for place in places)
    rows = pa.table({"file_path": [path for path, _ in pairs], "pos": [place for _, place in pairs]})
    paths = [path for path, _ in pairs]
    more = {
        "lower_bounds": {2147483546: min(paths).encode()},
        "upper_bounds": {2147483546: max(paths).encode()},
    }
    kind = DataFileContent.POSITION_DELETES
    return _file(table, kind, _POSITION_DELETES, rows, like.spec_id, like.partition, **(more if bounds else {}))


def equality_deletes(
    table: Table, rows: pa.Table, spec_id: int = 0, partition: Record | None = None, *, bounds: bool = False
) -> DataFile:
    """Returns a written file of equality deletes, by all columns of some rows.

    Args:
        table: Where.
        rows: The values of the rows that are to go.
        spec_id: How the partition is one.
        partition: Of which it is; None without partitions.
        bounds: Whether the manifest is to say between which values they are.
    """
    columns = table.schema().select(*rows.column_names)
    optional = Schema(*(one.model_copy(update={"required": False}) for one in columns.fields))
    ids = [one.field_id for one in optional.fields]
    kind = DataFileContent.EQUALITY_DELETES
    return _file(
        table, kind, optional, rows.select([one.name for one in optional.fields]), spec_id,
        Record() if partition is None else partition, equality_ids=ids, **(_bounds(optional, rows) if bounds else {}),
    )  # fmt: skip


def deletion_vectors(table: Table, of: Mapping[str, Sequence[int]], like: DataFile) -> list[DataFile]:
    """Returns deletion vectors, which are in one file.

    Args:
        table: Where.
        of: The positions of rows, by the paths of their files.
        like: A file of the same partition.
    """
    blobs: list[bytes] = []
    for places in of.values():
        vector = bytes([0xD1, 0xD3, 0x39, 0x64]) + BitMap64(places).serialize()
        blobs.append(len(vector).to_bytes(4, "big") + vector + crc32(vector).to_bytes(4, "big"))
    starts = [4 + sum(map(len, blobs[:place])) for place in range(len(blobs))]
    footer = {
        "blobs": [
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": start,
                "length": len(blob),
                "properties": {"referenced-data-file": path, "cardinality": str(len(places))},
            }
            for start, blob, (path, places) in zip(starts, blobs, of.items(), strict=True)
        ]
    }
    said = json.dumps(footer).encode()
    path = f"{table.location()}/data/{next(_ids)}-{uuid4()}.puffin"
    with table.io.new_output(path).create() as stream:
        stream.write(b"PFA1" + b"".join(blobs) + b"PFA1" + said + len(said).to_bytes(4, "little") + bytes(4) + b"PFA1")
    found = []
    for start, blob, (data, places) in zip(starts, blobs, of.items(), strict=True):
        made = DataFile.from_args(
            _table_format_version=3,
            content=DataFileContent.POSITION_DELETES,
            file_path=path,
            file_format=FileFormat.PUFFIN,
            partition=like.partition,
            record_count=len(places),
            file_size_in_bytes=1,
            referenced_data_file=data,
            content_offset=start,
            content_size_in_bytes=len(blob),
        )
        made.spec_id = like.spec_id
        found.append(made)
    return found


def _bounds(schema: Schema, rows: pa.Table) -> dict[str, dict[int, Any]]:
    found = {
        one.field_id: pc.min_max(rows.column(one.name)).as_py() | {"nulls": rows.column(one.name).null_count}
        for one in schema.fields
    }
    types = {one.field_id: cast(PrimitiveType, one.field_type) for one in schema.fields}
    return {
        "lower_bounds": {id: to_bytes(types[id], one["min"]) for id, one in found.items()},
        "upper_bounds": {id: to_bytes(types[id], one["max"]) for id, one in found.items()},
        "null_value_counts": {id: one["nulls"] for id, one in found.items()},
    }


def compact(table: Table) -> Table:
    """Rewrites all that a table has, without deletes."""
    table = table.refresh()
    rows = pa.Table.from_pylist(read_rows(table), schema_to_pyarrow(table.schema(), include_field_ids=False))
    added = list(_dataframe_to_data_files(table.metadata, rows, table.io)) if len(rows) else []
    for one in added:
        one.spec_id = table.metadata.default_spec_id
    removed = {one.file_path for content in DataFileContent for one in data_files(table, content)}
    return commit(table, Operation.REPLACE, added, removed)


def rebuilt(catalog: Catalog, rows: pa.Table) -> Table:
    """Returns another table `db.t`, made of rows."""
    catalog.drop_table("db.t")
    made = catalog.create_table("db.t", rows.schema)
    made.append(rows)
    return made
