"""The end of a process that was interrupted, though threads of its own go on for nobody.

A thread cannot be ended from outside, and Python waits for all of them before it exits: a process that was asked to end
would compute to the end what it has given up. So once the blocks that hold leases have given them back, it does what
was registered here, within seconds, and ends without its threads.

A command of ours calls `exit_process` for that. Where the process is somebody else's, a run of Dagster's own launcher
or a script, what gives threads up calls `leave_threads_at_exit`.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from mz_dagster.clock import SYSTEM_CLOCK

STEP_THREADS = "mz-step"
"""What the threads in which a step computes are called, before their numbers."""

_LAST_ACTS_SECONDS = 3.0
#: For how long a process that ends waits for threads that were given up: most look now and then whether they are.
_GRACE_SECONDS = 1.0

_last_acts: list[Callable[[], object]] = []
_is_leaving = False


def before_exit(act: Callable[[], object]) -> None:
    """Has something done before this process ends, however it does so by itself; it must be safe in any thread."""
    atexit.register(act)
    _last_acts.append(act)


def exit_process(code: int) -> int:
    """Returns the exit code of a process that was interrupted; does not return if threads of a step are left."""
    if not _step_threads():
        return code
    acts = threading.Thread(target=lambda: [act() for act in _last_acts], daemon=True)
    acts.start()
    acts.join(_LAST_ACTS_SECONDS)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def leave_threads_at_exit() -> None:
    """Has this process wait no longer than a moment for threads of a step when it ends, whoever ends it.

    If any goes on then, the exit code is that of a process that was interrupted.
    """
    global _is_leaving
    if _is_leaving:
        return
    _is_leaving = True
    with suppress(RuntimeError):  # the process is ending already
        # Python's pools wait for their threads in such a call, before all that `atexit` knows. The last one is first.
        threading._register_atexit(_leave_threads)  # type: ignore[attr-defined]


def _leave_threads() -> None:
    until = SYSTEM_CLOCK.monotonic_ms() + 1000 * _GRACE_SECONDS
    for one in _step_threads():
        one.join(max(0.0, (until - SYSTEM_CLOCK.monotonic_ms()) / 1000))
    exit_process(128 + signal.SIGINT)


def _step_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith(STEP_THREADS)]
