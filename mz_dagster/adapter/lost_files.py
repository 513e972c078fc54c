"""Files that a source has read and that are not found: one that takes its place could not read them again.

Files may go once they are sealed, so what only they told is in the source's collection alone. Therefore such a source
is not replaced unless that is asked for, as a table is not, whose rows exist nowhere else. It gets columns as a table
does, and has NULL there in what it has read (`sequence.alter_source`).
"""

from __future__ import annotations

from collections.abc import Collection

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import Action, Change, ChangePlan
from mz_dagster.adapter.origins import source_of
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import BadProjectFile
from mz_dagster.catalog import Catalog
from mz_dagster.errors import Error
from mz_dagster.sql import AlterSource
from mz_dagster.sql.source_changes import alteration_to_source
from mz_dagster.storage.source import FileSource


def lost_files(change: Change, catalog: Catalog, definitions: CatalogDefinitions, project: Project) -> int:
    """Returns how many of the files that a source has read are found neither where it nor where the new one reads."""
    return _lost(change, catalog, definitions, project)[0]


def _lost(
    change: Change, catalog: Catalog, definitions: CatalogDefinitions, project: Project
) -> tuple[int, dict[str, None]]:
    """Returns that, and why it could not be looked in a place."""
    unread: dict[str, None] = {}
    if change.action is not Action.REPLACE or change.old is None or change.old.kind != "source":
        return 0, unread
    lost = set(catalog.bound_files(change.old.id))
    for definition in (definitions.definition_of(change.old), change.object.definition):
        try:
            source = source_of(definition, project)
            if lost and isinstance(source, FileSource):
                lost -= source.ready().keys()
        except Error as error:  # nothing can be read there, or settings do not let it be read any more
            unread[error.message] = None
    return len(lost), unread


def grown_sources(plan: ChangePlan, lost: Collection[str]) -> dict[str, AlterSource]:
    """Returns what adds the columns that sources have more in files than in the catalog, by their names.

    Args:
        plan: In which they are replaced.
        lost: Those of which files are gone; what differs in more than columns behind the others is left out.
    """
    found = {}
    for change in plan.changes:
        if change.name in lost and change.old is not None:
            alteration = alteration_to_source(change.old.sql, change.object.definition.text)
            if alteration is not None and change.old.name == change.name:
                found[change.name] = alteration
    return found


def irreplaceable_sources(
    plan: ChangePlan, catalog: Catalog, definitions: CatalogDefinitions, project: Project
) -> dict[str, BadProjectFile]:
    """Returns why sources are not replaced, by their names."""
    found = {}
    for change in plan.changes:
        count, unread = _lost(change, catalog, definitions, project)
        if count:
            one = change.object
            files = "1 file" if count == 1 else f"{count} files"
            detail = f"It is to be made anew because {change.reason}. Only what is found now would be read again."
            found[one.name] = BadProjectFile(
                f'{one.path}:{one.line}: source "{one.name}" is not replaced: {files} that it has read cannot be found',
                detail=" ".join([detail, *(f"{said[0].upper()}{said[1:]}." for said in unread)]),
                hint="Put them back, or change it back: only columns that may be NULL are added, behind the others. "
                '"mz-dagster apply --drop" replaces it all the same.',
            )
    return found
