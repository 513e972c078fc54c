"""Who computes each subtree of a maintained plan, and by which size and threshold: the end of EXPLAIN.

Sizes are those that the catalog knows now. Who computes is decided anew each time, by what is there then: of a first
load by what is stored, of a step by what changed. How much will change nobody knows, so EXPLAIN tells of a step like
the last one, in which as many updates change of each input as its newest batch has. What it cannot tell it says.

Where Spark computes a step, it is asked of each join, and of what is grouped unless that is linear, whether this
process does: that is handed over. All of a first load is one engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mz_dagster.budget import Budget, EngineSetting, budget, engine_setting
from mz_dagster.compute.algebra.placed import Placement
from mz_dagster.compute.algebra.times import FIRST_TIME
from mz_dagster.compute.placement.choice import placed_from_start, placed_in_step
from mz_dagster.compute.placement.supported import unsupported_in, unsupported_scalar
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.operators import operator_name
from mz_dagster.plan.physical import (
    Accumulate,
    DeltaJoin,
    Linear,
    MaintainedPlan,
    Physical,
    SharedPlan,
    Staged,
    is_linear,
    physical_inputs,
    reads_of,
)

#: By what an operator of this process finds that it makes or reads more than was to be expected.
_WHILE_COMPUTING = (
    "frame_rows",
    "joined_rows",
    "made_rows",
    "versioned_rows",
    "scalar_rows",
    "decoded_cells",
    "fetched_rows",
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is of a collection.

    Attributes:
        rows: The updates that are stored.
        bytes: Their bytes; None if they are estimated.
        newest: The updates of the newest batch; None if there is none.
    """

    rows: int
    bytes: int | None
    newest: int | None

    def __str__(self) -> str:
        """Returns it in words."""
        of_bytes = "" if self.bytes is None else f" of {self.bytes} bytes"
        newest = "no batch yet" if self.newest is None else f"{self.newest} in the newest batch"
        return f"{'about ' if self.bytes is None else ''}{self.rows} updates{of_bytes}, {newest}"


def placement(
    plan: MaintainedPlan, size: Callable[[GlobalId], Size | None], expected: Mapping[str, int], *, is_query: bool
) -> str:
    """Returns who computes each subtree of a plan, and why, as lines.

    Args:
        plan: The plan.
        size: Returns how much there is of a collection; None if it is not there yet.
        expected: About how many updates each arrangement will have.
        is_query: Whether it is a query, which is computed at once when it is asked.
    """
    setting = engine_setting()
    parts = [(str(one.id), one.plan) for one in plan.arrangements] + [("output", plan.output)]
    sizes: dict[GlobalId, Size] = {}
    names: dict[GlobalId, str] = {}
    for _, part in parts:
        for one in reads_of(part):
            names[one.id] = str(one.name or one.id)
            sizes[one.id] = size(one.id) or Size(expected.get(str(one.id), 0), None, None)
    newest = {id: one.newest for id, one in sizes.items() if one.newest is not None}
    for made in plan.arrangements:  # what is not there yet will change about as what it is made of does
        newest.setdefault(made.id, sum(newest.get(one.id, 0) for one in reads_of(made.plan)))

    def stored(id: GlobalId) -> int:
        return sizes[id].rows

    def changed(id: GlobalId) -> int:
        return newest.get(id, 0)

    lines = [f"engine: {setting.value}{'' if setting is EngineSetting.AUTO else ', for all that it has'}", "sizes:"]
    lines += [f"  {names[id]}: {one}" for id, one in sizes.items()] or ["  nothing is read"]
    if is_query:
        shared = [SharedPlan(one.id, one.plan) for one in plan.arrangements]
        lines += ["as a query, all of it:", f"  {placed_from_start(plan.output, shared, stored)}"]
    lines.append("maintained, in a first load:")
    for name, part in parts:
        found = placed_from_start(part, (), stored)
        lines += [f"  {name}, {found}", *([] if found.is_spark else _handed(part, 2))]
    lines.append("maintained, in a step in which as much changes as the newest batch of each input has:")
    for name, part in parts:
        placed = list(_in_step(part, changed, 1))
        lines += [f"{'  ' * depth}{f'{name}, ' if depth == 1 else 'of it, '}{line}" for depth, line in placed]
    lines.append(f"decided while it is computed, by what is found: {_limits(budget())}")
    return "\n".join(lines)


def _limits(own: Budget) -> str:
    return ", ".join(f"{name} {getattr(own, name)}" for name in _WHILE_COMPUTING)


def _in_step(plan: Physical, changed: Callable[[GlobalId], int], depth: int) -> Iterator[tuple[int, Placement | str]]:
    """Yields who computes a plan in a step, and each part of it that the other engine is asked for, indented."""
    placed = placed_in_step(plan, FIRST_TIME + 1, changed)
    yield depth, placed
    if not placed.is_spark:
        yield from ((depth + 1, line.strip().removeprefix("of it, ")) for line in _handed(plan, depth + 1))
        return
    for part in _asked(plan):
        yield from _in_step(part, changed, depth + 1)


def _asked(plan: Physical) -> Sequence[Physical]:
    """Returns the parts below a plan that this process is asked for, as Spark walks it (`walk.operators`).

    Below each of them it is asked again if it does not compute that.
    """
    found: list[Physical] = []
    for one in physical_inputs(plan):
        is_grouped = isinstance(plan, Accumulate | Staged) and not is_linear(one)
        found += [one] if isinstance(one, DeltaJoin) or is_grouped else _asked(one)
    return found


def _handed(plan: Physical, depth: int) -> list[str]:
    """Returns what this process hands to Spark of a plan that it computes, however little it is, as lines."""
    found: list[str] = []
    if not unsupported_scalar(plan):
        return found
    if isinstance(plan, Linear) and (why := unsupported_in(plan.mfp)):
        found.append(f"{'  ' * depth}of it, {operator_name(plan)}: Spark, a handover, since {why}")
    for one in physical_inputs(plan):
        found += _handed(one, depth)
    return found
