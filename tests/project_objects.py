"""What a project's files define, of projects whose files are right."""

from __future__ import annotations

from mz_dagster.adapter import Project, ProjectObject, load_project


def load_objects(project: Project) -> tuple[ProjectObject, ...]:
    """Returns everything that the project's files define, each object after those it reads.

    Raises:
        BadProjectFile: The first fault.
    """
    files = load_project(project)
    for fault in files.faults:
        raise fault.error
    return files.objects
