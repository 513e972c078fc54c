"""What each operator of a plan costs that this process computes: how long, and how many updates it makes.

What Spark computes is one plan to it, whose operators it runs as it sees fit: only the whole has a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from mz_dagster.clock import SYSTEM_CLOCK
from mz_dagster.plan.operators import operator_name
from mz_dagster.plan.physical import Physical

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """What one operator did.

    Attributes:
        operator: Its name, and what it does it by.
        ms: How long that took, without its inputs, in milliseconds.
        updates: How many updates it made.
    """

    operator: str
    ms: float
    updates: int


class OperatorCosts:
    """Measures operators that compute within each other.

    Attributes:
        found: What was measured, inputs first.
    """

    def __init__(self) -> None:
        self.found: list[OperatorCost] = []
        self._inputs_ms = 0.0

    def measured(self, node: Physical, compute: Callable[[], F | None]) -> F | None:
        """Returns what an operator computes, and notes what that costs."""
        begun, others_ms = SYSTEM_CLOCK.monotonic_ms(), self._inputs_ms
        self._inputs_ms = 0.0
        try:
            made = compute()
        finally:
            whole_ms = SYSTEM_CLOCK.monotonic_ms() - begun
            own_ms, self._inputs_ms = whole_ms - self._inputs_ms, others_ms + whole_ms
        updates = made.num_rows if isinstance(made, pa.Table) else 0
        self.found.append(OperatorCost(operator_name(node), max(0.0, own_ms), updates))
        return made
