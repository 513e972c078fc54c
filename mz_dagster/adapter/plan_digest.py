"""By what a plan is known to be the one whose outputs are on disk as arrangements.

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
    """Returns a digest of the plans whose outputs are on disk as arrangements; ids and names do not count."""
    found = _digests.get(id(plan))
    return remember_digest(plan, _made(plan)) if found is None else found[1]


def remember_digest(plan: MaintainedPlan, digest: str) -> str:
    """Remembers the digest of a plan, and returns it."""
    with _lock:
        _digests[id(plan)] = plan, digest
        while len(_digests) > _REMEMBERED:
            _digests.popitem(last=False)
    return digest


def _made(plan: MaintainedPlan) -> str:
    ids: dict[GlobalId, GlobalId] = {}
    text = []
    for one in plan.arrangements:
        for id in _in_order(one.plan):
            ids.setdefault(id, GlobalId(f"#{len(ids)}"))
        text.append(f"{one.key} {without_names(rename_collections(one.plan, ids))!r}")
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def _in_order(plan: Physical) -> list[GlobalId]:
    """Returns the collections that a plan reads, in the order in which it names them."""
    if isinstance(plan, ReadCollection):
        return [plan.id]
    return [id for one in physical_inputs(plan) for id in _in_order(one)]
