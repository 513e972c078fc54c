"""Lets history go by itself: every since rises as far as retention and capabilities allow, and what it passed goes.

Whoever works on a project forgets now and then, beside its work: sessions as they write and read, the continuous mode
and the sensors as they poll. What is written is merged as it comes (`minor_compaction`); but a collection to which
nothing comes any more would keep its history for ever. So once since has passed all that is there of one, its batches
are merged as of then, in this process, if they are small: rows that came and went are gone. That is once for each time
that a collection has been quiet for as long as its retention. Large ones are left to the compaction job. What was
dropped goes, too, with its files, as soon as nobody reads it any more.

Whatever goes wrong is logged: nobody may be told that his work has failed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.budget import budget
from mz_dagster.catalog import Catalog
from mz_dagster.clock import Clock
from mz_dagster.formalism import Antichain, GlobalId
from mz_dagster.storage.compact import compact
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.sweep import sweep

logger = logging.getLogger("mz_dagster.engine")

EVERY_MS = 60_000
"""How often whoever works forgets, in milliseconds."""


class Retention:
    """Forgets what nobody needs any more.

    Args:
        catalog: The catalog.
        shards: The shards in this process.
        definitions: What tells by which key a collection is sorted.
        holder: Names this process in leases.
        retention_ms: How much history a collection keeps that says nothing itself; None for all.
        clock: What tells when to look again.
    """

    def __init__(
        self,
        catalog: Catalog,
        shards: LocalShards,
        definitions: CatalogDefinitions,
        holder: str,
        retention_ms: int | None,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._shards = shards
        self._definitions = definitions
        self._holder = holder
        self._retention_ms = retention_ms
        self._clock = clock
        self._last_ms = clock.monotonic_ms()

    def now_and_then(self) -> None:
        """Forgets on all timelines if it is time to; never fails."""
        now = self._clock.monotonic_ms()
        if now < self._last_ms + EVERY_MS:
            return
        self._last_ms = now
        try:
            for timeline in self._catalog.timelines():
                self.forget(timeline.name)
            if dropped := self._catalog.dropped():
                sweep(self._catalog, self._shards, only=dropped)
        except Exception:
            logger.warning("could not forget history; the next compaction will", exc_info=True)

    def forget(self, timeline: str) -> Mapping[GlobalId, Antichain[int]]:
        """Lets every since of a timeline rise, and merges what has become quiet by that.

        Returns:
            The new since of each collection whose since moved.
        """
        before = {row.id: row.since for row in self._catalog.collections(timeline)}
        moved = self._catalog.allow_compaction(timeline, retention_ms=self._retention_ms)
        self._catalog.forget_ticks(timeline)
        listed = self._catalog.live_batches([id for id in moved if id in before])
        for id, batches in listed.items():
            if before[id].is_empty or moved[id].is_empty or any(batch.upper.is_empty for batch in batches):
                continue
            newest = max((batch.upper.only - 1 for batch in batches), default=0)
            is_small = 0 < sum(batch.stats.rows for batch in batches) <= budget().young_rows
            if is_small and before[id].only < newest <= moved[id].only:
                self._merge(id)
        return moved

    def _merge(self, id: GlobalId) -> None:
        row = self._catalog.collection(id)
        try:
            compact(
                self._catalog,
                self._shards,
                row,
                holder=self._holder,
                key=self._definitions.sort_key(row),
                least_parts=1,
                most_rows=budget().young_rows,
            )
        except Exception:
            logger.warning("could not merge what is forgotten of %s; compaction will", id, exc_info=True)
