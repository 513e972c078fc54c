"""Laws of partial time-varying collections (items 27 to 32 and 42 to 50)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import (
    Antichain,
    CollectionVersion,
    Ptvc,
    PtvcVersions,
    SinceWentBack,
    TimeBeyondUpper,
    Timeline,
    TimelinesDiffer,
    TimeNotBeyondSince,
    Tvc,
    Update,
    UpdateBeyondUpper,
    UpdateNotBeyondLower,
    UpperMismatch,
    UpperWentBack,
    advance_by,
    between,
    compact_updates,
    consolidate,
)

from .orders import PARTIAL, TOTAL, Order, Time, Updates, law, over_every_order


def evolve(order: Order, history: Updates, data: st.DataObject) -> Ptvc[str, Time]:
    """Draws a pTVC of the history's TVC: ptvc0, then appends and compactions in any order."""
    ptvc: Ptvc[str, Time] = Ptvc.begin(order.timeline)
    for is_append in data.draw(st.lists(st.booleans(), max_size=6)):
        frontier = data.draw(order.frontiers())
        if is_append:
            upper = ptvc.upper.join(frontier)
            ptvc = ptvc.append(upper, between(history, ptvc.upper, upper))
        else:
            ptvc = ptvc.compact(ptvc.since.join(frontier))
    return ptvc


def assert_correct(order: Order, ptvc: Ptvc[str, Time], tvc: Tvc[str, Time]) -> None:
    """Asserts the invariant at each time of the window, and a refusal at each other one."""
    for time in order.window:
        if not ptvc.since.less_equal(time):
            with pytest.raises(TimeNotBeyondSince):
                ptvc.read(time)
        elif ptvc.upper.less_equal(time):
            with pytest.raises(TimeBeyondUpper):
                ptvc.read(time)
        else:
            assert ptvc.read(time) == tvc.read(time)
        assert ptvc.is_readable(time) == (ptvc.since.less_equal(time) and not ptvc.upper.less_equal(time))


def some(order: Order = TOTAL) -> Ptvc[str, Time]:
    """Returns a pTVC with since {2} and upper {5}, on the total order."""
    history = [Update("a", 1, +1), Update("a", 3, +1), Update("b", 4, +1)]
    ptvc: Ptvc[str, Time] = Ptvc.begin(order.timeline)
    return ptvc.append(at(5), history).compact(at(2))


def at(*times: int) -> Antichain[Time]:
    """Returns a frontier of the total order."""
    return Antichain.of(TOTAL.timeline, *times)


@over_every_order
@law
@given(data=st.data())
def test_reads_between_since_and_upper_are_correct(order: Order, data: st.DataObject) -> None:
    """Items 30, 31 and 50: whatever appends and compactions made it, read(ptvc, t) = read(tvc, t)."""
    history = data.draw(order.histories())
    assert_correct(order, evolve(order, history, data), Tvc.of_updates(order.timeline, history))


def test_time_that_is_not_beyond_since_is_forgotten() -> None:
    """Item 28: since is the read frontier, and the error carries it."""
    with pytest.raises(TimeNotBeyondSince) as refused:
        some().read(1)
    assert (refused.value.time, refused.value.since) == (1, at(2))


def test_time_beyond_upper_is_not_known_yet() -> None:
    """Item 29: upper is the write frontier, and the error carries it."""
    with pytest.raises(TimeBeyondUpper) as refused:
        some().read(5)
    assert (refused.value.time, refused.value.upper) == (5, at(5))


def test_frontiers_of_partially_ordered_times_have_several_elements() -> None:
    """Item 32: the picture with two times labelled since and two labelled upper."""
    history = [Update("a", (0, 0), 1), Update("b", (1, 1), 1), Update("c", (2, 0), 1)]
    since = Antichain.of(PARTIAL.timeline, (0, 1), (1, 0))
    upper = Antichain.of(PARTIAL.timeline, (1, 3), (3, 1))
    ptvc: Ptvc[str, Time] = Ptvc.begin(PARTIAL.timeline)
    ptvc = ptvc.append(upper, history).compact(since)
    readable = [time for time in PARTIAL.window if ptvc.is_readable(time)]
    assert readable == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 0)]
    assert ptvc.read((1, 2)) == CollectionVersion.of("a", "b")
    assert ptvc.read((3, 0)) == CollectionVersion.of("a", "c")


