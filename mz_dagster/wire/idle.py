"""Ends clients that have been idle for too long, as their settings say.

A client's time begins when its turn ends. One thread, which begins with the first client that has such a setting, waits
for whichever time is over next, and has that client's turn begin: what is told to the client, and what it held, is the
business of that turn, in which it also counts whether the client has been served meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from mz_dagster.clock import Clock

T = TypeVar("T")


class IdleClients(Generic[T]):
    """Which clients are idle, and until when they may be. Safe for use from several threads.

    Args:
        clock: Tells how long they have been.
        over: Is given each whose time is over.
    """

    def __init__(self, clock: Clock, over: Callable[[T], None]) -> None:
        self._clock, self._over = clock, over
        self._until: dict[T, float] = {}
        self._changed = threading.Condition()
        self._begun = self._is_closed = False

    def idles(self, client: T, for_ms: int) -> None:
        """Has a client be idle from now on for that long at most; 0 is for ever, or that it is not idle any more."""
        with self._changed:
            if not for_ms:
                self._until.pop(client, None)
                return
            self._until[client] = self._clock.monotonic_ms() + for_ms
            if not self._begun:
                self._begun = True
                threading.Thread(target=self._watch, name="mz-wire-idle", daemon=True).start()
            self._changed.notify()

    def close(self) -> None:
        """Ends no more clients."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _watch(self) -> None:
        while True:
            with self._changed:
                if self._is_closed:
                    return
                now = self._clock.monotonic_ms()
                over = [client for client, until in self._until.items() if until <= now]
                for client in over:
                    del self._until[client]
                if not over:
                    self._changed.wait((min(self._until.values()) - now) / 1000 if self._until else None)
            for client in over:
                self._over(client)
