"""The front of the catalog: all its parts in one class, and how a database becomes one."""

from __future__ import annotations

from types import TracebackType

from sqlalchemy import select

from mz_dagster.catalog.appends import Appends
from mz_dagster.catalog.batches import Batches
from mz_dagster.catalog.database import Database, is_missing
from mz_dagster.catalog.frontiers import Frontiers
from mz_dagster.catalog.leases import Leases
from mz_dagster.catalog.listings import Listings
from mz_dagster.catalog.maintaining import Maintaining
from mz_dagster.catalog.objects import Objects
from mz_dagster.catalog.records import Records
from mz_dagster.catalog.repairs import Repairs
from mz_dagster.catalog.schema import PROJECT
from mz_dagster.catalog.sweeping import Sweeping
from mz_dagster.catalog.ticks import Ticks
from mz_dagster.catalog.timelines import Timelines
from mz_dagster.catalog.upgrade import is_made, upgrade
from mz_dagster.clock import SYSTEM_CLOCK, Clock


class Catalog(
    Timelines, Ticks, Objects, Frontiers, Batches, Leases, Listings, Appends, Maintaining, Sweeping, Records, Repairs
):
    """Is a project's durable state and its only point of consensus.

    Every method is one transaction and durable when it returns. One instance may be shared by threads, one database
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
    def open(cls, url: str, *, clock: Clock = SYSTEM_CLOCK) -> Catalog:
        """Returns the catalog at a SQLAlchemy URL, made or migrated if need be.

        Raises:
            CatalogTooNew: A newer version of the code has migrated it.
            CatalogUnavailable: The database cannot be reached, or is none.
            ProgrammingError: The URL is none, or of a database that no process could share.
        """
        database = Database(url, clock)
        try:
            upgrade(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @classmethod
    def open_made(cls, url: str, *, clock: Clock = SYSTEM_CLOCK) -> Catalog | None:
        """Returns the catalog at a SQLAlchemy URL as it is, or None if none was made there; changes nothing.

        Raises:
            CatalogTooOld: It must be migrated first.
            CatalogTooNew: A newer version of the code has migrated it.
            CatalogUnavailable: The database cannot be reached, or is none.
            ProgrammingError: The URL is none, or of a database that no process could share.
        """
        if is_missing(url):
            return None
        database = Database(url, clock)
        try:
            made = is_made(database)
        except BaseException:
            database.close()
            raise
        if made:
            return cls(database)
        database.close()
        return None

    def project_id(self) -> str:
        """Returns the random id that this catalog was given when it was made."""
        with self._database.read() as connection:
            return str(connection.execute(select(PROJECT.c.id)).scalar_one())

    def close(self) -> None:
        """Closes all connections; leases and batches stay as they are."""
        self._database.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
