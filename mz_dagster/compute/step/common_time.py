"""A time at which what a step has sealed can be read together with what it is still working on.

What takes long holds back no seal of the others. So that all collections stay readable at one common time, what was
sealed before the rest is held where the rest stands, by read capabilities that last until the step ends: a since cannot
pass the last time at which everything was complete. They are leased, so a step that vanished holds nothing for long.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from types import TracebackType

from mz_dagster.catalog import Catalog, CollectionRow, FrontierNotHeld, UnknownCapability, UnknownObject
from mz_dagster.errors import OperationalError
from mz_dagster.formalism import Antichain
from mz_dagster.storage.renewal import Renewal

logger = logging.getLogger("mz_dagster.lease")


class CommonTime:
    """Holds collections readable at a time, for the length of a block.

    Args:
        catalog: The catalog.
        holder: Names the step in what is held.
        ttl_ms: How long it lasts if the step vanishes, in milliseconds.
    """

    def __init__(self, catalog: Catalog, *, holder: str, ttl_ms: int) -> None:
        self._catalog = catalog
        self._holder = holder
        self._ttl_ms = ttl_ms
        self._tokens: tuple[str, ...] = ()
        self._renewal: Renewal | None = None  # once something is held

    def __enter__(self) -> CommonTime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renewal is not None:
            self._renewal.__exit__(kind, error, trace)
        for token in self._tokens:
            try:
                self._catalog.drop(token)
            except UnknownCapability:
                pass  # it went with its collection
            except OperationalError as failure:  # what is sealed is sealed, and what is held is leased
                logger.warning("could not let go of a common time: %s", failure)

    def hold(self, rows: Iterable[CollectionRow], time: int) -> None:
        """Holds collections at a time; one that has forgotten it already, where its history begins."""
        for row in rows:
            try:
                at = row.since.join(Antichain.of(row.since.lattice, time))
                held = self._catalog.acquire_read(row.id, at, holder=self._holder, ttl_ms=self._ttl_ms)
            except (FrontierNotHeld, UnknownObject):
                continue  # it was compacted or dropped in this moment
            self._tokens += (held.token,)
            if self._renewal is None:
                self._renewal = Renewal(self._renew, every_ms=self._ttl_ms // 3).__enter__()

    def _renew(self) -> None:
        for token in self._tokens:
            self._catalog.renew(token, self._ttl_ms)
