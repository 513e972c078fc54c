"""SUBSCRIBE to what the catalog's own relations say: its query is executed again every second.

These relations have no history (`introspection`), so that nothing tells what changed in them: the difference of what
the query returned last and returns now is told, at the oracle's time at which it was executed. At each time that is
told, the rows that were told so far are what the query returned then; what came and went between two of them is not
told. What it reads beside them it reads at that time, exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import chain

from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.result import Result, Rows
from mz_dagster.adapter.subscribe_envelopes import Envelope, Row
from mz_dagster.adapter.timestamps import AsOfTime
from mz_dagster.adapter.watched_rows import WatchedRows
from mz_dagster.formalism import GlobalId

_EVERY_S = 1.0
"""How often the query is executed, in seconds."""


class PolledRows(WatchedRows):
    """The rows of such a subscription; see `RowStream`.

    Args:
        engine: The project.
        timeline: The timeline at whose times changes are told.
        execute: Executes the query at a time.
        envelope: How changes are told.
        snapshot: Whether the first rows are told.
        up_to: The first time that is not told; None to go on for good.
        session: The number of the session whose it is.
    """

    def __init__(
        self,
        engine: Engine,
        timeline: str,
        execute: Callable[[AsOfTime], Result],
        envelope: Envelope,
        *,
        snapshot: bool,
        up_to: int | None,
        session: int | None,
    ) -> None:
        super().__init__(engine.clock)
        self.session = session
        self.frontier: int | None = None
        self._engine = engine
        self._timeline = timeline
        self._execute = execute
        self._envelope = envelope
        self._tells = snapshot
        self._up_to = up_to
        self._sent: dict[str, tuple[Row, int]] = {}
        self._executed_ms = -math.inf
        self._number = engine.activity.begin_subscription(self)

    @property
    def collection(self) -> GlobalId | None:
        """None: it listens to no collection."""
        return None

    def close(self) -> None:
        """Ends the subscription."""
        self._is_closed = True
        self._engine.activity.end(self._number)

    def _look(self) -> Rows | None:
        if self._clock.monotonic_ms() - self._executed_ms < _EVERY_S * 1000:
            return ()
        found = self._changes()
        self._executed_ms = self._clock.monotonic_ms()
        return found

    def _changes(self) -> Rows | None:
        """Returns the rows that tell what has changed, if time has moved on; None at the end."""
        catalog, timeline = self._engine.catalog, self._timeline
        time = catalog.read_ts(timeline) if catalog.is_read_only else self._engine.reading_time(timeline)
        if self._up_to is not None and time >= self._up_to:
            return None
        if self.frontier is not None and time < self.frontier:
            return ()
        if not catalog.is_read_only:
            catalog.apply_write(timeline, time)  # what is written from here on is later
        rows = self._execute(AsOfTime(time)).rows
        # Equal numbers may be written differently: rows are the same if all of them is.
        counts = Counter(map(repr, rows))
        now = {repr(row): (row, counts[repr(row)]) for row in rows}
        changes = [
            (now.get(key, self._sent.get(key, ((), 0)))[0], diff)
            for key in dict.fromkeys(chain(self._sent, now))
            if (diff := now.get(key, ((), 0))[1] - self._sent.get(key, ((), 0))[1])
        ]
        told = list(self._envelope.rows(time, changes)) if self._tells and changes else []
        if self._envelope.with_progress:
            told.append(self._envelope.progress(time + 1))
        self._sent, self._tells, self.frontier = now, True, time + 1
        return tuple(told)
