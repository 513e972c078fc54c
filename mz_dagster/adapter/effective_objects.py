"""The objects in effect of a project: what its files define, and of what is wrong in them what was applied last.

Dagster loads its assets from here. While the files are right, that needs no catalog, and one that cannot be looked at
keeps nothing from being loaded. Of an object with a fault the catalog holds the last definition that was applied, by
which it goes on; it is shown by that, with its fault.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace

from mz_dagster.adapter.annotations import Annotations
from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import plan_changes
from mz_dagster.adapter.definition import Definition
from mz_dagster.adapter.file_indexes import indexed
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import Fault, ProjectFiles, ProjectObject, by_cause, load_project, some_of
from mz_dagster.catalog import Catalog, ObjectRow
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId

logger = logging.getLogger("mz_dagster.definitions")


def effective_objects(project: Project) -> tuple[ProjectObject, ...]:
    """Returns the objects in effect, each after those it reads.

    What is wrong and was never applied is left out.

    Raises:
        BadProjectFile: Something in the files is wrong, and the project is strict.
        CatalogUnavailable: Something in the files is wrong, and what was applied last cannot be looked up.
    """
    files = load_project(project)
    if project.strict:
        for fault in files.faults:
            raise fault.error
    try:
        catalog = Catalog.open_made(project.catalog_url)
    except Error:
        if files.faults:
            raise
        return indexed(files)
    if catalog is None:
        for fault, waiting in by_cause(files.faults):
            also = f"; nor is what reads it: {some_of(waiting, ', ')}" if waiting else ""
            logger.error("not defined: %s%s", fault.error, also)
        return indexed(files)
    with catalog:
        return _EffectiveObjects(project, catalog, files).objects()


class _EffectiveObjects:
    def __init__(self, project: Project, catalog: Catalog, files: ProjectFiles) -> None:
        rows = catalog.objects()
        self._definitions = CatalogDefinitions(catalog, project)
        self._plan = plan_changes(files, rows, self._definitions)
        self._rows = {row.id: row for row in rows}
        self._files = {one.name: one for one in files.objects}
        self._faults = {one.name: one for one in self._plan.faults if one.name is not None}

    def objects(self) -> tuple[ProjectObject, ...]:
        found = {one.name: one.object for one in self._plan.changes}
        for row in self._rows.values():
            if row.name is not None and row.name in self._faults:
                found[row.name] = self._applied(row, self._faults[row.name])
        for fault in self._plan.faults:
            if fault.waits_for is None:
                logger.error("not as the files say: %s", fault.error)
        return tuple(_sorted(found))

    def _applied(self, row: ObjectRow, fault: Fault) -> ProjectObject:
        """Returns an object as it was applied last."""
        views = [self._rows[id] for id in sorted(row.dependencies.values()) if id in self._rows]
        nested = [self._applied(one, fault) for one in views if one.kind == "view"]
        every = {one.name: one for view in nested for one in (view, *view.views)}
        said = self._files.get(str(row.name))
        return ProjectObject(
            self._definition(row),
            fault.path,
            fault.line,
            (row.comments.get("") if said is None else said.comment),
            Annotations() if said is None else said.annotations,
            {name: text for name, text in row.comments.items() if name} if said is None else said.column_comments,
            tuple(every.values()),
            fault.error,
        )

    def _definition(self, row: ObjectRow) -> Definition:
        """Returns the definition in the catalog; what it reads is called by its names now, as in files."""
        name = row.name or row.created_as or row.id
        try:
            stored = self._definitions.definition(row.id)
        except Error:  # its own check says so
            stored = Definition(row.kind, name, row.sql, row.relation_type, row.timeline, {})
        reads = {called: self._rows[id].name for called, id in stored.dependencies.items() if id in self._rows}
        named = {called: GlobalId(read) for called, read in reads.items() if read is not None}
        check = stored.check
        if check is not None and check.on.id in self._rows:
            check = replace(check, on=replace(check.on, id=GlobalId(str(self._rows[check.on.id].name))))
        indexes = tuple(GlobalId(read) for id in stored.indexes if (read := self._rows[id].name) is not None)
        return replace(stored, name=name, dependencies=named, check=check, indexes=indexes)


def _sorted(objects: Mapping[str, ProjectObject]) -> Iterator[ProjectObject]:
    """Yields objects, each after those it reads."""
    pending = dict(objects)

    def visit(name: str) -> Iterator[ProjectObject]:
        one = pending.pop(name, None)
        if one is not None:
            for read in one.depends:
                yield from visit(read)
            yield one

    for name in objects:
        yield from visit(name)
