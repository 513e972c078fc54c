"""The limit of a project on what a step may have Spark plan, held where objects are created.

What is there already goes on when the limit is lowered, or a release counts otherwise: only what is new is refused.
"""

from __future__ import annotations

from mz_dagster.adapter.definition import Definition
from mz_dagster.adapter.project import Project
from mz_dagster.budget import EngineSetting
from mz_dagster.plan.plan_size import ensure_plannable


def ensure_within_limit(definition: Definition, project: Project) -> None:
    """Raises PlanTooLarge if a step of what is defined would have Spark plan more than the project's settings allow."""
    if definition.plan is not None and project.engine is not EngineSetting.LOCAL:
        ensure_plannable(definition.plan, definition.name, project.spark.plan_operators)
