"""Locks that mean what clients agree on, as tools of migrations take one so that only one of them is at work.

A lock is a number or a pair of two, and is taken by a session or by its transaction block, alone or shared; a session
may take one several times, and gives it back as often. It is in memory and of this process alone: of all clients of a
server, and of nobody who opens the project elsewhere.

Who waits looks now and then whether it is to be cancelled, and is told at once if those for whom it waits wait for it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from mz_dagster.errors import OperationalError

#: The number of a lock, or two.
Key = tuple[int, ...]
#: How often who waits looks whether it is to be cancelled, in seconds.
_LOOK_S = 0.05


class DeadlockDetected(OperationalError):
    """A lock that would be waited for for ever."""

    sqlstate = "40P01"


@dataclass(frozen=True, slots=True)
class Hold:
    """How a lock is held.

    Attributes:
        is_shared: Whether others may hold it so, too.
        is_blocks: Whether it is given back when the transaction block ends, and not before.
    """

    is_shared: bool
    is_blocks: bool


@dataclass(frozen=True, slots=True)
class AdvisoryLock:
    """A lock that a session holds, or waits for.

    Attributes:
        session: The session.
        key: The lock's number or numbers.
        is_shared: Whether others may hold it so, too.
        is_held: Whether the session has it.
    """

    session: SessionLocks
    key: Key
    is_shared: bool
    is_held: bool


@dataclass(slots=True)
class _Lock:
    """Who holds a lock, how, and how often."""

    holds: dict[SessionLocks, Counter[Hold]] = field(default_factory=dict)

    def blocking(self, session: SessionLocks, *, is_shared: bool) -> Iterator[SessionLocks]:
        """Yields who holds it so that a session may not."""
        for other, held in self.holds.items():
            if other != session and not (is_shared and all(one.is_shared for one in held)):
                yield other


class AdvisoryLocks:
    """The locks of a process; may be used by several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._locks: dict[Key, _Lock] = {}
        self._waiting: dict[SessionLocks, tuple[Key, bool]] = {}

    def take(self, session: SessionLocks, key: Key, hold: Hold, *, waits: bool) -> bool:
        """Takes a lock; returns whether the session has it, which it has if it waits.

        Raises:
            DeadlockDetected: Who holds it waits for this session.
        """
        with self._changed:
            while any(self._blocking(session, key, hold.is_shared)):
                if not waits:
                    return False
                self._wait(session, key, hold.is_shared)
            held = self._locks.setdefault(key, _Lock()).holds.setdefault(session, Counter())
            held[hold] += 1
            return True

    def give_back(self, session: SessionLocks, key: Key, *, is_shared: bool) -> bool:
        """Gives a lock back that the session has taken for itself; returns whether it had."""
        hold = Hold(is_shared, is_blocks=False)
        with self._changed:
            lock = self._locks.get(key)
            if lock is None or not lock.holds.get(session, Counter())[hold]:
                return False
            lock.holds[session][hold] -= 1
            self._tidy(key, session)
            return True

    def give_back_all(self, session: SessionLocks, *, of_block: bool) -> None:
        """Gives back all that a session has taken for its transaction block, or for itself."""
        with self._changed:
            for key, lock in list(self._locks.items()):
                if session in lock.holds:
                    lock.holds[session] = Counter(
                        {one: count for one, count in lock.holds[session].items() if one.is_blocks != of_block}
                    )
                    self._tidy(key, session)

    def told(self) -> list[AdvisoryLock]:
        """Returns which locks sessions hold and wait for."""
        with self._changed:
            held = [
                AdvisoryLock(session, key, is_shared, is_held=True)
                for key, lock in self._locks.items()
                for session, holds in lock.holds.items()
                for is_shared in sorted({one.is_shared for one in holds})
            ]
            return held + [AdvisoryLock(one, *wanted, is_held=False) for one, wanted in self._waiting.items()]

    def _tidy(self, key: Key, session: SessionLocks) -> None:
        lock = self._locks[key]
        lock.holds[session] = +lock.holds[session]
        if not lock.holds[session]:
            del lock.holds[session]
        if not lock.holds:
            del self._locks[key]
        self._changed.notify_all()

    def _blocking(self, session: SessionLocks, key: Key, is_shared: bool) -> Iterator[SessionLocks]:
        lock = self._locks.get(key)
        return iter(()) if lock is None else lock.blocking(session, is_shared=is_shared)

    def _wait(self, session: SessionLocks, key: Key, is_shared: bool) -> None:
        self._waiting[session] = (key, is_shared)
        try:
            if self._waits_for_itself(session):
                raise DeadlockDetected(
                    "deadlock detected",
                    detail="Who holds the advisory lock waits for one that this session holds.",
                    hint="Take locks in the same order everywhere, or give back those you hold and try again.",
                )
            self._changed.wait(_LOOK_S)
        finally:
            del self._waiting[session]

    def _waits_for_itself(self, session: SessionLocks) -> bool:
        seen: set[SessionLocks] = set()
        todo = [session]
        while todo:
            one = todo.pop()
            if one not in self._waiting:
                continue
            for other in self._blocking(one, *self._waiting[one]):
                if other == session:
                    return True
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return False


class SessionLocks:
    """The locks of one session.

    Args:
        locks: Those of the process.
        process_id: What clients know the session by.

    Example:
        >>> locks, alone = AdvisoryLocks(), Hold(is_shared=False, is_blocks=False)
        >>> one, other = SessionLocks(locks, 1), SessionLocks(locks, 2)
        >>> one.take((7,), alone, waits=False), other.take((7,), alone, waits=False)
        (True, False)
        >>> one.give_back((7,), is_shared=False), one.give_back((7,), is_shared=False)
        (True, False)
    """

    def __init__(self, locks: AdvisoryLocks, process_id: int) -> None:
        self._locks = locks
        self.process_id = process_id

    def take(self, key: Key, hold: Hold, *, waits: bool) -> bool:
        """Takes a lock, as `AdvisoryLocks.take`."""
        return self._locks.take(self, key, hold, waits=waits)

    def give_back(self, key: Key, *, is_shared: bool) -> bool:
        """Gives a lock back, as `AdvisoryLocks.give_back`."""
        return self._locks.give_back(self, key, is_shared=is_shared)

    def end_block(self) -> None:
        """Gives back what was taken for the transaction block."""
        self._locks.give_back_all(self, of_block=True)

    def give_back_own(self) -> None:
        """Gives back what was taken for the session itself."""
        self._locks.give_back_all(self, of_block=False)
