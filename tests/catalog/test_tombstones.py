"""What was dropped goes once nothing needs it, and no statement pays for what was dropped before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from mz_dagster.catalog import (
    BatchId,
    BatchStats,
    Catalog,
    CollectionUpperMismatch,
    NewObject,
    Ref,
    Reservation,
    Seal,
    UnknownObject,
)
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId, IdAlreadyBound
from mz_dagster.scalars.types import INT4, Column
from tests.catalog.connected import connected

COLUMNS = (Column("a", INT4),)
NEVER = Antichain.empty(EPOCH_MS)


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def table(catalog: Catalog, name: str) -> GlobalId:
    return catalog.create_object(NewObject(name, "table", "", "t", COLUMNS)).id


def left(catalog: Catalog) -> dict[str, int]:
    """Returns how many rows there are in each table that has any, but for tombstones, and the one that says so."""
    rows = {name: len(rows) for name, rows in catalog.records().items() if rows}
    rows.pop("tombstone", None)
    changed = [row for row in catalog.records()["changed"] if row["object"]]
    assert {row["object"] for row in changed} <= {row["id"] for row in catalog.records()["object"]}
    rows["changed"] = len(changed)
    return rows


def sealed(catalog: Catalog, id: GlobalId) -> BatchId:
    """Makes a batch of a collection live."""
    writer = catalog.register_writer("w", 1000)
    (batch,) = catalog.reserve_batches([Reservation(id, at(0), at(5))], writer)
    catalog.seal([Seal(id, at(0), at(5), batch, BatchStats(1, 0, 1, 1))])
    catalog.retire_writer(writer)
    return batch


def test_of_what_was_dropped_only_a_tombstone_stays(catalog: Catalog) -> None:
    before = left(catalog)
    source = catalog.create_object(NewObject("s", "source", "", "t", COLUMNS)).id
    catalog.create_objects(
        [
            NewObject("v", "view", "", "t", COLUMNS, dependencies={"s": source}, has_collection=False),
            NewObject(None, "arrangement", "", "t", COLUMNS, dependencies={"s": source}, owner=Ref(2)),
            NewObject("m", "materialized view", "", "t", COLUMNS, dependencies={"v": Ref(0), "by a": Ref(1)}),
        ]
    )
    gone = catalog.drop_object(source, cascade=True)
    assert left(catalog) == before
    assert {row["id"] for row in catalog.records()["tombstone"]} == set(gone)


def test_a_buried_id_is_unreadable_unwritable_and_never_used_again(catalog: Catalog) -> None:
    id = catalog.reserve_id()
    catalog.create_collection(id, "t", COLUMNS, holder="h", ttl_ms=None)
    catalog.drop_object(id)
    for token in [row["id"] for row in catalog.records()["capability"]]:
        assert token  # what others have a right to is not buried
    assert id in catalog.dropped()
    buried = table(catalog, "x")
    catalog.drop_object(buried)
    assert buried not in catalog.dropped()
    assert catalog.was_dropped(buried)
    assert not catalog.was_dropped(GlobalId("u99"))
    row = catalog.collection(buried)
    assert (row.since, row.upper, row.timeline) == (NEVER, NEVER, "t")
    assert catalog.listed([buried])[buried].batches == ()
    assert [one.frontier for one in catalog.acquire(buried, holder="h", ttl_ms=None)] == [NEVER, NEVER]
    assert catalog.seal([Seal(buried, at(0), at(5))]) == CollectionUpperMismatch(buried, at(0), NEVER)
    attempts: list[Callable[[], Any]] = [
        lambda: catalog.object(buried),
        lambda: catalog.drop_object(buried),
        lambda: catalog.acquire_read(buried, holder="h", ttl_ms=None),
        lambda: sealed(catalog, buried),
        lambda: catalog.create_object(NewObject("v", "view", "", "t", COLUMNS, dependencies={"x": buried})),
    ]
    for attempt in attempts:
        with pytest.raises(UnknownObject, match="was dropped"):
            attempt()
    with pytest.raises(IdAlreadyBound):
        catalog.create_collection(buried, "t", COLUMNS, holder="h", ttl_ms=None)
    assert table(catalog, "x") != buried


def test_what_somebody_still_reads_or_writes_is_buried_when_he_has_ended(catalog: Catalog, clock: ManualClock) -> None:
    before = left(catalog)
    id = table(catalog, "x")
    batch = sealed(catalog, id)
    read, _ = catalog.acquire(id, holder="h", ttl_ms=None)
    lease = catalog.lease([id], "h", 1000).id
    catalog.drop_object(id)
    assert catalog.collection(id).columns == COLUMNS
    assert catalog.forget([]) == ()
    catalog.drop(read.token)
    assert not catalog.declare_dead([batch]), "it is on a live lease"
    assert catalog.forget([]) == ()
    catalog.release_lease(lease)
    assert catalog.dropped() == {id}
    assert catalog.buried_shards([f"shards/{id}"]) == frozenset()
    assert catalog.declare_dead([one.id for one in catalog.sweepable()]) == (batch,)
    assert catalog.forget([batch]) == (f"shards/{id}",)
    assert catalog.buried_shards([f"shards/{id}", "shards/u77"]) == {f"shards/{id}"}
    assert left(catalog) == before


def test_what_an_older_version_has_dropped_goes_with_the_next_sweep(catalog: Catalog, url: str) -> None:
    before = left(catalog)
    ids = [table(catalog, "x")]
    ids.append(catalog.create_object(NewObject("v", "view", "", "t", COLUMNS, dependencies={"x": ids[0]})).id)
    with connected(url) as raw:
        raw.exec_driver_sql("DELETE FROM name")
        raw.exec_driver_sql("DELETE FROM hold")
        raw.exec_driver_sql(f"UPDATE object SET dropped = {'1' if url.startswith('sqlite') else 'true'}")
        raw.exec_driver_sql("UPDATE collection SET since = '[]', upper = '[]'")
    assert catalog.dropped() == set(ids)
    assert catalog.forget([]) == tuple(f"shards/{id}" for id in ids)
    assert left(catalog) == before


@contextmanager
def steps(file: Path) -> Iterator[list[int]]:
    """Counts the steps of SQLite's machine in a file, which are what its statements cost."""
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    def connect(raw: Any, _: object) -> None:
        if str(file) in {path for _, _, path in raw.execute("PRAGMA database_list")}:  # other threads may have others
            raw.set_progress_handler(count, 1)

    event.listen(Engine, "connect", connect)
    try:
        yield counted
    finally:
        event.remove(Engine, "connect", connect)


def test_a_statement_costs_the_same_however_much_was_dropped(tmp_path: Any, clock: ManualClock) -> None:
    file = Path(tmp_path).resolve() / "catalog.sqlite"
    with steps(file) as counted, Catalog.open(f"sqlite:///{file}", clock=clock) as catalog:
        catalog.declare_timeline("t")
        kept = table(catalog, "kept")

        def cost() -> int:
            begun = counted[0]
            catalog.objects()
            catalog.collections("t")
            catalog.collection(kept)
            catalog.dependants(kept)
            catalog.allow_compaction("t", retention_ms=0)
            catalog.sweepable()
            catalog.forget([])
            made = catalog.create_object(NewObject("v", "view", "", "t", COLUMNS, dependencies={"kept": kept}))
            catalog.drop_object(made.id)
            return counted[0] - begun

        cost()
        few = cost()
        assert few
        for _ in range(40):
            id = table(catalog, "x")
            catalog.create_object(NewObject("v", "materialized view", "", "t", COLUMNS, dependencies={"x": id}))
            catalog.drop_object(id, cascade=True)
        assert cost() == few
