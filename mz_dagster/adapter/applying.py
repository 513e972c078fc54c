"""Applying a project whole: tables, types and sources are altered as files say, and then all else is applied (`apply`).

A table that gets another name and other columns at once is renamed first. What files say of foreign keys is done around
all that, one after the other (`reference_changes`): if a process ends between, the next one finds what is left to do.

A process that opens a project again and again, as Dagster's does for each evaluation of a sensor, applies it anew only
if something changed: its settings, its files, or the objects of the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mz_dagster.adapter.apply import NotAllApplied, apply_objects, planned_changes
from mz_dagster.adapter.change_plan import Change, ChangePlan
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import BadProjectFile, Fault, are_settled, file_states, load_project
from mz_dagster.adapter.reference_changes import ReferenceChange
from mz_dagster.adapter.session import Session
from mz_dagster.catalog import ObjectRow
from mz_dagster.disk import FileState
from mz_dagster.errors import Error, OperationalError


def apply_project(engine: Engine, *, drop: bool = False) -> ChangePlan:
    """Makes the catalog hold what the project's files define; returns what was done.

    Args:
        engine: The project.
        drop: Whether to drop what the files once defined and no longer do.

    Raises:
        NotAllApplied: A file is wrong, an object has the name of one of another kind, or a table or type cannot be
            altered, or a foreign key made, as a file says; all else was applied.
        OrphanStillRead: Something made in a session reads what is to be dropped, or a table that stays refers to it.
    """
    files = load_project(engine.project)
    rows = engine.catalog.objects()
    plan = planned_changes(engine.catalog, engine.definitions, engine.project, files, rows, drop=drop)
    # What cannot be done now is tried behind all else, with the rest, and told then.
    ended = [one for one in plan.references if one.is_first and _carry_out(engine, one) is None]
    altered: dict[str, Change] = {}
    refused: dict[str, BadProjectFile] = {}
    for one in plan.changes:
        if one.alterations:
            error = _altered(engine, one)
            if error is None:
                altered[one.name] = one
            else:
                refused[one.name] = error
    # Files are read anew with each attempt: they may leave columns to tables, and others have decided them.
    read = iter(() if altered or refused else (files,))
    done = engine.change(
        lambda: apply_objects(
            engine.catalog,
            engine.definitions,
            engine.project,
            next(read, None) or load_project(engine.project),
            drop=drop,
            refused=refused,
        )
    )
    unmade = {one: fault for one in done.references if (fault := _carry_out(engine, one)) is not None}
    plan = replace(
        done,
        changes=tuple(altered.get(one.name, one) for one in done.changes),
        references=(*ended, *(one for one in done.references if one not in unmade)),
        faults=(*unmade.values(), *done.faults),
    )
    engine.known_faults = plan.faults
    if plan.faults:
        raise NotAllApplied(plan)
    return plan


def _altered(engine: Engine, change: Change) -> BadProjectFile | None:
    """Alters a table, a type or a source, unless another process has; returns why that cannot be, or None."""
    try:
        if change.old is not None and change.old.name != change.name:
            engine.catalog.rename_object(change.old.id, change.name)
        for alteration in change.alterations:
            Session(engine).sequence(alteration)
    except OperationalError:
        raise
    except Error as error:
        if not any(one.name == change.name and one.alterations for one in _left(engine).changes):
            return None
        place = f"{change.object.path}:{change.object.line}"
        return BadProjectFile(f"{place}: {error.message}", detail=error.detail, hint=error.hint)
    return None


def _carry_out(engine: Engine, change: ReferenceChange) -> Fault | None:
    """Does with a foreign key what is to be done, unless another process has; returns why it cannot be, or None."""
    try:
        Session(engine).sequence(change.statement)
    except OperationalError:
        raise
    except Error as error:
        if change not in _left(engine).references:
            return None
        message = f'{change.path}:{change.line}: {error.message} (in "{change.table}")'
        bad = BadProjectFile(message, detail=error.detail, hint=error.hint)
        return Fault(None, bad, change.path, change.line, about=change.table)
    return None


def _left(engine: Engine) -> ChangePlan:
    """Returns what is still to be done."""
    files, rows = load_project(engine.project), engine.catalog.objects()
    return planned_changes(engine.catalog, engine.definitions, engine.project, files, rows, drop=False)


@dataclass(frozen=True, slots=True)
class _Applied:
    """What applying a project, which then changes nothing, follows from."""

    project: Project
    files: Mapping[Path, FileState]
    objects: tuple[ObjectRow, ...]


#: What this process found last to change nothing.
_applied_last: _Applied | None = None


def apply_changes(engine: Engine) -> None:
    """Applies a project, if anything changed since this process found that that changes nothing.

    Args:
        engine: The project.

    Raises:
        Error: As `apply_project`, again and again until the files are corrected.
    """
    global _applied_last
    now = _Applied(engine.project, file_states(engine.project), engine.catalog.objects())
    if _applied_last == now:
        engine.known_faults = ()
        return
    apply_project(engine)
    if are_settled(now.files) and now == _Applied(
        engine.project, file_states(engine.project), engine.catalog.objects()
    ):
        _applied_last = now
