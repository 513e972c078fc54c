"""The quarantine: what repairs moved out of the way, because it may be the only copy of something.

It is the folder `quarantine` beside the shards, with paths as they were below the state's folder. Nothing reads it; it
is kept until somebody who keeps the project says that it may go, and the doctor says that it is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter.project import Project


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """A file in the quarantine: its path there, and its size."""

    path: str
    bytes: int


def quarantine_of(project: Project) -> Path:
    """Returns the folder of a project's quarantine, which need not be there."""
    return project.state / "quarantine"


def kept_files(project: Project) -> Iterator[QuarantinedFile]:
    """Yields the files in a project's quarantine, by path."""
    folder = quarantine_of(project)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield QuarantinedFile(path.relative_to(folder).as_posix(), path.stat().st_size)


def empty_quarantine(project: Project) -> int:
    """Deletes all that is in a project's quarantine; returns how many files there were."""
    count = sum(1 for _ in kept_files(project))
    if count:
        shutil.rmtree(quarantine_of(project))
    return count
