"""Counts and sums over few updates, in this process: `accumulate` on Python's integers.

Exact, like everything here: the sums are of bigints and of numerics of one scale, as integers. What leaves the range of
its type is `NotFew`, and left to Spark, which tells the error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.few_join import NotFew, failed
from mz_dagster.compute.frame import DIFF, ERROR, TIME, by_position, positional
from mz_dagster.compute.lookup_keys import is_key
from mz_dagster.plan.functions.pure.numerics import scaled, unscaled
from mz_dagster.plan.physical import Accumulate
from mz_dagster.plan.types import Kind, ScalarType
from mz_dagster.storage.local_shards import update_schema

_INTEGERS = frozenset({Kind.INT2, Kind.INT4, Kind.INT8})


def is_summed_here(node: Accumulate) -> bool:
    """Returns whether a state is one that `few_sums` advances."""
    state, given = node.relation_type.columns, node.input.relation_type.columns
    sums = [(one.type, own.type) for one, own in zip(given[node.key_arity :], state[node.key_arity + 1 :], strict=True)]
    return all(is_key(one) for one in state[: node.key_arity]) and all(_is_summed(*one) for one in sums)


def _is_summed(given: ScalarType, own: ScalarType) -> bool:
    if own.kind is Kind.INT8:
        return given.kind in _INTEGERS
    return own.kind is Kind.NUMERIC and given == own


def few_sums(changes: pa.Table, state: pa.Table, node: Accumulate) -> pa.Table:
    """Returns the updates of a state that `is_summed_here` which the input's `changes` make, at their times.

    Args:
        changes: Of the input: columns `c0`, `c1`, ..., then time, diff and error.
        state: The updates of the touched keys before the interval, and perhaps others, in the same form.
        node: The operator.

    Returns:
        As `changes`, consolidated in the data part.

    Raises:
        NotFew: A sum is out of range.
    """
    good = changes.filter(pc.is_null(changes.column(ERROR)))
    state = state.filter(pc.is_null(state.column(ERROR)))
    keys = list(positional(node.key_arity))
    columns = node.relation_type.columns[node.key_arity :]
    scales = [one.type.scale if one.type.kind is Kind.NUMERIC else None for one in columns]
    groups = _groups(good, state, keys)
    # Of the state only rows of these keys are looked at any more.
    met = [row - len(good) for rows in groups for row in rows if row >= len(good)]
    state = state.take(pa.array(met, pa.int64()))
    place = {row + len(good): at for at, row in enumerate(met)}
    # Of changes, the number of rows is what the diff is multiplied with: 1.
    cells = [[1] * len(good)] + [
        _integers(good.column(f"c{position}"), scale) for position, scale in enumerate(scales[1:], node.key_arity)
    ]
    prior = [_integers(state.column(f"c{position}"), scale) for position, scale in enumerate(scales, node.key_arity)]
    diffs, prior_diffs = good.column(DIFF).to_pylist(), state.column(DIFF).to_pylist()
    times = good.column(TIME).to_pylist()
    representatives: list[int] = []
    found: list[tuple[int, int, list[int]]] = []
    for rows in groups:
        by_time: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(scales))
        held = [0] * len(scales)
        for row in rows:
            if row < len(good):
                into, at, values, diff = by_time[times[row]], row, cells, diffs[row]
            else:
                at = place[row]
                into, values, diff = held, prior, prior_diffs[at]
            for n, column in enumerate(values):
                into[n] += diff * column[at]
        for time in sorted(by_time):
            change = by_time[time]
            if not any(change):
                continue
            after = [a + b for a, b in zip(held, change, strict=True)]
            for diff, totals in ((-1, held), (1, after)):
                if any(totals):
                    representatives.append(min(rows))
                    found.append((time, diff, totals))
            held = after
    chosen = good.select(keys).take(pa.array(representatives, pa.int64()))
    schema = update_schema(by_position(node.relation_type))
    sums = [
        _stored([totals[n] for _, _, totals in found], scale, schema.field(node.key_arity + n).type)
        for n, scale in enumerate(scales)
    ]
    meta = [
        pa.array([time for time, _, _ in found], pa.int64()),
        pa.array([diff for _, diff, _ in found], pa.int64()),
        pa.nulls(len(found), pa.string()),
    ]
    updates = pa.Table.from_arrays([*(chosen.column(key) for key in keys), *sums, *meta], schema=schema)
    return pa.concat_tables([updates, failed(changes, schema)])


def _groups(changes: pa.Table, state: pa.Table, keys: list[str]) -> list[list[int]]:
    """Returns the numbers of the rows of each key that changes has, those of `state` following on those of changes."""
    count = len(changes) + len(state)
    if not keys:
        return [list(range(count))] if len(changes) else []
    whole = pa.concat_tables([changes.select(keys), state.select(keys)])
    numbered = whole.append_column("mz_row", pa.array(range(count), pa.int64()))
    grouped = numbered.group_by(keys, use_threads=False).aggregate([("mz_row", "list"), ("mz_row", "min")])
    changed = grouped.filter(pc.less(grouped.column("mz_row_min"), len(changes)))
    rows: list[list[int]] = changed.column("mz_row_list").to_pylist()
    return rows


def _integers(column: pa.ChunkedArray, scale: int | None) -> list[int]:
    cells: list[Any] = column.to_pylist()
    if None in cells:
        raise NotFew("a contribution is NULL")
    return cells if scale is None else [unscaled(one, scale) for one in cells]


def _stored(totals: Sequence[int], scale: int | None, type_: pa.DataType) -> pa.Array:
    if any(abs(one) >= (2**63 if scale is None else 10**38) for one in totals):
        raise NotFew("a sum is out of range, which is Spark's to tell")
    return pa.array(totals if scale is None else [scaled(one, scale) for one in totals], type_)
