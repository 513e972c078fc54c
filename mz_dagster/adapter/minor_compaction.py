"""Merges young batches as they come: however long no compaction runs, a shard has few of them.

After a step or a write has sealed, a collection that has gathered `Budget.young_parts` young batches gets them merged,
by the rule of `storage.compact`, in this process, if they are small together. So a shard of n updates lies in at most

    log2(n) + 1 + young_parts           batches while n <= m, and beyond that
    O(log2(m) + n / m)                  where each commit has few updates, the large ones being the compaction job's

where m is `Budget.young_rows`. An update is rewritten at most `log2(m) + 1` times.

What a step changes together would also be due together, in each `young_parts`-th step. So of many collections only an
eighth is merged at once, those with the most batches first; the others have half as many young batches more at most.

What a merge replaced is deleted before the next one of the collection, with that of all that are merged then: until
then those who ask what the step has just written find its batch. Whatever goes wrong is logged and left to the
compaction job, as nobody may be told that what was sealed has failed; or, since many a project has none, to a step
after a while.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice

from mz_dagster.adapter.catalog_definitions import CatalogDefinitions
from mz_dagster.budget import budget
from mz_dagster.catalog import Catalog
from mz_dagster.clock import SYSTEM_CLOCK, Clock
from mz_dagster.formalism import GlobalId
from mz_dagster.storage.compact import Merge, choose_merge, compact
from mz_dagster.storage.local_shards import LocalShards
from mz_dagster.storage.sweep import sweep

logger = logging.getLogger("mz_dagster.engine")

_FEW = 8  # so many collections are merged at once, however few were written
_TRY_AGAIN_MS = 600_000
"""After how long what failed is tried again, in milliseconds: it may fail at each step, and for long."""


class MinorCompaction:
    """Merges the young batches of collections that were just written.

    Args:
        catalog: The catalog.
        shards: The shards in this process.
        definitions: What tells by which key a collection is sorted.
        holder: Names this process in leases.
        lease_ms: How long a lease lasts before it must be renewed, in milliseconds.
        clock: What tells when to try again.
    """

    def __init__(
        self,
        catalog: Catalog,
        shards: LocalShards,
        definitions: CatalogDefinitions,
        holder: str,
        lease_ms: int,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._catalog = catalog
        self._shards = shards
        self._definitions = definitions
        self._holder = holder
        self._lease_ms = lease_ms
        self._clock = clock
        #: Until when what failed is left alone.
        self._failed: dict[GlobalId, float] = {}
        self._sweep_failed = 0.0

    def merge(self, collections: Iterable[GlobalId]) -> None:
        """Merges what is due of the collections, of many only some; never fails.

        Cost: one query of the catalog if nothing is due.
        """
        collections = tuple(collections)
        least, now = budget().young_parts, self._clock.monotonic_ms()
        try:
            found = self._catalog.contents([id for id in collections if self._failed.get(id, now) <= now])
        except Exception:
            logger.warning("could not count batches", exc_info=True)
            return
        most = max(_FEW, 2 * len(collections) // least)
        counted = sorted((id for id in found if found[id].batches >= least), key=lambda id: -found[id].batches)
        try:
            due = tuple(islice(filter(self._is_due, counted), most))
            if due and self._sweep_failed <= now:
                sweep(self._catalog, self._shards, only=due)
        except Exception:
            self._sweep_failed = now + _TRY_AGAIN_MS
            logger.warning("could not sweep what was merged; compaction will", exc_info=True)
            return
        for id in due:
            try:
                self._merge(id)
            except Exception:
                self._failed[id] = now + _TRY_AGAIN_MS
                logger.warning("could not merge young batches of %s; compaction will", id, exc_info=True)

    def _is_due(self, id: GlobalId) -> bool:
        sizes = [batch.stats.rows for batch in self._catalog.live_batches([id])[id]]
        return choose_merge(sizes, budget().young_parts, budget().young_rows) is not None

    def _merge(self, id: GlobalId) -> None:
        row = self._catalog.collection(id)
        key = self._definitions.sort_key(row)
        bounds = {"least_parts": budget().young_parts, "most_rows": budget().young_rows}
        merge = compact(self._catalog, self._shards, row, holder=self._holder, key=key, ttl_ms=self._lease_ms, **bounds)
        if isinstance(merge, Merge):
            logger.debug("merged %d young batches of %s, %d updates", len(merge.parts), id, merge.rows_read)
        else:
            logger.info("lost the race to merge young batches of %s", id)
