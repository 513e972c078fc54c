"""What finalizers ask for, done by threads of their own.

A finalizer (`__del__`, a callback of `weakref`) runs in any thread, between any two instructions: also in one that
holds the lock the finalizer needs, or that another waits for who does. And it runs while others are taken down: of
objects that hold one another fifty deep CPython puts the rest off, dead already, and protobuf (upb), which looks a
message's object up by its address, takes such a one for alive and frees it twice. So a finalizer does nothing but
`DeferredCalls.call`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from mz_dagster.clock import SYSTEM_CLOCK

#: How long `DeferredCalls.end` waits for the calls that have begun, in seconds.
_LAST_SECONDS = 5.0

_logger = logging.getLogger(__name__)


class DeferredCalls:
    """Makes calls, a few at a time, in threads of its own.

    Example:
        >>> later, made = DeferredCalls(threads=1), SimpleQueue()
        >>> later.call(lambda: made.put(threading.current_thread().name))
        >>> made.get(timeout=30)
        'mz-later'
        >>> later.end()
    """

    def __init__(self, threads: int, name: str = "mz-later") -> None:
        # Its `put` may interrupt itself, which that of other queues may not.
        self._waiting: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._is_over = threading.Event()
        self.threads = [
            threading.Thread(target=_make, args=(self._waiting, self._is_over), name=name, daemon=True)
            for _ in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def call(self, call: Callable[[], object]) -> None:
        """Has a call made some time later; its outcome is of no interest."""
        self._waiting.put(call)

    def end(self) -> None:
        """Begins no further call, those that wait included; when it returns, none is about to begin."""
        self._finish()
        deadline = SYSTEM_CLOCK.monotonic_ms() + 1000 * _LAST_SECONDS  # after so long they wait for an answer
        for thread in self.threads:
            thread.join(max(0.0, deadline - SYSTEM_CLOCK.monotonic_ms()) / 1000)

    def _finish(self) -> None:
        self._is_over.set()
        for _ in self.threads:
            self._waiting.put(None)

    def __del__(self) -> None:
        self._finish()


def _make(waiting: SimpleQueue[Callable[[], object] | None], is_over: threading.Event) -> None:
    while (call := waiting.get()) is not None and not is_over.is_set():
        try:
            call()
        except Exception as error:
            _logger.debug("what a finalizer asked for failed: %s", error)
        del call  # it holds what it is made on
