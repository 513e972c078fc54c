"""Who computes a subtree of a plan, and by which size and which threshold that was decided.

Told in EXPLAIN, in a step's report and in Dagster's metadata.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """Who computes a subtree of a plan, and what decided it.

    Attributes:
        subtree: Its operators, in a few words.
        is_spark: Whether Spark does, or else this process.
        size: By how much that was decided, in updates, of files in bytes or rows; 0 where no size decides.
        most: Up to how much this process computes.
        threshold: What of the budget says so, by name; empty where no size decides.
        why: In words.
    """

    subtree: str
    is_spark: bool
    size: int
    most: int
    threshold: str
    why: str

    @property
    def because(self) -> str:
        """Why it is Spark; empty if it is not."""
        return self.why if self.is_spark else ""

    def __str__(self) -> str:
        """Returns it as a line."""
        return f"{self.subtree}: {'Spark' if self.is_spark else 'this process'}, since {self.why}"
