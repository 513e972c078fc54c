"""Reclocking: how times that the outside world counts become times of a timeline.

A source counts in offsets, positions or transactions of its own, its external times. A *binding* is
the fact that at tick `T` the source ends at a frontier `F` of external times: what is not beyond `F` is
part of the collection at `T`. Bindings are made once, in order, and never revised, and they define a
function: an external time becomes the first tick whose binding has it behind.

    reclock(e)  =  least tick T with not F(T) <= e

    bindings          10: {3}      20: {3}      30: {7}
    external times    0 1 2                     3 4 5 6     7 8 ...
    become            10 10 10                  30 30 30 30 not known yet

The function is monotone, so what the source says first never becomes visible later; it is definite,
so that another binding makes more of it known and nothing different; and it has an inverse in the sense
of a Galois connection:

    reclock(e) <= T   iff   not ends_at(T) <= e

This module states the function. What external times there are, and who records bindings durably, is
the matter of sources and of the catalog. Implements item 20.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mz_dagster.formalism.antichain import Antichain
from mz_dagster.formalism.errors import BindingWentBack, NotATime
from mz_dagster.formalism.lattice import Lattice, T
from mz_dagster.formalism.timeline import Timeline, check_same_timeline
from mz_dagster.formalism.update import D, Update, consolidate

E = TypeVar("E", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RemapBinding(Generic[E, T]):
    """States that at the tick the source ends at this frontier of external times.

    Attributes:
        tick: A time of the timeline.
        ends_at: The external times beyond this frontier are not part of the collection at the tick.
    """

    tick: T
    ends_at: Antichain[E]

    def __str__(self) -> str:
        """Returns the tick and the frontier."""
        return f"{self.tick}: {self.ends_at}"


@dataclass(frozen=True, slots=True)
class Reclocking(Generic[E, T]):
    """A function of external times to times of a timeline, known as far as bindings go.

    Attributes:
        external: The lattice, or timeline, of the external times.
        timeline: The timeline into which they are reclocked.
        bindings: What is known of the function: ticks ascend strictly, frontiers never go back.

    Raises:
        TimelinesDiffer: A frontier is not of the external times.
        NotATime: A tick is not a time of the timeline.
        BindingWentBack: The bindings are not in such an order.

    Example:
        >>> from mz_dagster.formalism import EPOCH_MS, NATURAL
        >>> offsets = Timeline("offsets", NATURAL)
        >>> reclocking = Reclocking(offsets, Timeline("epoch", EPOCH_MS))
        >>> reclocking = reclocking.bind(10, Antichain.of(offsets, 3)).bind(30, Antichain.of(offsets, 7))
        >>> [reclocking.reclock(offset) for offset in (0, 2, 3, 6, 7)]
        [10, 10, 30, 30, None]
        >>> print(reclocking.ends_at(9), reclocking.ends_at(20), reclocking.ends_at(30))
        {0} {3} {7}
    """

    external: Lattice[E]
    timeline: Timeline[T]
    bindings: tuple[RemapBinding[E, T], ...] = ()

    def __post_init__(self) -> None:
        """Refuses bindings that do not define a monotone function."""
        for binding in self.bindings:
            check_same_timeline(self.external, binding.ends_at.lattice)
            if not self.timeline.is_time(binding.tick):
                raise NotATime(binding.tick, self.timeline)
        for earlier, later in zip(self.bindings, self.bindings[1:], strict=False):
            if not (self.timeline.less_than(earlier.tick, later.tick) and earlier.ends_at <= later.ends_at):
                raise BindingWentBack(earlier, later)

    def bind(self, tick: T, ends_at: Antichain[E]) -> Reclocking[E, T]:
        """Returns the function with one more binding, after all others.

        Raises:
            TimelinesDiffer: The frontier is not of the external times.
            NotATime: The tick is not a time of the timeline.
            BindingWentBack: The tick is not after the last one, or the frontier not beyond the last one.
        """
        return Reclocking(self.external, self.timeline, (*self.bindings, RemapBinding(tick, ends_at)))

    def reclock(self, time: E) -> T | None:
        """Returns the time of the timeline that an external time becomes; None if not known yet."""
        for binding in self.bindings:
            if not binding.ends_at.less_equal(time):
                return binding.tick
        return None

    def ends_at(self, tick: T) -> Antichain[E]:
        """Returns the frontier of the external times that are not part of the collection at the tick.

        Precondition: the tick is at or before the last one bound, or the answer may still grow.
        """
        reached = Antichain.minimum(self.external)
        for binding in self.bindings:
            if self.timeline.less_equal(binding.tick, tick):
                reached = binding.ends_at
        return reached

    def reclock_updates(self, updates: Iterable[Update[D, E]]) -> frozenset[Update[D, T]]:
        """Returns the updates at the times that theirs become, without those not known yet."""
        reclocked = ((update, self.reclock(update.time)) for update in updates)
        return consolidate(Update(update.data, time, update.diff) for update, time in reclocked if time is not None)
