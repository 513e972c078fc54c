"""Turns to compute in this process, which two collections of a step have at a time, or one.

Several collections advance at once, since those that Spark computes wait most of the time. Those of this process do
not: they share one interpreter, and each gives its lock away at every kernel, a few thousand times a second, to wait
for it again. With two, one can go on while the other reads or is in a long kernel (`docs/performance.md` has the
figures of one, two and four). What is in memory at once is that of two, besides.

Little updates that meet what is in memory are in short kernels only; they have their turn alone. So has everyone where
somebody said how much memory the process may take: what is in memory at once is that of one then, and who has computed
gives back what is free. Who waited for Spark meanwhile waits for a turn again, before it goes on in this process;
where nobody said, it goes on at once.
"""

from __future__ import annotations

from threading import Lock, Semaphore
from types import TracebackType

from mz_dagster.allocators import return_freed
from mz_dagster.budget import memory_limit

#: How many collections of a step compute in this process at the same time.
_AT_ONCE = 2


class Turns:
    """The turns of a step.

    Attributes:
        free: Those that nobody has.
        door: Held by who waits next, so that who wants all of them gets them.
    """

    def __init__(self) -> None:
        self.free = Semaphore(_AT_ONCE)
        self.door = Lock()


class Turn:
    """A turn of one collection; a context manager that waits for it, and ends it unless it was given up.

    Who has it waits for nobody who waits for one: locks are taken after it, and who resumes it holds none that others
    take within theirs.

    Args:
        turns: The step's.
        is_alone: Whether nobody else has one meanwhile.
    """

    def __init__(self, turns: Turns, *, is_alone: bool = False) -> None:
        self._turns = turns
        self._is_limited = memory_limit() is not None
        self._share = _AT_ONCE if is_alone or self._is_limited else 1
        self._lock = Lock()
        self._has = False
        self._is_left = False

    def __enter__(self) -> Turn:
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_up()

    def give_up(self) -> None:
        """Ends the turn before its time, as another engine computes from here on."""
        with self._lock:
            had, self._has = self._has, False
        if had:
            if self._is_limited:
                return_freed()
            self._turns.free.release(self._share)

    def resume(self) -> None:
        """Waits for the turn again if it was given up, where somebody said how much memory the process may take."""
        if self._is_limited and not self._has and not self._is_left:
            self._take()

    def leave(self) -> None:
        """Ends the turn, and is never resumed: nobody waits for it any more."""
        self._is_left = True
        self.give_up()

    def _take(self) -> None:
        with self._turns.door:
            for _ in range(self._share):
                self._turns.free.acquire()
        self._has = True
        if self._is_left:  # meanwhile, by another thread
            self.give_up()
