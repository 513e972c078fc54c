"""What is said of a collection in a step: that it advanced, was idle, is current, waits, or failed."""

from __future__ import annotations

from dataclasses import replace

from mz_dagster.catalog import BatchStats
from mz_dagster.compute.step.advance import Advance
from mz_dagster.compute.step.graph import FailedNode, Node, SourceNode, owner_of
from mz_dagster.compute.step.report import CollectionStep, Outcome
from mz_dagster.compute.step.run import StepRun
from mz_dagster.errors import one_line


def step_of(node: Node, outcome: Outcome, lower: int, upper: int) -> CollectionStep:
    """Returns what is said of a collection of which nothing was computed."""
    return CollectionStep(node.id, node.name, outcome, lower, upper, operators=node.operators, owner=owner_of(node))


def without_work(node: Node, run: StepRun) -> CollectionStep | None:
    """Returns what is said of a collection for which nothing is to be computed; None if something is.

    It cannot advance, as its inputs are, or only moves its upper, as nothing happened meanwhile.
    """
    lower, upper = run.rows[node.id].upper.only, run.target(node)
    if upper <= lower:
        return behind(node, run)
    if run.has_work(node, lower, upper):
        return None
    return replace(step_of(node, Outcome.IDLE, lower, upper), rows_in=run.rows_in(node, lower, upper))


def behind(node: Node, run: StepRun) -> CollectionStep:
    """Returns what is said of a collection that does not advance: it is current, or waits for an input."""
    upper = run.rows[node.id].upper.only
    if upper > run.tick:
        return step_of(node, Outcome.CURRENT, upper, upper)
    held = [run.graph.by_id[input].name for input in node.inputs if run.upper_of(input) <= upper]
    reason = "waits for " + ", ".join(f'"{name}"' for name in sorted(held))
    return replace(step_of(node, Outcome.BLOCKED, upper, upper), reason=reason)


def known_to_fail(node: FailedNode, upper: int, run: StepRun) -> CollectionStep:
    """Returns what is said of a collection that was known to fail; of an object and its arrangements, of the object."""
    if upper > run.tick:
        return step_of(node, Outcome.CURRENT, upper, upper)
    if node.owner is not None:
        reason = f'waits for "{run.graph.by_id[node.owner].name}"'
        return replace(step_of(node, Outcome.BLOCKED, upper, upper), reason=reason)
    return replace(step_of(node, Outcome.FAILED, upper, upper), error=node.error, reason=one_line(node.error))


def advanced(advance: Advance, stats: BatchStats, rows_read: int, ms: float, worker: int = 0) -> CollectionStep:
    """Returns what is said of a collection that was computed, and tells it as a line of the step's story.

    Args:
        advance: How it was.
        stats: What was written.
        rows_read: How many rows were read for that.
        ms: How long it took, in milliseconds.
        worker: Which worker did, if it was not the process that steps.
    """
    run, node, spark = advance.run, advance.node, advance.spark
    in_worker = f" in worker {worker}" if worker else ""
    done_by = f" by Spark: {'; '.join(spark.because)}" if spark.because else in_worker
    advance.progress(f"{advance.interval}: wrote {stats.rows} updates in {ms / 1000:.1f} s{done_by}")
    return replace(
        step_of(node, Outcome.ADVANCED, advance.lower, advance.upper),
        stats=stats,
        batch=run.written.get(node.id),
        rows_in=stats.rows if isinstance(node, SourceNode) else run.rows_in(node, advance.lower, advance.upper),
        spark_ms=ms,
        rows_read=rows_read,
        worker=worker,
        spark_because=tuple(spark.because),
        handovers=spark.handovers,
        costs=tuple(spark.costs.found),
        placements=tuple(spark.placements),
    )
