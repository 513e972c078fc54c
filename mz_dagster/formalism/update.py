"""Updates: the differential form of a collection that varies over time.

An update is a triple `(data, time, diff)`: which piece of data is concerned, when, and by how much
its multiplicity grows. The piece of data is opaque and atomic: an update to a row carries the entire
row, so that replacing a row takes two updates at one time, one that retracts it and one that asserts
the new one.

A set of updates is kept consolidated: at most one update for each `(data, time)`, none with diff 0.
Within that form two sets of updates mean the same collection, at all times, exactly when they are
equal. Which collection a set of updates means is said in `tvc`. Implements items 7, 33, 46 and 47.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mz_dagster.formalism.antichain import Antichain, advance_by
from mz_dagster.formalism.lattice import T

D = TypeVar("D", bound=Hashable)
D_co = TypeVar("D_co", bound=Hashable, covariant=True)
T_co = TypeVar("T_co", bound=Hashable, covariant=True)


@dataclass(frozen=True, slots=True)
class Update(Generic[D_co, T_co]):
    """States that at `time` the multiplicity of `data` grows by `diff`.

    Attributes:
        data: The piece of data, whole and hashable. Pieces that compare equal are the same piece, so
            a collection must not mix types that Python takes for equal, such as `1` and `1.0`.
        time: When, on the collection's timeline.
        diff: How many copies are added; negative if they are retracted.

    Example:
        >>> rename = {Update(("k", "old"), 3, -1), Update(("k", "new"), 3, +1)}
    """

    data: D_co
    time: T_co
    diff: int

    def __str__(self) -> str:
        """Returns the triple."""
        return f"({self.data!r}, {self.time}, {self.diff:+d})"


def consolidate(updates: Iterable[Update[D, T]]) -> frozenset[Update[D, T]]:
    """Returns the one set of updates that sums as these do, with no two alike and none of diff 0.

        for all (data, time):   the diff of the result   =   sum of diff over updates at (data, time)

    Example:
        >>> sorted(str(u) for u in consolidate([Update("a", 1, 1), Update("a", 1, 2), Update("b", 1, 0)]))
        ["('a', 1, +3)"]
        >>> consolidate([Update("a", 1, 1), Update("a", 1, -1)])
        frozenset()
    """
    sums: defaultdict[tuple[D, T], int] = defaultdict(int)
    for update in updates:
        sums[update.data, update.time] += update.diff
    return frozenset(Update(data, time, diff) for (data, time), diff in sums.items() if diff != 0)


def compact_updates(updates: Iterable[Update[D, T]], since: Antichain[T]) -> frozenset[Update[D, T]]:
    """Returns the fewest updates that read the same at every time beyond `since`.

    Slides each update to `advance_by(time, since)` and consolidates. Nothing is left beyond `{}`,
    where no time can be read.

    Example:
        >>> from mz_dagster.formalism import NATURAL
        >>> history = [Update("a", 1, +1), Update("a", 3, -1), Update("b", 2, +1), Update("b", 9, +1)]
        >>> sorted(str(update) for update in compact_updates(history, Antichain.of(NATURAL, 5)))
        ["('b', 5, +1)", "('b', 9, +1)"]
    """
    if since.is_empty:
        return frozenset()
    return consolidate(Update(update.data, advance_by(update.time, since), update.diff) for update in updates)


def between(updates: Iterable[Update[D, T]], lower: Antichain[T], upper: Antichain[T]) -> frozenset[Update[D, T]]:
    """Returns the batch `[lower, upper)` of the updates, consolidated.

        { u | lower <= u.time and not upper <= u.time }

    Example:
        >>> from mz_dagster.formalism import NATURAL
        >>> history = [Update("a", time, +1) for time in range(9)]
        >>> batch = between(history, Antichain.of(NATURAL, 3), Antichain.of(NATURAL, 6))
        >>> sorted(update.time for update in batch)
        [3, 4, 5]
    """
    return consolidate(
        update for update in updates if lower.less_equal(update.time) and not upper.less_equal(update.time)
    )
