"""Which engine computes a plan, by what it is made of and how much it reads: chosen before anything runs.

The answer is a reason: why it is Spark, for people, or nothing where this process computes. Where more comes of a plan
than could be expected, the operator that finds it declines (`local.declined`), and the subtree is Spark's after all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mz_dagster.budget import budget
from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.placement.supported import unsupported, unsupported_scalar
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import Physical, SharedPlan, collections_read, constant_rows

#: Returns how many updates of a collection there are.
Rows = Callable[[GlobalId], int]


def why_spark(plan: Physical) -> str:
    """Returns what of a plan is computed by Spark in a step however little there is; empty if nothing is."""
    return unsupported(plan) or unsupported_scalar(plan)


def why_spark_in_step(plan: Physical, lower: int, changed: Rows) -> str:
    """Returns why a plan's updates of an interval are computed by Spark; empty if this process does.

    Args:
        plan: The plan, or a part of one.
        lower: The beginning of the interval.
        changed: The updates in the interval.
    """
    if lower <= FIRST_TIME:
        return "the interval begins with the first time"
    rows = sum(map(changed, collections_read(plan)))
    # What is handed to Spark for its scalars may as well be left to it.
    most = budget().evaluated_updates if unsupported_scalar(plan) else budget().read_in_step
    if rows > most:
        return f"{rows} updates changed, more than {most}"
    return unsupported(plan)


def why_spark_from_start(plan: Physical, shared: Sequence[SharedPlan], stored: Rows) -> str:
    """Returns why all updates of a plan are computed by Spark; empty if this process does.

    Args:
        plan: The plan.
        shared: What it reads beside collections, and these before it.
        stored: The updates that are read of a collection.
    """
    plans = [*(one.plan for one in shared), plan]
    read = dict.fromkeys(id for one in plans for id in sorted(collections_read(one)))
    rows = sum(stored(id) for id in read if id not in {one.id for one in shared}) + sum(map(constant_rows, plans))
    most = budget().evaluated_updates if any(map(unsupported_scalar, plans)) else budget().read_from_start
    if rows > most:
        return f"{rows} updates are read, more than {most}"
    return next(filter(None, map(unsupported, plans)), "")


def may_be_little(read: int, *, is_first: bool) -> bool:
    """Returns whether little is likely to be made of `read` rows, by which a collection may be made first."""
    return read <= (budget().first_updates if is_first else budget().written_updates)
