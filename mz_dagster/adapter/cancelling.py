"""Statements that end before they are done: because somebody asks for it from another thread, or after a time.

What is asked to end gets an exception in its thread, as Ctrl-C gives one to the main thread's statement: whatever a
statement holds is let go of on its way out, and nothing of a write is there unless it was sealed. A call that waits in
another's code (a database, Spark) ends when that returns or looks up.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mz_dagster.errors import OperationalError


class StatementCancelled(OperationalError):
    """A statement that was ended before it was done; what it would have written is not there."""

    sqlstate = "57014"


class _Cancel(BaseException):
    """Ends what the thread of a statement does."""


class Cancellation:
    """Ends the statement that a session executes, from any thread.

    Example:
        >>> cancellation = Cancellation()
        >>> cancellation.cancel()  # there is none
        False
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._why = ""
        self._goes_on = False
        self._is_asked = False

    def cancel(self, why: str = "canceling statement due to user request") -> bool:
        """Asks the statement that is being executed to end; returns whether there is one."""
        with self._lock:
            self._why = why
            if self._thread is not None:
                _raise_in(self._thread, _Cancel)
            self._is_asked = self._thread is None and self._goes_on
            return self._thread is not None or self._is_asked

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Lets a statement be cancelled between its parts, too, of which each is a block of `executing`.

        What is asked for while none is being executed ends the next one.
        """
        with self._lock:
            self._goes_on = True
        try:
            yield
        finally:
            with self._lock:
                self._goes_on = self._is_asked = False

    @contextmanager
    def executing(self, timeout_ms: int = 0) -> Iterator[None]:
        """Lets what is done in a block be cancelled, and cancels it after a time.

        Args:
            timeout_ms: After how many milliseconds; 0 for never.

        Raises:
            StatementCancelled: It was.
        """
        timer = threading.Timer(timeout_ms / 1000, self.cancel, ["canceling statement due to statement timeout"])
        timer.daemon = True
        try:
            with self._lock:
                self._thread = threading.get_ident()
                if self._is_asked:
                    raise _Cancel
            if timeout_ms:
                timer.start()
            try:
                yield
            finally:
                self._end(timer)
        except _Cancel:
            self._end(timer)
            raise StatementCancelled(self._why, hint="Nothing was written.") from None

    def _end(self, timer: threading.Timer) -> None:
        timer.cancel()
        with self._lock:
            if self._thread is not None:
                _raise_in(self._thread, None)  # what was asked for too late
            self._thread = None


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
