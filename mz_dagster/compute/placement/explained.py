"""Which engine computes a maintained plan in a step, as far as the plan tells: the last line of EXPLAIN."""

from __future__ import annotations

from mz_dagster.budget import EngineSetting, budget, engine_setting
from mz_dagster.compute.placement.choice import why_spark
from mz_dagster.plan.physical import MaintainedPlan


def placement(plan: MaintainedPlan) -> str:
    """Returns which engine computes a plan's output and arrangements, and why, as a line."""
    setting = engine_setting()
    if setting is EngineSetting.SPARK:
        return 'engine: Spark, as the setting "engine" is "spark"'
    if setting is EngineSetting.LOCAL:
        return 'engine: this process, as the setting "engine" is "local"'
    own = [(one.id, one.plan) for one in plan.arrangements]
    left = {name: why for name, one in (*own, ("output", plan.output)) if (why := why_spark(one))}
    little = f"this process, up to {budget().read_in_step} changed updates in a step; Spark beyond"
    if not left:
        return f"engine: {little}"
    told = "; ".join(f"{name}: Spark, since {why}" for name, why in left.items())
    others = len(left) <= len(own)
    return f"engine: {told}" + (f"; others: {little}" if others else "")
