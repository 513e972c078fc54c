"""Rows that come from looking again and again: what the streams of subscriptions have in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from mz_dagster.adapter.result import Rows
from mz_dagster.clock import Clock

_LOOK_S = 0.02
"""How often it is looked, in seconds."""


class WatchedRows(ABC):
    """The rows of a subscription, which ends by an error, by itself, or because it is closed; see `RowStream`.

    Args:
        clock: By which it waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_closed = False

    def next_rows(self, wait_s: float | None) -> Rows | None:
        """Returns the rows that have come; see `RowStream`.

        Raises:
            Error: What `_look` raises.
        """
        until = math.inf if wait_s is None else self._clock.monotonic_ms() + wait_s * 1000
        try:
            while not self._is_closed:
                found = self._look()
                if found is None:
                    self.close()
                    break
                if found:
                    return found
                if (left_ms := until - self._clock.monotonic_ms()) <= 0:
                    return ()
                self._clock.sleep(min(_LOOK_S, left_ms / 1000))
        except BaseException:
            self.close()
            raise
        return None

    @abstractmethod
    def close(self) -> None:
        """Ends the subscription, and lets go of all that it held."""

    @abstractmethod
    def _look(self) -> Rows | None:
        """Returns the rows that have come since the last look; None at the end."""
