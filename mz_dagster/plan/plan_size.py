"""How large a plan is for whoever plans it: known before anything runs, and refused where it is too large.

Spark's planner takes time and memory for each operator. A view is computed in this process while it is small, so what
Spark would not get done is found out when the view is created, not when it has grown.

    of a join of n inputs     n terms: the updates of one input, looked up in each of the others
    of anything else          itself, and what it reads

Cost: one walk over the plan.
"""

from __future__ import annotations

from mz_dagster.errors import NotSupportedError
from mz_dagster.plan.operators import operators
from mz_dagster.plan.physical import DeltaJoin, MaintainedPlan, Physical, physical_inputs


class PlanTooLarge(NotSupportedError):
    """A plan that is larger than what Spark is given to plan."""

    sqlstate = "54001"

    def of(self, computed: str) -> PlanTooLarge:
        """Returns the error that says what was to be computed, too."""
        return PlanTooLarge(f"the plan is too large for Spark: {computed}", detail=self.detail, hint=self.hint)


def planned_operators(plan: Physical) -> int:
    """Returns how many operators Spark plans for the updates of a collection, when all that it reads has changed.

    Example:
        >>> from mz_dagster.formalism import GlobalId
        >>> from mz_dagster.plan.physical import ReadCollection
        >>> from mz_dagster.scalars.types import Column, INT4, RelationType
        >>> t = ReadCollection(GlobalId("u1"), RelationType((Column("a", INT4),)), "t")
        >>> planned_operators(DeltaJoin((t, t, t), (), (), RelationType((Column("a", INT4),) * 3)))
        15
    """
    inputs = [planned_operators(one) for one in physical_inputs(plan)]
    if isinstance(plan, DeltaJoin):
        return len(inputs) * (sum(inputs) + len(inputs) - 1)
    return 1 + sum(inputs)


def ensure_plannable(plan: MaintainedPlan, name: str, most: int) -> None:
    """Raises PlanTooLarge where Spark would have more operators to plan for one collection of an object than `most`.

    Args:
        plan: What maintains the object.
        name: The object's.
        most: The setting `spark.plan_operators`.
    """
    for one in (*(each.plan for each in plan.arrangements), plan.output):
        count = planned_operators(one)
        if count > most:
            raise PlanTooLarge(
                f'the plan of "{name}" is too large for Spark: {operators(one)}',
                detail=f"A step would have it plan {count} operators at once, and the limit is {most}.",
                hint="Create materialized views of parts of it and read those. Or raise "
                '"spark.plan_operators" in mz.toml, or have this process compute everything: engine = "local".',
            )
