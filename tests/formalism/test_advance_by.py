"""Laws of `advance_by`, the rule by which compaction moves times (item 46)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import Antichain, advance_by

from .orders import Order, Time, law, over_every_order


def seen_by(order: Order, since: Antichain[Time], time: Time) -> list[bool]:
    """Returns how the time compares to each time of the window that is beyond since."""
    return [order.lattice.less_equal(time, u) for u in order.window if since.less_equal(u)]


@over_every_order
@law
@given(data=st.data())
def test_advanced_time_compares_alike(order: Order, data: st.DataObject) -> None:
    """Item 46, correct: t <= u iff t' <= u, for all u beyond since."""
    time, since = data.draw(order.times()), data.draw(order.frontiers(least=1))
    assert seen_by(order, since, time) == seen_by(order, since, advance_by(time, since))


@over_every_order
@law
@given(data=st.data())
def test_advanced_time_is_the_greatest_that_compares_alike(order: Order, data: st.DataObject) -> None:
    """Item 46, optimal: any other time that compares alike is at or before t', which is never before t."""
    time, since = data.draw(order.times()), data.draw(order.frontiers(least=1))
    advanced = advance_by(time, since)
    assert order.lattice.less_equal(time, advanced)
    for other in order.window:
        if seen_by(order, since, other) == seen_by(order, since, time):
            assert order.lattice.less_equal(other, advanced)


@over_every_order
@law
@given(data=st.data())
def test_times_that_since_cannot_tell_apart_become_one(order: Order, data: st.DataObject) -> None:
    """Item 46: two times advance to one iff no time beyond since tells them apart."""
    a, b, since = data.draw(order.times()), data.draw(order.times()), data.draw(order.frontiers(least=1))
    alike = seen_by(order, since, a) == seen_by(order, since, b)
    assert alike == (advance_by(a, since) == advance_by(b, since))


@over_every_order
@law
@given(data=st.data())
def test_times_beyond_since_stay(order: Order, data: st.DataObject) -> None:
    """Item 46: updates at or after since are as they were."""
    time, since = data.draw(order.times()), data.draw(order.frontiers())
    if since.less_equal(time):
        assert advance_by(time, since) == time


@over_every_order
@law
@given(data=st.data())
def test_advancing_in_stages_is_advancing_at_once(order: Order, data: st.DataObject) -> None:
    """Item 46: a since that advanced in between leaves no trace."""
    time, first, then = data.draw(order.times()), data.draw(order.frontiers(1)), data.draw(order.frontiers(1))
    later = first.join(then)
    assert advance_by(advance_by(time, first), later) == advance_by(time, later)
    assert advance_by(advance_by(time, first), first) == advance_by(time, first)


@over_every_order
def test_nothing_advances_by_the_empty_frontier(order: Order) -> None:
    """Item 57: beyond {} there is nothing to tell times apart, and no time to advance to."""
    assert all(advance_by(time, Antichain.empty(order.lattice)) == time for time in order.window)
