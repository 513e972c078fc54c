"""A history: what several processes asked of one project and were told, each with the times of question and answer.

Processes append lines to one file; a line is small and written at once, so they need no lock. Times are those of the
one clock of the machine, which leases use too: an event that was answered before another was invoked happened before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mz_dagster.clock import SYSTEM_CLOCK, Clock

Frontier = int | None
"""The one time of a frontier; None for `{}`."""

Row = str


@dataclass
class Event:
    """Is an operation of a process, with its answer.

    Attributes:
        process: Who asked.
        operation: `append`, `read`, `frontiers`, `hold`, `downgrade`, `renew`, `release`, `lead` or `drop`.
        invoked: When, in milliseconds.
        returned: When the answer came; None if it never did.
        collection: Which one it is about.
        answer: `done`, `contents`, `before since`, `beyond upper`, `refused`; None if it is not known what happened.
        time: Of a read.
        lower: Of an append.
        upper: Of an append, or the one that was told.
        since: That was told.
        updates: Of an append: row, time, diff. Rows are unique to their append, but for those that it retracts.
        contents: Of a read.
        token: The capability that was used, or handed out.
        frontier: Where a capability was taken or moved to.
        until: When the capability that was given or renewed ends.
        epoch: Of a leadership that was won, or under which was appended.
    """

    process: str
    operation: str
    invoked: int
    returned: int | None = None
    collection: str = ""
    answer: str | None = None
    time: int = 0
    lower: Frontier = 0
    upper: Frontier = 0
    since: Frontier = 0
    updates: list[tuple[Row, int, int]] = field(default_factory=list)
    contents: dict[Row, int] = field(default_factory=dict)
    token: str | None = None
    frontier: Frontier = 0
    until: int | None = None
    epoch: int | None = None

    def precedes(self, other: Event) -> bool:
        """Returns whether this was answered before the other was asked."""
        return self.returned is not None and self.returned < other.invoked

    def __str__(self) -> str:
        """Returns the operation in words."""
        who = f"{self.process} at {self.invoked}"
        match self.operation:
            case "append":
                return f"the append of [{self.lower}, {self.upper}) to {self.collection} by {who}"
            case "read":
                return f"the read of {self.collection} at time {self.time} by {who}"
            case "frontiers":
                return f"the look at the frontiers of {self.collection} by {who}"
            case _:
                return f"the {self.operation} of {self.token or self.collection} by {who}"


class Recorder:
    """Writes the events of one process."""

    def __init__(self, path: Path, process: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._process, self._clock = process, clock

    @contextmanager
    def event(self, operation: str, collection: str, **facts: Any) -> Iterator[Event]:
        """Records what happens in the block; the block fills in the answer. An error leaves it unknown."""
        one = Event(self._process, operation, self._clock.now_ms(), None, collection, **facts)
        try:
            yield one
        finally:
            self.write(one)

    def write(self, event: Event) -> None:
        """Records an event that ends now."""
        event.returned = self._clock.now_ms()
        os.write(self._file, f"{json.dumps(asdict(event))}\n".encode())


def history(path: Path) -> list[Event]:
    """Returns the events of a file."""
    lines = path.read_text().splitlines()
    return [Event(**{**line, "updates": [tuple(one) for one in line["updates"]]}) for line in map(json.loads, lines)]
