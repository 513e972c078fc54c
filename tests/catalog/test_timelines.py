"""The oracle's laws (items 94 to 100), ticks, bindings, and the writer's lease."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mz_dagster.catalog import (
    BoundFile,
    Catalog,
    CollectionUpperMismatch,
    FileAlreadyBound,
    Leadership,
    LeadershipLost,
    LedByAnother,
    LostLeader,
    NewObject,
    Seal,
    Sealed,
    TickMinted,
    TickMoved,
    TimelineDiffers,
    UnknownTimeline,
)
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain

FILES = [BoundFile(f"f{n}", n, "00") for n in range(4)]

COMMANDS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.just(0)),
        st.tuples(st.just("write"), st.integers(0, 50)),
        st.tuples(st.just("apply"), st.integers(0, 50)),
        st.tuples(st.just("tick"), st.integers(0, 50)),
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(COMMANDS)
def test_timestamps_never_go_back_and_writes_follow_reads(catalog: Catalog, commands: list[tuple[str, int]]) -> None:
    t = f"t{len(catalog.timelines())}"
    catalog.declare_timeline(t)
    seen = 0
    applied = 0
    assert catalog.read_ts(t) == 0
    for command, value in commands:
        match command:
            case "read":
                ts = catalog.read_ts(t)
                assert ts >= applied
                assert ts >= 0
                seen = max(seen, ts)
            case "write":
                ts = catalog.write_ts(t, value)
                assert ts > seen
                assert ts > applied
                assert ts >= value
                seen = ts  # two writes never get the same time
            case "apply":
                before = catalog.read_ts(t)
                catalog.apply_write(t, value)
                applied = max(applied, value)
                assert catalog.read_ts(t) == max(before, value)
            case "tick":
                last = catalog.last_tick(t)
                minted = catalog.mint_tick(t, value, {}, last)
                if isinstance(minted, TickMinted):
                    assert value > (last or 0)
                    assert value > applied
                    applied = value
                    assert catalog.read_ts(t) >= value


def test_timelines_are_declared_once(catalog: Catalog) -> None:
    catalog.declare_timeline("t")
    catalog.declare_timeline("n", lattice="natural")
    with pytest.raises(TimelineDiffers):
        catalog.declare_timeline("t", lattice="natural")
    assert [(one.name, one.lattice) for one in catalog.timelines()] == [("n", "natural"), ("t", "epoch_ms")]
    with pytest.raises(UnknownTimeline):
        catalog.read_ts("x")


def test_offsets_are_bound_as_they_are_given(catalog: Catalog) -> None:
    kept, gone = (catalog.create_object(NewObject(name, "source", "", "t", ())).id for name in "sd")
    offsets = [{"version": n, "of": {"b": [1, None], "a": "é"}} for n in range(3)]
    for n, offset in enumerate(offsets):
        tick = 10 * (n + 1)
        assert catalog.mint_tick("t", tick, {}, catalog.last_tick("t"), {kept: offset}) == TickMinted("t", tick)
    assert [(one.tick, one.offset, one.files) for one in catalog.bindings(kept, 15)] == [
        (20, offsets[1], ()),
        (30, offsets[2], ()),
    ]
    for before, wanted in ((None, 2), (30, 1), (11, 0)):
        last = catalog.last_binding(kept, before)
        assert last is not None
        assert last.offset == offsets[wanted]
    assert catalog.last_binding(kept, 10) is catalog.last_binding(gone) is None
    assert catalog.newest_bindings([kept, gone], 25) == {kept: 20}
    catalog.mint_tick("t", 40, {}, 30, {gone: {}})
    catalog.check_bindings(gone)
    catalog.drop_object(gone)
    catalog.forget([])
    assert catalog.bindings(gone) == ()
    assert len(catalog.bindings(kept)) == 3


def test_a_tick_and_its_bindings_appear_together(catalog: Catalog) -> None:
    source = catalog.create_object(NewObject("s", "source", "", "t", ())).id
    assert catalog.mint_tick("t", 10, {source: FILES[:2]}, None) == TickMinted("t", 10)
    assert catalog.mint_tick("t", 20, {source: []}, 10) == TickMinted("t", 20)
    assert catalog.mint_tick("t", 30, {source: [FILES[3], FILES[2]]}, 20) == TickMinted("t", 30)
    assert catalog.ticks("t") == (10, 20, 30)
    assert catalog.ticks("t", newest=2) == (20, 30)
    assert [(one.tick, one.files) for one in catalog.bindings(source, 0, 31)] == [
        (10, tuple(FILES[:2])),
        (30, (FILES[3], FILES[2])),
    ]
    assert [one.tick for one in catalog.bindings(source, 11, 31)] == [30]
    assert catalog.bindings(source, 11, 30) == ()
    assert catalog.bound_files(source) == {file.path: file for file in FILES}
    assert catalog.newest_bindings([source], 30) == {source: 10}
    assert catalog.read_ts("t") == 30


def test_what_a_dropped_source_has_read_is_forgotten_and_its_id_is_not_used_again(catalog: Catalog) -> None:
    gone, kept = (catalog.create_object(NewObject(name, "source", "", "t", ())).id for name in ("s", "r"))
    catalog.mint_tick("t", 10, {gone: FILES[:2], kept: FILES[:1]}, None)
    catalog.drop_object(gone)
    catalog.forget([])
    assert not catalog.bound_files(gone)
    assert list(catalog.bound_files(kept)) == ["f0"]
    again = catalog.create_object(NewObject("s", "source", "", "t", ())).id
    assert again not in (gone, kept)
    assert catalog.was_dropped(gone)


def test_a_tick_is_minted_only_where_it_is_expected(catalog: Catalog) -> None:
    source = catalog.create_object(NewObject("s", "source", "", "t", ())).id
    catalog.mint_tick("t", 10, {source: FILES[:1]}, None)
    for tick, expected in ((20, None), (20, 9), (10, 10), (9, 10)):
        assert catalog.mint_tick("t", tick, {source: FILES[1:]}, expected) == TickMoved("t", 10, 10)
    catalog.apply_write("t", 15)
    assert catalog.mint_tick("t", 15, {}, 10) == TickMoved("t", 10, 15)
    assert catalog.ticks("t") == (10,)
    assert list(catalog.bound_files(source)) == ["f0"]


def test_a_file_is_bound_once(catalog: Catalog) -> None:
    source = catalog.create_object(NewObject("s", "source", "", "t", ())).id
    catalog.mint_tick("t", 10, {source: FILES[:1]}, None)
    with pytest.raises(FileAlreadyBound):
        catalog.mint_tick("t", 20, {source: FILES[:2]}, 10)
    assert catalog.last_tick("t") == 10


def test_a_live_lead_is_never_taken_and_epochs_only_grow(catalog: Catalog, clock: ManualClock) -> None:
    first = catalog.lead("t", "a", 100)
    assert first == Leadership("t", 1, "a")
    assert catalog.lead("t", "b", 100) == LedByAnother("t", "a", 1_000_100)
    assert catalog.lead("t", "a", 100) == LedByAnother("t", "a", 1_000_100)  # not even one's own
    clock.advance(99)
    assert catalog.renew_leadership(first, 100) == first
    clock.advance(99)
    assert isinstance(catalog.lead("t", "b", 100), LedByAnother)
    clock.advance(1)
    assert catalog.leader("t", 100) is None
    assert catalog.lost_leader("t") == LostLeader("a", is_dead=False)
    second = catalog.lead("t", "b", 100)
    assert catalog.lost_leader("t") is None
    assert second == Leadership("t", 2, "b")
    assert catalog.renew_leadership(first, 100) == LeadershipLost("t", 1)
    catalog.resign(first)  # not its to give back
    assert catalog.leader("t", 100) == LedByAnother("t", "b", 1_000_299)
    catalog.resign(second)
    assert catalog.lost_leader("t") is None
    assert catalog.lead("t", "a", 100) == Leadership("t", 3, "a")


@pytest.mark.parametrize("back", [1000, 10**6])
def test_a_clock_set_back_keeps_nobody_waiting_for_a_leader_that_crashed(
    catalog: Catalog, clock: ManualClock, back: int
) -> None:
    crashed = catalog.lead("t", "crashed", 100)
    assert isinstance(crashed, Leadership)
    clock.advance(-back)
    now = clock.now_ms()
    assert catalog.leader("t", 100) == LedByAnother("t", "crashed", now + 100)
    assert catalog.lead("t", "b", 100) == LedByAnother("t", "crashed", now + 100)
    clock.advance(100)
    second = catalog.lead("t", "b", 100)
    assert isinstance(second, Leadership)
    table = catalog.create_object(NewObject("x", "table", "", "t", ())).id
    moved = Seal(table, Antichain.of(EPOCH_MS, 0), Antichain.of(EPOCH_MS, 1))
    assert catalog.seal([moved], leadership=crashed) == LeadershipLost("t", 1)  # had it only been paused
    assert catalog.seal([moved], leadership=second) == Sealed((table,))


def test_a_clock_set_back_takes_nothing_from_a_leader_that_lives(catalog: Catalog, clock: ManualClock) -> None:
    first = catalog.lead("t", "a", 90)
    assert isinstance(first, Leadership)
    ahead = 10**6  # by which the leader's machine is ahead of the others
    for _ in range(10):
        clock.advance(ahead)
        assert catalog.renew_leadership(first, 90) == first
        clock.advance(-ahead)
        for _ in range(3):
            assert isinstance(catalog.lead("t", "b", 90), LedByAnother)
            clock.advance(10)


def test_a_clock_that_jumps_ahead_takes_nothing_from_whoever_goes_on(catalog: Catalog, clock: ManualClock) -> None:
    first = catalog.lead("t", "a", 100)
    assert isinstance(first, Leadership)
    written = catalog.write_ts("t", clock.now_ms())
    clock.advance(10**9)
    assert catalog.leader("t", 100) is None
    assert catalog.renew_leadership(first, 100) == first
    assert isinstance(catalog.lead("t", "b", 100), LedByAnother)
    ahead = catalog.write_ts("t", clock.now_ms())
    clock.advance(-2 * 10**9)
    assert catalog.write_ts("t", clock.now_ms()) == ahead + 1 > written + 1  # time goes on from there, one by one


def test_ticks_are_kept_as_long_as_something_can_be_read_there(catalog: Catalog) -> None:
    assert catalog.forget_ticks("t") == 0
    last = None
    for tick in range(10, 60, 10):
        catalog.mint_tick("t", tick, {}, last)
        last = tick
    new = [NewObject(name, "source", "", "t", (), since=since, upper=40) for name, since in (("a", 20), ("b", 30))]
    ids = [catalog.create_object(one).id for one in new]
    assert catalog.forget_ticks("t") == 1
    assert catalog.ticks("t") == (20, 30, 40, 50)
    catalog.drop_object(ids[0])
    assert catalog.forget_ticks("t") == 1
    assert catalog.ticks("t") == (30, 40, 50)
    catalog.drop_object(ids[1])
    assert catalog.forget_ticks("t") == 2
    assert catalog.ticks("t") == (50,)  # of which the next one must be beyond
    assert catalog.mint_tick("t", 50, {}, 50) == TickMoved("t", 50, 50)


def test_only_the_leader_of_the_newest_epoch_can_seal(catalog: Catalog, clock: ManualClock) -> None:
    table = catalog.create_object(NewObject("x", "table", "", "t", ())).id
    first = catalog.lead("t", "a", 100)
    assert isinstance(first, Leadership)
    clock.advance(1000)

    def seal(lower: int, leadership: Leadership) -> object:
        moved = Seal(table, Antichain.of(EPOCH_MS, lower), Antichain.of(EPOCH_MS, lower + 1))
        return catalog.seal([moved], leadership=leadership)

    # Its lease ran out, but nobody took it: time does not decide.
    assert seal(0, first) == Sealed((table,))
    second = catalog.lead("t", "a", 100)
    assert isinstance(second, Leadership)
    assert seal(1, first) == LeadershipLost("t", 1)
    assert catalog.collection(table).upper.only == 1
    assert seal(1, second) == Sealed((table,))
    catalog.resign(second)
    assert seal(2, second) == LeadershipLost("t", 2)


def test_a_seal_gives_the_lead_back(catalog: Catalog) -> None:
    table = catalog.create_object(NewObject("x", "table", "", "t", ())).id
    lead = catalog.lead("t", "a", 100)
    assert isinstance(lead, Leadership)
    wrong, right = (Seal(table, Antichain.of(EPOCH_MS, lower), Antichain.of(EPOCH_MS, 2)) for lower in (1, 0))
    assert isinstance(catalog.seal([wrong], leadership=lead, resigns=True), CollectionUpperMismatch)
    assert catalog.is_leading(lead)
    assert catalog.seal([right], leadership=lead, resigns=True) == Sealed((table,))
    assert not catalog.is_leading(lead)
    assert isinstance(catalog.lead("t", "b", 100), Leadership)


def test_who_closes_tables_leads_only_for_what_else_there_is(catalog: Catalog) -> None:
    table = catalog.create_object(NewObject("x", "table", "", "t", ())).id
    view = catalog.create_object(NewObject("v", "materialized view", "", "t", (), dependencies={"x": table})).id
    assert catalog.close_tables_and_lead("t", 5, [table], "a", 100) is None
    assert catalog.collection(table).upper.only == 6
    lead = catalog.close_tables_and_lead("t", 7, [view, table], "a", 100)
    assert isinstance(lead, Leadership)
    assert catalog.collection(table).upper.only == 8
    assert isinstance(catalog.close_tables_and_lead("t", 9, [view], "b", 100), LedByAnother)
    assert catalog.collection(table).upper.only == 10


def test_the_last_path_is_that_of_bytes(catalog: Catalog) -> None:
    source = catalog.create_object(NewObject("s", "source", "", "t", ())).id
    assert catalog.last_path(source, 99) == ""
    for tick, path in enumerate(("a", "B", "é", "Z\u2028", "\uffff", "🦆", "_"), 10):
        catalog.mint_tick("t", tick, {source: [BoundFile(path, 1, "0")]}, catalog.last_tick("t"))
        assert catalog.last_path(source, tick - 1) <= catalog.last_path(source, tick)
    assert [catalog.last_path(source, tick) for tick in range(9, 17)] == ["", "a", "a", "é", "é", "\uffff", "🦆", "🦆"]
