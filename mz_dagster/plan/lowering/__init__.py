"""The logical plan becomes the physical one.

Owns how maps, filters and projections fuse into one `MapFilterProject`, in which order a delta join looks up its
inputs, which state operators make an aggregation, and what is kept as an arrangement. In a maintained plan that
is the output of every state operator, every input of a join whose history cannot be read from shards, and what
several collections read: each becomes a collection of its own, `arrangement:N`. Plans that are equal become one
arrangement. In a snapshot plan, which runs once, all operators stand in place, but for what is read several times:
that is `shared:N`.

- `lowering.py`: the walk, and the arrangements.
- `fusion.py`: runs of linear operators.
- `lookup_order.py`: joins, by the sizes that their inputs have when they are stepped.
- `arrangement_elision.py`: arrangements that save nothing.
- `reduce.py`: aggregation by kind, and the join that puts the kinds together.
- `prejoin.py`: what a filtered input of a join leaves of a large one.
- `singletons.py`: inputs of a join that have at most one row.
- `staged.py`: what stands below and above tournaments.
"""

from mz_dagster.plan.lowering.lookup_order import (
    LookupOrders,
    estimated_state,
    lookup_orders,
    ordered_by_size,
    snapshot_ordered_by_size,
)
from mz_dagster.plan.lowering.lowering import lower_to_maintained_plan, lower_to_snapshot_plan
from mz_dagster.plan.lowering.stored_columns import snapshot_over_stored

__all__ = [
    "LookupOrders",
    "estimated_state",
    "lookup_orders",
    "lower_to_maintained_plan",
    "lower_to_snapshot_plan",
    "ordered_by_size",
    "snapshot_ordered_by_size",
    "snapshot_over_stored",
]
