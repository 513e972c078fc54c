"""Time-varying collections: the whole history of a collection, as nobody ever knows it.

A TVC assigns one collection version to each time of one timeline. It is the truth against which
everything partial is measured: the engine itself only ever has a `Ptvc`.

The same TVC can be told as a set of updates. Reading that at a time sums what is at or before it:

    read(updates, t)  =  apply(cv0, { u in updates | u.time <= t })

and the updates at a time are what must be added to those before it:

    prior_updates(tvc, t)  =  union of updates_at(tvc, p) over all p < t
    updates_at(tvc, t)     =  diff(t, apply(cv0, prior_updates(tvc, t)), read(tvc, t))

On a total order this is `diff(t, read(t - 1), read(t))`. On a partial order a time has several
predecessors, whose updates may overlap or clash, and only the sum over *all* prior updates is right:
if "a" is inserted at (0,1) and at (1,0) and occurs only once at (1,1), there is a retraction at (1,1)
that no user ever asked for. Since times are well-founded, the recursion ends at the minimum, and the
two forms determine each other: they are isomorphic.

This module states the isomorphism. It forgets nothing and it waits for nothing: see `ptvc`.
Implements items 25, 26 and 37 to 41.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic

from mz_dagster.formalism.collection_version import EMPTY, CollectionVersion, diff
from mz_dagster.formalism.lattice import Lattice, T
from mz_dagster.formalism.timeline import Timeline
from mz_dagster.formalism.update import D, Update, consolidate


@dataclass(frozen=True, slots=True)
class Tvc(Generic[D, T]):
    """A collection version for each time of a timeline.

    Attributes:
        timeline: Which times there are, and how they relate.
        versions: What the collection contains at each of them; a pure function.

    Example:
        >>> from mz_dagster.formalism import NATURAL
        >>> lamp = Tvc(Timeline("lamp", NATURAL), lambda t: CollectionVersion.of("on" if t % 4 < 2 else "off"))
        >>> lamp.read(5)
        CollectionVersion({'on': 1})
        >>> sorted(str(update) for update in lamp.updates_at(6))
        ["('off', 6, +1)", "('on', 6, -1)"]
    """

    timeline: Timeline[T]
    versions: Callable[[T], CollectionVersion[D]]

    @staticmethod
    def of_updates(timeline: Timeline[T], updates: Iterable[Update[D, T]]) -> Tvc[D, T]:
        """Returns the TVC that these updates tell.

        Example:
            >>> from mz_dagster.formalism import NATURAL
            >>> tvc = Tvc.of_updates(Timeline("t", NATURAL), [Update("a", 3, +1), Update("a", 5, -1)])
            >>> [time for time in range(8) if tvc.read(time).multiplicity("a")]
            [3, 4]
        """
        consolidated = consolidate(updates)
        return Tvc(timeline, lambda time: read(timeline, consolidated, time))

    def read(self, time: T) -> CollectionVersion[D]:
        """Returns what the collection contains at the time."""
        return self.versions(time)

    def updates(self, through: T) -> frozenset[Update[D, T]]:
        """Returns the updates at all times at or before `through`.

        The union of these over all times is the TVC as a set of updates. Quadratic in the number of
        times, as it follows the definition.

        Example:
            >>> from mz_dagster.formalism import NATURAL, Product
            >>> grid = Timeline("grid", Product(NATURAL, NATURAL))
            >>> once = Tvc(grid, lambda t: CollectionVersion.of("a") if t != (0, 0) else EMPTY)
            >>> sorted((update.time, update.diff) for update in once.updates(through=(3, 3)))
            [((0, 1), 1), ((1, 0), 1), ((1, 1), -1)]
        """
        return updates_of(self.timeline, self.versions, self.timeline.times_through(through))

    def prior_updates(self, time: T) -> frozenset[Update[D, T]]:
        """Returns the updates at all times before `time`; at the minimum there are none."""
        return frozenset(update for update in self.updates(through=time) if self.timeline.less_than(update.time, time))

    def updates_at(self, time: T) -> frozenset[Update[D, T]]:
        """Returns the updates at exactly this time."""
        return diff(time, EMPTY.apply(self.prior_updates(time)), self.read(time))


def read(lattice: Lattice[T], updates: Iterable[Update[D, T]], time: T) -> CollectionVersion[D]:
    """Returns what the updates sum up to at the time: `apply(cv0, { u | u.time <= time })`."""
    return EMPTY.apply(update for update in updates if lattice.less_equal(update.time, time))


def updates_of(
    lattice: Lattice[T], versions: Callable[[T], CollectionVersion[D]], times: Iterable[T]
) -> frozenset[Update[D, T]]:
    """Returns the updates, at the given times alone, that read as `versions` does at each of them.

    Precondition: the times come in an order that extends that of the lattice (none ahead of one that
    precedes it). They need not be all times: those that are left out are given no updates.
    """
    found: set[Update[D, T]] = set()
    for time in times:
        found |= diff(time, read(lattice, found, time), versions(time))
    return frozenset(found)
