"""Which engine computes a plan, by what it is made of and how much it reads: chosen before anything runs.

The answer is a `Placement`, which has the size and the threshold that decided, for people, too. Where more comes of a
plan than could be expected, the operator that finds it declines (`local.declined`), and the subtree is Spark's after
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mz_dagster.budget import EngineSetting, budget, engine_setting
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.placement.portioned import held_whole
from mz_dagster.compute.placement.supported import unsupported, unsupported_scalar
from mz_dagster.formalism import GlobalId
from mz_dagster.object_cache import cached_by_object
from mz_dagster.plan.operators import operators
from mz_dagster.plan.physical import Physical, SharedPlan, collections_read, constant_rows, reads_of

#: Returns how many updates of a collection there are.
Rows = Callable[[GlobalId], int]

#: How many inputs a plan is told by.
_FEW = 4


def why_spark(plan: Physical) -> str:
    """Returns what of a plan is computed by Spark in a step however little there is; empty if nothing is."""
    return unsupported(plan) or unsupported_scalar(plan)


def placed_in_step(plan: Physical, lower: int, changed: Rows) -> Placement:
    """Returns who computes a plan's updates of an interval.

    Args:
        plan: The plan, or a part of one.
        lower: The beginning of the interval.
        changed: The updates in the interval.
    """
    rows = sum(map(changed, collections_read(plan)))
    # What is handed to Spark for its scalars may as well be left to it.
    most, name = _most(budget().read_in_step, "step_times", has_left=bool(unsupported_scalar(plan)))
    if lower <= FIRST_TIME:
        return Placement(_told(plan), True, rows, most, name, "the interval begins with the first time")
    return _placed(plan, rows, "changed", most, name, unsupported(plan))


def placed_from_start(plan: Physical, shared: Sequence[SharedPlan], stored: Rows) -> Placement:
    """Returns who computes all updates of a plan.

    Args:
        plan: The plan.
        shared: What it reads beside collections, and these before it.
        stored: The updates that are read of a collection.
    """
    plans = [*(one.plan for one in shared), plan]
    read = dict.fromkeys(id for one in plans for id in sorted(collections_read(one)))
    sizes = {id: stored(id) for id in read if id not in {one.id for one in shared}}
    rows = sum(sizes.values()) + sum(map(constant_rows, plans))
    has_left = any(map(unsupported_scalar, plans))
    most, name = _most(budget().read_from_start, "first_times", has_left=has_left)
    if rows > most and not has_left:
        held = frozenset[GlobalId]().union(*(held_whole(one, lambda id: sizes.get(id, 0)) for one in plans))
        if sum(sizes[id] for id in sizes if id in held) <= most:
            most, name = _most(budget().read_in_portions, "portion_times", has_left=False)
    return _placed(plan, rows, "are read", most, name, next(filter(None, map(unsupported, plans)), ""))


@cached_by_object(most=20_000)
def _told(plan: Physical) -> str:
    """Returns a plan's operators and what they read, in a few words."""
    shown = operators(plan)
    names = list(dict.fromkeys(str(one.name or one.id) for one in reads_of(plan)))
    more = ", ..." if len(names) > _FEW else ""
    return shown if shown.startswith("Read ") or not names else f"{shown} over {', '.join(names[:_FEW])}{more}"


def _most(most: int, times: str, *, has_left: bool) -> tuple[int, str]:
    """Returns the threshold for a plan, and how the budget calls it."""
    return (budget().evaluated_updates, "evaluated_updates") if has_left else (most, f"evaluated_updates * {times}")


def _placed(plan: Physical, rows: int, what: str, most: int, name: str, left: str) -> Placement:
    sizes = f"{rows} updates {what}, {'more than' if rows > most else 'at most'} {most} ({name})"
    setting = engine_setting()
    if (rows > most or not left) and setting is not EngineSetting.AUTO:
        # The thresholds are none then that anybody chose.
        sizes = f'the setting "engine" is "{setting.value}"'
    is_spark = rows > most or bool(left)
    return Placement(_told(plan), is_spark, rows, most, name, sizes if rows > most or not left else left)


def may_be_little(read: int, *, is_first: bool) -> bool:
    """Returns whether little is likely to be made of `read` rows, by which a collection may be made first."""
    return read <= (budget().first_updates if is_first else budget().written_updates)
