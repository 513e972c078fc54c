"""Checks of everything around the catalog and the shards: folders, the disk, files of definitions, sources, Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import plan_changes
from mz_dagster.adapter.graphs import Graphs, SourceNotPolled
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import load_project
from mz_dagster.compute import FailedNode
from mz_dagster.errors import Error, one_line
from mz_dagster.formalism import GlobalId
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import Finding
from mz_dagster.operations.quarantine import kept_files, quarantine_of
from mz_dagster.storage.source import FileSource, SourceUnreadable
from mz_dagster.storage.source.file_place import FilePlace
from mz_dagster.storage.spark import server_status, stop_server

LEAST_FREE = 256 << 20
"""How many bytes should be free: a few steps' worth."""


def check_place(project: Project) -> Iterator[Finding]:
    """Yields what keeps anybody from writing in the project, and what a Spark server left."""
    places = [project.state, project.state / "shards"]
    for folder in [one for one in places if one.is_dir()] or [project.root]:
        if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
            yield Finding("not-writable", str(folder), "it cannot be written by this user")
    free = shutil.disk_usage(project.root).free
    if free < LEAST_FREE:
        yield Finding("disk-full", str(project.root), f"{free >> 20} MB are free")
    if kept := list(kept_files(project)):
        what = f"repairs moved {len(kept)} files there, {sum(one.bytes for one in kept)} bytes"
        yield Finding("quarantine", str(quarantine_of(project)), what)
    spark = project.state / "spark"
    if (spark / "server.json").exists() and server_status(spark) is None:
        yield Finding("spark-gone", str(spark / "server.json"), "its process is gone", partial(_clear_spark, spark))
    if (project.root / "definitions.py").exists() and not (project.state / "dagster" / "dagster.yaml").exists():
        yield Finding("no-dagster", str(project.state / "dagster"), "there is no Dagster instance yet")


def check_definitions(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields how the project's files differ from the catalog."""
    project = examined.project
    definitions = CatalogDefinitions(examined.catalog, project)
    plan = plan_changes(load_project(project), examined.catalog.objects(), definitions)
    for fault in plan.faults:
        hint = f" ({fault.error.hint})" if fault.error.hint else ""
        yield Finding("project-files", fault.name or fault.about or str(fault.path), fault.error.message + hint)
    for what, names in (
        ("new", plan.created),
        ("changed", plan.replaced),
        ("defined by no file any more", plan.orphaned),
        ("foreign keys", tuple(one.name for one in plan.references)),
    ):
        if names:
            yield Finding("definitions-differ", str(project.assets), f"{what}: {', '.join(names)}")


def check_plans(examined: ExaminedProject) -> Iterator[Finding]:
    """Yields objects that this version of the code cannot plan, or not as they were."""
    graphs = Graphs(examined.catalog, CatalogDefinitions(examined.catalog, examined.project))
    for timeline in examined.catalog.timelines():
        for node in graphs.graph(timeline.name):
            if isinstance(node, FailedNode) and node.owner is None and not isinstance(node.error, SourceNotPolled):
                yield Finding("cannot-be-planned", examined.called(node.id), one_line(node.error))


def check_sources(examined: ExaminedProject, *, deep: bool) -> Iterator[Finding]:
    """Yields the files that bindings name and that are not as they were; `deep` compares hashes.

    What is sealed may be gone, and what is retired is not looked at (see `catalog.ticks`).
    """
    definitions = CatalogDefinitions(examined.catalog, examined.project)
    bound: dict[GlobalId, list[tuple[str, int, str, bool]]] = {}
    for row in examined.records["bound_file"]:
        source = examined.collections.get(row["source"])
        if source is None or source.upper.is_empty or not source.since.less_equal(row["tick"]):
            continue
        needed = row["tick"] >= source.upper.only - examined.project.expect_files_ms
        bound.setdefault(source.id, []).append((row["path"], row["size"], row["sha256"], needed))
    for id, files in bound.items():
        where = examined.called(id)
        try:
            files_of = definitions.source(id)
        except Error:
            continue  # what cannot be planned has its own finding
        assert isinstance(files_of, FileSource), "no other source is bound file by file"
        for path, size, sha256, needed in files:
            yield from _check_file(where, files_of.place, path, size, sha256 if deep else None, needed=needed)


def _check_file(
    where: str, place: FilePlace, path: str, size: int, sha256: str | None, *, needed: bool
) -> Iterator[Finding]:
    called = f'file "{place}/{path}"'
    try:
        look = place.look(path)
        if look is None:
            if needed:
                yield Finding("bound-file-missing", where, f"{called} is gone")
        elif look.size != size:
            yield Finding("bound-file-changed", where, f"{called} has {look.size} bytes, and had {size}")
        elif sha256 is not None and ((found := place.hashed(path)) is None or found.sha256 != sha256):
            yield Finding("bound-file-changed", where, f"{called} has another content")
    except SourceUnreadable as error:
        yield Finding("bound-file-missing", where, one_line(error))


def _clear_spark(state: Path) -> str:
    stop_server(state)
    return f"cleared what a Spark server left in {state}"
