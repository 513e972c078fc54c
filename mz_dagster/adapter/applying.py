"""Applying a project whole: tables and types are altered as its files say, and then all else is applied (`apply`).

A table that gets another name and other columns at once is renamed first.
"""

from __future__ import annotations

from dataclasses import replace

from mz_dagster.adapter.change_plan import ChangePlan, plan_changes
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.project_files import BadProjectFile, load_project
from mz_dagster.adapter.session import Session
from mz_dagster.errors import Error, OperationalError


def apply_project(engine: Engine, *, drop: bool = False) -> ChangePlan:
    """Makes the catalog hold what the project's files define; returns what was done.

    Args:
        engine: The project.
        drop: Whether to drop what the files once defined and no longer do.

    Raises:
        BadProjectFile: A table or type cannot be altered as a file says; those before it are.
        NotAllApplied: A file is wrong, or an object has the name of one of another kind; all else was applied.
        OrphanStillRead: Something made in a session reads what is to be dropped.
    """
    files = load_project(engine.project)
    plan = plan_changes(files, engine.catalog.objects(), engine.definitions)
    altered = {}
    for one in plan.changes:
        if not one.alterations:
            continue
        altered[one.name] = one
        try:
            if one.old is not None and one.old.name != one.name:
                engine.catalog.rename_object(one.old.id, one.name)
            for alteration in one.alterations:
                Session(engine).sequence(alteration)
        except OperationalError:
            raise
        except Error as error:
            place = f"{one.object.path}:{one.object.line}"
            raise BadProjectFile(f"{place}: {error.message}", detail=error.detail, hint=error.hint) from error
    plan = engine.apply(drop=drop, files=None if altered else files)
    return replace(plan, changes=tuple(altered.get(one.name, one) for one in plan.changes))
