"""Files that a source has read and that are gone: one that takes its place could not read them again.

Files may go once they are sealed, so what only they told is in the source's collection alone. Therefore such a source
is not replaced unless that is asked for, as a table is not, whose rows exist nowhere else.
"""

from __future__ import annotations

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import Action, Change, ChangePlan
from mz_dagster.adapter.origins import source_of
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import BadProjectFile
from mz_dagster.catalog import Catalog
from mz_dagster.errors import Error
from mz_dagster.storage.source import FileSource, SourceUnreadable


def lost_files(change: Change, catalog: Catalog, definitions: CatalogDefinitions, project: Project) -> int:
    """Returns how many of the files that a source has read are neither where it nor where the new one reads."""
    if change.action is not Action.REPLACE or change.old is None or change.old.kind != "source":
        return 0
    gone = set(catalog.bound_files(change.old.id))
    for definition in (definitions.definition_of(change.old), change.object.definition):
        try:
            source = source_of(definition, project)
            if gone and isinstance(source, FileSource):
                gone -= source.ready().keys()
        except SourceUnreadable:
            pass  # nothing of it is there
        except Error:
            pass  # nor if settings do not let it be read any more
    return len(gone)


def irreplaceable_sources(
    plan: ChangePlan, catalog: Catalog, definitions: CatalogDefinitions, project: Project
) -> dict[str, BadProjectFile]:
    """Returns why sources are not replaced, by their names."""
    found = {}
    for change in plan.changes:
        if count := lost_files(change, catalog, definitions, project):
            one = change.object
            said = "1 file that it has read is" if count == 1 else f"{count} files that it has read are"
            found[one.name] = BadProjectFile(
                f'{one.path}:{one.line}: source "{one.name}" is not replaced: {said} gone',
                detail=f"It would read only what is there now, for {change.reason}; the rest exists nowhere else.",
                hint='Put them back, or change it back; "mz-dagster apply --drop" replaces it all the same.',
            )
    return found