@over_every_order
def test_first_ptvc_is_trivially_correct(order: Order) -> None:
    """Item 44: ptvc0 = [timeline, {}, {t0}, {t0}], between whose frontiers there is no time."""
    ptvc: Ptvc[str, Time] = Ptvc.begin(order.timeline)
    assert ptvc == Ptvc(order.timeline, frozenset(), *[Antichain.minimum(order.timeline)] * 2)
    assert not any(ptvc.is_readable(time) for time in order.window)


@over_every_order
@law
@given(data=st.data())
def test_beginning_later_is_to_append_nothing_and_forget(order: Order, data: st.DataObject) -> None:
    """Item 50: a pTVC that is bound at a later frontier is one that ptvc0 evolves to."""
    at, first = data.draw(order.frontiers()), Ptvc[str, Time].begin(order.timeline)
    assert Ptvc[str, Time].begin(order.timeline, at) == first.append(at, ()).compact(at)


@over_every_order
@law
@given(data=st.data())
def test_append_advances_upper_and_keeps_since(order: Order, data: st.DataObject) -> None:
    """Item 45: and keeps reads between since and the new upper correct."""
    history = data.draw(order.histories())
    ptvc = evolve(order, history, data)
    upper = ptvc.upper.join(data.draw(order.frontiers()))
    after = ptvc.append(upper, between(history, ptvc.upper, upper))
    assert (after.since, after.upper) == (ptvc.since, upper)
    assert_correct(order, after, Tvc.of_updates(order.timeline, history))


@over_every_order
@law
@given(data=st.data())
def test_append_takes_exactly_the_updates_of_its_interval(order: Order, data: st.DataObject) -> None:
    """Item 45: updates at times with lower <= time and not upper <= time, and no others."""
    ptvc = evolve(order, [], data)
    upper, time = ptvc.upper.join(data.draw(order.frontiers())), data.draw(order.times())
    stray: Update[str, Time] = Update("a", time, 1)
    if not ptvc.upper.less_equal(time):
        with pytest.raises(UpdateNotBeyondLower) as sealed:
            ptvc.append(upper, [stray])
        assert (sealed.value.update, sealed.value.lower) == (stray, ptvc.upper)
    elif upper.less_equal(time):
        with pytest.raises(UpdateBeyondUpper) as unsealed:
            ptvc.append(upper, [stray])
        assert (unsealed.value.update, unsealed.value.upper) == (stray, upper)
    else:
        assert ptvc.append(upper, [stray]).updates == compact_updates([stray], ptvc.since)


@over_every_order
@law
@given(data=st.data())
def test_appending_in_two_batches_is_appending_in_one(order: Order, data: st.DataObject) -> None:
    """Item 45: how history is split into batches leaves no trace."""
    history = data.draw(order.histories())
    ptvc = evolve(order, history, data)
    middle = ptvc.upper.join(data.draw(order.frontiers()))
    upper = middle.join(data.draw(order.frontiers()))
    once = ptvc.append(upper, between(history, ptvc.upper, upper))
    twice = ptvc.append(middle, between(history, ptvc.upper, middle))
    assert twice.append(upper, between(history, middle, upper)) == once


@over_every_order
@law
@given(data=st.data())
def test_compact_slides_times_and_keeps_upper(order: Order, data: st.DataObject) -> None:
    """Items 46 and 47: each time becomes its advanced one, equal ones are summed, zeros dropped."""
    history = data.draw(order.histories())
    ptvc = evolve(order, history, data)
    since = ptvc.since.join(data.draw(order.frontiers(least=1)))
    after = ptvc.compact(since)
    assert (after.since, after.upper) == (since, ptvc.upper)
    slid = () if since.is_empty else (Update(u.data, advance_by(u.time, since), u.diff) for u in ptvc.updates)
    assert after.updates == consolidate(slid)


@over_every_order
@law
@given(data=st.data())
def test_compact_leaves_reads_beyond_since(order: Order, data: st.DataObject) -> None:
    """Item 48: reads at all times beyond the new since are as before."""
    ptvc = evolve(order, data.draw(order.histories()), data)
    after = ptvc.compact(ptvc.since.join(data.draw(order.frontiers())))
    assert all(after.read(time) == ptvc.read(time) for time in order.window if after.is_readable(time))


@over_every_order
@law
@given(data=st.data())
def test_append_and_compact_commute(order: Order, data: st.DataObject) -> None:
    """Items 45 and 46: writers and compaction need not wait for each other."""
    history = data.draw(order.histories())
    ptvc = evolve(order, history, data)
    upper = ptvc.upper.join(data.draw(order.frontiers()))
    since = ptvc.since.join(data.draw(order.frontiers()))
    new = between(history, ptvc.upper, upper)
    assert ptvc.append(upper, new).compact(since) == ptvc.compact(since).append(upper, new)


