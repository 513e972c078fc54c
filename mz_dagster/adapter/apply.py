"""Applying a project: the catalog comes to hold what the project's files define, in one transaction.

Carries out a change plan. What is new is created. What changed, and everything that reads it, gets new ids and hydrates
at the next step, while the old collections stay readable under their ids as long as something uses them; the names move
in one swap. What the files no longer define is dropped only if that is asked for. A table whose columns changed is
refused, since its rows exist nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import FROM_FILES, Action, ChangePlan, plan_changes
from mz_dagster.adapter.project_files import ProjectObject
from mz_dagster.catalog import Catalog, NewObject, Ref
from mz_dagster.formalism import GlobalId


def apply_objects(
    catalog: Catalog, definitions: CatalogDefinitions, objects: Sequence[ProjectObject], *, drop: bool = False
) -> ChangePlan:
    """Makes the catalog hold the objects, and returns the plan that was carried out; see the module's docstring.

    Args:
        catalog: The catalog.
        definitions: What the catalog holds, bound.
        objects: What the project's files define, each after those it reads.
        drop: Whether to drop what the files no longer define.

    Raises:
        BadProjectFile: A table was changed, or an object bears the name of one of another kind.
        OrphanStillRead: Something made in a session reads what is to be dropped.
    """
    plan = plan_changes(objects, catalog.objects(), drop=drop)
    reads: dict[GlobalId, GlobalId | Ref] = {}  # a file's name for an object -> what it is in the catalog
    fresh: list[NewObject] = []
    dropped = [row.id for row in plan.orphans] if plan.drops else []
    for change in plan.changes:
        name = GlobalId(change.name)
        if change.action is Action.KEEP and change.old is not None:
            reads[name] = change.old.id
            continue
        if change.old is not None:
            dropped.append(change.old.id)
        made = definitions.new_objects(change.object.definition, fresh, reads)
        fresh.extend(replace(one, tags=(FROM_FILES,)) for one in made)
        reads[name] = Ref(len(fresh) - 1)
    if fresh or dropped:
        catalog.swap(fresh, dropped)
    return plan
