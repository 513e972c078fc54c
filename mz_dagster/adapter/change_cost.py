"""What carrying out a change plan costs, from the catalog's statistics: nothing is read, written or started.

A collection hydrates at the first step after it was created: each of its plans reads the whole of what it reads, once,
and writes its states and itself. What is read is known for what the catalog holds, as many updates and bytes as it has
now; for what hydrates in the same step it is not known before, and its names are given instead. A source reads its
files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.apply import over_altered, planned_changes
from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.adapter.change_plan import Change, ChangePlan, plan_changes
from mz_dagster.adapter.file_ids import name_of_file_id
from mz_dagster.adapter.lost_files import lost_files
from mz_dagster.adapter.origins import source_of
from mz_dagster.adapter.project import Project
from mz_dagster.adapter.project_files import load_project
from mz_dagster.adapter.replanning import to_replan
from mz_dagster.catalog import Catalog, ObjectRow
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Arrangement,
    OperatorKind,
    Physical,
    Staged,
    collections_read,
    operator_kind,
    physical_inputs,
)
from mz_dagster.storage.source import FileSource, SourceUnreadable
from mz_dagster.storage.source.table_source import TableSource


@dataclass(frozen=True, slots=True)
class Size:
    """An amount of what is stored: updates and bytes; of files the updates are not known, and None."""

    updates: int | None
    bytes: int

    def __add__(self, other: Size) -> Size:
        return Size((self.updates or 0) + (other.updates or 0), self.bytes + other.bytes)


NOTHING = Size(0, 0)


@dataclass(frozen=True, slots=True)
class Hydration:
    """What making the contents of one new or replaced object costs.

    Attributes:
        name: The object.
        reads: The names of what its plans read, or the folder of its files.
        size: How much of it there is; what `waits_for` will hold is not in it.
        waits_for: Those of `reads` that hydrate in the same step, before it.
        states: Its arrangements, each as the operator that makes it and the operator's kind, as in EXPLAIN.
        freed: What the old object and its states hold and give back.
        lost_files: How many files the old source has read that are not found: nobody can read them again.
    """

    name: str
    reads: tuple[str, ...]
    size: Size
    waits_for: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    freed: Size = NOTHING
    lost_files: int = 0


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """What a change plan costs.

    Attributes:
        hydrations: One for each object with contents that is created or replaced, but tables, which begin empty.
        dropped: What each dropped object and its states hold, by name.
    """

    hydrations: tuple[Hydration, ...]
    dropped: Mapping[str, Size]


def preview_changes(project: Project, *, drop: bool = False) -> tuple[ChangePlan, ChangeCost]:
    """Returns what applying a project would do and cost; changes nothing, and starts no Spark.

    What is wrong in the files, and so would not be applied, is among the plan's faults.

    Args:
        project: The project.
        drop: Whether applying would drop what the files no longer define.

    Raises:
        OrphanStillRead: Something made in a session reads what is to be dropped.
        CatalogTooOld: The catalog must be migrated first.
    """
    files = load_project(project)
    catalog = Catalog.open_made(project.catalog_url)
    if catalog is None:
        plan = plan_changes(files, (), drop=drop)
        return plan, _Estimate(project, plan, (), {}, {}).cost()
    with catalog:
        rows = catalog.objects()
        definitions = CatalogDefinitions(catalog, project)
        anew = to_replan(catalog, definitions)
        files = over_altered(files, rows, definitions)
        plan = replace(planned_changes(catalog, definitions, project, files, rows, drop=drop), replanned=anew)
        sizes = {id: Size(stats.rows, stats.bytes) for id, (_, stats) in catalog.live_batch_counts().items()}
        lost = {one.name: lost_files(one, catalog, definitions, project) for one in plan.changes}
        return plan, _Estimate(project, plan, rows, sizes, lost).cost()


class _Estimate:
    def __init__(
        self,
        project: Project,
        plan: ChangePlan,
        rows: Sequence[ObjectRow],
        sizes: Mapping[GlobalId, Size],
        lost: Mapping[str, int],
    ) -> None:
        self._project = project
        self._plan = plan
        self._rows = rows
        self._sizes = sizes
        self._lost = lost
        self._changes = {one.name: one for one in plan.changes}

    def cost(self) -> ChangeCost:
        hydrations = tuple(
            self._source(one) if one.object.definition.kind == "source" else self._maintained(one)
            for one in self._plan.changes
            if not one.stays and one.has_collection and one.object.definition.kind != "table"
        )
        dropped = {str(row.name): self._held(row) for row in self._plan.going}
        return ChangeCost(hydrations, dropped)

    def _source(self, change: Change) -> Hydration:
        source = source_of(change.object.definition, self._project)
        if isinstance(source, TableSource):
            return self._table(change, source)
        assert isinstance(source, FileSource), "there is no other source"
        try:
            ready = source.ready()
        except SourceUnreadable:
            ready = {}  # the first poll says what is wrong with the folder; here there is nothing to read
        folder = source.place.folder
        where = source.place if folder is None else folder.relative_to(self._project.root)
        reads = f"{len(ready)} file{'' if len(ready) == 1 else 's'} in {where}"
        size = Size(None, sum(ready.values()))
        return Hydration(
            change.name, (reads,), size, freed=self._freed(change), lost_files=self._lost.get(change.name, 0)
        )

    def _table(self, change: Change, source: TableSource) -> Hydration:
        try:
            found = source.begun().offset or {}
        except SourceUnreadable:
            found = {}
        count, size = found.get("files", 0), found.get("bytes", 0)
        assert isinstance(count, int)
        assert isinstance(size, int)
        reads = f"{count} file{'' if count == 1 else 's'} of {source.called}"
        return Hydration(change.name, (reads,), Size(None, size), freed=self._freed(change), lost_files=0)

    def _maintained(self, change: Change) -> Hydration:
        plan = change.object.definition.plan
        assert plan is not None
        own = {one.id for one in plan.arrangements}
        plans = (*(one.plan for one in plan.arrangements), plan.output)
        each = [frozenset(map(name_of_file_id, collections_read(one) - own)) for one in plans]
        reads = sorted(frozenset().union(*each))
        waits_for = tuple(name for name in reads if not self._changes[name].stays)
        size = NOTHING
        for name in (name for read in each for name in read):
            old = self._changes[name].old
            if name not in waits_for and old is not None:
                size += self._sizes.get(old.id, NOTHING)
        states = tuple(_state(one) for one in plan.arrangements)
        return Hydration(change.name, tuple(reads), size, waits_for, states, self._freed(change))

    def _freed(self, change: Change) -> Size:
        return NOTHING if change.old is None or change.held_by else self._held(change.old)

    def _held(self, row: ObjectRow) -> Size:
        """Returns what an object and its arrangements hold."""
        ids = [row.id, *(one.id for one in self._rows if one.owner == row.id)]
        return sum((self._sizes.get(id, NOTHING) for id in ids), NOTHING)


def _state(one: Arrangement) -> str:
    """Returns the operator that decides what a state is, and its kind: the first from above that is not linear."""
    node = _deciding(one.plan) or one.plan
    name = type(node.function if isinstance(node, Staged) else node).__name__
    return f"{name} ({operator_kind(node).value})"


def _deciding(node: Physical) -> Physical | None:
    if operator_kind(node) is not OperatorKind.LINEAR:
        return node
    return next((found for one in physical_inputs(node) if (found := _deciding(one)) is not None), None)
