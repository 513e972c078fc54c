"""Applying a project: the catalog comes to hold what the project's files define, in one transaction.

What is new is created. What changed, and everything that reads it, gets new ids and hydrates at the next step, while
the old collections stay readable under their ids as long as something uses them; the names move in one swap. What the
files no longer define is reported and left alone: dropping is a statement. A table whose columns changed is refused,
since its rows exist nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.project_files import BadProjectFile, ProjectObject
from mz_dagster.catalog import Catalog, NewObject, ObjectRow, Ref
from mz_dagster.formalism import GlobalId


@dataclass(frozen=True, slots=True)
class Applied:
    """Is what applying a project did, by name.

    Attributes:
        created: What was new.
        replaced: What changed, or reads what changed, and hydrates anew.
        kept: What is as it was.
        orphaned: What the catalog holds and the files do not define.
    """

    created: tuple[str, ...]
    replaced: tuple[str, ...]
    kept: tuple[str, ...]
    orphaned: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """True if the catalog was changed."""
        return bool(self.created or self.replaced)


def apply_objects(catalog: Catalog, definitions: CatalogDefinitions, objects: Sequence[ProjectObject]) -> Applied:
    """Makes the catalog hold the objects; see the module's docstring.

    Args:
        catalog: The catalog.
        definitions: What the catalog holds, bound.
        objects: What the project's files define, each after those it reads.

    Raises:
        BadProjectFile: A table was changed, or an object bears the name of one of another kind.
    """
    existing = {row.name: row for row in catalog.objects() if row.name is not None}
    reads: dict[GlobalId, GlobalId | Ref] = {}  # a file's name for an object -> what it is in the catalog
    fresh: list[NewObject] = []
    dropped: list[GlobalId] = []
    created: list[str] = []
    replaced: list[str] = []
    kept: list[str] = []
    for one in objects:
        row = existing.get(one.name)
        if row is not None and _same(one, row, reads):
            reads[GlobalId(one.name)] = row.id
            kept.append(one.name)
            continue
        if row is not None:
            _check_replaceable(one, row)
            dropped.append(row.id)
        fresh.extend(definitions.new_objects(one.definition, fresh, reads))
        reads[GlobalId(one.name)] = Ref(len(fresh) - 1)
        (created if row is None else replaced).append(one.name)
    if fresh:
        catalog.swap(fresh, dropped)
    orphaned = existing.keys() - {one.name for one in objects}
    return Applied(tuple(created), tuple(replaced), tuple(kept), tuple(sorted(orphaned)))


def _same(one: ProjectObject, row: ObjectRow, reads: dict[GlobalId, GlobalId | Ref]) -> bool:
    """True if the object is in the catalog with the same definition over the same inputs."""
    wanted = {name: reads.get(id, id) for name, id in one.definition.dependencies.items()}
    return (
        row.kind == one.definition.kind
        and row.sql == one.definition.text
        and row.timeline == one.definition.timeline
        and all(row.dependencies.get(name) == id for name, id in wanted.items())
    )


def _check_replaceable(one: ProjectObject, row: ObjectRow) -> None:
    if row.kind != one.definition.kind:
        raise BadProjectFile(
            f'{one.path}:{one.line}: "{one.name}" is a {row.kind} in the catalog, and a {one.definition.kind} here',
            hint=f"Choose another name, or drop it first: DROP {row.kind.upper()} {one.name}.",
        )
    if row.kind == "table":
        raise BadProjectFile(
            f'{one.path}:{one.line}: the definition of table "{one.name}" changed',
            detail="Its rows exist nowhere else, so it is not replaced.",
            hint="Change it back, or create a table of another name and copy the rows.",
        )
