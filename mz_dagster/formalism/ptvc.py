"""Partial time-varying collections: a collection, known between two frontiers.

Some of the past of a TVC is forgotten, and its future is unwritten. A pTVC is a set of updates with
two frontiers that say where it can be trusted:

            since                    upper
      ########|-----------------------|????????????      # forgotten   - readable   ? not known yet

The invariant, which every operation keeps, relates a pTVC to the one TVC that it represents:

    for all t with since <= t and not upper <= t:   read(ptvc, t) = read(tvc, t)

It is trivially true of the first pTVC, `[timeline, {}, {t0}, {t0}]`, between whose frontiers there is
no time, and everything after that is an `append`, which advances upper, or a `compact`, which advances
since. Neither frontier ever goes back. Where the two have crossed (upper <= since) nothing can be read
until upper has advanced past since.

This module owns the pTVC as a value: each operation returns a new one. It does not store anything, and
it does not decide when to forget. Implements items 27 to 32, 42 to 50.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

from mz_dagster.formalism.antichain import Antichain
from mz_dagster.formalism.collection_version import CollectionVersion
from mz_dagster.formalism.errors import (
    SinceWentBack,
    TimeBeyondUpper,
    TimeNotBeyondSince,
    UpdateBeyondUpper,
    UpdateNotBeyondLower,
    UpperWentBack,
)
from mz_dagster.formalism.lattice import T
from mz_dagster.formalism.timeline import Timeline, check_same_timeline
from mz_dagster.formalism.tvc import read
from mz_dagster.formalism.update import D, Update, compact_updates, consolidate


@dataclass(frozen=True, slots=True)
class UpperMismatch(Generic[T]):
    """Says that a `compare_and_append` did nothing, because upper was not as expected.

    This is an outcome and not an error: somebody else has appended first.

    Attributes:
        expected: The upper that the writer took for the present one.
        current: The upper that is.
    """

    expected: Antichain[T]
    current: Antichain[T]


@dataclass(frozen=True, slots=True)
class Ptvc(Generic[D, T]):
    """A set of updates that can be trusted at the times between since and upper.

    Attributes:
        timeline: The timeline of the collection.
        updates: The updates, consolidated, at times advanced by since: `advance_by(t, since) = t`.
        since: The read frontier: times that are not beyond it are forgotten.
        upper: The write frontier: times beyond it may still be written.

    Raises:
        TimelinesDiffer: A frontier is of another timeline.

    Example:
        >>> from mz_dagster.formalism import NATURAL
        >>> timeline = Timeline("t", NATURAL)
        >>> def frontier(*times): return Antichain.of(timeline, *times)
        >>> ptvc = Ptvc.begin(timeline)
        >>> ptvc = ptvc.append(frontier(6), [Update("a", 1, +1), Update("a", 3, -1), Update("b", 4, +1)])
        >>> ptvc = ptvc.compact(frontier(5))
        >>> ptvc.read(5)
        CollectionVersion({'b': 1})
        >>> ptvc.read(4)
        Traceback (most recent call last):
        mz_dagster.formalism.errors.TimeNotBeyondSince: time 4 is not beyond since {5}
        DETAIL: What the collection contained at that time is forgotten.
        HINT: Read at a later time, or retain more history.
    """

    timeline: Timeline[T]
    updates: frozenset[Update[D, T]]
    since: Antichain[T]
    upper: Antichain[T]

    def __post_init__(self) -> None:
        """Refuses frontiers of another timeline, and brings the updates into canonical form."""
        check_same_timeline(self.timeline, self.since.lattice)
        check_same_timeline(self.timeline, self.upper.lattice)
        object.__setattr__(self, "updates", compact_updates(self.updates, self.since))

    @staticmethod
    def begin(timeline: Timeline[T], at: Antichain[T] | None = None) -> Ptvc[D, T]:
        """Returns a pTVC of which nothing is known yet: `[timeline, {}, at, at]`.

        Args:
            timeline: The timeline of the collection.
            at: The first since and upper; `{t0}` if None, which gives `ptvc0`.

        Raises:
            TimelinesDiffer: `at` is of another timeline.
        """
        first = Antichain.minimum(timeline) if at is None else at
        return Ptvc(timeline, frozenset(), first, first)

    def is_readable(self, time: T) -> bool:
        """Returns whether the time is between since and upper: `since <= time and not upper <= time`."""
        return self.since.less_equal(time) and not self.upper.less_equal(time)

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
        return read(self.timeline, self.updates, time)

    def append(self, upper: Antichain[T], updates: Iterable[Update[D, T]]) -> Ptvc[D, T]:
        """Returns the pTVC extended to the new upper; since stays.

        Precondition, which only the writer can know: the updates are exactly those of the TVC at the
        times of the interval,

            { u in updates(tvc) | self.upper <= u.time and not upper <= u.time }

        Args:
            upper: The new write frontier. If it equals the present one the interval is empty.
            updates: The updates of the interval, in any order, not necessarily consolidated.

        Raises:
            TimelinesDiffer: The new upper is of another timeline.
            UpperWentBack: The new upper is not beyond the present one.
            UpdateNotBeyondLower: An update is for a time that is already complete.
            UpdateBeyondUpper: An update is for a time that stays open.

        Example:
            >>> from mz_dagster.formalism import NATURAL
            >>> timeline = Timeline("t", NATURAL)
            >>> Ptvc.begin(timeline).append(Antichain.of(timeline, 3), [Update("a", 7, +1)])
            Traceback (most recent call last):
            mz_dagster.formalism.errors.UpdateBeyondUpper: update ('a', 7, +1) is beyond upper {3}
            DETAIL: An append takes only updates of the interval that it completes.
            HINT: Append up to a later upper, or keep the update for a later append.
        """
        if not self.upper <= upper:
            raise UpperWentBack(self.upper, upper)
        new = consolidate(updates)
        for update in new:
            if not self.upper.less_equal(update.time):
                raise UpdateNotBeyondLower(update, self.upper)
            if upper.less_equal(update.time):
                raise UpdateBeyondUpper(update, upper)
        return Ptvc(self.timeline, consolidate([*self.updates, *new]), self.since, upper)

    def compare_and_append(
        self, lower: Antichain[T], upper: Antichain[T], updates: Iterable[Update[D, T]]
    ) -> Ptvc[D, T] | UpperMismatch[T]:
        """Appends the batch `[lower, upper)` if `lower` is the present upper, else says what that is.

        Raises:
            TimelinesDiffer: A frontier is of another timeline.
            UpperWentBack: `upper` is not beyond `lower`, which is the present upper.
            UpdateNotBeyondLower: An update is not beyond `lower`.
            UpdateBeyondUpper: An update is beyond `upper`.

        Example:
            >>> from mz_dagster.formalism import NATURAL
            >>> timeline = Timeline("t", NATURAL)
            >>> outcome = Ptvc.begin(timeline).compare_and_append(
            ...     Antichain.of(timeline, 4), Antichain.of(timeline, 6), [Update("a", 5, +1)])
            >>> print(outcome.expected, outcome.current)
            {4} {0}
        """
        check_same_timeline(self.timeline, lower.lattice)
        if lower != self.upper:
            return UpperMismatch(lower, self.upper)
        return self.append(upper, updates)

    def compact(self, since: Antichain[T]) -> Ptvc[D, T]:
        """Returns the pTVC with times that the new since cannot tell apart made one; upper stays.

        Each update slides to `advance_by(time, since)`, those at the same data and time are summed, and
        zeros are dropped. Reads at all times beyond the new since are as before.

        Raises:
            TimelinesDiffer: The new since is of another timeline.
            SinceWentBack: The new since is not beyond the present one.
        """
        if not self.since <= since:
            raise SinceWentBack(self.since, since)
        return Ptvc(self.timeline, self.updates, since, self.upper)
