"""The only file that knows wall-clock time.

Everything else receives a `Clock`, so that tests can move time by hand and no layer can let a
decision about safety depend on it: time decides when to try, never what is safe.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells time in milliseconds and waits."""

    def now_ms(self) -> int:
        """Returns wall-clock time as milliseconds since the Unix epoch; it may jump."""
        ...

    def monotonic_ms(self) -> float:
        """Returns milliseconds on a clock that never goes backwards; only differences mean anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits for that many seconds."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Returns monotonic milliseconds."""
        return time.monotonic_ns() / 1_000_000

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)


class ManualClock:
    """A clock for tests that moves only when told to, or slept on.

    Example:
        >>> clock = ManualClock(1000)
        >>> clock.advance(5); clock.now_ms()
        1005
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch."""
        return self._now_ms

    def monotonic_ms(self) -> float:
        """Returns monotonic milliseconds."""
        return float(self._now_ms)

    def sleep(self, seconds: float) -> None:
        """Waits."""
        self.advance(int(seconds * 1000))

    def advance(self, ms: int) -> None:
        """Moves the clock by `ms` milliseconds, backwards if negative."""
        self._now_ms += ms


SYSTEM_CLOCK = SystemClock()
