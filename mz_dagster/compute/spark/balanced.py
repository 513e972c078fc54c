"""Trees that are as flat as can be, of columns or of frames that are connected in their order.

What Spark is sent may not be deep: fifty calls within one another are more than protobuf's parser takes, and Spark's
planner walks by recursion. Whatever a plan has many of is connected by these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mz_dagster.storage.late_pyspark import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column

T = TypeVar("T")


def balanced(connect: Callable[[T, T], T], parts: Sequence[T]) -> T:
    """Returns parts, at least one, connected in their order by what is associative.

    Example:
        >>> balanced(lambda left, right: f"({left}{right})", "abcde")
        '(((ab)(cd))e)'
    """
    left = list(parts)
    while len(left) > 1:
        pairs = [connect(one, other) for one, other in zip(left[::2], left[1::2], strict=False)]
        left = [*pairs, *left[len(pairs) * 2 :]]
    return left[0]


class Branches:
    """A CASE that is being written: `default` where no condition is true; no deeper however many there are."""

    def __init__(self, default: Column) -> None:
        self.default = default
        self._branches: list[tuple[Column, Column]] = []

    def when(self, condition: Column, value: Column) -> None:
        """Adds a branch behind those before."""
        self._branches.append((condition, value))

    def otherwise(self) -> Column:
        """Returns the whole."""
        if not self._branches:
            return self.default
        (condition, value), *others = self._branches
        case = sf.when(condition, value)
        for condition, value in others:
            case = case.when(condition, value)
        return case.otherwise(self.default)
