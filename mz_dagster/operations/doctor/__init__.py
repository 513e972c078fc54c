"""The doctor: checks every invariant of a project, explains each break, and repairs what is safe to repair.

It trusts nothing that it is to check: the catalog's rows are read raw, in one transaction, and compared among
themselves, with the tables' logs, with the files' footers, and, if asked, with every row. It changes nothing unless it
is asked to repair, takes no lease and needs no Spark, and may run while everything else does: what a step is in the
middle of is no break.

Each repair is a transaction of the catalog, a sweep, or a log that is made anew from files that are all there. None
loses an update. What only a person or a backup can mend is explained.

    finding        what may be found: every check by name, why it matters, what to do
    examined_project  the catalog's rows, read with suspicion
    references     ids, references, names, what belongs to dropped objects
    times          frontiers, capabilities, oracle, leases
    lists          whether each list of batches is the one that was written
    batches        the batches on them
    payloads       the updates of inlined batches
    shards         logs and files on disk
    surroundings   folders, disk, definitions, bound files, Spark
    sinks          what sinks have written
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter.project import Project
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.catalog import Catalog, CatalogTooNew, CatalogTooOld, CatalogUnavailable, CatalogUrl
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute import Progress, quiet
from mz_dagster.errors import Error
from mz_dagster.operations.doctor.batches import check_batches
from mz_dagster.operations.doctor.examined_project import ExaminedProject
from mz_dagster.operations.doctor.finding import CHECKS, Check, Finding, Severity
from mz_dagster.operations.doctor.lists import damaged_lists
from mz_dagster.operations.doctor.references import check_references
from mz_dagster.operations.doctor.shards import check_shards
from mz_dagster.operations.doctor.sinks import check_sinks
from mz_dagster.operations.doctor.surroundings import check_definitions, check_place, check_plans, check_sources
from mz_dagster.operations.doctor.times import check_times
from mz_dagster.operations.recovery import recover_files
from mz_dagster.storage.ownership import ShardsElsewhere, owner_of
from mz_dagster.storage.shard_place import FOLDER
from mz_dagster.storage.shards import ShardUnavailable

_ROUNDS = 3
"""How often repairs are tried: one may have to wait for another, as a sweep for a log."""

__all__ = ["CHECKS", "Check", "Diagnosis", "Finding", "Severity", "examine"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the doctor found, and did.

    Attributes:
        findings: What is not as it should be, after the repairs; breaks first.
        repaired: A line for each repair that was tried.
    """

    findings: tuple[Finding, ...]
    repaired: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """True if nothing is broken."""
        return all(one.severity is not Severity.BREAK for one in self.findings)


def examine(
    root: Path,
    *,
    deep: bool = False,
    repair: bool = False,
    backup: Path | None = None,
    progress: Progress = quiet,
    clock: Clock = SYSTEM_CLOCK,
) -> Diagnosis:
    """Checks the project in a folder.

    Args:
        root: The project's folder.
        deep: Whether to read every row of every live batch, and to hash every file; without it, data files of up to
            a gigabyte in all are hashed.
        repair: Whether to repair what is safe to repair, and to check again.
        backup: A backup from which data files that are damaged or gone are put back first, as they were written.
        progress: Hears what is looked at.
        clock: Wall clock.
    """
    try:
        project = Project.load(root)
    except BadSettings as error:
        return Diagnosis((Finding("settings-unreadable", str(root), str(error)),))
    done = [] if backup is None else _recovered(project, backup, progress, clock)
    with ExitStack() as opened:  # repairs work on the catalogs that were looked at
        found = _findings(project, deep, progress, clock, opened)
        failed: list[str] = []
        for _ in range(_ROUNDS if repair else 0):
            repairs = dict.fromkeys(one.repair for one in found if one.repair is not None)
            failed = []
            for mend in repairs:
                try:
                    done.append(mend())
                    progress(done[-1])
                except Error as error:
                    failed.append(f"could not repair: {error.message}")
            if repairs:
                found = _findings(project, deep, progress, clock, opened)
            if not failed:
                break
    return Diagnosis(_sorted(found), (*done, *failed))


def _recovered(project: Project, backup: Path, progress: Progress, clock: Clock) -> list[str]:
    catalog = Catalog.open_made(project.catalog_url, clock=clock)
    if catalog is None:
        return []
    done = []
    with catalog:
        for line in recover_files(project, catalog, backup):
            done.append(line)
            progress(line)
    return done


def _findings(project: Project, deep: bool, progress: Progress, clock: Clock, opened: ExitStack) -> list[Finding]:
    return list(_examine(project, deep, progress, clock, opened))


def _examine(project: Project, deep: bool, progress: Progress, clock: Clock, opened: ExitStack) -> Iterator[Finding]:
    yield from check_place(project)
    url = project.catalog_url
    try:
        place = project.shard_place()
        owner = owner_of(place)
    except ShardsElsewhere as error:
        yield Finding("shards-of-another", project.shards_called, error.message)
        return
    except Error as error:  # of the store, or a secret of it
        yield _unreachable(project, error)
        return
    try:
        catalog = Catalog.open_made(project.catalog_url, clock=clock)
    except (CatalogTooOld, CatalogTooNew) as error:
        yield Finding("catalog-version", "catalog", str(error))
        return
    except Error as error:
        yield _unreadable(url, error)
        return
    if catalog is None:
        yield Finding("no-catalog" if owner is None else "catalog-lost", f"catalog {url}", "it is not there")
        return
    opened.enter_context(catalog)
    try:
        damage = catalog.damage()
        examined = None if damage else ExaminedProject.of(project, catalog, clock.now_ms())
    except CatalogUnavailable as error:
        yield _unreadable(url, error)
        return
    if examined is None:
        yield Finding("catalog-unreadable", f"catalog {url}", "; ".join(damage))
        return
    if owner is not None and owner not in {row["id"] for row in examined.records["project"]}:
        yield Finding("shards-of-another", place.called(FOLDER), f"they are of project {owner}")
        return
    progress(f"looking at the catalog: {sum(map(len, examined.records.values()))} rows")
    references = list(check_references(examined))
    yield from references
    yield from check_times(examined)
    examined.unlisted = damaged_lists(examined)
    yield from check_batches(examined)
    yield from examined.unreadable
    if examined.unreadable or any(one.severity is Severity.BREAK for one in references):
        return  # what follows reads the catalog through methods that trust it
    try:
        yield from check_shards(examined, deep=deep, progress=progress)
    except ShardUnavailable as error:
        yield _unreachable(project, error)
    yield from check_definitions(examined)
    yield from check_plans(examined)
    yield from check_sources(examined, deep=deep)
    yield from check_sinks(examined, deep=deep)


def _unreadable(url: CatalogUrl, error: Error) -> Finding:
    """Returns what is said of a catalog that could not be read: it is not to be given up for a full disk."""
    if isinstance(error, CatalogUnavailable) and error.is_outside:
        return Finding("catalog-unreachable", f"catalog {url}", f"{error.message}. {error.hint or ''}".strip())
    return Finding("catalog-unreadable", f"catalog {url}", error.message)


def _unreachable(project: Project, error: Error) -> Finding:
    return Finding("shards-unreachable", project.shards_called, f"{error.message}. {error.hint or ''}".strip())


def _sorted(found: Sequence[Finding]) -> tuple[Finding, ...]:
    order = list(Severity)
    return tuple(sorted(found, key=lambda one: order.index(one.severity)))
