"""Facts and laws of timelines and stateful timelines (items 8 and 19)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import (
    EPOCH_MS,
    NATURAL,
    Antichain,
    NotATime,
    StatefulTimeline,
    Timeline,
    TimelinesDiffer,
)

from .orders import PARTIAL, TOTAL, Order, law, over_every_order


def test_timelines_are_told_apart_by_id_and_by_lattice() -> None:
    """Item 8: equal ids over other times are still two timelines."""
    timeline = Timeline("t", NATURAL)
    assert timeline == Timeline("t", NATURAL)
    assert timeline != Timeline("u", NATURAL)
    assert timeline != Timeline("t", EPOCH_MS)


@over_every_order
def test_timeline_is_its_lattice(order: Order) -> None:
    """Item 8: every operation of a timeline is that of its lattice."""
    timeline, lattice = order.timeline, order.lattice
    assert (timeline.minimum, timeline.columns) == (lattice.minimum, lattice.columns)
    for a in order.window[::3]:
        assert timeline.is_time(a)
        assert timeline.decode(timeline.encode(a)) == a
        assert list(timeline.times_through(a)) == list(lattice.times_through(a))
        for b in order.window:
            assert (timeline.join(a, b), timeline.meet(a, b)) == (lattice.join(a, b), lattice.meet(a, b))
            assert timeline.less_equal(a, b) == lattice.less_equal(a, b)
            assert timeline.less_than(a, b) == lattice.less_than(a, b)


@over_every_order
@law
@given(data=st.data())
def test_completed_is_the_frontier_of_latest_times(order: Order, data: st.DataObject) -> None:
    """Item 19: the frontier has exactly the greatest of all completed times."""
    times = data.draw(st.lists(order.times(), min_size=1, max_size=6))
    state = StatefulTimeline.begin(order.timeline)
    for time in times:
        state = state.complete(time)
    greatest = {time for time in times if not any(order.lattice.less_than(time, other) for other in times)}
    assert set(state.completed) == greatest


@over_every_order
@law
@given(data=st.data())
def test_latest_never_goes_back(order: Order, data: st.DataObject) -> None:
    """Item 19: the latest time is at or after each completed one, and only advances."""
    state, seen = StatefulTimeline.begin(order.timeline), []
    for time in data.draw(st.lists(order.times(), max_size=6)):
        before, state = state, state.complete(time)
        seen.append(time)
        assert order.lattice.less_equal(before.latest, state.latest)
        assert all(order.lattice.less_equal(done, state.latest) for done in seen)


@over_every_order
@law
@given(data=st.data())
def test_time_is_after_all_if_after_each(order: Order, data: st.DataObject) -> None:
    """Item 19: what is next must be after every completed time, whether or not those compare."""
    times, candidate = data.draw(st.lists(order.times(), min_size=1, max_size=4)), data.draw(order.times())
    state = StatefulTimeline.begin(order.timeline)
    for time in times:
        state = state.complete(time)
    assert state.is_after_all(candidate) == all(order.lattice.less_than(time, candidate) for time in times)


def test_latest_of_times_that_do_not_compare_is_their_join() -> None:
    """Item 19: after (0,1) and (1,0) the first time that follows both is (1,1)."""
    state = StatefulTimeline.begin(PARTIAL.timeline).complete((0, 1)).complete((1, 0))
    assert str(state.completed) == "{(0, 1), (1, 0)}"
    assert state.latest == (1, 1)


def test_stateful_timeline_refuses_what_is_not_its_own() -> None:
    """Item 8: neither a value that is no time, nor a frontier of another timeline."""
    with pytest.raises(NotATime):
        StatefulTimeline.begin(TOTAL.timeline).complete(-1)
    with pytest.raises(TimelinesDiffer):
        StatefulTimeline(TOTAL.timeline, Antichain.of(Timeline("other", TOTAL.lattice), 1))
