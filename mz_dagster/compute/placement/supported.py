"""What this process computes of a plan, as far as the plan tells: every operator, and each scalar but for some.

Those that it leaves to Spark are scalars whose last digit depends on the machine (`algebra.evaluable`). Known before
anything runs; what sizes decide is `choice`'s. The answers are in words for people, empty where nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from mz_dagster.compute.algebra.evaluable import is_exact_in_python
from mz_dagster.object_cache import cached_by_object
from mz_dagster.plan.explain import explain_scalar
from mz_dagster.plan.physical import DeltaJoin, Linear, MapFilterProject, Physical, TemporalState, physical_inputs
from mz_dagster.scalars.scalar import Scalar


def unsupported(plan: Physical) -> str:
    """Returns which scalar of a join or a temporal filter Spark evaluates however few rows there are; empty if none."""
    return _left(_matched(plan))


def unsupported_scalar(plan: Physical) -> str:
    """Returns which scalar of a plan's maps Spark evaluates however few rows there are; empty if none."""
    return _left(_mapped(plan))


def unsupported_in(mfp: MapFilterProject) -> str:
    """Returns which scalar of a map, filter and project Spark evaluates however few rows there are; empty if none."""
    return _left(scalar for _, scalar in mfp.steps)


@cached_by_object(most=20_000)
def _matched(plan: Physical) -> tuple[Scalar, ...]:
    """Returns the scalars of a plan's joins and temporal filters."""
    own: tuple[Scalar, ...] = ()
    if isinstance(plan, DeltaJoin):
        own = tuple(chain.from_iterable(plan.equivalences))
    elif isinstance(plan, TemporalState):
        own = (*plan.lower, *plan.upper)
    return (*own, *chain.from_iterable(map(_matched, physical_inputs(plan))))


@cached_by_object(most=20_000)
def _mapped(plan: Physical) -> tuple[Scalar, ...]:
    """Returns the scalars of a plan's maps, filters and projections."""
    own = (scalar for _, scalar in plan.mfp.steps) if isinstance(plan, Linear) else ()
    return (*own, *chain.from_iterable(map(_mapped, physical_inputs(plan))))


def _left(scalars: Iterable[Scalar]) -> str:
    left = next((scalar for scalar in scalars if not is_exact_in_python(scalar)), None)
    return "" if left is None else f"{explain_scalar(left)} is not evaluated in this process"
