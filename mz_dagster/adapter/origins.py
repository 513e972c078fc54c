"""What fills a source: from what its definition says to what storage reads."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from mz_dagster.adapter.definition import Definition, Means, means_of
from mz_dagster.adapter.project import Project
from mz_dagster.errors import InternalError, NotSupportedError
from mz_dagster.plan.resolver import Resolver
from mz_dagster.scalars.types import Column
from mz_dagster.sql import CreateSource, Delta, Files, Iceberg
from mz_dagster.storage.iceberg_catalog import IcebergCatalog
from mz_dagster.storage.object_store import ObjectStore, Web
from mz_dagster.storage.sink.delta_sink import FILE_BYTES, DeltaSink
from mz_dagster.storage.source import FileSource, Source, ensure_orc_is_read
from mz_dagster.storage.source.delta.delta_source import DeltaSource
from mz_dagster.storage.source.file_place import FilePlace
from mz_dagster.storage.source.folder import InFolder
from mz_dagster.storage.source.table_source import TableSource
from mz_dagster.storage.table_place import Folder, InStore, TablePlace

if TYPE_CHECKING:
    from mz_dagster.storage.source.iceberg.iceberg_source import IcebergSource


def source_of(definition: Definition, project: Project) -> Source:
    """Returns what a source's definition names.

    Raises:
        FolderNotAllowed: It is outside of the project, in a folder that its settings do not name.
        NotSupportedError: It is not in a file system of this machine.
    """
    names, columns = definition.relation_type.names, definition.relation_type.columns
    key = tuple(names[position] for position in definition.key)
    match definition.origin:
        case Files() as files:
            if files.format == "avro" and find_spec("fastavro") is None:
                raise NotSupportedError(
                    "files of Avro need a package that is not there: fastavro",
                    hint="Install it where this process runs: pip install 'mz_dagster[avro]'.",
                )
            if files.format == "orc":
                ensure_orc_is_read()
            return FileSource(
                place=_file_place(files, definition.means, project),
                pattern=files.pattern,
                format=files.format,
                columns=columns,
                key=key or None,
                envelope=definition.envelope,
                debezium=files.debezium,
                partition=files.partition,
                spool=project.state / "copies",
                names_ascend=files.names_ascend,
            )
        case Delta() | Iceberg() as table:
            return _of_table(table, definition.means, project, columns, key)
        case None:
            raise InternalError(f'"{definition.name}" is no source')


def sink_of(definition: Definition, id: str, project: Project, project_id: str) -> DeltaSink:
    """Returns what a sink's definition names.

    Args:
        definition: The sink's.
        id: The sink's own, which no other ever has.
        project: Where paths lead from.
        project_id: The catalog's own id, by which sinks know what others of the project wrote.

    Raises:
        FolderNotAllowed: It is where nothing may be written.
        NotSupportedError: It is not in a file system of this machine.
    """
    into = definition.sink
    assert into is not None, "it is a sink"
    store = definition.means
    table = Folder(project.output_folder(into.delta.uri)) if store is None else _table(into.delta.uri, store, project)
    return DeltaSink(
        table,
        definition.relation_type.columns,
        into.envelope,
        id,
        project_id,
        key=tuple(definition.relation_type.names[one] for one in definition.key),
        partition=into.layout.partition,
        file_bytes=into.layout.file_bytes or FILE_BYTES,
    )


def _file_place(files: Files, means: Means | None, project: Project) -> FilePlace:
    """Returns where the files of a source are."""
    if isinstance(means, Web):
        from mz_dagster.storage.source.web import OnWeb  # as below

        folder, _, index = files.folder.rpartition("/")
        return OnWeb(folder, means, project.root, index)
    if isinstance(means, ObjectStore):
        from mz_dagster.storage.source.bucket import InBucket  # no other source needs its library

        return InBucket(files.folder.rstrip("/"), means, project.root)
    return InFolder(project.source_folder(files.folder))


def _of_table(
    origin: Delta | Iceberg, means: Means | None, project: Project, columns: tuple[Column, ...], key: tuple[str, ...]
) -> TableSource:
    if isinstance(origin, Delta):
        return DeltaSource(_table(origin.uri, means, project), columns, origin.start_version, key)
    assert isinstance(means, IcebergCatalog), "its connection leads to a catalog"
    source = _iceberg_source()
    return source(means, origin.table, columns, project.root, project.source_file, origin.start_snapshot, key)


def _iceberg_source() -> type[IcebergSource]:
    """Returns the class of sources of Iceberg tables, for which pyiceberg has to be there.

    Raises:
        NotSupportedError: It is not.
    """
    try:
        from mz_dagster.storage.source.iceberg.iceberg_source import IcebergSource
    except ModuleNotFoundError as error:
        raise NotSupportedError(
            f"Iceberg tables need a package that is not there: {error.name}",
            hint="Install it where this process runs: pip install 'mz_dagster[iceberg]'.",
        ) from error
    return IcebergSource


def _table(uri: str, store: Means | None, project: Project) -> TablePlace:
    """Returns where a table is that is to be read, or that is in a store."""
    return InStore(uri, store, project.root) if isinstance(store, ObjectStore) else Folder(project.table_folder(uri))


def declared_columns(statement: CreateSource, resolver: Resolver, project: Project) -> str:
    """Returns the columns of the table that a source is of, as CREATE SOURCE declares them.

    Raises:
        FolderNotAllowed: As `source_of`.
        SourceUnreadable: There is no such table, it cannot be read, or it has a column that SQL has no type for.
    """
    assert not isinstance(statement.origin, Files), "they state their columns"
    return _of_table(statement.origin, means_of(statement.origin, resolver)[1], project, (), ()).declaration()
