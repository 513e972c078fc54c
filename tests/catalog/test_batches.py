"""The life of a batch: reserve, seal, replace, lease, dead, forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import event

from mz_dagster.catalog import (
    NO_ROWS,
    BatchId,
    BatchNotWriting,
    BatchState,
    BatchStats,
    Catalog,
    CollectionUpperMismatch,
    LostRace,
    NewObject,
    Replaced,
    Reservation,
    Seal,
    Sealed,
    UnknownLease,
    UnknownObject,
    UnknownWriter,
    UpperBeyondInput,
    WriterId,
    WrongSeal,
)
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId

STATS = BatchStats(3, 1, 1, 100)

Append = Callable[..., BatchId]


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


@pytest.fixture
def table(catalog: Catalog) -> GlobalId:
    return catalog.create_object(NewObject("x", "table", "", "t", ())).id


@pytest.fixture
def writer(catalog: Catalog) -> WriterId:
    return catalog.register_writer("test", 100)


@pytest.fixture
def append(catalog: Catalog, table: GlobalId, writer: WriterId) -> Append:
    def append(lower: int, upper: int) -> BatchId:
        batch = catalog.reserve_batch(table, writer, at(lower), at(upper))
        assert isinstance(catalog.seal([Seal(table, at(lower), at(upper), batch, STATS)]), Sealed)
        return batch

    return append


def states(catalog: Catalog, table: GlobalId) -> dict[int, BatchState]:
    return {batch.id: batch.state for batch in catalog.batches(table)}


def test_a_sealed_batch_is_listed_with_its_stats(catalog: Catalog, table: GlobalId, append: Append) -> None:
    first, second = append(0, 10), append(10, 20)
    lease = catalog.lease([table], "reader", 100)
    listed = lease.snapshots[table]
    assert (listed.since, listed.upper) == (at(0), at(20))
    assert [(one.id, one.lower, one.upper, one.stats) for one in listed.batches] == [
        (first, at(0), at(10), STATS),
        (second, at(10), at(20), STATS),
    ]
    assert catalog.live_batch_counts() == {table: (2, BatchStats(6, 2, 2, 200))}
    assert catalog.live_batches([table])[table] == listed.batches
    assert catalog.listed([table]) == lease.snapshots
    assert catalog.listed([]) == {}


def test_a_due_time_moves_with_the_seal_that_tells_it_and_with_no_other(catalog: Catalog, table: GlobalId) -> None:
    assert catalog.collection(table).next_due is None
    assert isinstance(catalog.seal([Seal(table, at(0), at(10))], dues={table: 2**63 - 1}), Sealed)
    assert isinstance(catalog.seal([Seal(table, at(10), at(20))]), Sealed)
    assert catalog.collection(table).next_due == 2**63 - 1
    assert isinstance(catalog.seal([Seal(table, at(10), at(30))], dues={table: 35}), CollectionUpperMismatch)
    assert catalog.collection(table).next_due == 2**63 - 1
    assert isinstance(catalog.seal([Seal(table, at(20), at(30))], dues={table: None}), Sealed)
    assert catalog.collection(table).next_due is None


def test_what_is_only_written_is_not_listed(catalog: Catalog, table: GlobalId, writer: WriterId) -> None:
    catalog.reserve_batch(table, writer, at(0), at(10))
    assert catalog.lease([table], "reader", 100).snapshots[table].batches == ()


def test_a_seal_is_all_or_nothing(catalog: Catalog, table: GlobalId, writer: WriterId) -> None:
    other = catalog.create_object(NewObject("y", "table", "", "t", ())).id
    batch = catalog.reserve_batch(table, writer, at(0), at(10))
    seals = [Seal(table, at(0), at(10), batch, STATS), Seal(other, at(5), at(10))]
    assert catalog.seal(seals) == CollectionUpperMismatch(other, at(5), at(0))
    assert catalog.collection(table).upper == at(0)
    assert states(catalog, table) == {batch: BatchState.WRITING}
    assert isinstance(catalog.seal([seals[0], Seal(other, at(0), at(10))]), Sealed)
    # A second attempt with the same batch finds the upper moved.
    assert catalog.seal([seals[0]]) == CollectionUpperMismatch(table, at(0), at(10))


def test_two_writers_of_one_interval_seal_once(catalog: Catalog, table: GlobalId, writer: WriterId) -> None:
    one, two = catalog.reserve_batches([Reservation(table, at(0), at(10))] * 2, writer)
    assert isinstance(catalog.seal([Seal(table, at(0), at(10), two, STATS)]), Sealed)
    assert isinstance(catalog.seal([Seal(table, at(0), at(10), one, STATS)]), CollectionUpperMismatch)
    assert states(catalog, table) == {one: BatchState.WRITING, two: BatchState.LIVE}


def test_a_batch_without_rows_is_a_gap(catalog: Catalog, table: GlobalId, writer: WriterId) -> None:
    batch = catalog.reserve_batch(table, writer, at(0), at(10))
    assert isinstance(catalog.seal([Seal(table, at(0), at(10), batch, NO_ROWS)]), Sealed)
    assert catalog.collection(table).upper == at(10)
    assert catalog.batches(table) == ()


def test_a_collection_closes_for_good(catalog: Catalog, table: GlobalId) -> None:
    closed = Antichain.empty(EPOCH_MS)
    assert isinstance(catalog.seal([Seal(table, at(0), closed)]), Sealed)
    assert catalog.seal([Seal(table, at(0), at(1))]) == CollectionUpperMismatch(table, at(0), closed)
    with pytest.raises(WrongSeal):
        catalog.seal([Seal(table, closed, closed)])


def test_seals_that_no_state_could_accept_are_errors(catalog: Catalog, table: GlobalId, writer: WriterId) -> None:
    batch = catalog.reserve_batch(table, writer, at(0), at(10))
    for seals in (
        [Seal(table, at(5), at(5))],
        [Seal(table, at(5), at(4))],
        [Seal(table, at(0), at(1)), Seal(table, at(1), at(2))],
        [Seal(table, at(0), at(10), batch)],
        [Seal(table, at(0), at(11), batch, STATS)],
    ):
        with pytest.raises(WrongSeal):
            catalog.seal(seals)
    with pytest.raises(WrongSeal):
        catalog.reserve_batch(table, writer, at(5), at(5))
    with pytest.raises(UnknownObject):
        catalog.seal([Seal(GlobalId("u99"), at(0), at(1))])
    assert catalog.collection(table).upper == at(0)


def test_constraint_w_an_output_never_passes_its_inputs(catalog: Catalog, table: GlobalId) -> None:
    view = catalog.create_object(NewObject("v", "materialized view", "", "t", (), dependencies={"x": table})).id
    with pytest.raises(UpperBeyondInput):
        catalog.seal([Seal(view, at(0), at(10))])
    assert catalog.collection(view).upper == at(0)
    # In one call their order does not matter: they move at once.
    assert isinstance(catalog.seal([Seal(view, at(0), at(10)), Seal(table, at(0), at(10))]), Sealed)


def test_failures_and_the_oracle_move_with_the_seal(catalog: Catalog, table: GlobalId) -> None:
    catalog.seal([], failures={table: "broken"})
    assert catalog.collection(table).failure == "broken"
    catalog.seal([Seal(table, at(5), at(6))], failures={table: None}, apply=("t", 5))
    assert catalog.collection(table).failure == "broken"
    assert catalog.read_ts("t") == 0
    catalog.seal([Seal(table, at(0), at(6))], failures={table: None}, apply=("t", 5))
    assert catalog.collection(table).failure is None
    assert catalog.read_ts("t") == 5


def test_a_batch_declared_dead_is_never_sealed(
    catalog: Catalog, table: GlobalId, writer: WriterId, clock: ManualClock
) -> None:
    batch = catalog.reserve_batch(table, writer, at(0), at(10))
    assert catalog.sweepable() == ()
    assert catalog.declare_dead([batch]) == ()  # its writer lives
    clock.advance(100)
    assert [one.id for one in catalog.sweepable()] == [batch]
    assert catalog.declare_dead([batch]) == (batch,)
    catalog.renew_writer(writer, 100)  # the writer wakes up
    seal = Seal(table, at(0), at(10), batch, STATS)
    assert catalog.seal([seal]) == BatchNotWriting(batch, BatchState.DEAD)
    catalog.forget([batch])
    assert catalog.seal([seal]) == BatchNotWriting(batch, None)
    assert catalog.collection(table).upper == at(0)
    # Its successor has another id and seals.
    again = catalog.reserve_batch(table, writer, at(0), at(10))
    assert again > batch
    assert isinstance(catalog.seal([Seal(table, at(0), at(10), again, STATS)]), Sealed)


def test_a_writer_that_was_only_late_still_seals(
    catalog: Catalog, table: GlobalId, writer: WriterId, clock: ManualClock
) -> None:
    batch = catalog.reserve_batch(table, writer, at(0), at(10))
    clock.advance(10_000)
    catalog.forget([])  # a sweep that saw nothing of it
    assert isinstance(catalog.seal([Seal(table, at(0), at(10), batch, STATS)]), Sealed)


def test_a_retired_writer_reserves_nothing(catalog: Catalog, table: GlobalId, writer: WriterId) -> None:
    batch = catalog.reserve_batch(table, writer, at(0), at(10))
    catalog.retire_writer(writer)
    with pytest.raises(UnknownWriter):
        catalog.reserve_batch(table, writer, at(0), at(10))
    with pytest.raises(UnknownWriter):
        catalog.renew_writer(writer, 100)
    assert [one.id for one in catalog.sweepable()] == [batch]


def test_a_merged_batch_takes_the_place_of_its_parts(
    catalog: Catalog, table: GlobalId, writer: WriterId, append: Append
) -> None:
    parts = [append(0, 10), append(10, 20), append(20, 30)]
    merged = catalog.reserve_batch(table, writer, at(10), at(30))
    assert catalog.replace_batches(table, parts[1:], merged, STATS) == Replaced(merged)
    listed = catalog.lease([table], "reader", 100).snapshots[table].batches
    assert [(one.id, one.lower, one.upper) for one in listed] == [
        (parts[0], at(0), at(10)),
        (merged, at(10), at(30)),
    ]
    assert states(catalog, table)[parts[1]] is BatchState.REPLACED


def test_a_lost_compaction_race_changes_nothing(
    catalog: Catalog, table: GlobalId, writer: WriterId, append: Append
) -> None:
    parts = [append(0, 10), append(10, 20), append(20, 30)]
    winner, loser, skipping, dead = (
        catalog.reserve_batch(table, writer, at(0), at(upper)) for upper in (20, 30, 30, 30)
    )
    assert catalog.replace_batches(table, [parts[0], parts[2]], skipping, STATS) == LostRace((parts[0], parts[2]))
    assert isinstance(catalog.replace_batches(table, parts[:2], winner, STATS), Replaced)
    before = states(catalog, table)
    assert catalog.replace_batches(table, parts, loser, STATS) == LostRace(tuple(parts))
    catalog.retire_writer(writer)
    catalog.declare_dead([dead])
    assert catalog.replace_batches(table, [winner, parts[2]], dead, STATS) == BatchNotWriting(dead, BatchState.DEAD)
    assert states(catalog, table) == {**before, dead: BatchState.DEAD}
    other = catalog.reserve_batch(table, catalog.register_writer("x", 10), at(0), at(30))
    with pytest.raises(WrongSeal):
        catalog.replace_batches(table, [parts[2]], other, STATS)


def test_a_merge_to_nothing_leaves_a_gap(catalog: Catalog, table: GlobalId, writer: WriterId, append: Append) -> None:
    parts = [append(0, 10), append(10, 20)]
    merged = catalog.reserve_batch(table, writer, at(0), at(20))
    assert catalog.replace_batches(table, parts, merged, NO_ROWS) == Replaced(merged)
    assert catalog.lease([table], "reader", 100).snapshots[table].batches == ()


def test_a_listed_batch_is_not_swept_before_its_lease_is_over(
    catalog: Catalog, table: GlobalId, writer: WriterId, append: Append, clock: ManualClock
) -> None:
    part = append(0, 10)
    lease = catalog.lease([table], "reader", 100)
    merged = catalog.reserve_batch(table, writer, at(0), at(10))
    catalog.replace_batches(table, [part], merged, STATS)
    assert catalog.sweepable() == ()
    assert catalog.declare_dead([part, merged]) == ()
    clock.advance(99)
    catalog.renew_lease(lease.id, 100)
    clock.advance(99)
    assert catalog.declare_dead([part]) == ()
    clock.advance(1)
    moved = Seal(table, at(10), at(20))
    assert catalog.seal([moved], lease=lease.id) == Sealed((table,))  # nobody swept yet
    assert catalog.declare_dead([part, merged]) == (part,)
    for releases in (False, True):
        with pytest.raises(UnknownLease):
            catalog.seal([Seal(table, at(20), at(30))], lease=lease.id, releases=releases)
    assert catalog.collection(table).upper == at(20)
    with pytest.raises(UnknownLease):
        catalog.renew_lease(lease.id, 100)
    assert not catalog.release_lease(lease.id)
    catalog.forget([part, merged])
    assert states(catalog, table) == {merged: BatchState.LIVE}


def test_a_seal_ends_the_lease_that_it_was_read_under(
    catalog: Catalog, table: GlobalId, writer: WriterId, append: Append
) -> None:
    part = append(0, 10)
    lease = catalog.lease([table], "reader", 100)
    wrong = Seal(table, at(5), at(20))
    assert isinstance(catalog.seal([wrong], lease=lease.id, releases=True), CollectionUpperMismatch)
    assert catalog.seal([Seal(table, at(10), at(20))], lease=lease.id, releases=True) == Sealed((table,))
    assert not catalog.release_lease(lease.id)
    merged = catalog.reserve_batch(table, writer, at(0), at(10))
    catalog.replace_batches(table, [part], merged, STATS)
    assert catalog.declare_dead([part]) == (part,)


def test_a_released_lease_protects_nothing(catalog: Catalog, table: GlobalId, writer: WriterId, append: Append) -> None:
    part = append(0, 10)
    lease = catalog.lease([table], "reader", 100)
    catalog.replace_batches(table, [part], catalog.reserve_batch(table, writer, at(0), at(10)), STATS)
    assert catalog.release_lease(lease.id)
    assert not catalog.release_lease(lease.id)
    assert catalog.declare_dead([part]) == (part,)


def test_a_dropped_collection_ends_for_readers_and_writers(
    catalog: Catalog, table: GlobalId, writer: WriterId, append: Append
) -> None:
    live = append(0, 10)
    writing = catalog.reserve_batch(table, writer, at(10), at(20))
    reader = catalog.lease([table], "reader", 100)
    catalog.drop_object(table)
    empty = Antichain.empty(EPOCH_MS)
    assert catalog.seal([Seal(table, at(10), at(20), writing, STATS)]) == CollectionUpperMismatch(table, at(10), empty)
    with pytest.raises(UnknownObject, match="was dropped"):
        catalog.reserve_batch(table, writer, at(10), at(20))
    listed = catalog.lease([table], "late", 100).snapshots[table]
    assert (listed.since, listed.upper, listed.batches) == (empty, empty, ())
    assert catalog.sweepable() == ()  # the reader that came before may finish
    catalog.release_lease(reader.id)
    assert [one.id for one in catalog.sweepable()] == [live]


def test_an_idle_seal_of_a_hundred_collections_executes_as_many_statements_as_one_of_two(catalog: Catalog) -> None:
    tables = catalog.create_objects([NewObject(f"x{n}", "table", "", "t", ()) for n in range(50)])
    views = catalog.create_objects(
        [
            NewObject(f"v{n}", "materialized view", "", "t", (), dependencies={"x": one.id})
            for n, one in enumerate(tables)
        ]
    )
    executed = 0

    def note(*_: object) -> None:
        nonlocal executed
        executed += 1

    def sealing(ids: Sequence[GlobalId], time: int) -> int:
        before = executed
        assert isinstance(catalog.seal([Seal(id, at(time), at(time + 1)) for id in ids]), Sealed)
        return executed - before

    event.listen(catalog._database.engine, "after_cursor_execute", note)
    ids = [one.id for one in (*tables, *views)]
    few = sealing([tables[0].id, views[0].id], 0)
    assert sealing([id for id in ids if id not in (tables[0].id, views[0].id)], 0) == few
    assert sealing(ids, 1) == few <= 20
