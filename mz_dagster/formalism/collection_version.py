"""Collection versions: what a collection contains at one time.

A collection version is a multiset whose multiplicities may be negative. They must be allowed to:
updates of different times, or from different places, arrive in any order, and applying them must not
depend on it. A user is never shown one (`contents` raises).

Two operations relate versions and updates, and each undoes the other:

    multiplicity(apply(cv, U), data)  =  multiplicity(cv, data) + sum of diff over u in U with u.data = data
    apply(cv1, diff(t, cv1, cv2))     =  cv2

This module knows nothing of orders between times: `apply` applies all it is given. Implements items
21 to 24 and 34 to 36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, Never, cast

from mz_dagster.formalism.errors import NegativeMultiplicity
from mz_dagster.formalism.lattice import T
from mz_dagster.formalism.update import D, D_co, Update


@dataclass(frozen=True, slots=True)
class CollectionVersion(Generic[D_co]):
    """A multiset, possibly with negative multiplicities; its pieces of data are of one type.

    Attributes:
        multiplicities: Each piece of data with its multiplicity, none of which is 0. The constructor
            copies the mapping, drops zeros from it, and makes it read-only.

    Example:
        >>> CollectionVersion({"a": 2, "b": 0}) == CollectionVersion.of("a", "a")
        True
    """

    multiplicities: Mapping[D_co, int]

    def __post_init__(self) -> None:
        """Brings the mapping into canonical form."""
        nonzero = {data: count for data, count in self.multiplicities.items() if count != 0}
        object.__setattr__(self, "multiplicities", MappingProxyType(nonzero))

    @staticmethod
    def of(*data: D) -> CollectionVersion[D]:
        """Returns the version with each piece of data as often as it is given."""
        return EMPTY.apply(Update(piece, None, 1) for piece in data)

    def multiplicity(self, data: Hashable) -> int:
        """Returns how often the piece of data occurs: 0 if it does not, less if it is owed.

        Example:
            >>> version = CollectionVersion({"a": 2, "b": -1})
            >>> [version.multiplicity(data) for data in "abc"]
            [2, -1, 0]
        """
        return cast("Mapping[Hashable, int]", self.multiplicities).get(data, 0)

    def apply(self, updates: Iterable[Update[D, Hashable]]) -> CollectionVersion[D_co | D]:
        """Returns this version with the diff of each update added to the multiplicity of its data.

        The order of the updates is of no account, and neither are their times.

        Example:
            >>> version = CollectionVersion.of("a").apply([Update("b", 1, +2), Update("a", 1, -1)])
            >>> version == CollectionVersion.of("b", "b")
            True
        """
        multiplicities: dict[D_co | D, int] = {}
        multiplicities.update(self.multiplicities.items())
        for update in updates:
            multiplicities[update.data] = multiplicities.get(update.data, 0) + update.diff
        return CollectionVersion(multiplicities)

    def contents(self) -> Iterator[D_co]:
        """Yields each piece of data as often as it occurs, in no particular order.

        Raises:
            NegativeMultiplicity: A piece of data occurs fewer than zero times; nothing is yielded.

        Example:
            >>> sorted(CollectionVersion({"a": 2, "b": 1}).contents())
            ['a', 'a', 'b']
        """
        for data, count in self.multiplicities.items():
            if count < 0:
                raise NegativeMultiplicity(data, count)
        for data, count in self.multiplicities.items():
            yield from (data for _ in range(count))

    def __hash__(self) -> int:
        """Returns a hash that does not depend on any order."""
        return hash(frozenset(self.multiplicities.items()))

    def __repr__(self) -> str:
        """Returns the expression that makes this version."""
        return f"CollectionVersion({dict(self.multiplicities)!r})"


EMPTY: CollectionVersion[Never] = CollectionVersion({})
"""The empty version, `cv0`."""


def diff(time: T, before: CollectionVersion[D], after: CollectionVersion[D]) -> frozenset[Update[D, T]]:
    """Returns the least set of updates, all at `time`, that applied to `before` gives `after`.

    Least means: one update for each piece of data whose multiplicity differs, none for any other.

    Example:
        >>> diff(3, CollectionVersion.of("a", "b"), CollectionVersion.of("b"))
        frozenset({Update(data='a', time=3, diff=-1)})
    """
    return frozenset(
        Update(data, time, after.multiplicity(data) - before.multiplicity(data))
        for data in {*before.multiplicities, *after.multiplicities}
        if after.multiplicity(data) != before.multiplicity(data)
    )
