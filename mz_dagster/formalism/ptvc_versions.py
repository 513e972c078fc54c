"""The other form of a pTVC: a function of times to collection versions, between two frontiers.

A TVC is a function or a set of updates, and so is a pTVC. The four forms make a square,

        Tvc (function)  ---- updates ---->  set of updates
             |                                    |
          restrict                         append, compact
             v                                    v
        PtvcVersions    ---- to_ptvc ---->       Ptvc

which commutes: whichever way it is gone, reads between since and upper are the same. Only the form
with updates is ever stored; this one exists to say so. Implements items 27, 31 and 42.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from mz_dagster.formalism.antichain import Antichain
from mz_dagster.formalism.collection_version import CollectionVersion
from mz_dagster.formalism.errors import TimeBeyondUpper, TimeNotBeyondSince
from mz_dagster.formalism.lattice import T
from mz_dagster.formalism.ptvc import Ptvc
from mz_dagster.formalism.timeline import Timeline, check_same_timeline
from mz_dagster.formalism.tvc import Tvc, updates_of
from mz_dagster.formalism.update import D


@dataclass(frozen=True, slots=True)
class PtvcVersions(Generic[D, T]):
    """A collection version for each time between since and upper, and for no other.

    Attributes:
        timeline: The timeline of the collection.
        versions: What it contains; called only at times between since and upper.
        since: The read frontier.
        upper: The write frontier.

    Raises:
        TimelinesDiffer: A frontier is of another timeline.
    """

    timeline: Timeline[T]
    versions: Callable[[T], CollectionVersion[D]]
    since: Antichain[T]
    upper: Antichain[T]

    def __post_init__(self) -> None:
        """Refuses frontiers of another timeline."""
        check_same_timeline(self.timeline, self.since.lattice)
        check_same_timeline(self.timeline, self.upper.lattice)

    @staticmethod
    def restrict(tvc: Tvc[D, T], since: Antichain[T], upper: Antichain[T]) -> PtvcVersions[D, T]:
        """Returns the TVC at the times between the two frontiers."""
        return PtvcVersions(tvc.timeline, tvc.read, since, upper)

    @staticmethod
    def of_ptvc(ptvc: Ptvc[D, T]) -> PtvcVersions[D, T]:
        """Returns the function that the updates of a pTVC tell."""
        return PtvcVersions(ptvc.timeline, ptvc.read, ptvc.since, ptvc.upper)

    def read(self, time: T) -> CollectionVersion[D]:
        """Returns exactly what the TVC contains at the time.

        Raises:
            TimeNotBeyondSince: The time is forgotten.
            TimeBeyondUpper: The time is not known yet.
        """
        if not self.since.less_equal(time):
            raise TimeNotBeyondSince(time, self.since)
        if self.upper.less_equal(time):
            raise TimeBeyondUpper(time, self.upper)
        return self.versions(time)

    def to_ptvc(self, through: T) -> Ptvc[D, T]:
        """Returns a pTVC that reads the same at all times at or before `through`.

        Its updates are those that `tvc` defines, with the readable times as the only ones: on a total
        order, the content at since and what was updated after it. On a partial order other sets of
        updates read the same; compaction may find a smaller one, at times that are not readable.

        Example:
            >>> from mz_dagster.formalism import NATURAL, Update
            >>> timeline = Timeline("t", NATURAL)
            >>> tvc = Tvc.of_updates(timeline, [Update("a", 1, +1), Update("a", 3, +1), Update("a", 9, +1)])
            >>> some = PtvcVersions.restrict(tvc, Antichain.of(timeline, 2), Antichain.of(timeline, 5))
            >>> sorted(str(update) for update in some.to_ptvc(through=4).updates)
            ["('a', 2, +1)", "('a', 3, +1)"]
        """
        readable = (
            time
            for time in self.timeline.times_through(through)
            if self.since.less_equal(time) and not self.upper.less_equal(time)
        )
        return Ptvc(self.timeline, updates_of(self.timeline, self.versions, readable), self.since, self.upper)
