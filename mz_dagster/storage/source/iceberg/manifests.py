"""Reads the manifests of snapshots.

They are files of Avro, which fastavro decodes: pyiceberg's decoder looks nowhere whether what it reads is still of the
file, so that a damaged one ended the process, or was read as one of fewer files. What is not a whole file with nothing
behind it is an error. Fields are told by their numbers, as the specification has it, of any version of the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any, Final, TypeGuard, cast

from fastavro import block_reader, parse_schema, schemaless_reader
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS_STRUCT,
    MANIFEST_LIST_FILE_STRUCTS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record
from pyiceberg.types import MapType, StructType

#: The version of the format whose fields are read, which has those of all before it.
_VERSION: Final = 3


class ReadFile(DataFile):
    """A file of a manifest, of any version of the format."""

    @property
    def referenced_data_file(self) -> str | None:
        """The data file that a deletion vector is of."""
        return cast(str | None, self._data[17])

    @property
    def content_range(self) -> tuple[int, int]:
        """Where in its file a deletion vector is, and how long."""
        return cast(int, self._data[18]), cast(int, self._data[19])


def is_vector(file: DataFile) -> TypeGuard[ReadFile]:
    """Returns whether a delete file is a deletion vector."""
    return file.content is DataFileContent.POSITION_DELETES and file.file_format is FileFormat.PUFFIN


def manifests_of(snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """Returns the manifests of a snapshot.

    Raises:
        Exception: Of any kind, if the list of them is damaged.
    """
    schema, records = _decoded(io, snapshot.manifest_list)
    fields = _Fields(schema, MANIFEST_LIST_FILE_STRUCTS)
    found = []
    for record in records:
        values = fields.of(record)
        values["content"] = ManifestContent(values.get("content", ManifestContent.DATA))
        found.append(ManifestFile.from_args(_VERSION, **values))
    return found


def live_entries(manifest: ManifestFile, io: FileIO) -> list[ManifestEntry]:
    """Returns the entries of a manifest that are no deleted ones.

    Raises:
        Exception: Of any kind, if it is damaged.
    """
    schema, records = _decoded(io, manifest.manifest_path, manifest.manifest_length)
    fields = _Fields(schema, MANIFEST_ENTRY_SCHEMAS_STRUCT)
    of_files = _Fields(fields.schema_of("data_file"), DATA_FILE_TYPE)
    found = []
    for record in records:
        values = fields.of(record)
        status = values["status"] = ManifestEntryStatus(values["status"])
        if status is ManifestEntryStatus.DELETED:
            continue
        if values.get("sequence_number") is None and status is ManifestEntryStatus.ADDED:
            values["sequence_number"] = manifest.sequence_number
        file = of_files.of(values["data_file"])
        file["content"] = DataFileContent(file.get("content", DataFileContent.DATA))
        file["file_format"] = FileFormat(file["file_format"])
        file["partition"] = Record(*file["partition"].values())
        values["data_file"] = ReadFile.from_args(_VERSION, **file)
        values["data_file"].spec_id = manifest.partition_spec_id
        found.append(ManifestEntry.from_args(_VERSION, **values))
    return found


class _Fields:
    """Which fields of Avro's records are which of Iceberg's, by their numbers.

    Args:
        schema: Of the records.
        structs: Iceberg's fields, by versions of the format.

    Raises:
        ValueError: The records do not have those that each version requires.
    """

    def __init__(self, schema: Mapping[str, Any], structs: Mapping[int, StructType]) -> None:
        known = {one.field_id: one for one in structs[_VERSION].fields}
        self._read = [(one, known[one["field-id"]]) for one in schema["fields"] if one["field-id"] in known]
        names = {one.name for _, one in self._read}
        always = {one.name for one in structs[1].fields if one.required}
        if lacking := sorted(name for name in always & {one.name for one in known.values()} if name not in names):
            raise ValueError(f"it has no {', '.join(lacking)}")

    def schema_of(self, name: str) -> Mapping[str, Any]:
        """Returns the schema of a field's records."""
        return next(cast(Mapping[str, Any], one["type"]) for one, known in self._read if known.name == name)

    def of(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a record's values, by Iceberg's names."""
        found = {known.name: record[one["name"]] for one, known in self._read}
        for _, known in self._read:
            if isinstance(known.field_type, MapType) and isinstance(pairs := found[known.name], list):
                found[known.name] = {pair["key"]: pair["value"] for pair in pairs}
        return found


def _decoded(io: FileIO, path: str, least: int = 0) -> tuple[Mapping[str, Any], Iterator[Mapping[str, Any]]]:
    """Returns the schema of a file of Avro, and its records.

    Args:
        io: What opens it.
        path: Where it is.
        least: How long it is at least, in bytes.

    Raises:
        Exception: Of any kind, if it is damaged.
    """
    with io.new_input(path).open() as opened:
        content = opened.read()
    if len(content) < least:
        raise ValueError(f"{path} has {len(content)} bytes of {least}")
    file = BytesIO(content)
    blocks = block_reader(file)
    end = file.tell()
    schema = _plain(json.loads(blocks.metadata["avro.schema"]))
    parsed = parse_schema(schema)

    def records() -> Iterator[Mapping[str, Any]]:
        nonlocal end
        for block in blocks:
            end = block.offset + block.size
            stored: BytesIO = block.bytes_  # type: ignore[attr-defined]  # its stubs do not have it
            for _ in range(block.num_records):
                yield cast(Mapping[str, Any], schemaless_reader(stored, parsed, None))
            if stored.read(1):
                raise ValueError(f"a block of {path} has more than its records")
        if end != len(content):
            raise ValueError(f"{path} ends within a block")

    return schema, records()


def _plain(schema: Any) -> Any:
    """Returns a schema whose values are stored ones: a date may be of a year that no date of Python's has."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if isinstance(schema, dict):
        is_kept = schema.get("logicalType") == "decimal"  # of which more than one stored value may be the same
        return {name: _plain(one) for name, one in schema.items() if name != "logicalType" or is_kept}
    return schema