@over_every_order
@law
@given(data=st.data())
def test_since_and_upper_never_go_back(order: Order, data: st.DataObject) -> None:
    """Item 49: a frontier that is not beyond the present one is refused, and the error carries both."""
    ptvc, frontier = evolve(order, [], data), data.draw(order.frontiers())
    if not ptvc.upper <= frontier:
        with pytest.raises(UpperWentBack) as upper:
            ptvc.append(frontier, ())
        assert (upper.value.current, upper.value.proposed) == (ptvc.upper, frontier)
    if not ptvc.since <= frontier:
        with pytest.raises(SinceWentBack) as since:
            ptvc.compact(frontier)
        assert (since.value.current, since.value.proposed) == (ptvc.since, frontier)


@over_every_order
@law
@given(data=st.data())
def test_square_of_the_four_forms_commutes(order: Order, data: st.DataObject) -> None:
    """Item 42: function or updates, restricted first or last: reads between since and upper are the same."""
    history, since, upper = data.draw(order.histories()), data.draw(order.frontiers()), data.draw(order.frontiers())
    tvc = Tvc.of_updates(order.timeline, history)
    first = Antichain.minimum(order.timeline)
    by_updates = Ptvc[str, Time].begin(order.timeline)
    by_updates = by_updates.append(upper, between(tvc.updates(order.last), first, upper)).compact(since)
    by_function = PtvcVersions.restrict(tvc, since, upper)
    forms: list[Ptvc[str, Time] | PtvcVersions[str, Time]] = [
        by_updates,
        by_function,
        by_function.to_ptvc(order.last),
        PtvcVersions.of_ptvc(by_updates),
    ]
    for time in order.window:
        if by_updates.is_readable(time):
            assert {form.read(time) for form in forms} == {tvc.read(time)}
        else:
            for form in forms:
                with pytest.raises((TimeNotBeyondSince, TimeBeyondUpper)):
                    form.read(time)


@law
@given(data=st.data(), since=st.integers(0, 7), upper=st.integers(0, 7))
def test_both_ways_round_the_square_give_the_same_updates_on_a_total_order(
    data: st.DataObject, since: int, upper: int
) -> None:
    """Items 42 and 43: the stored form is determined by what can be read, when since is before upper."""
    history = data.draw(TOTAL.histories())
    restricted = PtvcVersions.restrict(Tvc.of_updates(TOTAL.timeline, history), at(since), at(upper))
    by_updates = Ptvc[str, Time].begin(TOTAL.timeline)
    by_updates = by_updates.append(at(upper), between(history, at(0), at(upper))).compact(at(since))
    if since < upper:
        assert restricted.to_ptvc(TOTAL.last) == by_updates


def test_compare_and_append_says_where_upper_is() -> None:
    """Item 45: a writer that lost the race is told so by a value, and nothing is appended."""
    ptvc, update = some(), [Update("c", 6, +1)]
    for lower in (at(4), at(6), at()):
        assert ptvc.compare_and_append(lower, at(7), update) == UpperMismatch(lower, at(5))
    assert ptvc.compare_and_append(at(5), at(7), update) == ptvc.append(at(7), update)
    with pytest.raises(UpperWentBack):
        ptvc.compare_and_append(at(5), at(4), ())


def test_content_before_since_is_what_upper_later_passes() -> None:
    """Item 54: since may be ahead of upper; answers wait until upper has passed it, and are then exact."""
    ptvc = some().compact(at(7))
    with pytest.raises(TimeBeyondUpper):
        ptvc.read(7)
    ptvc = ptvc.append(at(8), [Update("a", 5, -1), Update("c", 7, +1)])
    assert ptvc.read(7) == CollectionVersion.of("a", "b", "c")
    assert {update.time for update in ptvc.updates} == {7}


def test_frontiers_of_another_timeline_are_refused() -> None:
    """Items 8 and 25: a collection has one timeline."""
    foreign = Antichain[Time].of(Timeline("other", TOTAL.lattice), 9)
    tvc: Tvc[str, Time] = Tvc.of_updates(TOTAL.timeline, [])
    attempts: list[Callable[[], object]] = [
        lambda: some().append(foreign, ()),
        lambda: some().compact(foreign),
        lambda: some().compare_and_append(foreign, at(9), ()),
        lambda: Ptvc[str, Time].begin(TOTAL.timeline, foreign),
        lambda: PtvcVersions.restrict(tvc, at(1), foreign),
    ]
    for refused in attempts:
        with pytest.raises(TimelinesDiffer):
            refused()
