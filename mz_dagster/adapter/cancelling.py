"""Statements that end before they are done: because somebody asks for it from another thread, or after a time.

What is asked to end gets an exception in its thread, as Ctrl-C gives one to the main thread's statement: whatever a
statement holds is let go of on its way out, and nothing of a write is there unless it was sealed. A call that waits in
another's code (a database, Spark) ends when that returns or looks up.

Statements share locks, so none is ended in the middle of taking one: `threading` and its like are left first.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.errors import OperationalError

T = TypeVar("T")

_TRIES = 1_000
"""How often what ends a statement is waited for, in milliseconds."""
_TAKING_LOCKS = {"contextlib.py", "queue.py", "threading.py"}
"""The files, of Python and of SQLAlchemy, whose functions take locks that stay closed if an exception comes from
elsewhere before they return. Those named `wait`, in which a thread may be nearly all the time, let go of them first."""


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
        # Of what is executed: its number, and whether it was told to end, which it is once, and has yet to hear it.
        self._number = 0
        self._is_told = self._is_on_its_way = False

    def cancel(self, why: str = "canceling statement due to user request") -> bool:
        """Asks the statement that is being executed to end; returns whether there is one."""
        with self._lock:
            self._is_asked = self._thread is None and self._goes_on
            if self._is_asked or not self._is_told:
                self._why = why
            if self._thread is None or self._is_told:
                return self._thread is not None or self._is_asked
            self._is_told = True
            if not self._interrupt():
                threading.Thread(target=self._interrupt_soon, args=[self._number], daemon=True).start()
            return True

    def _interrupt(self) -> bool:
        """Has the thread end what it does, unless it would leave a lock behind that nobody opens any more."""
        assert self._thread is not None, "something is executed"
        frame = sys._current_frames().get(self._thread)
        if frame is None or (Path(frame.f_code.co_filename).name in _TAKING_LOCKS and frame.f_code.co_name != "wait"):
            return False
        self._is_on_its_way = True
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(_Cancel))
        return True

    def _interrupt_soon(self, number: int) -> None:
        """Does so as soon as it would not, if the same is still being executed."""
        while True:
            SYSTEM_CLOCK.sleep(0.001)
            with self._lock:
                if self._number != number or self._thread is None or self._interrupt():
                    return

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Lets a statement be cancelled between its parts, too, of which each is a call of `execute`.

        What is asked for while none is being executed ends the next one.
        """
        with self._lock:
            self._goes_on = True
        try:
            yield
        finally:
            with self._lock:
                self._goes_on = self._is_asked = False

    def execute(self, work: Callable[[], T], timeout_ms: int = 0) -> T:
        """Returns what `work` returns, which can be cancelled meanwhile, and is after a time.

        Args:
            work: What to do.
            timeout_ms: After how many milliseconds; 0 for never.

        Raises:
            StatementCancelled: It was.
        """
        with ExitStack() as ended:
            if timeout_ms:
                why = "canceling statement due to statement timeout"
                timer = threading.Timer(timeout_ms / 1000, self.cancel, [why])
                timer.daemon = True
                timer.start()
                ended.callback(timer.cancel)
            return self._executed(work)

    def _executed(self, work: Callable[[], T]) -> T:
        found: list[T] = []
        try:
            try:
                with self._lock:
                    self._number += 1
                    self._is_told = self._is_on_its_way = False
                    self._thread = threading.get_ident()
                    if self._is_asked:
                        raise _Cancel
                found.append(work())
            except _Cancel:
                self._is_on_its_way = False
                raise
            finally:
                self._end()
        except _Cancel:  # the only one
            self._is_on_its_way = False
            self._end()
            if not found:  # else it came too late
                raise StatementCancelled(self._why, hint="Nothing was written.") from None
        return found[0]

    def _end(self) -> None:
        with self._lock:
            self._thread = None
        # What is on its way comes with the next call. Were it taken back, the interpreter would go on looking for it at
        # each call of any thread, and under a profiler or a debugger would do nothing else any more.
        for _ in range(_TRIES if self._is_on_its_way else 0):
            SYSTEM_CLOCK.sleep(0.001)
