"""Laws of updates and of their consolidated form (items 33, 45 and 47)."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import Antichain, Update, between, compact_updates, consolidate, read

from .orders import Order, law, over_every_order


def test_update_is_a_triple_and_a_value() -> None:
    """Items 7 and 33: an update is [data, time, diff], and replacing a row takes two with whole rows."""
    update = Update(("key", "new"), 3, +1)
    assert (update.data, update.time, update.diff) == (("key", "new"), 3, 1)
    assert update == Update(("key", "new"), 3, 1) != Update(("key", "old"), 3, -1)
    with pytest.raises(FrozenInstanceError):
        update.diff = 2  # type: ignore[misc]


@over_every_order
@law
@given(data=st.data())
def test_consolidated_updates_are_few_and_nonzero(order: Order, data: st.DataObject) -> None:
    """Item 47: no two updates have the same data and time, and none has diff 0."""
    updates = consolidate(data.draw(order.histories()))
    assert len({(update.data, update.time) for update in updates}) == len(updates)
    assert all(update.diff != 0 for update in updates)
    assert consolidate(updates) == updates


@over_every_order
@law
@given(data=st.data())
def test_consolidated_updates_read_the_same(order: Order, data: st.DataObject) -> None:
    """Item 47: to sum the diffs of the same data and time varies no read."""
    history = data.draw(order.histories())
    for time in order.window:
        assert read(order.lattice, consolidate(history), time) == read(order.lattice, history, time)


@over_every_order
@law
@given(data=st.data())
def test_updates_that_read_the_same_consolidate_to_the_same(order: Order, data: st.DataObject) -> None:
    """Item 41: the consolidated form is canonical."""
    left, right = data.draw(order.histories(3)), data.draw(order.histories(3))
    alike = all(read(order.lattice, left, t) == read(order.lattice, right, t) for t in order.window)
    assert alike == (consolidate(left) == consolidate(right))
    assert consolidate(data.draw(st.permutations(left))) == consolidate(left)


@over_every_order
@law
@given(data=st.data())
def test_adjacent_batches_make_the_whole(order: Order, data: st.DataObject) -> None:
    """Item 45: every update from lower on is in exactly one of [lower, middle), [middle, upper), [upper, {})."""
    history, lower = data.draw(order.histories()), data.draw(order.frontiers())
    middle = lower.join(data.draw(order.frontiers()))
    upper = middle.join(data.draw(order.frontiers()))
    last = Antichain.empty(order.timeline)
    parts = [between(history, lower, middle), between(history, middle, upper), between(history, upper, last)]
    assert sum(map(len, parts)) == len(frozenset().union(*parts))
    assert frozenset().union(*parts) == between(history, lower, last)


@over_every_order
@law
@given(data=st.data())
def test_compacted_updates_read_the_same_beyond_since(order: Order, data: st.DataObject) -> None:
    """Items 46 to 48: reads beyond since stay, and updates beyond since which nothing slid onto do too."""
    history, since = data.draw(order.histories()), data.draw(order.frontiers())
    compacted = compact_updates(history, since)
    for time in order.window:
        if since.less_equal(time):
            assert read(order.lattice, compacted, time) == read(order.lattice, history, time)
    assert compact_updates(compacted, since) == compacted
    assert len(compacted) <= len(consolidate(history))


@over_every_order
@law
@given(data=st.data())
def test_compacted_updates_are_canonical_beyond_since(order: Order, data: st.DataObject) -> None:
    """Item 46, optimal: histories that read alike beyond since compact to the same updates."""
    since, shared = data.draw(order.frontiers(least=1)), data.draw(order.histories(4))
    left, right = shared + data.draw(order.histories(2)), shared + data.draw(order.histories(2))
    readable = [time for time in order.window if since.less_equal(time)]
    alike = all(read(order.lattice, left, t) == read(order.lattice, right, t) for t in readable)
    assert alike == (compact_updates(left, since) == compact_updates(right, since))
