"""What tests say of the budget: how much is little (`mz_dagster.budget`)."""

from __future__ import annotations

from typing import Protocol

from mz_dagster.budget import Budget


class SetBudget(Protocol):
    """Sets thresholds of the budget in force until the end of a test; the fixture `set_budget` is one."""

    def __call__(self, whole: Budget | None = None, /, **thresholds: int) -> None:
        """Sets all thresholds to those of `whole`, and those that are named to what is said."""
        ...
