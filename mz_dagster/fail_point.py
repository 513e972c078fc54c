"""Named places at which a test may kill the process.

Every durable write passes exactly one fail point before it and one after it. In production a fail
point costs one dictionary lookup. A crash test sets `MZ_FAIL_POINT=name` (or `name:3` for the third
passage) in the environment of a real process, which then kills itself there with SIGKILL: no
handler, no `finally`, no flush runs, as in a power cut.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "MZ_FAIL_POINT"

#: Every name that the code passes to `fail_point`, in the order of a normal life; crash tests iterate it.
FAIL_POINTS: tuple[str, ...] = (
    "catalog.before_commit",
    "catalog.committed",
    "append.before_reserve",
    "append.inlined",
    "append.reserved",
    "append.written",
    "append.before_seal",
    "seal.in_transaction",
    "seal.sealed",
    "tick.before_mint",
    "tick.minted",
    "compact.before_reserve",
    "compact.inlined",
    "compact.reserved",
    "compact.written",
    "compact.replaced",
    "sweep.before_dead",
    "sweep.dead",
    "sweep.deleted",
    "sweep.forgotten",
)

#: Those of what is written for others, outside of the project's own state; the tests of each kill at its own.
OUTPUT_FAIL_POINTS: tuple[str, ...] = ("copy.written", "sink.written", "sink.committed", "sink.before_seal")

#: Those of files that assets drop into a source's folder.
LANDING_FAIL_POINTS: tuple[str, ...] = ("landing.written", "landing.dropped")

#: Those of shards in a bucket.
BUCKET_FAIL_POINTS: tuple[str, ...] = ("bucket.put", "bucket.committed")

_passages: dict[str, int] = {}


def fail_point(name: str) -> None:
    """Kills this process with SIGKILL if the environment arms the fail point `name`, else does nothing."""
    armed = os.environ.get(VARIABLE)
    if armed is None:
        return
    wanted, _, nth = armed.partition(":")
    if wanted != name:
        return
    _passages[name] = _passages.get(name, 0) + 1
    if _passages[name] >= int(nth or "1"):
        os.kill(os.getpid(), signal.SIGKILL)
