"""What this process does with a project: its sessions, subscriptions and newest steps, as introspection shows them.

It is in memory and of this process alone; what others hold is in the catalog (leases, capabilities, leaders). Who is
gone without saying so is not shown: nothing here keeps a session or a subscription.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar
from weakref import WeakValueDictionary

from mz_dagster.adapter.advisory_locks import AdvisoryLocks
from mz_dagster.adapter.row_locks import RowLocks
from mz_dagster.adapter.wire_client import WireClient
from mz_dagster.clock import Clock
from mz_dagster.compute import StepReport
from mz_dagster.formalism import GlobalId

T = TypeVar("T")

_STEPS = 256
"""How many steps are remembered."""


@dataclass(frozen=True, slots=True)
class TransactionState:
    """A transaction block as it is now.

    Attributes:
        isolation: Its isolation level.
        read_only: Whether it may not write.
        is_failed: Whether it refuses all but ROLLBACK.
        began_ms: When it began.
        timeline: The timeline that it reads and writes; None before it has chosen one.
        time: The time at which it reads; None before it has read.
        written: How many tables it will write.
    """

    isolation: str
    read_only: bool
    is_failed: bool
    began_ms: int
    timeline: str | None
    time: int | None
    written: int


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session as it is now.

    Attributes:
        role: Whose it is.
        application: What its client calls itself.
        client: Its client; None of one in this process.
        transaction: The transaction block that is open.
    """

    role: str
    application: str
    client: WireClient | None
    transaction: TransactionState | None


class Telling(Protocol):
    """A session that says how it is."""

    def state(self) -> SessionState:
        """Returns how it is now."""
        ...


class Listening(Protocol):
    """A subscription.

    Attributes:
        session: The number of the session that began it; None if nobody knows.
        collection: The collection that it listens to; None if it executes its query again and again.
        frontier: Up to where it has told everything; None before it has told anything.
    """

    session: int | None

    @property
    def collection(self) -> GlobalId | None:
        """What it listens to."""
        ...

    @property
    def frontier(self) -> int | None:
        """Up to where it has told everything."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A step that this process has made.

    Attributes:
        number: Its number in this process.
        ended_ms: When it ended.
        report: What it did.
    """

    number: int
    ended_ms: int
    report: StepReport


def moment(ms: int) -> datetime:
    """Returns a time of the wall clock.

    Example:
        >>> moment(1500)
        datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)


class Activity:
    """Remembers what is done; may be used by several threads.

    Args:
        clock: Tells when.

    Attributes:
        advisory_locks: The locks that sessions agree on.
        row_locks: What blocks have locked.
    """

    def __init__(self, clock: Clock) -> None:
        self.advisory_locks = AdvisoryLocks()
        self.row_locks = RowLocks()
        self._clock = clock
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._began: dict[int, int] = {}
        self._sessions: WeakValueDictionary[int, Telling] = WeakValueDictionary()
        self._subscriptions: WeakValueDictionary[int, Listening] = WeakValueDictionary()
        self._steps: deque[Step] = deque(maxlen=_STEPS)

    def open_session(self, session: Telling) -> int:
        """Notes a session until it is closed, or gone; returns its number."""
        return self._noted(self._sessions, session)

    def begin_subscription(self, subscription: Listening) -> int:
        """Notes a subscription until it has ended, or is gone; returns its number."""
        return self._noted(self._subscriptions, subscription)

    def _noted(self, noted: WeakValueDictionary[int, T], one: T) -> int:
        with self._lock:
            number = next(self._numbers)
            noted[number] = one
            self._began = {number: self._clock.now_ms()} | {
                id: at for id, at in self._began.items() if id in self._sessions or id in self._subscriptions
            }
        return number

    def end(self, number: int) -> None:
        """Forgets a session or a subscription."""
        with self._lock:
            self._sessions.pop(number, None)
            self._subscriptions.pop(number, None)
            self._began.pop(number, None)

    def stepped(self, report: StepReport) -> None:
        """Notes a step that has ended."""
        with self._lock:
            self._steps.append(Step(next(self._numbers), self._clock.now_ms(), report))

    def sessions(self) -> Iterator[tuple[int, int, SessionState]]:
        """Yields the number of each session, when it began in milliseconds since 1970, and how it is."""
        with self._lock:
            found = [(id, self._began[id], one) for id, one in sorted(self._sessions.items())]
        yield from ((id, began, one.state()) for id, began, one in found)

    def subscriptions(self) -> Iterator[tuple[int, int, Listening]]:
        """Yields the number of each subscription, when it began in milliseconds since 1970, and itself."""
        with self._lock:
            found = [(id, self._began[id], one) for id, one in sorted(self._subscriptions.items())]
        yield from found

    def steps(self) -> tuple[Step, ...]:
        """Returns the newest steps, the oldest of them first."""
        with self._lock:
            return tuple(self._steps)
