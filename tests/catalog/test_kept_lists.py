"""Lists of batches that are kept in memory, read by threads of one process that see different states of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from mz_dagster.catalog import Batch, BatchFile, BatchStats, Catalog, NewObject, Seal, Sealed
from mz_dagster.catalog.frontiers import summed_frontiers
from mz_dagster.catalog.leases import live_lists
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId

Lists = dict[GlobalId, tuple[Batch, ...]]
Take = Callable[[Catalog, tuple[GlobalId, ...]], Lists]


def listed(catalog: Catalog, ids: tuple[GlobalId, ...]) -> Lists:
    return {id: one.batches for id, one in catalog.listed(ids).items()}


def leased(catalog: Catalog, ids: tuple[GlobalId, ...]) -> Lists:
    return {id: one.batches for id, one in catalog.lease(ids, "test", 60_000).snapshots.items()}


def live(catalog: Catalog, ids: tuple[GlobalId, ...]) -> Lists:
    return dict(catalog.live_batches(ids))


def live_of_what_is_followed(catalog: Catalog, ids: tuple[GlobalId, ...]) -> Lists:
    catalog.state()
    return live(catalog, ids)


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def append(catalog: Catalog, id: GlobalId, lower: int, upper: int) -> None:
    stats = BatchStats(1, 0, 1, 100, (BatchFile("mz_batch=1/x.parquet", 1, 0, 100, "0f", (lower, lower)),))
    writer = catalog.register_writer("test", 60_000)
    batch = catalog.reserve_batch(id, writer, at(lower), at(upper))
    assert isinstance(catalog.seal([Seal(id, at(lower), at(upper), batch, stats)]), Sealed)


@pytest.mark.parametrize("take", [listed, leased, live, live_of_what_is_followed])
def test_who_sees_an_older_state_takes_no_batch_from_who_sees_a_newer_one(catalog: Catalog, take: Take) -> None:
    first, second = (catalog.create_object(NewObject(name, "table", "", "t", ())).id for name in ("x", "y"))
    for id in (first, second):
        append(catalog, id, 0, 10)
    catalog.live_batches((first, second))
    database = catalog._database
    with database.read() as older:
        sums = summed_frontiers(older, [first])  # it sees one batch from here on
        append(catalog, first, 10, 20)
        append(catalog, second, 10, 20)
        assert len(catalog.listed((first,))[first].batches) == 2
        is_asked = False

        @event.listens_for(database.engine, "before_cursor_execute")
        def read_meanwhile(_: Any, __: Any, statement: str, *___: Any) -> None:
            """Has a reader of the older state come while the list of the second collection is read."""
            nonlocal is_asked
            if "FROM batch" in statement and not is_asked:
                is_asked = True
                assert len(live_lists(older, sums, database.lists)[first]) == 1

        found = take(catalog, (first, second))
        event.remove(database.engine, "before_cursor_execute", read_meanwhile)
    assert is_asked
    assert {id: len(batches) for id, batches in found.items()} == {first: 2, second: 2}
