"""Laws of reclocking (item 20): external times become times of a timeline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import (
    EPOCH_MS,
    Antichain,
    BindingWentBack,
    NotATime,
    Reclocking,
    Timeline,
    TimelinesDiffer,
    Tvc,
    Update,
)

from .orders import TOTAL, Order, Time, law, over_every_order

EPOCH = Timeline("epoch", EPOCH_MS)


@st.composite
def reclockings(draw: st.DrawFn, order: Order) -> Reclocking[Time, int]:
    """Draws a reclocking with a few bindings, some of which bind nothing new."""
    reclocking: Reclocking[Time, int] = Reclocking(order.timeline, EPOCH)
    tick, ends_at = 0, Antichain.minimum(order.timeline)
    for _ in range(draw(st.integers(0, 4))):
        tick += draw(st.integers(1, 3))
        ends_at = ends_at.join(draw(order.frontiers()))
        reclocking = reclocking.bind(tick, ends_at)
    return reclocking


@over_every_order
@law
@given(data=st.data())
def test_reclocking_is_monotone(order: Order, data: st.DataObject) -> None:
    """Item 20: e1 <= e2 implies reclock(e1) <= reclock(e2), where None is later than every tick."""
    reclocking = data.draw(reclockings(order))
    known = {time: tick for time in order.window if (tick := reclocking.reclock(time)) is not None}
    for earlier in order.window:
        for later in known:
            if order.lattice.less_equal(earlier, later):
                assert known[earlier] <= known[later]


@over_every_order
@law
@given(data=st.data())
def test_reclocking_is_definite(order: Order, data: st.DataObject) -> None:
    """Item 20: another binding makes more times known, and none different."""
    before = data.draw(reclockings(order))
    last = before.bindings[-1].tick if before.bindings else 0
    after = before.bind(last + 1, before.ends_at(last).join(data.draw(order.frontiers())))
    for time in order.window:
        assert before.reclock(time) in (None, after.reclock(time))


@over_every_order
@law
@given(data=st.data())
def test_reclocked_time_is_the_first_tick_that_has_it_behind(order: Order, data: st.DataObject) -> None:
    """Item 20: reclock(e) <= T iff not ends_at(T) <= e."""
    reclocking = data.draw(reclockings(order))
    for time in order.window:
        reclocked = reclocking.reclock(time)
        for tick in range(15):
            is_there = reclocked is not None and reclocked <= tick
            assert is_there == (not reclocking.ends_at(tick).less_equal(time))


@over_every_order
@law
@given(data=st.data())
def test_reclocked_collection_is_the_external_one_where_the_tick_ends(order: Order, data: st.DataObject) -> None:
    """Item 20: at a tick one reads the sum of the external updates that its binding has behind."""
    reclocking, history = data.draw(reclockings(order)), data.draw(order.histories())
    reclocked = Tvc.of_updates(EPOCH, reclocking.reclock_updates(history))
    for tick in range(15):
        behind = [update for update in history if not reclocking.ends_at(tick).less_equal(update.time)]
        whole = Tvc.of_updates(order.timeline, [Update(u.data, order.lattice.minimum, u.diff) for u in behind])
        assert reclocked.read(tick) == whole.read(order.last)


def test_bindings_that_would_rewrite_history_are_refused() -> None:
    """Item 20: ticks ascend, frontiers never go back."""
    ends_at = {time: Antichain.of(TOTAL.timeline, time) for time in range(5)}
    reclocking: Reclocking[Time, int] = Reclocking(TOTAL.timeline, EPOCH)
    reclocking = reclocking.bind(10, ends_at[3])
    for tick, frontier in ((10, ends_at[4]), (9, ends_at[4]), (11, ends_at[2])):
        with pytest.raises(BindingWentBack) as refused:
            reclocking.bind(tick, frontier)
        assert refused.value.current == reclocking.bindings[-1]


def test_bindings_of_other_times_are_refused() -> None:
    """Item 8: a frontier of another timeline binds nothing, and neither does a tick that is no time."""
    reclocking: Reclocking[Time, int] = Reclocking(TOTAL.timeline, EPOCH)
    with pytest.raises(TimelinesDiffer):
        reclocking.bind(10, Antichain.of(TOTAL.lattice, 3))
    with pytest.raises(NotATime):
        reclocking.bind(-1, Antichain.of(TOTAL.timeline, 3))
