"""Applying a project: the catalog comes to hold what the project's files define, in one transaction.

Carries out a change plan. What is new is created. What changed, and everything that reads it, gets new ids and hydrates
at the next step, while the old collections stay readable under their ids as long as something uses them; the names move
in one swap. So does what this release plans otherwise than the one that made it (`replanning`), before all else and
whoever made it. What the files no longer define is dropped only if that is asked for. A table whose columns changed is
refused, since its rows exist nowhere else.

What cannot be used of the files, and what reads it, stays as it was; the rest is applied all the same, and the plan
says what was not.
"""

from __future__ import annotations

from dataclasses import replace

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import FROM_FILES, Action, ChangePlan, plan_changes
from mz_dagster.adapter.project_files import BadProjectFile, ProjectFiles
from mz_dagster.adapter.replanning import replan
from mz_dagster.catalog import Catalog, NewObject, Ref
from mz_dagster.formalism import GlobalId


class NotAllApplied(BadProjectFile):
    """Reports what was not applied, because it is wrong or reads what is; all else was.

    Attributes:
        plan: What was carried out, with the faults.
    """

    def __init__(self, plan: ChangePlan) -> None:
        own = [one.error for one in plan.faults if one.waits_for is None]
        behind = [str(one.name) for one in plan.faults if one.waits_for is not None]
        facts = [own[0].detail] if len(own) == 1 and own[0].detail else []
        facts += [f"As it was stays what reads it: {', '.join(behind)}."] if behind else []
        hints = {one.hint for one in own if one.hint}
        super().__init__(
            "; ".join(one.message for one in own),
            detail=" ".join(facts) or None,
            hint=hints.pop() if len(hints) == 1 else '"mz-dagster plan" shows each with what to do about it.',
        )
        self.plan = plan


def apply_objects(
    catalog: Catalog, definitions: CatalogDefinitions, files: ProjectFiles, *, drop: bool = False
) -> ChangePlan:
    """Makes the catalog hold the objects, and returns the plan that was carried out; see the module's docstring.

    Args:
        catalog: The catalog.
        definitions: What the catalog holds, bound.
        files: What the project's files define.
        drop: Whether to drop what the files no longer define.

    Raises:
        OrphanStillRead: Something made in a session reads what is to be dropped.
    """
    anew = tuple(one for one, _ in replan(catalog, definitions))
    plan = replace(plan_changes(files, catalog.objects(), drop=drop), replanned=anew)
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
