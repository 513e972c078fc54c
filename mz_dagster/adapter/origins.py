"""What fills a source: from what its definition says to what storage reads."""

from __future__ import annotations

from mz_dagster.adapter.definition import Definition
from mz_dagster.adapter.project import Project
from mz_dagster.errors import InternalError
from mz_dagster.sql import CreateSource, Delta, Files
from mz_dagster.storage.sink.delta_sink import DeltaSink
from mz_dagster.storage.source import FileSource, Source
from mz_dagster.storage.source.delta.delta_source import DeltaSource


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
            return FileSource(
                folder=project.source_folder(files.folder),
                pattern=files.pattern,
                format=files.format,
                columns=columns,
                key=key or None,
                envelope=definition.envelope,
            )
        case Delta() as delta:
            return DeltaSource(project.table_folder(delta.uri), columns, delta.start_version, key)
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
    table = project.output_folder(into.delta.uri)
    return DeltaSink(table, definition.relation_type.columns, into.envelope, id, project_id)


def declared_columns(statement: CreateSource, project: Project) -> str:
    """Returns the columns of the table that a source is of, as CREATE SOURCE declares them.

    Raises:
        FolderNotAllowed: As `source_of`.
        SourceUnreadable: There is no such table, it cannot be read, or it has a column that SQL has no type for.
    """
    assert isinstance(statement.origin, Delta), "others state their columns"
    return DeltaSource(project.table_folder(statement.origin.uri), ()).declaration()
