"""Whether a step still leads its timeline, asked now and then."""

from __future__ import annotations

from mz_dagster.catalog import Catalog, Leadership
from mz_dagster.clock import Clock

#: How long a step goes on by the last answer: to ask before each of 165 small collections took a fifteenth of their
#: step. A seal asks in its own transaction.
_FOR_MS = 100


class LeadWatch:
    """Tells a step when somebody else has taken the lead, ten times a second at most. Safe from several threads.

    Args:
        catalog: The catalog.
        leadership: What the step was begun under.
        clock: The clock.
    """

    def __init__(self, catalog: Catalog, leadership: Leadership, clock: Clock) -> None:
        self._catalog = catalog
        self.leadership = leadership
        self._clock = clock
        self._asked_at: float | None = None

    def is_over(self) -> bool:
        """Returns whether somebody else has led since."""
        now = self._clock.monotonic_ms()
        if self._asked_at is not None and now < self._asked_at + _FOR_MS:
            return False
        if not self._catalog.is_leading(self.leadership):
            return True
        self._asked_at = now
        return False
