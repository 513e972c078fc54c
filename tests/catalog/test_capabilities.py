"""Capabilities on clocks that disagree: time decides when one ends, never that one which has ended lives again."""

from __future__ import annotations

import pytest

from mz_dagster.catalog import CapabilityExpired, Catalog
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain
from mz_dagster.scalars.types import INT4, Column


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def test_a_capability_that_was_passed_stays_over_when_the_clock_is_set_back(
    catalog: Catalog, clock: ManualClock
) -> None:
    id = catalog.reserve_id()
    read, late = catalog.create_collection(id, "t", (Column("n", INT4),), holder="late", ttl_ms=1_000)
    first, write = catalog.acquire(id, holder="other", ttl_ms=None)
    catalog.drop(first.token)
    catalog.append_batch(write.token, at(0), at(9))
    assert catalog.collection(id).upper == at(0)  # the late writer holds it
    clock.advance(1_001)
    held = catalog.acquire_read(id, at(5), holder="other", ttl_ms=None)
    catalog.allow_compaction("t")
    assert (catalog.collection(id).since, catalog.collection(id).upper) == (at(5), at(9))
    clock.advance(-1_001)
    for over in (read, late):
        with pytest.raises(CapabilityExpired):
            catalog.validate(over.token)
    with pytest.raises(CapabilityExpired):
        catalog.append_batch(late.token, at(0), at(3))  # would change what was read at 2
    assert catalog.validate(held.token).frontier == at(5)
