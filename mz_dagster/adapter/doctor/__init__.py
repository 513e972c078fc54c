"""The doctor: checks every invariant of a project, explains each break, and repairs what is safe to repair.

It trusts nothing that it is to check: the catalog's rows are read raw, in one transaction, and compared among
themselves, with the tables' logs, with the files' footers, and, if asked, with every row. It changes nothing unless it
is asked to repair, takes no lease and needs no Spark, and may run while everything else does: what a step is in the
middle of is no break.

Each repair is a transaction of the catalog, a sweep, or a log that is made anew from files that are all there. None
loses an update. What only a person or a backup can mend is explained.

    finding        what may be found: every check by name, why it matters, what to do
    patient        the catalog's rows, read with suspicion
    references     ids, references, names, what belongs to dropped objects
    times          frontiers, capabilities, oracle, leases
    batches        the lists of batches
    shards         logs and files on disk
    surroundings   folders, disk, definitions, bound files, Spark
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mz_dagster.adapter.doctor.batches import check_batches
from mz_dagster.adapter.doctor.finding import CHECKS, Check, Finding, Severity
from mz_dagster.adapter.doctor.patient import Patient
from mz_dagster.adapter.doctor.references import check_references
from mz_dagster.adapter.doctor.shards import check_shards
from mz_dagster.adapter.doctor.surroundings import check_definitions, check_place, check_sources
from mz_dagster.adapter.doctor.times import check_times
from mz_dagster.adapter.project import BadSettings, Project
from mz_dagster.catalog import Catalog, CatalogTooNew, CatalogTooOld, CatalogUnavailable
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.compute import Progress, quiet
from mz_dagster.errors import Error

__all__ = ["CHECKS", "Check", "Diagnosis", "Finding", "Severity", "examine"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Is what the doctor found, and did.

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
    progress: Progress = quiet,
    clock: Clock = SYSTEM_CLOCK,
) -> Diagnosis:
    """Checks the project in a folder.

    Args:
        root: The project's folder.
        deep: Whether to read every row of every live batch, and to hash every bound file.
        repair: Whether to repair what is safe to repair, and to check again.
        progress: Hears what is looked at.
        clock: Wall clock.
    """
    try:
        project = Project.load(root)
    except BadSettings as error:
        return Diagnosis((Finding("settings-unreadable", str(root), str(error)),))
    found = _findings(project, deep, progress, clock)
    repairs = list(dict.fromkeys(one.repair for one in found if one.repair is not None)) if repair else []
    if not repairs:
        return Diagnosis(_sorted(found))
    done = []
    for mend in repairs:
        try:
            done.append(mend())
        except Error as error:
            done.append(f"could not repair: {error.message}")
        progress(done[-1])
    return Diagnosis(_sorted(_findings(project, deep, progress, clock)), tuple(done))


def _findings(project: Project, deep: bool, progress: Progress, clock: Clock) -> list[Finding]:
    return list(_examine(project, deep, progress, clock))


def _examine(project: Project, deep: bool, progress: Progress, clock: Clock) -> Iterator[Finding]:
    yield from check_place(project)
    url = project.catalog_url.partition("@")[2] or project.catalog_url
    try:
        catalog = Catalog.open_made(project.catalog_url, clock=clock)
    except (CatalogTooOld, CatalogTooNew) as error:
        yield Finding("catalog-version", "catalog", str(error))
        return
    except Error as error:
        yield Finding("catalog-unreadable", f"catalog {url}", error.message)
        return
    if catalog is None:
        yield Finding("no-catalog", f"catalog {url}", "it is not there")
        return
    with catalog:
        try:
            damage = catalog.damage()
            patient = None if damage else Patient.of(project, catalog, clock.now_ms())
        except CatalogUnavailable as error:
            damage, patient = (error.message,), None
        if patient is None:
            yield Finding("catalog-unreadable", f"catalog {url}", "; ".join(damage))
            return
        progress(f"looking at the catalog: {sum(map(len, patient.records.values()))} rows")
        references = list(check_references(patient))
        yield from references
        yield from check_times(patient)
        yield from check_batches(patient)
        yield from patient.unreadable
        if patient.unreadable or any(one.severity is Severity.BREAK for one in references):
            return  # what follows reads the catalog through methods that trust it
        yield from check_shards(patient, deep=deep, progress=progress)
        yield from check_definitions(patient)
        yield from check_sources(patient, deep=deep)


def _sorted(found: Sequence[Finding]) -> tuple[Finding, ...]:
    order = list(Severity)
    return tuple(sorted(found, key=lambda one: order.index(one.severity)))
