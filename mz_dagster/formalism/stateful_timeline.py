"""Stateful timelines: a timeline, and how far on it the world has come.

Timelines are eternal; what is done on one takes place at some wall-clock time, and whoever picks the
time for the next thing to do must know the latest times of all that is complete. That set is an
antichain too, of the *greatest* elements and not of the least:

    complete at (0,1), (1,0), (0,0)   gives   {(0,1), (1,0)}

This module states what an oracle of timestamps must remember, and what its answers must satisfy. It
picks no times, stores nothing and knows no clock. Implements item 19.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Generic

from mz_dagster.formalism.antichain import Antichain
from mz_dagster.formalism.errors import NotATime
from mz_dagster.formalism.lattice import T
from mz_dagster.formalism.timeline import Timeline, check_same_timeline


@dataclass(frozen=True, slots=True)
class StatefulTimeline(Generic[T]):
    """A timeline with the frontier of the latest times at which something is complete.

    Attributes:
        timeline: The timeline.
        completed: The greatest times among those completed, and the minimum when there are none.

    Raises:
        TimelinesDiffer: The frontier is of another timeline.

    Example:
        >>> from mz_dagster.formalism import NATURAL
        >>> state = StatefulTimeline.begin(Timeline("t", NATURAL)).complete(5).complete(3)
        >>> print(state.completed)
        {5}
        >>> state.is_after_all(5), state.is_after_all(6)
        (False, True)
    """

    timeline: Timeline[T]
    completed: Antichain[T]

    def __post_init__(self) -> None:
        """Refuses a frontier of another timeline."""
        check_same_timeline(self.timeline, self.completed.lattice)

    @staticmethod
    def begin(timeline: Timeline[T]) -> StatefulTimeline[T]:
        """Returns the timeline at its minimum."""
        return StatefulTimeline(timeline, Antichain.minimum(timeline))

    @property
    def latest(self) -> T:
        """The least time at or after everything that is complete: the join of `completed`."""
        return reduce(self.timeline.join, self.completed, self.timeline.minimum)

    def complete(self, time: T) -> StatefulTimeline[T]:
        """Returns the timeline with one more time completed; an earlier or equal one makes no difference.

        Raises:
            NotATime: It is not a time of the timeline.
        """
        if not self.timeline.is_time(time):
            raise NotATime(time, self.timeline)
        if any(self.timeline.less_equal(time, done) for done in self.completed):
            return self
        kept = [done for done in self.completed if not self.timeline.less_equal(done, time)]
        return StatefulTimeline(self.timeline, Antichain.of(self.timeline, *kept, time))

    def is_after_all(self, time: T) -> bool:
        """Returns whether the time is strictly after each completed one."""
        return all(self.timeline.less_than(done, time) for done in self.completed)
