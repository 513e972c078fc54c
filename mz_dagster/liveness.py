"""Which process this is, told so that others can find out whether it still runs.

A lease says who holds it, and who meets it asks whether that process is dead. Only what is certain counts: it ran under
the same boot of the same kernel and in the same namespace of process numbers, and no process has its number any more,
or one that started at another moment, or what is left of it is a zombie. Of processes elsewhere, in another container
for example, nobody knows, and their leases are waited for; one that is paused is alive. A wrong answer would cost the
holder its work and nothing else, since epochs decide what is safe.

It is for Linux, which tells all this in `/proc`; elsewhere no process is known, and none is dead.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


def this_process() -> str | None:
    """Returns what tells this process from all others, for `is_dead`; None where that cannot be told."""
    return _identity(os.getpid())


@cache
def _identity(pid: int) -> str | None:
    place, started = _place(), state_and_start(pid)
    return None if place is None or started is None else f"{place} {pid} {started[1]}"


def is_dead(process: str | None) -> bool:
    """Returns whether a process, as `this_process` told it, certainly does not run any more.

    Example:
        >>> is_dead(this_process()), is_dead(None), is_dead("of another machine 7 1")
        (False, False, False)
    """
    if process is None:
        return False
    place, number, started = ["", "", *process.rsplit(" ", 2)][-3:]
    if place != _place() or not number.isdecimal():
        return False
    pid = int(number)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # there it is, and of another user
    found = state_and_start(pid)
    if found is None:
        return False  # it may be hidden
    state, start = found
    return start != started or (state in "ZX" and _threads(pid) <= 1)


def state_and_start(pid: int) -> tuple[str, str] | None:
    """Returns the state of a process, and when it started in ticks since the boot."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # a program's name may hold anything
    return (fields[0], fields[19]) if len(fields) > 19 else None


def _place() -> str | None:
    """Returns the host, the boot of its kernel and the namespace in which this process has its number."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return None
    return f"{socket.gethostname()} {boot} {namespace}"


def _threads(pid: int) -> int:
    """Returns how many threads a process has; the first may be over before the others are."""
    try:
        return len(os.listdir(_PROC / str(pid) / "task"))
    except OSError:
        return 0
