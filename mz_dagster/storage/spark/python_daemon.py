"""The parent of Spark's Python workers, as a module for Spark to run: it ends when it has had none for a while.

Spark starts a parent for each Connect session that runs functions in Python and keeps it as long as the server runs,
though sessions come and go with every run of a step: forty megabytes each. One that has ended is started again when
its session wants a worker; a connection that meets its end is refused or reset, for which Spark does the same.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

#: How long a parent without workers stays, in seconds; Spark lets its workers go after a minute without work.
IDLE_SECONDS = 60


def _end_if_idle(_number: int, _frame: FrameType | None) -> None:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        os._exit(0)
    signal.alarm(IDLE_SECONDS)


if __name__ == "__main__":
    from pyspark.daemon import manager

    signal.signal(signal.SIGALRM, _end_if_idle)
    signal.alarm(IDLE_SECONDS)
    manager()
