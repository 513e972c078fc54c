"""How far Spark is with what a thread waits for: how many of its tasks are done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mz_dagster.progress import current_task

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import StageInfo


def tell_tasks(stages: Iterable[StageInfo] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
    """Adds what Spark says of an operation to the innermost task of the thread that waits for it.

    Spark Connect calls it every two seconds. It knows of the stages that have begun, and of those that they lead to.
    """
    task = current_task()
    counts = [(one.num_completed_tasks, one.num_tasks) for one in stages or ()]
    if task is not None and counts:
        of = sum(tasks for _, tasks in counts)
        task.advance_share(operation_id or "", of if done else sum(completed for completed, _ in counts), of)
