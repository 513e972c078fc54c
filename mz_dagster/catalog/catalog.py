"""The front of the catalog: all its parts in one class, and how a database becomes one."""

from __future__ import annotations

from types import TracebackType

from sqlalchemy import select

from mz_dagster.catalog.appends import Appends
from mz_dagster.catalog.batches import Batches
from mz_dagster.catalog.compute_replicas import ComputeReplicas
from mz_dagster.catalog.database import Database, is_missing
from mz_dagster.catalog.errors import CatalogDamaged, OtherCatalog
from mz_dagster.catalog.frontiers import Frontiers
from mz_dagster.catalog.idle_advance import IdleAdvance
from mz_dagster.catalog.leases import Leases
from mz_dagster.catalog.listings import Listings
from mz_dagster.catalog.maintaining import Maintaining
from mz_dagster.catalog.objects import Objects
from mz_dagster.catalog.overview import Overview
from mz_dagster.catalog.records import Records
from mz_dagster.catalog.repairs import Repairs
from mz_dagster.catalog.roles import Roles
from mz_dagster.catalog.schema import PROJECT
from mz_dagster.catalog.sequences import Sequences
from mz_dagster.catalog.sweeping import Sweeping
from mz_dagster.catalog.ticks import Ticks
from mz_dagster.catalog.timelines import Timelines
from mz_dagster.catalog.upgrade import is_made, upgrade
from mz_dagster.catalog.url import CatalogUrl
from mz_dagster.clock import SYSTEM_CLOCK, Clock


class Catalog(
    Timelines,
    Ticks,
    Objects,
    Frontiers,
    Batches,
    Leases,
    Listings,
    IdleAdvance,
    Appends,
    Maintaining,
    Sweeping,
    Overview,
    Roles,
    Records,
    Repairs,
    Sequences,
    ComputeReplicas,
):
    """A project's durable state and its only point of consensus.

    Every method is one transaction and durable when it returns; leases alone, and times that were handed out, may end
    with the power. One instance may be shared by threads, one database
    by processes; a forked child must open its own.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Catalog.open(f"sqlite:///{folder.name}/catalog.sqlite") as catalog:
        ...     catalog.declare_timeline("default")
        ...     catalog.write_ts("default", now=7), catalog.read_ts("default")
        (7, 0)
        >>> folder.cleanup()
    """

    @classmethod
    def open(cls, url: CatalogUrl | str, *, project: str | None = None, clock: Clock = SYSTEM_CLOCK) -> Catalog:
        """Returns the catalog at a URL, made or migrated if need be.

        Args:
            url: Where it is; a text is a SQLAlchemy URL, whose path is relative to the process's working directory.
            project: The id of the project that it must be of, which is never made then; None for any.
            clock: Wall clock.

        Raises:
            OtherCatalog: It is not of that project.
            CatalogTooNew: A newer version of the code has migrated it.
            CatalogUnavailable: The database cannot be reached, or is none.
            ProgrammingError: The URL is none, or of a database that no process could share.
        """
        parsed = _parsed(url)
        if project is not None and is_missing(parsed):
            raise OtherCatalog(str(parsed), project, None)
        database = Database(parsed, clock)
        try:
            made = upgrade(database, may_make=project is None)
            catalog = cls(database)
            found = catalog.project_id() if made and project is not None else None
            if project is not None and made and found != project and catalog.restored_for == project:
                catalog.complete_restore(project)  # the project is there, and whoever restored it was killed just then
                found = project
            if project is not None and found != project:
                raise OtherCatalog(str(parsed), project, found)
        except BaseException:
            database.close()
            raise
        return catalog

    @classmethod
    def open_made(cls, url: CatalogUrl | str, *, clock: Clock = SYSTEM_CLOCK) -> Catalog | None:
        """Returns the catalog at a SQLAlchemy URL as it is, or None if none was made there; changes nothing.

        Raises:
            CatalogTooOld: It must be migrated first.
            CatalogTooNew: A newer version of the code has migrated it.
            CatalogUnavailable: The database cannot be reached, or is none.
            ProgrammingError: The URL is none, or of a database that no process could share.
        """
        parsed = _parsed(url)
        if is_missing(parsed):
            return None
        database = Database(parsed, clock)
        try:
            made = is_made(database)
        except BaseException:
            database.close()
            raise
        if made:
            return cls(database)
        database.close()
        return None

    @property
    def is_read_only(self) -> bool:
        """Whether nothing of it can be written."""
        return self._database.read_only is not None

    def project_id(self) -> str:
        """Returns the random id of the project, which this catalog was given when it was made or restored.

        Raises:
            CatalogDamaged: It is gone.
        """
        with self._database.read() as connection:
            found = connection.execute(select(PROJECT.c.id)).scalar()
        if found is None:
            raise CatalogDamaged("the catalog does not say any more of which project it is")
        return str(found)

    def close(self) -> None:
        """Closes all connections; leases and batches stay as they are."""
        self._database.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _parsed(url: CatalogUrl | str) -> CatalogUrl:
    return CatalogUrl.parse(url) if isinstance(url, str) else url
