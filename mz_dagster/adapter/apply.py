"""Applying a project: the catalog comes to hold what the project's files define, in one transaction.

Carries out a change plan. What is new is created. What changed, and everything that reads it, gets new ids and hydrates
at the next step, while the old collections stay readable under their ids as long as something uses them; the names move
in one swap. So does what this release plans otherwise than the one that made it (`replanning`), before all else and
whoever made it. What has another name or other words, and computes what it did, keeps its contents. A connection or a
secret that changed leads elsewhere from then on, and what uses it goes on with it. A table gets new columns, defaults
and constraints before all that (`applying`); one that would lose values is refused, since its rows exist nowhere else.
What the files no longer define is dropped only if that is asked for, and so is what only lost files told
(`lost_files`), but that a source gets columns beside it.

What cannot be used of the files, and what reads it, stays as it was; the rest is applied all the same, and the plan
says what was not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import FROM_FILES, NONE_REFUSED, Action, Change, ChangePlan, plan_changes
from mz_dagster.adapter.definition import Definition, define
from mz_dagster.adapter.file_ids import file_id
from mz_dagster.adapter.file_indexes import FileNames
from mz_dagster.adapter.lost_files import grown_sources, irreplaceable_sources
from mz_dagster.adapter.plan_digest import plan_digest
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import BadProjectFile, Fault, ProjectFiles, ProjectObject, some_of
from mz_dagster.adapter.replanning import replan
from mz_dagster.catalog import (
    BOUND_SHAPES,
    COMMENTS,
    PRIVILEGES,
    REFERENCES,
    SCHEMA,
    Catalog,
    NameTaken,
    NewObject,
    ObjectRow,
    Redefinition,
    Ref,
)
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.resolver import Item
from mz_dagster.sql import parse
from mz_dagster.sql.schemas import PUBLIC, last_of
from mz_dagster.sql.source_statement import differ_in_columns_alone
from mz_dagster.version import __version__


class NotAllApplied(BadProjectFile):
    """What was not applied, because it is wrong or reads what is; all else was.

    Attributes:
        plan: What was carried out, with the faults.
    """

    def __init__(self, plan: ChangePlan) -> None:
        own = [one.error for one in plan.faults if one.waits_for is None]
        behind = [str(one.name) for one in plan.faults if one.waits_for is not None]
        facts = [own[0].detail] if len(own) == 1 and own[0].detail else []
        facts += [f"As it was stays what reads it: {some_of(behind, ', ')}."] if behind else []
        hints = {one.hint for one in own if one.hint}
        super().__init__(
            some_of([one.message for one in own], "; "),
            detail=" ".join(facts) or None,
            hint=hints.pop() if len(hints) == 1 else '"mz-dagster apply" tells each with what to do about it.',
        )
        self.plan = plan


def planned_changes(
    catalog: Catalog,
    definitions: CatalogDefinitions,
    project: Project,
    files: ProjectFiles,
    rows: Sequence[ObjectRow],
    *,
    drop: bool,
    refused: Mapping[str, BadProjectFile] = NONE_REFUSED,
) -> ChangePlan:
    """Returns `plan_changes`, of which sources are no part that would lose what only files told that are gone.

    Those of them that only have columns more get these, in place.
    """
    plan = plan_changes(files, rows, definitions, drop=drop, refused=refused)
    if not drop and (lost := irreplaceable_sources(plan, catalog, definitions, project)):
        grown = grown_sources(plan, lost)
        return plan_changes(
            files,
            rows,
            definitions,
            refused={**refused, **{name: fault for name, fault in lost.items() if name not in grown}},
            grown=grown,
        )
    return plan


def apply_objects(
    catalog: Catalog,
    definitions: CatalogDefinitions,
    project: Project,
    files: ProjectFiles,
    *,
    drop: bool = False,
    refused: Mapping[str, BadProjectFile] = NONE_REFUSED,
) -> ChangePlan:
    """Makes the catalog hold the objects, and returns the plan that was carried out; see the module's docstring.

    Args:
        catalog: The catalog.
        definitions: What the catalog holds, bound.
        project: The project.
        files: What its files define.
        drop: Whether to drop what the files no longer define, and what only files told that are gone.
        refused: Why objects stay as they are for which that is known already, by name.

    Raises:
        NameTaken: Another process has created a source since the files were read, and decided its columns.
        OrphanStillRead: Something made in a session reads what is to be dropped.
    """
    anew = tuple(one for one, _ in replan(catalog, definitions))
    number, rows = catalog.number_of_references(), catalog.objects()
    _check_undecided(files, rows)
    files = over_altered(files, rows, definitions)
    plan = planned_changes(catalog, definitions, project, files, rows, drop=drop, refused=refused)
    plan = replace(plan, replanned=anew)
    waiting = [
        Fault(one.name, _unaltered(one), one.object.path, one.object.line) for one in plan.changes if one.alterations
    ]
    plan = replace(plan, faults=(*waiting, *plan.faults))
    reads: dict[GlobalId, GlobalId | Ref] = {}  # a file's name for an object -> what it is in the catalog
    fresh: list[NewObject] = []
    values = {row.id: row.values for row in rows if row.values}
    redefined: dict[GlobalId, Redefinition] = {}
    dropped = [row.id for row in plan.going]
    for change in plan.changes:
        name = file_id(change.name)
        if change.stays and change.old is not None:
            reads[name] = change.old.id
            if change.action in (Action.RENAME, Action.REWORD) or _leads_elsewhere(change):
                redefined[change.old.id] = _redefinition(change, change.old, reads)
            continue
        if change.old is not None:
            dropped.append(change.old.id)
        made = definitions.new_objects(change.object.definition, fresh, reads)
        fresh.extend(replace(one, tags=(FROM_FILES,), values=values) for one in made)
        reads[name] = Ref(len(fresh) - 1)
    if fresh or dropped or redefined:
        may_be_referenced = any(row.kind == "table" for row in plan.going)
        catalog.swap(fresh, dropped, redefined, references=number if may_be_referenced else None)
        for id in redefined:
            definitions.forget(id)
    return plan


def _check_undecided(files: ProjectFiles, rows: Sequence[ObjectRow]) -> None:
    """Raises NameTaken if a source is there whose columns its table was to decide, and has decided, since then."""
    there = {row.name: row.sql for row in rows if row.kind == "source" and row.name is not None}
    for one in files.objects:
        name = one.name if one.name in there else one.annotations.renamed_from
        decides = one.decided_columns is not None and name in there
        if decides and differ_in_columns_alone(one.definition.text, there[str(name)]):
            raise NameTaken(str(name))


def _unaltered(change: Change) -> BadProjectFile:
    one = change.object
    return BadProjectFile(
        f'{one.path}:{one.line}: the definition of {one.definition.kind} "{one.name}" changed',
        detail=change.reason,
        hint="mz-dagster apply alters it.",
    )


def _leads_elsewhere(change: Change) -> bool:
    """Returns whether a connection or a secret goes on as another one, and all that uses it with it."""
    return change.action is Action.ALTER and not change.alterations


def _redefinition(change: Change, old: ObjectRow, reads: Mapping[GlobalId, GlobalId | Ref]) -> Redefinition:
    """Returns what an object is called and says from here on; what it reads is there, and stays."""
    definition = change.object.definition

    leads_elsewhere = _leads_elsewhere(change)

    def known(id: GlobalId) -> GlobalId | Ref:
        found = reads.get(id, id)
        assert leads_elsewhere or not isinstance(found, Ref), "what else reads something new is new"
        return found

    dependencies: dict[str, GlobalId | Ref] = {
        name: id for name, id in old.dependencies.items() if name.startswith("collection ")
    }
    dependencies |= {name: known(id) for name, id in definition.dependencies.items()}
    left_out = (COMMENTS, PRIVILEGES, REFERENCES, BOUND_SHAPES, SCHEMA)
    options = {name: value for name, value in old.options.items() if name not in left_out}
    if definition.schema != PUBLIC:
        options[SCHEMA] = definition.schema
    if definition.shapes:
        options[BOUND_SHAPES] = {str(known(id)): version for id, version in definition.shapes.items()}
    if definition.plan is not None:  # of the same rows, however many columns a table has by now that it reads
        options |= {"arrangements": plan_digest(definition.plan), "release": __version__}
    return Redefinition(change.name, definition.text, dependencies, options, old.sql if leads_elsewhere else None)


def over_altered(files: ProjectFiles, rows: Sequence[ObjectRow], definitions: CatalogDefinitions) -> ProjectFiles:
    """Returns what files define, bound to tables and types that were altered as they are stored in the catalog."""
    altered = {row.name: row for row in rows if _is_altered(row) and row.name is not None}
    altered |= {
        one.name: altered[old]
        for one in files.objects
        if (old := one.annotations.renamed_from) in altered and one.name not in altered
    }
    if not altered:
        return files
    items: dict[str, Item] = {}
    stored: dict[str, Item] = {}
    rebound: set[str] = set()
    objects: list[ProjectObject] = []
    for one in files.objects:
        row = altered.get(one.name)
        if row is not None and one.definition.kind == row.kind:
            item = definitions.item(row.id, row.version, row.values)
            if _is_stored_as(item, one.definition):
                items[one.name] = stored[one.name] = replace(
                    item, id=file_id(one.name), name=last_of(item.schema, one.name)
                )
                rebound.add(one.name)
                objects.append(one)
                continue
        if not rebound.isdisjoint(one.depends):
            (statement,) = parse(one.definition.text)
            is_copy = one.definition.kind == "index" and one.definition.plan is not None
            made = define(
                statement,  # type: ignore[arg-type]  # it was a definition
                FileNames(items),
                default_timeline=one.definition.timeline or "",
                name=one.name,
                indexed=is_copy,
            ).in_schema(one.definition.schema)
            one = replace(one, definition=made)
            rebound.add(one.name)
        items[one.name] = one.definition.item(file_id(one.name))
        objects.append(one)
    return replace(files, objects=tuple(objects), altered=stored)


def _is_altered(row: ObjectRow) -> bool:
    return bool(row.version) or (row.kind == "type" and bool(row.values))


def _is_stored_as(item: Item, definition: Definition) -> bool:
    """Returns whether a table has the columns, or a type the values, that a file gives it, however they are stored."""
    here, there = item.relation_type.columns, definition.relation_type.columns
    if definition.kind == "type":
        return [one.type.enumeration and one.type.enumeration.labels for one in here] == [
            one.type.enumeration and one.type.enumeration.labels for one in there
        ]
    return [one.name for one in here] == [one.name for one in there]
