"""Counts and sums over few updates, in this process: `local.sums`, and the errors that pass.

The sums are of bigints and of numerics of one scale, exactly.
"""

from __future__ import annotations

import pyarrow as pa

from mz_dagster.compute.algebra.frame import by_position
from mz_dagster.compute.local.error_part import failed
from mz_dagster.compute.local.sums import Sums, summed_by_key
from mz_dagster.plan.physical import Accumulate
from mz_dagster.storage.arrow_schema import update_schema, without_errors


def accumulate_updates(changes: pa.Table, state: pa.Table, node: Accumulate) -> pa.Table:
    """Returns the updates of a state which the input's `changes` make, at their times.

    Args:
        changes: Of the input: columns `c0`, `c1`, ..., then time, diff and error.
        state: The updates of the touched keys before the interval, and perhaps others, in the same form.
        node: The operator.

    Returns:
        As `changes`, consolidated in the data part.

    Raises:
        MultiplicityOverflow: A sum is out of range.
    """
    sums = sums_of(node)
    updates = summed_by_key(without_errors(changes), without_errors(state), sums)
    return pa.concat_tables([updates, failed(changes, sums.schema)])


def sums_of(node: Accumulate) -> Sums:
    """Returns what an operator counts and adds up."""
    return Sums(node.key_arity, update_schema(by_position(node.relation_type)))
