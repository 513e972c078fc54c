"""Who computed something, and why: Spark as one collection of a step, or one query, uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from mz_dagster.budget import EngineSetting, engine_setting
from mz_dagster.compute.algebra.operator_costs import OperatorCosts
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.spark.warm_spark import refuse_if_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mz_dagster.storage.shards import Shards

    Opened = tuple[SparkSession, Shards[DataFrame]]


class ComputingTurn(Protocol):
    """Is a turn to compute in this process, which who waits for Spark does without."""

    def give_up(self) -> None:
        """Ends it for now."""

    def resume(self) -> None:
        """Returns once it goes on."""


class SparkUse:
    """Opens Spark when it is used, and remembers what for.

    Args:
        opened: Returns Spark and the shards on it.
        turn: Given up while Spark is waited for; None where nobody takes turns.

    Attributes:
        because: Why Spark was used, each reason once; empty if it was not.
        handovers: How often one engine handed a frame to the other.
        costs: What this process computed meanwhile, operator by operator.
        placements: Who was to compute each subtree, and why, in the order in which that was decided.
    """

    def __init__(self, opened: Callable[[], Opened], turn: ComputingTurn | None = None) -> None:
        self._opened = opened
        self._turn = turn
        self._anew = ""
        self.because: list[str] = []
        self.handovers = 0
        self.costs = OperatorCosts()
        self.placements: list[Placement] = []

    def open(self, why: str = "") -> Opened:
        """Returns Spark and the shards on it.

        Args:
            why: What it is used for; empty for what goes on with what it has begun.

        Raises:
            LeftToSpark: The setting `engine` is `local`.
            OperationalError: Spark cannot be started or reached within its deadline.
        """
        why = why or (self.because[-1] if self.because else "much is read or written")
        refuse_if_local(why)
        if engine_setting() is EngineSetting.SPARK:
            why = 'the setting "engine" is "spark"'
        self.because += [one for one in (why, self._anew) if one and one not in self.because]
        if self._turn is not None:
            self._turn.give_up()
        return self._opened()

    def resume(self) -> None:
        """Returns once this process may compute again; the caller holds no lock that others take meanwhile."""
        if self._turn is not None:
            self._turn.resume()

    def begin_anew(self, opened: Callable[[], Opened], why: str) -> None:
        """Has another Spark used from here on, if it is, and for what reason."""
        self._opened, self._anew = opened, why

    def session(self, why: str = "") -> SparkSession:
        """Returns Spark; see `open`."""
        return self.open(why)[0]
