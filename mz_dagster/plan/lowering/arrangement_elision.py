"""Arrangements that save nothing: what is only passed on, in a single collection, is computed there, once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.lowering.fusion import linear_over
from mz_dagster.plan.physical import (
    Arrangement,
    DeltaJoin,
    Linear,
    Physical,
    ReadCollection,
    collections_read,
    physical_inputs,
    with_physical_inputs,
)

#: Of how many operators what is computed in another collection may come to consist there, wherever that reads it: of
#: views that read others twice each has twice the operators of those.
_MOST_COMPUTED = 200


def elide_arrangements(
    arrangements: Sequence[Arrangement], candidates: Collection[GlobalId], output: Physical
) -> tuple[tuple[Arrangement, ...], Physical]:
    """Returns a plan without those `candidates` that no join looks up and that only one collection reads.

    And without arrangements that nothing reads: of what is bound to be shared, and used where nothing ever comes. Each
    other one is computed in the collection that reads it, whose renderer computes equal joins once. The arrangements
    that are left are numbered anew.

    Args:
        arrangements: In dependency order.
        candidates: Those that are there only because their plan occurs several times.
        output: What reads them.
    """
    kept = list(arrangements)
    read = {one.id: collections_read(one.plan) for one in kept}
    for one in reversed(arrangements):
        at = kept.index(one)
        readers = [number for number, other in enumerate(kept) if one.id in read[other.id]]
        plans = [*(kept[number].plan for number in readers), *([output] if one.id in collections_read(output) else [])]
        if not plans:
            del kept[at]
            continue
        if one.id not in candidates or len(plans) != 1 or _looked_up(one.id, plans[0]):
            continue
        if _reads(one.id, plans[0]) * _size(one.plan) > _MOST_COMPUTED:
            continue
        for number in readers:
            kept[number] = replace(kept[number], plan=_computed(kept[number].plan, one))
            read[kept[number].id] = collections_read(kept[number].plan)
        output = _computed(output, one)
        del kept[at]
    ids = {one.id: GlobalId(f"arrangement:{number}") for number, one in enumerate(kept, start=1)}
    numbered = (replace(one, id=ids[one.id], plan=_renamed(one.plan, ids)) for one in kept)
    return tuple(numbered), _renamed(output, ids)


def _reads(id: GlobalId, plan: Physical) -> int:
    """Returns in how many places `plan` reads the collection `id`."""
    if isinstance(plan, ReadCollection):
        return int(plan.id == id)
    return sum(_reads(id, one) for one in physical_inputs(plan))


def _size(plan: Physical) -> int:
    """Returns of how many operators `plan` consists."""
    return 1 + sum(map(_size, physical_inputs(plan)))


def _looked_up(id: GlobalId, plan: Physical) -> bool:
    """Returns whether a join in `plan` reads the collection `id`."""
    if isinstance(plan, DeltaJoin):
        return id in collections_read(plan)
    return any(_looked_up(id, one) for one in physical_inputs(plan))


def _computed(plan: Physical, arrangement: Arrangement) -> Physical:
    """Returns `plan` with the arrangement's own plan where it read the arrangement."""
    if isinstance(plan, ReadCollection):
        return arrangement.plan if plan.id == arrangement.id else plan
    if arrangement.id not in collections_read(plan):
        return plan
    inputs = [_computed(one, arrangement) for one in physical_inputs(plan)]
    if isinstance(plan, Linear):
        return linear_over(inputs[0], plan.mfp, plan.relation_type)
    return with_physical_inputs(plan, inputs)


def _renamed(plan: Physical, ids: dict[GlobalId, GlobalId]) -> Physical:
    """Returns `plan` with what it reads under its new id, by which EXPLAIN calls it, too."""
    if isinstance(plan, ReadCollection) and plan.id in ids:
        return replace(plan, id=ids[plan.id], name=str(ids[plan.id]))
    return with_physical_inputs(plan, [_renamed(one, ids) for one in physical_inputs(plan)])
