"""Laws of ids and of the life of what they denote (items 51 to 57)."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mz_dagster.formalism import (
    EMPTY,
    Antichain,
    GlobalId,
    IdAlreadyBound,
    IdUnbound,
    Ptvc,
    Stage,
    TimeBeyondUpper,
    TimeNotBeyondSince,
    Tvc,
    TvcMap,
    Update,
    UpdateNotBeyondLower,
    between,
)

from .orders import PARTIAL, TOTAL, Order, Time, Updates

ORDERS_ID, FLIGHTS_ID, THIRD_ID = (GlobalId(f"u{number}") for number in (1, 2, 3))
IDS = [ORDERS_ID, FLIGHTS_ID, THIRD_ID]


class IdLives(RuleBasedStateMachine):
    """Binds, appends to, compacts, drops and restarts, in any order, next to the TVCs that are meant."""

    order: Order = TOTAL

    def __init__(self) -> None:
        """Opens an empty map."""
        super().__init__()
        self.map: TvcMap[str, Time] = TvcMap()
        self.truth: dict[GlobalId, Updates] = {}
        self.before: dict[GlobalId, Ptvc[str, Time]] = {}

    @rule(id=st.sampled_from(IDS), data=st.data())
    def bind(self, id: GlobalId, data: st.DataObject) -> None:
        """Items 51 and 54: an id is bound once, with since == upper."""
        at = data.draw(st.none() | self.order.frontiers(least=1))
        if id in self.truth:
            with pytest.raises(IdAlreadyBound) as refused:
                self.map.bind(id, self.order.timeline, at)
            assert refused.value.id == id
        else:
            self.map.bind(id, self.order.timeline, at)
            assert self.map[id].since == self.map[id].upper
            self.truth[id] = list(between(data.draw(self.order.histories()), self.map[id].upper, self.last))

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """Item 55: upper advances."""
        id = data.draw(st.sampled_from(list(self.truth)))
        upper = self.map[id].upper.join(data.draw(self.order.frontiers(data.draw(st.integers(0, 1)))))
        self.map.append(id, upper, between(self.truth[id], self.map[id].upper, upper))

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        """Item 55: since advances."""
        id = data.draw(st.sampled_from(list(self.truth)))
        self.map.compact(id, self.map[id].since.join(data.draw(self.order.frontiers(least=1))))

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        """Items 56 and 57: both frontiers become {}."""
        id = data.draw(st.sampled_from(list(self.truth)))
        self.map.drop(id)
        assert self.map.stage(id) is Stage.UNREADABLE
        assert self.map[id].since == self.map[id].upper == self.last

    @rule()
    def restart(self) -> None:
        """Item 51: what is left of a map after a restart is its entries."""
        self.map = TvcMap(self.map.entries())

    @property
    def last(self) -> Antichain[Time]:
        """The frontier {}."""
        return Antichain.empty(self.order.timeline)

    @invariant()
    def id_denotes_one_tvc(self) -> None:
        """Items 51 and 52: every readable time of every id reads as the one TVC it was bound to."""
        assert list(self.map) == list(self.truth)
        for id, updates in self.truth.items():
            tvc, ptvc = Tvc.of_updates(self.order.timeline, updates), self.map[id]
            for time in self.order.window:
                if ptvc.is_readable(time):
                    assert self.map.read(id, time) == tvc.read(time)

    @invariant()
    def life_leads_forward_only(self) -> None:
        """Items 49 and 53 to 57: neither frontier goes back, and neither does the stage."""
        for id, old in self.before.items():
            assert old.since <= self.map[id].since
            assert old.upper <= self.map[id].upper
            assert TvcMap({id: old}).stage(id) <= self.map.stage(id)
        self.before = self.map.entries()


class PartialIdLives(IdLives):
    """Is the same over a partial order."""

    order = PARTIAL


TestIdLives = IdLives.TestCase
TestIdLives.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
TestPartialIdLives = PartialIdLives.TestCase
TestPartialIdLives.settings = TestIdLives.settings


def at(*times: int) -> Antichain[Time]:
    """Returns a frontier of the total order."""
    return Antichain.of(TOTAL.timeline, *times)


def test_unbound_id_is_refused() -> None:
    """Item 53: an id that is not in the map denotes nothing."""
    tvcs: TvcMap[str, Time] = TvcMap()
    assert tvcs.stage(ORDERS_ID) is Stage.UNBOUND
    for refused in (
        lambda: tvcs.read(ORDERS_ID, 1),
        lambda: tvcs.append(ORDERS_ID, at(1), ()),
        lambda: tvcs.compact(ORDERS_ID, at(1)),
        lambda: tvcs.drop(ORDERS_ID),
    ):
        with pytest.raises(IdUnbound) as unbound:
            refused()
        assert unbound.value.id == ORDERS_ID


def test_bound_id_may_be_read_from_since_on_once_upper_has_passed() -> None:
    """Item 54: at first since == upper, so answers have to wait."""
    tvcs: TvcMap[str, Time] = TvcMap()
    tvcs.bind(ORDERS_ID, TOTAL.timeline, at(3))
    assert tvcs.stage(ORDERS_ID) is Stage.BOUND
    with pytest.raises(TimeNotBeyondSince):
        tvcs.read(ORDERS_ID, 2)
    with pytest.raises(TimeBeyondUpper):
        tvcs.read(ORDERS_ID, 3)
    tvcs.append(ORDERS_ID, at(4), ())
    assert tvcs.read(ORDERS_ID, 3) == EMPTY


def test_complete_collection_is_never_written_again_but_stays_readable() -> None:
    """Item 56: upper {} means unwriteable."""
    tvcs: TvcMap[str, Time] = TvcMap()
    tvcs.bind(ORDERS_ID, TOTAL.timeline)
    tvcs.append(ORDERS_ID, at(), [Update("a", 5, +1)])
    assert tvcs.stage(ORDERS_ID) is Stage.UNWRITEABLE
    assert tvcs.read(ORDERS_ID, 10**12).multiplicity("a") == 1
    with pytest.raises(UpdateNotBeyondLower):
        tvcs.append(ORDERS_ID, at(), [Update("a", 10**15, +1)])


def test_forgotten_collection_is_never_read_again_and_its_id_never_reused() -> None:
    """Items 51 and 57: since {} means unreadable, and the id stays taken, after a restart too."""
    tvcs: TvcMap[str, Time] = TvcMap()
    tvcs.bind(ORDERS_ID, TOTAL.timeline)
    tvcs.append(ORDERS_ID, at(6), [Update("a", 5, +1)])
    tvcs.compact(ORDERS_ID, at())
    assert tvcs.stage(ORDERS_ID) is Stage.UNREADABLE
    assert tvcs[ORDERS_ID].updates == frozenset()
    with pytest.raises(TimeNotBeyondSince):
        tvcs.read(ORDERS_ID, 5)
    with pytest.raises(IdAlreadyBound):
        TvcMap(tvcs.entries()).bind(ORDERS_ID, TOTAL.timeline)
