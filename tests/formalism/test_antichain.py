"""Laws of frontiers (items 14 to 18)."""

from __future__ import annotations

import json
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import (
    NATURAL,
    Antichain,
    FrontierNotSingle,
    NotAFrontier,
    NotATime,
    Timeline,
    TimelinesDiffer,
)

from .orders import GRID, TOTAL, Order, Time, law, over_every_order


def beyond(order: Order, frontier: Antichain[Time]) -> set[Time]:
    """Returns the times of the window that are beyond the frontier."""
    return {time for time in order.window if frontier.less_equal(time)}


@over_every_order
@law
@given(data=st.data())
def test_no_two_elements_compare(order: Order, data: st.DataObject) -> None:
    """Item 14: a frontier is an antichain."""
    frontier = data.draw(order.frontiers())
    assert not any(order.lattice.less_than(a, b) for a in frontier for b in frontier)


@over_every_order
@law
@given(data=st.data())
def test_equal_frontiers_are_equal_values(order: Order, data: st.DataObject) -> None:
    """Item 14: the form is canonical: the same times beyond, the same value, hash and text."""
    times = data.draw(st.lists(order.times(), max_size=4))
    frontier = Antichain.of(order.timeline, *times)
    again = Antichain.of(order.timeline, *data.draw(st.permutations(times)), *frontier)
    assert (frontier, hash(frontier), repr(frontier)) == (again, hash(again), repr(again))
    other = data.draw(order.frontiers())
    assert (frontier == other) == (beyond(order, frontier) == beyond(order, other))


@over_every_order
@law
@given(data=st.data())
def test_minimal_elements_leave_the_same_times_beyond(order: Order, data: st.DataObject) -> None:
    """Item 16: t is at or after a frontier iff it is at or after one of the times that made it."""
    times, time = data.draw(st.lists(order.times(), max_size=4)), data.draw(order.times())
    frontier = Antichain.of(order.timeline, *times)
    assert frontier.less_equal(time) == any(order.lattice.less_equal(f, time) for f in times)


@over_every_order
@law
@given(data=st.data())
def test_time_is_after_frontier_if_after_an_element(order: Order, data: st.DataObject) -> None:
    """Item 15: F < t iff there is an f in F with f < t."""
    frontier, time = data.draw(order.frontiers()), data.draw(order.times())
    assert frontier.less_than(time) == any(order.lattice.less_than(f, time) for f in frontier.elements)


@over_every_order
@law
@given(data=st.data())
def test_time_is_at_or_after_frontier_if_after_or_an_element(order: Order, data: st.DataObject) -> None:
    """Items 15 and 16: F <= t iff F < t or t is an element."""
    frontier, time = data.draw(order.frontiers()), data.draw(order.times())
    assert frontier.less_equal(time) == (frontier.less_than(time) or time in frontier)


def test_six_and_later_are_after_five() -> None:
    """Item 17: on the naturals, 6, 7, 8 ... are after {5}."""
    frontier = Antichain.of(NATURAL, 5)
    assert [time for time in range(9) if frontier.less_than(time)] == [6, 7, 8]


@over_every_order
@law
@given(data=st.data())
def test_empty_frontier_is_the_last(order: Order, data: st.DataObject) -> None:
    """Item 18: no time is later than {}, and every frontier is at or before it."""
    last = Antichain.empty(order.timeline)
    assert last.is_empty
    assert not any(last.less_than(time) or last.less_equal(time) for time in order.window)
    assert data.draw(order.frontiers()) <= last


@over_every_order
@law
@given(data=st.data())
def test_minimum_frontier_is_the_first(order: Order, data: st.DataObject) -> None:
    """Items 12 and 14: {t0} is at or before every frontier."""
    assert Antichain.minimum(order.timeline) <= data.draw(order.frontiers())


@over_every_order
@law
@given(data=st.data())
def test_frontiers_are_ordered_by_what_is_beyond_them(order: Order, data: st.DataObject) -> None:
    """Item 14: F <= G iff every time beyond G is beyond F."""
    left, right = data.draw(order.frontiers()), data.draw(order.frontiers())
    assert (left <= right) == (beyond(order, left) >= beyond(order, right))
    assert (left < right) == (left <= right and left != right)
    assert (left >= right, left > right) == (right <= left, right < left)


