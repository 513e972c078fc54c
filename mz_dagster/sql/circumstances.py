"""When, by whom and with which settings a statement is executed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from zoneinfo import ZoneInfo

from mz_dagster.functions import UTC, in_zone
from mz_dagster.sql.catalog_facts import CatalogFacts
from mz_dagster.version import __version__

#: The settings that values of a session are made of, as they are in one that has changed none.
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {"timezone": "UTC", "search_path": "public", "server_version": f"15.0 (mz_dagster {__version__})"}
)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What clock and session functions say in one statement; a definition has none, as it holds in all.

    Attributes:
        clock: The time at which the statement began, aware: what `now()` says throughout it.
        user: The name of who executes it.
        database: The project's name.
        settings: The values of the session's settings by their names, all in lower case.
        catalog: The system catalogs, if there are any.
        process_id: What the client knows its connection by; the process's own number if it has none.
    """

    clock: datetime = datetime(2000, 1, 1, tzinfo=dt.UTC)
    user: str = ""
    database: str = ""
    settings: Mapping[str, str] = field(default_factory=lambda: DEFAULTS)
    catalog: CatalogFacts | None = None
    process_id: int = 0

    @property
    def zone(self) -> ZoneInfo:
        """The session's time zone."""
        return ZoneInfo(self.settings["timezone"])


def zone_of(circumstances: Circumstances | None) -> AbstractContextManager[None]:
    """Returns the block in which a statement is bound; a definition, which has no circumstances, is bound in UTC."""
    return in_zone(UTC if circumstances is None else circumstances.settings["timezone"])
