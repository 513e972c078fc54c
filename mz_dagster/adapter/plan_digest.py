"""By what a plan is known to be the one whose outputs are on disk: the view's own, and its arrangements'.

What a view holds is kept by adding what its plan makes of changes. A plan that makes something else of the same rows,
as one in which a fault was mended, would add that to what the other made.

To make a digest walks a plan, which takes milliseconds, and each process asks for those of all that it steps. So it is
kept with the plan where that is kept (`definition_cache`), and a process that opens a project again remembers it.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    MaintainedPlan,
    Physical,
    ReadCollection,
    physical_inputs,
    rename_collections,
    without_names,
)

#: So many digests a process remembers.
_REMEMBERED = 5_000

_lock = threading.Lock()
#: By the plans' identities; they are kept, so that no other gets one of theirs.
_digests: OrderedDict[int, tuple[MaintainedPlan, str]] = OrderedDict()


def plan_digest(plan: MaintainedPlan) -> str:
    """Returns a digest of the plans whose outputs are on disk: of the arrangements, then of the view; 128 hex digits.

    Ids and names do not count.
    """
    found = _digests.get(id(plan))
    return remember_digest(plan, _made(plan)) if found is None else found[1]


def is_planned_as(plan: MaintainedPlan, kept: str) -> bool:
    """Returns whether a plan is the one of which a digest was kept, which older releases took of arrangements alone."""
    return plan_digest(plan).startswith(kept)


def remember_digest(plan: MaintainedPlan, digest: str) -> str:
    """Remembers the digest of a plan, and returns it."""
    with _lock:
        _digests[id(plan)] = plan, digest
        while len(_digests) > _REMEMBERED:
            _digests.popitem(last=False)
    return digest


def _made(plan: MaintainedPlan) -> str:
    ids: dict[GlobalId, GlobalId] = {}
    arrangements = "\n".join(f"{one.key} {_text(one.plan, ids)}" for one in plan.arrangements)
    return "".join(hashlib.sha256(one.encode()).hexdigest() for one in (arrangements, _text(plan.output, ids)))


def _text(plan: Physical, ids: dict[GlobalId, GlobalId]) -> str:
    """Returns what a plan is but for the ids of what it reads; `ids` numbers them, and learns those that are new."""
    for id in _in_order(plan):
        ids.setdefault(id, GlobalId(f"#{len(ids)}"))
    return repr(without_names(rename_collections(plan, ids)))


def _in_order(plan: Physical) -> list[GlobalId]:
    """Returns the collections that a plan reads, in the order in which it names them."""
    if isinstance(plan, ReadCollection):
        return [plan.id]
    return [id for one in physical_inputs(plan) for id in _in_order(one)]
