"""What a step did, collection by collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from mz_dagster.catalog import NO_ROWS, BatchId, BatchStats
from mz_dagster.compute.algebra.operator_costs import OperatorCost
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.errors import DatabaseError
from mz_dagster.formalism import GlobalId

#: Receives lines that read as the story of a step.
Progress = Callable[[str], None]


class Outcome(Enum):
    """What became of a collection in a step."""

    ADVANCED = "advanced"
    IDLE = "idle"
    CURRENT = "current"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CollectionStep:
    """What a step did with one collection.

    Attributes:
        lower: Its upper before the step.
        upper: Its upper after it.
        stats: What was written; zeros unless it advanced.
        batch: The batch with what was written; None if nothing was.
        rows_in: How many updates the collections that it is defined over have in `[lower, upper)`; all before `upper`
            when it hydrates. Taken from the statistics of their batches, so one that reaches beyond the interval counts
            whole. A source's input is its files, whose records nobody counts: for it this is what it wrote.
        spark_ms: Time spent computing and writing it, in milliseconds; of few rows perhaps in this process.
        rows_read: How many rows the files hold that it read of its inputs and of its own state, each as often as it was
            read.
        operators: What computes it, for people.
        worker: Which worker computed it; 0 if the process that stepped did.
        spark_because: Why Spark computed it or a part of it, each reason once; none if this process did all there was.
        handovers: How often one engine handed updates to the other.
        costs: What each operator cost that this process computed.
        placements: Who computed each subtree, and by which size and which threshold that was decided.
        owner: Of an arrangement: the object that it serves.
        error: Why it failed; None otherwise.
        reason: One line for people.
    """

    id: GlobalId
    name: str
    outcome: Outcome
    lower: int
    upper: int
    stats: BatchStats = NO_ROWS
    batch: BatchId | None = None
    rows_in: int = 0
    spark_ms: float = 0.0
    rows_read: int = 0
    operators: str = ""
    worker: int = 0
    spark_because: tuple[str, ...] = ()
    handovers: int = 0
    costs: tuple[OperatorCost, ...] = ()
    placements: tuple[Placement, ...] = ()
    owner: GlobalId | None = None
    error: DatabaseError | None = None
    reason: str = ""

    @property
    def engine(self) -> str:
        """Which engine computed it, and of Spark why, for people; empty if there was nothing to compute."""
        if self.spark_because:
            return f"Spark: {'; '.join(self.spark_because)}"
        if self.worker:
            return f"worker {self.worker}"
        return "this process" if self.spark_ms else ""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a step did, in the graph's order.

    Attributes:
        engine_ms: Wall time of the whole step, in milliseconds.
    """

    timeline: str
    tick: int
    collections: tuple[CollectionStep, ...]
    engine_ms: float

    @property
    def failures(self) -> tuple[CollectionStep, ...]:
        """The collections that failed; those merely blocked behind them are not listed."""
        return tuple(one for one in self.collections if one.outcome is Outcome.FAILED)

    def of_object(self, id: GlobalId) -> CollectionStep:
        """Returns what the step did with an object's collection, its arrangements' Spark time and reads included."""
        own = next(one for one in self.collections if one.id == id)
        serving = [one for one in self.collections if one.owner == id]
        return replace(
            own,
            spark_because=tuple(dict.fromkeys(why for one in (own, *serving) for why in one.spark_because)),
            placements=tuple(where for one in (*serving, own) for where in one.placements),
            handovers=own.handovers + sum(one.handovers for one in serving),
            spark_ms=own.spark_ms + sum(one.spark_ms for one in serving),
            rows_read=own.rows_read + sum(one.rows_read for one in serving),
        )

    @property
    def had_work(self) -> bool:
        """True if the step computed anything."""
        return any(one.spark_ms for one in self.collections)