@over_every_order
@law
@given(data=st.data())
def test_frontiers_form_a_lattice(order: Order, data: st.DataObject) -> None:
    """Item 14: join intersects what is beyond, meet unites it."""
    left, right = data.draw(order.frontiers()), data.draw(order.frontiers())
    assert beyond(order, left.join(right)) == beyond(order, left) & beyond(order, right)
    assert beyond(order, left.meet(right)) == beyond(order, left) | beyond(order, right)
    assert (left <= right) == (left.join(right) == right) == (left.meet(right) == left)


@over_every_order
@law
@given(data=st.data())
def test_json_is_read_back_as_written(order: Order, data: st.DataObject) -> None:
    """A frontier is durable: from_json(to_json(F)) = F, through JSON text."""
    frontier = data.draw(order.frontiers())
    text = json.dumps(frontier.to_json())
    assert Antichain.from_json(order.timeline, json.loads(text)) == frontier


@pytest.mark.parametrize("value", [None, "5", 5, {"5": 1}, [5, 7], [5, 5]])
def test_json_that_is_no_frontier_is_refused(value: object) -> None:
    """What is durable is canonical; anything else names the value."""
    with pytest.raises(NotAFrontier) as refused:
        Antichain.from_json(NATURAL, value)
    assert refused.value.lattice == NATURAL


@pytest.mark.parametrize("value", [["5"], [5.0], [True], [-1], [[5]], [None]])
def test_json_with_what_is_no_time_is_refused(value: object) -> None:
    """An element must encode a time of the lattice."""
    with pytest.raises(NotATime):
        Antichain.from_json(NATURAL, value)


def test_json_of_pairs_is_a_list_of_lists() -> None:
    """Item 32: frontiers of partially ordered times are durable too, and no bare ints."""
    assert Antichain.from_json(GRID, [[1, 2], [2, 1]]) == Antichain.of(GRID, (2, 1), (1, 2))
    with pytest.raises(NotAFrontier):
        Antichain.from_json(GRID, [1, 2])


def test_constructor_refuses_what_is_not_canonical() -> None:
    """Item 14: there is no second way to write a frontier."""
    with pytest.raises(NotAFrontier):
        Antichain(NATURAL, (3, 5))
    with pytest.raises(NotAFrontier):
        Antichain(GRID, ((2, 1), (1, 2)))
    with pytest.raises(NotATime) as refused:
        Antichain.of(NATURAL, -1)
    assert refused.value.value == -1


def test_only_is_refused_of_none_or_several() -> None:
    """Item 14: a frontier of a partial order may have several elements, and {} has none."""
    assert Antichain.of(NATURAL, 5).only == 5
    for frontier in (Antichain.empty(GRID), Antichain.of(GRID, (1, 2), (2, 1))):
        with pytest.raises(FrontierNotSingle) as refused:
            _ = frontier.only
        assert refused.value.frontier == frontier


@pytest.mark.parametrize(
    "compare", [operator.le, operator.lt, operator.ge, operator.gt, Antichain.join, Antichain.meet]
)
def test_frontiers_of_two_timelines_never_compare(compare: object) -> None:
    """Item 8: the id tells two timelines of integers apart."""
    left, right = (Antichain.of(Timeline(id, NATURAL), 5) for id in ("a", "b"))
    assert left != right
    assert callable(compare)
    with pytest.raises(TimelinesDiffer, match=r'timeline "(a|b)" and of timeline "(a|b)" do not compare'):
        compare(left, right)


def test_frontier_of_a_timeline_never_compares_to_one_of_its_bare_lattice() -> None:
    """Item 8: numbers without a timeline are not yet times of it."""
    with pytest.raises(TimelinesDiffer):
        _ = Antichain.of(TOTAL.lattice, 5) <= Antichain.of(TOTAL.timeline, 5)
