"""The TVC map: which collection each id denotes, for all wall-clock time.

A `GlobalId` denotes at most one TVC, ever. The map from ids to the pTVCs that currently represent them
is the one mutable thing of the formalism, and each id goes through one life:

    UNBOUND       not in the map: cannot be read
       |          bind: since = upper; can be read from since on, though answers may have to wait
    BOUND         upper advances, since advances, in turn and as often as one likes
       |          upper becomes {}
    UNWRITEABLE   the collection is complete: it never varies again, and stays readable
       |          since becomes {} (also straight from BOUND)
    UNREADABLE    nothing can be read any more; the id stays taken

No step leads back, and no id is bound twice: not after it was dropped, and not after a restart, since
dropped ids stay in the map as entries with two empty frontiers.

This module owns ids and their lives. It does not give names to ids (names may be bound anew, ids may
not), and its durable form is the catalog's. Implements items 51 to 57.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Generic, NewType

from mz_dagster.formalism.antichain import Antichain
from mz_dagster.formalism.collection_version import CollectionVersion
from mz_dagster.formalism.errors import IdAlreadyBound, IdUnbound
from mz_dagster.formalism.lattice import T
from mz_dagster.formalism.ptvc import Ptvc
from mz_dagster.formalism.timeline import Timeline
from mz_dagster.formalism.update import D, Update

GlobalId = NewType("GlobalId", str)
"""The name of one TVC, for all time and all timelines."""


class Stage(IntEnum):
    """How far an id has come in its life; a greater stage is a later one."""

    UNBOUND = 0
    BOUND = 1
    UNWRITEABLE = 2
    UNREADABLE = 3


class TvcMap(Generic[D, T]):
    """Maps each id to the pTVC that currently represents its TVC.

    Example:
        >>> from mz_dagster.formalism import NATURAL
        >>> timeline, orders = Timeline("t", NATURAL), GlobalId("u1")
        >>> tvcs = TvcMap()
        >>> tvcs.bind(orders, timeline)
        >>> tvcs.append(orders, Antichain.of(timeline, 3), [Update("a", 1, +1)])
        >>> tvcs.read(orders, 2)
        CollectionVersion({'a': 1})
        >>> tvcs.drop(orders); tvcs.stage(orders).name
        'UNREADABLE'
        >>> tvcs.bind(orders, timeline)
        Traceback (most recent call last):
        mz_dagster.formalism.errors.IdAlreadyBound: id "u1" was bound before
        HINT: Take a fresh id: one id denotes one collection for all time.
    """

    def __init__(self, entries: Mapping[GlobalId, Ptvc[D, T]] | None = None) -> None:
        """Opens the map with the entries that an earlier one left, dropped ids included."""
        self._entries: dict[GlobalId, Ptvc[D, T]] = dict(entries or {})

    def entries(self) -> dict[GlobalId, Ptvc[D, T]]:
        """Returns all ids ever bound with their pTVCs: `TvcMap(entries)` is the map after a restart."""
        return dict(self._entries)

    def bind(self, id: GlobalId, timeline: Timeline[T], at: Antichain[T] | None = None) -> None:
        """Makes the id denote a new TVC, of which nothing is known yet: `since = upper = at`.

        Args:
            id: An id that was never bound.
            timeline: The timeline of the TVC.
            at: The first since and upper; `{t0}` if None.

        Raises:
            IdAlreadyBound: The id is bound, or was.
            TimelinesDiffer: `at` is of another timeline.
        """
        if id in self._entries:
            raise IdAlreadyBound(id)
        self._entries[id] = Ptvc.begin(timeline, at)

    def stage(self, id: GlobalId) -> Stage:
        """Returns how far the id has come in its life."""
        if id not in self._entries:
            return Stage.UNBOUND
        ptvc = self._entries[id]
        if ptvc.since.is_empty:
            return Stage.UNREADABLE
        return Stage.UNWRITEABLE if ptvc.upper.is_empty else Stage.BOUND

    def __getitem__(self, id: GlobalId) -> Ptvc[D, T]:
        """Returns the pTVC that currently represents the id's TVC.

        Raises:
            IdUnbound: The id was never bound.
        """
        if id not in self._entries:
            raise IdUnbound(id)
        return self._entries[id]

    def __iter__(self) -> Iterator[GlobalId]:
        """Yields all ids ever bound, in the order in which they were."""
        return iter(self._entries)

    def read(self, id: GlobalId, time: T) -> CollectionVersion[D]:
        """Returns exactly what the id's TVC contains at the time.

        Raises:
            IdUnbound: The id was never bound.
            TimeNotBeyondSince: The time is forgotten.
            TimeBeyondUpper: The time is not known yet.
        """
        return self[id].read(time)

    def append(self, id: GlobalId, upper: Antichain[T], updates: Iterable[Update[D, T]]) -> None:
        """Advances the id's upper with the updates of the interval, as `Ptvc.append` does.

        Raises:
            IdUnbound: The id was never bound.
        """
        self._entries[id] = self[id].append(upper, updates)

    def compact(self, id: GlobalId, since: Antichain[T]) -> None:
        """Advances the id's since, as `Ptvc.compact` does.

        Raises:
            IdUnbound: The id was never bound.
        """
        self._entries[id] = self[id].compact(since)

    def drop(self, id: GlobalId) -> None:
        """Advances both of the id's frontiers to `{}`: it is neither written nor read again.

        Raises:
            IdUnbound: The id was never bound.
        """
        last = Antichain.empty(self[id].timeline)
        self._entries[id] = self[id].compact(last).append(last, ())
