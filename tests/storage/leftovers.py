"""What a sweep may leave: the live batches, where they are said to be, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from mz_dagster.catalog import BatchState, Catalog, CollectionRow
from mz_dagster.storage import LocalShards


def check_only_live_is_left(catalog: Catalog, shards: LocalShards, rows: Iterable[CollectionRow]) -> None:
    """Checks, after a thorough sweep, that there is nothing but the live batches, in files or in the catalog."""
    inlined = set()
    for row in rows:
        batches = catalog.batches(row.id)
        assert {batch.state for batch in batches} <= {BatchState.LIVE}
        inlined |= {batch.id for batch in batches if batch.stats.inlined is not None}
        assert shards.stored_batches(row) == {batch.id for batch in batches} - inlined
    assert {one["batch"] for one in catalog.records()["inlined"]} == inlined
