"""Laws of the lattices of times (items 8 to 13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.formalism import EPOCH_MS, NATURAL, NotATime

from .orders import GRID, Order, law, over_every_order


@over_every_order
@law
@given(data=st.data())
def test_join_is_associative(order: Order, data: st.DataObject) -> None:
    """Item 9: join(a, join(b, c)) = join(join(a, b), c)."""
    a, b, c = (data.draw(order.times()) for _ in range(3))
    join = order.lattice.join
    assert join(a, join(b, c)) == join(join(a, b), c)


@over_every_order
@law
@given(data=st.data())
def test_meet_is_associative(order: Order, data: st.DataObject) -> None:
    """Item 9: meet(a, meet(b, c)) = meet(meet(a, b), c)."""
    a, b, c = (data.draw(order.times()) for _ in range(3))
    meet = order.lattice.meet
    assert meet(a, meet(b, c)) == meet(meet(a, b), c)


@over_every_order
@law
@given(data=st.data())
def test_join_is_commutative(order: Order, data: st.DataObject) -> None:
    """Item 9: join(a, b) = join(b, a)."""
    a, b = data.draw(order.times()), data.draw(order.times())
    assert order.lattice.join(a, b) == order.lattice.join(b, a)


@over_every_order
@law
@given(data=st.data())
def test_meet_is_commutative(order: Order, data: st.DataObject) -> None:
    """Item 9: meet(a, b) = meet(b, a)."""
    a, b = data.draw(order.times()), data.draw(order.times())
    assert order.lattice.meet(a, b) == order.lattice.meet(b, a)


@over_every_order
def test_join_is_idempotent(order: Order) -> None:
    """Item 9: join(a, a) = a."""
    assert all(order.lattice.join(a, a) == a for a in order.window)


@over_every_order
def test_meet_is_idempotent(order: Order) -> None:
    """Item 9: meet(a, a) = a."""
    assert all(order.lattice.meet(a, a) == a for a in order.window)


@over_every_order
@law
@given(data=st.data())
def test_join_and_meet_absorb_each_other(order: Order, data: st.DataObject) -> None:
    """Item 9: join(a, meet(a, b)) = a = meet(a, join(a, b))."""
    a, b = data.draw(order.times()), data.draw(order.times())
    join, meet = order.lattice.join, order.lattice.meet
    assert join(a, meet(a, b)) == a == meet(a, join(a, b))


@over_every_order
@law
@given(data=st.data())
def test_order_is_that_of_join_and_of_meet(order: Order, data: st.DataObject) -> None:
    """Item 10: a <= b iff join(a, b) = b iff meet(a, b) = a."""
    a, b = data.draw(order.times()), data.draw(order.times())
    lattice = order.lattice
    assert lattice.less_equal(a, b) == (lattice.join(a, b) == b) == (lattice.meet(a, b) == a)


@over_every_order
@law
@given(data=st.data())
def test_order_is_reflexive_antisymmetric_and_transitive(order: Order, data: st.DataObject) -> None:
    """Item 10: <= is a partial order."""
    a, b, c = (data.draw(order.times()) for _ in range(3))
    less_equal = order.lattice.less_equal
    assert less_equal(a, a)
    assert not (less_equal(a, b) and less_equal(b, a)) or a == b
    assert not (less_equal(a, b) and less_equal(b, c)) or less_equal(a, c)


@over_every_order
@law
@given(data=st.data())
def test_strict_order_is_order_without_equality(order: Order, data: st.DataObject) -> None:
    """Item 11: a < b iff a <= b and a != b."""
    a, b = data.draw(order.times()), data.draw(order.times())
    assert order.lattice.less_than(a, b) == (order.lattice.less_equal(a, b) and a != b)


@over_every_order
@law
@given(data=st.data())
def test_join_is_least_upper_bound(order: Order, data: st.DataObject) -> None:
    """Item 8: a <= t and b <= t iff join(a, b) <= t."""
    a, b, t = (data.draw(order.times()) for _ in range(3))
    lattice = order.lattice
    assert lattice.less_equal(lattice.join(a, b), t) == (lattice.less_equal(a, t) and lattice.less_equal(b, t))


@over_every_order
@law
@given(data=st.data())
def test_meet_is_greatest_lower_bound(order: Order, data: st.DataObject) -> None:
    """Item 8: t <= a and t <= b iff t <= meet(a, b)."""
    a, b, t = (data.draw(order.times()) for _ in range(3))
    lattice = order.lattice
    assert lattice.less_equal(t, lattice.meet(a, b)) == (lattice.less_equal(t, a) and lattice.less_equal(t, b))


@over_every_order
def test_minimum_is_at_or_before_every_time(order: Order) -> None:
    """Item 12: t0 <= t for all t."""
    assert all(order.lattice.less_equal(order.lattice.minimum, time) for time in order.window)


@over_every_order
@law
@given(data=st.data())
def test_order_is_well_founded(order: Order, data: st.DataObject) -> None:
    """Item 12: the times through t are finitely many, each listed once and after those before it."""
    time = data.draw(order.times())
    through = list(order.lattice.times_through(time))
    assert set(through) == {t for t in order.window if order.lattice.less_equal(t, time)}
    assert len(set(through)) == len(through)
    for index, earlier in enumerate(through):
        assert not any(order.lattice.less_than(later, earlier) for later in through[index + 1 :])


def test_naturals_join_by_max_from_zero() -> None:
    """Item 13: on the naturals join is max, meet is min and t0 is 0."""
    assert (NATURAL.join(2, 5), NATURAL.meet(2, 5), NATURAL.minimum) == (5, 2, 0)


def test_pairs_need_not_compare() -> None:
    """Item 32: times may be partially ordered."""
    assert not GRID.less_equal((0, 1), (1, 0))
    assert not GRID.less_equal((1, 0), (0, 1))


@over_every_order
def test_encoding_is_undone_by_decoding(order: Order) -> None:
    """A time is durable as integers: decode(encode(t)) = t, of as many integers as there are columns."""
    for time in order.window:
        encoded = order.lattice.encode(time)
        assert len(encoded) == order.lattice.columns
        assert order.lattice.decode(list(encoded)) == time


@over_every_order
@law
@given(data=st.data())
def test_encoding_extends_the_order(order: Order, data: st.DataObject) -> None:
    """To sort by encoding never lists a time ahead of one that precedes it."""
    a, b = data.draw(order.times()), data.draw(order.times())
    assert not order.lattice.less_equal(a, b) or order.lattice.encode(a) <= order.lattice.encode(b)


@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None, (1, 1)])
def test_what_is_no_natural_number_is_no_time(value: object) -> None:
    """Item 13: times are exact; nothing is taken for a number that is none."""
    assert not NATURAL.is_time(value)
    assert not GRID.is_time((0, value))
    assert not GRID.is_time(value) or value == (1, 1)


def test_epoch_milliseconds_fit_a_bigint() -> None:
    """The last millisecond is the largest BIGINT, and the one after it is refused."""
    assert EPOCH_MS.decode([2**63 - 1]) == 2**63 - 1
    with pytest.raises(NotATime) as refused:
        EPOCH_MS.decode([2**63])
    assert refused.value.lattice == EPOCH_MS


def test_wrong_number_of_columns_is_refused() -> None:
    """A pair is not decoded from one integer, nor an integer from two."""
    with pytest.raises(NotATime):
        GRID.decode([1])
    with pytest.raises(NotATime):
        NATURAL.decode([1, 2])
