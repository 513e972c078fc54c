"""In which order a step computes its collections: each once its inputs are, and the longest chains first.

Whoever waits for an input holds no place among those that are computed at the same time. Of what is ready, that is
first which most others stand behind, one above another: they cannot begin before it, and would else be computed one by
one at the end, while nothing is left to do beside them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Id = TypeVar("Id", bound=Hashable)


class Schedule(Generic[Id]):
    """Hands out the nodes of a graph; not for use by several threads.

    Args:
        inputs: For each node, in an order in which inputs come first, what it reads; what is no node is there already.

    Example:
        >>> schedule = Schedule({"a": [], "b": ["x"], "c": ["b"], "d": ["b", "a"]})
        >>> schedule.take(), schedule.take(), schedule.take()
        ('a', 'b', None)
        >>> schedule.done("b")
        >>> schedule.take(), schedule.take()
        ('c', None)
        >>> schedule.done("a")
        >>> schedule.take()
        'd'
    """

    def __init__(self, inputs: Mapping[Id, Iterable[Id]]) -> None:
        order = list(inputs)
        self._left = {id: {one for one in read if one in inputs} for id, read in inputs.items()}
        self._readers: defaultdict[Id, list[Id]] = defaultdict(list)
        for id, read in self._left.items():
            for one in read:
                self._readers[one].append(id)
        chains: dict[Id, int] = {}
        for id in reversed(order):
            chains[id] = 1 + max((chains[one] for one in self._readers[id]), default=0)
        self._rank = {id: (-chains[id], number) for number, id in enumerate(order)}
        self._ready = [(self._rank[id], id) for id in order if not self._left[id]]
        heapify(self._ready)

    def take(self) -> Id | None:
        """Returns a node whose inputs are done, each once; None if there is none now."""
        return heappop(self._ready)[1] if self._ready else None

    def done(self, id: Id) -> None:
        """Notes that a node was computed."""
        for one in self._readers[id]:
            self._left[one].discard(id)
            if not self._left[one]:
                heappush(self._ready, (self._rank[one], one))
