"""Laws of time-varying collections and of their two forms (items 25, 26 and 37 to 41)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import (
    EMPTY,
    CollectionVersion,
    Tvc,
    Update,
    consolidate,
    diff,
    read,
)

from .orders import PARTIAL, TOTAL, Order, Time, law, over_every_order


def draw_tvc(order: Order, data: st.DataObject) -> Tvc[str, Time]:
    """Draws a TVC as a function: any version at each time of the window, whatever those before it are."""
    version = st.dictionaries(st.sampled_from("ab"), st.integers(-1, 2), max_size=2).map(CollectionVersion)
    versions = {time: data.draw(version) for time in order.window}
    return Tvc(order.timeline, versions.__getitem__)


def test_tvc_has_one_timeline_and_a_version_at_each_time() -> None:
    """Items 25 and 26: read(tvc, t) is the version that the function assigns."""
    tvc = Tvc(TOTAL.timeline, lambda time: CollectionVersion({time: 1}))
    assert tvc.timeline == TOTAL.timeline
    assert all(tvc.read(time) == CollectionVersion({time: 1}) for time in TOTAL.window)


@over_every_order
@law
@given(data=st.data())
def test_read_of_updates_applies_those_at_or_before(order: Order, data: st.DataObject) -> None:
    """Item 37: read(updates, t) = apply(cv0, {u | u.time <= t})."""
    history, time = data.draw(order.histories()), data.draw(order.times())
    expected = EMPTY.apply([update for update in history if order.lattice.less_equal(update.time, time)])
    assert Tvc.of_updates(order.timeline, history).read(time) == expected == read(order.lattice, history, time)


@law
@given(data=st.data())
def test_updates_on_a_total_order_are_the_difference_to_the_time_before(data: st.DataObject) -> None:
    """Item 38: updates(tvc, t) = diff(t, read(t - 1), read(t))."""
    tvc = draw_tvc(TOTAL, data)
    for time in range(1, len(TOTAL.window)):
        assert tvc.updates_at(time) == diff(time, tvc.read(time - 1), tvc.read(time))


@over_every_order
@law
@given(data=st.data())
def test_updates_are_the_difference_to_prior_updates(order: Order, data: st.DataObject) -> None:
    """Items 39 and 40: the recursive definition, spelled out, with its base case."""
    tvc, least = draw_tvc(order, data), order.lattice.minimum
    assert tvc.prior_updates(least) == frozenset()
    assert tvc.updates_at(least) == diff(least, EMPTY, tvc.read(least))
    time = data.draw(order.times())
    before = [p for p in order.window if order.lattice.less_than(p, time)]
    prior = frozenset().union(*(tvc.updates_at(p) for p in before))
    assert tvc.prior_updates(time) == prior
    assert tvc.updates_at(time) == diff(time, EMPTY.apply(prior), tvc.read(time))


@over_every_order
@law
@given(data=st.data())
def test_updates_are_the_union_over_all_times(order: Order, data: st.DataObject) -> None:
    """Item 41: updates(tvc) is the union of updates(tvc, t)."""
    tvc = draw_tvc(order, data)
    union = frozenset().union(*(tvc.updates_at(time) for time in order.window))
    assert tvc.updates(order.last) == union


@over_every_order
@law
@given(data=st.data())
def test_function_to_updates_and_back_is_the_same_function(order: Order, data: st.DataObject) -> None:
    """Item 41: one half of the isomorphism."""
    tvc = draw_tvc(order, data)
    again = Tvc.of_updates(order.timeline, tvc.updates(order.last))
    assert all(again.read(time) == tvc.read(time) for time in order.window)


@over_every_order
@law
@given(data=st.data())
def test_updates_to_function_and_back_are_the_same_updates(order: Order, data: st.DataObject) -> None:
    """Item 41: the other half."""
    history = data.draw(order.histories())
    assert Tvc.of_updates(order.timeline, history).updates(order.last) == consolidate(history)


def test_only_the_sum_of_all_prior_updates_is_right_on_a_partial_order() -> None:
    """Item 39: what is inserted on two branches is retracted once where they meet."""
    tvc = Tvc(PARTIAL.timeline, lambda time: EMPTY if time == (0, 0) else CollectionVersion.of("a"))
    assert tvc.updates((3, 3)) == {Update("a", (0, 1), 1), Update("a", (1, 0), 1), Update("a", (1, 1), -1)}
