"""The end of a process that was interrupted, though threads of its own go on for nobody.

A thread cannot be ended from outside, and Python waits for all of them before it exits: a process that was asked to end
would compute to the end what it has given up. So once the blocks that hold leases have given them back, it does what
was registered here, within seconds, and ends without its threads.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

STEP_THREADS = "mz-step"
"""What the threads in which a step computes are called, before their numbers."""

_LAST_ACTS_SECONDS = 3.0

_last_acts: list[Callable[[], object]] = []


def before_exit(act: Callable[[], object]) -> None:
    """Has something done before this process ends, however it does so by itself; it must be safe in any thread."""
    atexit.register(act)
    _last_acts.append(act)


def exit_process(code: int) -> int:
    """Returns the exit code of a process that was interrupted; does not return if threads of a step are left."""
    if not any(one.name.startswith(STEP_THREADS) for one in threading.enumerate()):
        return code
    acts = threading.Thread(target=lambda: [act() for act in _last_acts], daemon=True)
    acts.start()
    acts.join(_LAST_ACTS_SECONDS)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
