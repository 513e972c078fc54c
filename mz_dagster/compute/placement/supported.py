"""What this process computes of a plan, as far as the plan tells: every operator, and each scalar but for some.

Those that it leaves to Spark are scalars whose last digit depends on the machine (`algebra.evaluable`). Known before
anything runs; what sizes decide is `choice`'s. The answers are in words for people, empty where nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.plan.explain import explain_scalar
from mz_dagster.plan.physical import DeltaJoin, Linear, MapFilterProject, Physical, TemporalState, physical_inputs
from mz_dagster.scalars.scalar import Scalar


def unsupported(plan: Physical) -> str:
    """Returns which scalar of a join or a temporal filter Spark evaluates however few rows there are; empty if none."""
    match plan:
        case DeltaJoin():
            own = _left(scalar for equivalence in plan.equivalences for scalar in equivalence)
        case TemporalState():
            own = _left((*plan.lower, *plan.upper))
        case _:
            own = ""
    return own or next(filter(None, map(unsupported, physical_inputs(plan))), "")


def unsupported_scalar(plan: Physical) -> str:
    """Returns which scalar of a plan's maps Spark evaluates however few rows there are; empty if none."""
    own = unsupported_in(plan.mfp) if isinstance(plan, Linear) else ""
    return own or next(filter(None, map(unsupported_scalar, physical_inputs(plan))), "")


def unsupported_in(mfp: MapFilterProject) -> str:
    """Returns which scalar of a map, filter and project Spark evaluates however few rows there are; empty if none."""
    return _left(scalar for _, scalar in mfp.steps)


def _left(scalars: Iterable[Scalar]) -> str:
    left = next((scalar for scalar in scalars if not is_exact_in_python(scalar)), None)
    return "" if left is None else f"{explain_scalar(left)} is not evaluated in this process"
