"""Keeps a lease alive from a thread while its holder works.

A missed renewal is no danger, since time never decides what is safe: it costs the work of whoever loses the lease.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from mz_dagster.errors import Error, OperationalError

logger = logging.getLogger("mz_dagster.lease")


class Renewal:
    """Calls `renew` every so often for the length of a block.

    Args:
        renew: Extends the lease. An `OperationalError` is retried at the next turn; any other `Error` says that the
            lease is over for good and ends the renewal.
        every_ms: The time between two calls, in milliseconds; a third of the lease leaves room for two failures.

    Attributes:
        failure: The error that ended the renewal, or None.

    Example:
        >>> with Renewal(lambda: None, every_ms=1000) as renewal:
        ...     renewal.failure is None
        True
    """

    def __init__(self, renew: Callable[[], object], *, every_ms: int) -> None:
        self._renew = renew
        self._every_s = max(every_ms, 1) / 1000
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mz-renewal", daemon=True)
        self.failure: Error | None = None

    def __enter__(self) -> Renewal:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                self._renew()
            except OperationalError as error:
                logger.warning("could not renew a lease, trying again: %s", error)
            except Error as error:
                self.failure = error
                logger.warning("a lease is over: %s", error)
                return
