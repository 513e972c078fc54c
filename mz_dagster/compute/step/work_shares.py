"""Who computes what in a step, where workers compute beside the stepper (`worker`).

A *unit* is what is computed in one place, one collection after the other. Without workers each collection is one; with
them an object is, with its arrangements, if a worker may compute it: what it reads of itself is in memory there. For
the same reason a unit goes where it went before. A place that has nothing to do takes one that is new, or else the last
of those that wait for the place for which most do, which then is its own: so shares grow even from step to step.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Final

from mz_dagster.compute.step.graph import Node, owner_of
from mz_dagster.compute.step.schedule import Schedule
from mz_dagster.formalism import GlobalId

STEPPER: Final = 0
"""The place of the process that steps; workers are numbered from 1."""

#: So many units wait for a place at least that one of them is taken over by another.
_LEAST_LEFT = 2
#: So many a worker has at a time: one that it computes, and the next.
_SENT = 2


@dataclass(frozen=True, slots=True)
class Unit:
    """Collections that are computed in one place, each after its inputs.

    Attributes:
        id: The object's, or that of the one collection.
        nodes: They.
        is_shared: Whether a worker may compute it.
    """

    id: GlobalId
    nodes: Sequence[Node]
    is_shared: bool = False

    @property
    def inputs(self) -> frozenset[GlobalId]:
        """What must be there before, of other units."""
        return frozenset[GlobalId]().union(*(node.inputs for node in self.nodes)) - {node.id for node in self.nodes}


def units_of(nodes: Iterable[Node], may_share: Callable[[Node], bool]) -> list[Unit]:
    """Returns the units of collections, in an order in which inputs come first.

    An object is one if all of it may be shared, and if nobody else reads its arrangements: then what it waits for does
    not wait for it.

    Args:
        nodes: The collections, in an order in which inputs come first.
        may_share: Whether a worker may compute a collection, as far as that can be told of it alone.
    """
    nodes = list(nodes)
    of_object: defaultdict[GlobalId, list[Node]] = defaultdict(list)
    readers: defaultdict[GlobalId, set[GlobalId]] = defaultdict(set)
    for node in nodes:
        of_object[_object_of(node)].append(node)
        for input in node.inputs:
            readers[input].add(_object_of(node))
    found: dict[GlobalId, Unit] = {}
    for object, members in of_object.items():
        is_closed = all(one.id == object or readers[one.id] <= {object} for one in members)
        if is_closed and all(map(may_share, members)):
            found[members[-1].id] = Unit(object, tuple(members), is_shared=True)
        else:
            found |= {one.id: Unit(one.id, (one,)) for one in members}
    return [found[node.id] for node in nodes if node.id in found]


def _object_of(node: Node) -> GlobalId:
    return owner_of(node) or node.id


class WorkShares:
    """Deals the units of one step out; not for use by several threads.

    Args:
        units: They, in an order in which inputs come first.
        kept: Where each was computed before, by its id; kept up to date.
        at_once: How many units that are not shared the stepper computes at the same time.

    Example:
        >>> units = [Unit(id, (), is_shared=True) for id in "abcd"]
        >>> kept = dict.fromkeys("abcd", 1)
        >>> shares = WorkShares(units, kept)
        >>> shares.join([1])
        >>> shares.take(1).id, shares.take(STEPPER).id, shares.take(STEPPER)
        ('a', 'd', None)
        >>> shares.take(1).id, shares.take(1)
        ('b', None)
        >>> shares.done(units[0], 1)
        >>> shares.take(1).id, kept
        ('c', {'a': 1, 'b': 1, 'c': 1, 'd': 0})
    """

    def __init__(
        self,
        units: Sequence[Unit],
        kept: MutableMapping[GlobalId, int],
        at_once: int = 4,
    ) -> None:
        self._units = {one.id: one for one in units}
        unit_of = {node.id: one.id for one in units for node in one.nodes}
        self._schedule = Schedule(
            {one.id: [unit_of[input] for input in one.inputs if input in unit_of] for one in units}
        )
        self._kept = kept
        self._at_once = at_once
        self._waiting: dict[int, deque[Unit]] = {STEPPER: deque()}
        self._new: deque[Unit] = deque()
        self._alone: deque[Unit] = deque()
        self._busy = {STEPPER: 0}
        self._busy_alone = 0

    def join(self, places: Iterable[int]) -> None:
        """Lets workers take units from now on, if they did not before."""
        for place in places:
            self._waiting.setdefault(place, deque())
            self._busy.setdefault(place, 0)

    def take(self, place: int) -> Unit | None:
        """Returns the next unit for a place that is there; None if it has enough to do, or there is nothing now."""
        while (id := self._schedule.take()) is not None:
            unit = self._units[id]
            if unit.is_shared:
                self._waiting.get(self._kept.get(id, -1), self._new).append(unit)
            else:
                self._alone.append(unit)
        if place == STEPPER and self._alone and self._busy_alone < self._at_once:
            self._busy_alone += 1
            return self._alone.popleft()
        if self._busy[place] >= (1 if place == STEPPER else _SENT):
            return None
        unit_or_none = self._shared(place)
        if unit_or_none is not None:
            self._busy[place] += 1
            self._kept[unit_or_none.id] = place
        return unit_or_none

    def _shared(self, place: int) -> Unit | None:
        if self._waiting[place]:
            return self._waiting[place].popleft()
        if self._new:
            return self._new.popleft()
        most = max(self._waiting.values(), key=len)
        return most.pop() if len(most) >= _LEAST_LEFT else None

    def done(self, unit: Unit, place: int) -> None:
        """Notes that a unit was computed, or is not waited for any more."""
        self._schedule.done(unit.id)
        if unit.is_shared:
            self._busy[place] -= 1
        else:
            self._busy_alone -= 1
