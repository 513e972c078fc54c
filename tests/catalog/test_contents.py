"""What a collection consists of is in its own row: no list is short of a batch, or has one that is not as written."""

from __future__ import annotations

import pytest

from mz_dagster.catalog import (
    NO_ROWS,
    BatchFile,
    BatchId,
    BatchState,
    BatchStats,
    Catalog,
    Leadership,
    LeadershipLost,
    NewObject,
    Replaced,
    Seal,
    Sealed,
    WrongSeal,
)
from mz_dagster.catalog.contents import ListDamaged
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from tests.catalog.connected import connected
from tests.catalog.older import take_back


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def stats(number: int) -> BatchStats:
    return BatchStats(number, 0, 1, 100, (BatchFile(f"mz_batch={number}/x.parquet", number, 0, 100, "0f", (1, 2)),))


@pytest.fixture
def table(catalog: Catalog) -> GlobalId:
    """A table of three batches, with a gap before the last."""
    catalog.declare_timeline("t")
    id = catalog.create_object(NewObject("x", "table", "", "t", ())).id
    writer = catalog.register_writer("test", 60_000)
    for number, (lower, upper) in enumerate(((0, 10), (10, 20), (25, 30)), 1):
        if lower == 25:
            assert isinstance(catalog.seal([Seal(id, at(20), at(25))]), Sealed)
        batch = catalog.reserve_batch(id, writer, at(lower), at(upper))
        assert isinstance(catalog.seal([Seal(id, at(lower), at(upper), batch, stats(number))]), Sealed)
    return id


CHANGES = [
    "DELETE FROM batch WHERE id = 2",
    "DELETE FROM batch",
    "UPDATE batch SET state = 'replaced' WHERE id = 2",
    "UPDATE batch SET lower = '[5]' WHERE id = 2",
    "UPDATE batch SET upper = '[24]' WHERE id = 2",
    "UPDATE batch SET rows = 9 WHERE id = 2",
    "UPDATE batch SET errors = 1 WHERE id = 2",
    "UPDATE batch SET bytes = 101 WHERE id = 2",
    "UPDATE batch SET file_list = '[]' WHERE id = 2",
    "UPDATE batch SET file_list = NULL WHERE id = 2",
    "UPDATE batch SET id = 9 WHERE id = 2",
    "UPDATE collection SET live_batches = 0",
    "UPDATE collection SET live_digest = 7",
]


#: Each on SQLite, and a few on PostgreSQL; the others are deep.
EACH = [
    pytest.param(url, change, marks=pytest.mark.deep if url == "postgresql" and number % 6 else ())
    for url in ("sqlite", "postgresql")
    for number, change in enumerate(CHANGES)
]


@pytest.mark.parametrize(("url", "change"), EACH, indirect=["url"])
def test_a_list_that_is_not_as_it_was_written_is_never_taken(
    catalog: Catalog, url: str, table: GlobalId, change: str
) -> None:
    assert [one.id for one in catalog.listed([table])[table].batches] == [1, 2, 3]
    with connected(url) as raw:
        raw.exec_driver_sql(change)
    with Catalog.open(url) as other:  # which has not read the list
        writer = other.register_writer("test", 60_000)
        merged = other.reserve_batch(table, writer, at(0), at(20))
        for take in (
            lambda: other.listed([table]),
            lambda: other.lease([table], "test", 60_000),
            lambda: other.live_batches([table]),
            lambda: other.replace_batches(table, [BatchId(1), BatchId(3)], merged, stats(6)),
        ):
            with pytest.raises(ListDamaged) as error:
                take()
            assert error.value.sqlstate == "XX001"
            assert table in error.value.message


def test_who_has_read_a_list_keeps_it_as_it_was_written_until_it_changes(
    catalog: Catalog, url: str, table: GlobalId
) -> None:
    read = catalog.listed([table])
    with connected(url) as raw:
        raw.exec_driver_sql("UPDATE batch SET rows = 9 WHERE id = 2")
    assert catalog.listed([table]) == read
    with connected(url) as raw:
        raw.exec_driver_sql("UPDATE collection SET live_digest = 7")
    with pytest.raises(ListDamaged):
        catalog.listed([table])


def test_it_follows_seals_merges_and_drops(catalog: Catalog, table: GlobalId) -> None:
    writer = catalog.register_writer("test", 60_000)
    merged = catalog.reserve_batch(table, writer, at(0), at(20))
    catalog.replace_batches(table, [BatchId(1), BatchId(2)], merged, stats(2))
    assert [one.id for one in catalog.listed([table])[table].batches] == [merged, 3]
    nothing = catalog.reserve_batch(table, writer, at(0), at(30))
    catalog.replace_batches(table, [merged, BatchId(3)], nothing, NO_ROWS)
    assert catalog.listed([table])[table].batches == ()
    assert catalog.batches(table, BatchState.LIVE) == ()
    catalog.drop_object(table)
    assert catalog.listed([table])[table].batches == ()


def test_a_catalog_without_sums_is_taken_as_it_is(catalog: Catalog, url: str, table: GlobalId) -> None:
    before = catalog.listed([table])
    with connected(url) as raw:
        take_back(raw.exec_driver_sql, "0006", on_postgresql=url.startswith("postgresql"))
    with Catalog.open(url) as migrated:
        assert migrated.listed([table]) == before


@pytest.mark.parametrize(("url", "change"), [("sqlite", None), ("postgresql", None), *EACH], indirect=["url"])
def test_one_batch_takes_the_place_of_a_list_whatever_became_of_it(
    catalog: Catalog, url: str, table: GlobalId, change: str | None
) -> None:
    if change is not None:
        with connected(url) as raw:
            raw.exec_driver_sql(change)
    lead = catalog.lead("t", "test", 60_000)
    assert isinstance(lead, Leadership)
    writer = catalog.register_writer("test", 60_000)
    part, batch, late, nothing = (catalog.reserve_batch(table, writer, at(0), at(upper)) for upper in (20, 30, 30, 30))
    with pytest.raises(WrongSeal):
        catalog.replace_all(table, part, stats(9), lead)
    assert catalog.replace_all(table, batch, stats(9), lead) == Replaced(batch)
    assert [(one.id, one.lower, one.upper) for one in catalog.live_batches([table])[table]] == [(batch, at(0), at(30))]
    assert catalog.replace_all(table, nothing, NO_ROWS, lead) == Replaced(nothing)
    assert catalog.live_batches([table])[table] == ()
    catalog.resign(lead)
    assert catalog.replace_all(table, late, stats(9), lead) == LeadershipLost("t", lead.epoch)
    assert catalog.live_batches([table])[table] == ()
