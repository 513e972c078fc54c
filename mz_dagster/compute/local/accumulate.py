"""Counts and sums over few updates, in this process: which states `local.sums` advances, and their errors.

The sums are of bigints and of numerics of one scale, exactly. What leaves the range of its type is `Declined`, and left
to Spark, which tells the error.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.algebra.frame import ERROR, by_position
from mz_dagster.compute.local.join import failed
from mz_dagster.compute.local.sums import Sums, summed_by_key
from mz_dagster.compute.lookups.lookup_keys import is_key
from mz_dagster.plan.physical import Accumulate
from mz_dagster.scalars.types import Kind, ScalarType
from mz_dagster.storage.arrow_schema import update_schema

_INTEGERS = frozenset({Kind.INT2, Kind.INT4, Kind.INT8})


def can_accumulate(node: Accumulate) -> bool:
    """Returns whether a state is one that `accumulate_updates` advances."""
    state, given = node.relation_type.columns, node.input.relation_type.columns
    sums = [(one.type, own.type) for one, own in zip(given[node.key_arity :], state[node.key_arity + 1 :], strict=True)]
    return all(is_key(one) for one in state[: node.key_arity]) and all(_is_summed(*one) for one in sums)


def _is_summed(given: ScalarType, own: ScalarType) -> bool:
    if own.kind is Kind.INT8:
        return given.kind in _INTEGERS
    return own.kind is Kind.NUMERIC and given == own


def accumulate_updates(changes: pa.Table, state: pa.Table, node: Accumulate) -> pa.Table:
    """Returns the updates of a state that `can_accumulate` which the input's `changes` make, at their times.

    Args:
        changes: Of the input: columns `c0`, `c1`, ..., then time, diff and error.
        state: The updates of the touched keys before the interval, and perhaps others, in the same form.
        node: The operator.

    Returns:
        As `changes`, consolidated in the data part.

    Raises:
        Declined: A sum is out of range.
    """
    good = changes.filter(pc.is_null(changes.column(ERROR)))
    state = state.filter(pc.is_null(state.column(ERROR)))
    schema = update_schema(by_position(node.relation_type))
    updates = summed_by_key(good, state, Sums(node.key_arity, schema))
    return pa.concat_tables([updates, failed(changes, schema)])
