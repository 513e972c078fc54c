"""Temporal filters over few updates, in this process: what `temporal` says, row by row.

Of the state only the rows matter that fall due in the interval. The catalog knows when the next one does, so that a
state that waits is not read at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.compute.algebra.frame import DIFF, ERROR, TIME
from mz_dagster.compute.local.linear_operators import plan_schema
from mz_dagster.compute.local.multiplicities import products
from mz_dagster.functions.evaluation import Evaluate, compiled
from mz_dagster.functions.registry import SqlFailure
from mz_dagster.plan.physical import TemporalState
from mz_dagster.scalars.scalar import columns_of
from mz_dagster.storage.plain_cells import plain_rows


class _Event(NamedTuple):
    """What happens to a row: its diff, times `factor`, for the row with these bounds and this validity."""

    row: int
    start: int | None
    end: int | None
    valid: bool | None
    time: int
    factor: int
    error: str | None = None


def temporal_updates(changes: pa.Table, own: pa.Table, node: TemporalState, lower: int, upper: int) -> pa.Table:
    """Returns a state's updates in `[lower, upper)`: those that `changes` make, and what falls due.

    Args:
        changes: Of the input: columns `c0`, `c1`, ..., then time, diff and error.
        own: The state's updates before `lower`, in the same form, of which only those matter that fall due.
        node: The operator, all of whose scalars are evaluated in this process.
        lower: The beginning of the interval.
        upper: Its end.

    Raises:
        MultiplicityOverflow: A diff is out of range.
    """
    arity = node.input.relation_type.arity
    due = own.filter(_is_due(own, arity, lower, upper))
    bounds = [due.column(arity + n).to_pylist() for n in range(3)]
    events = list(_arrived(changes, node, upper))
    for row, (start, end, valid) in enumerate(zip(*bounds, strict=True), len(changes)):
        events += _fallen_due(row, start, end, valid, upper)
    data = [f"c{position}" for position in range(arity)]
    given = pa.concat_tables([changes.select([*data, DIFF]), due.select([*data, DIFF])])
    chosen = given.take(pa.array([one.row for one in events], pa.int64()))
    schema = plan_schema(node)
    diffs = products(chosen.column(DIFF), pa.array([one.factor for one in events], pa.int64()))
    made = [
        pa.array([one.start for one in events], schema.field(arity).type),
        pa.array([one.end for one in events], schema.field(arity + 1).type),
        pa.array([one.valid for one in events], schema.field(arity + 2).type),
        pa.array([one.time for one in events], pa.int64()),
        diffs,
        pa.array([one.error for one in events], pa.string()),
    ]
    return pa.Table.from_arrays([*chosen.columns[:arity], *made], schema=schema)


def _is_due(own: pa.Table, arity: int, lower: int, upper: int) -> pa.ChunkedArray:
    start, end, valid = (own.column(arity + n) for n in range(3))
    turns = pc.if_else(valid, end, start)
    return pc.and_(pc.greater_equal(turns, lower), pc.less(turns, upper))


def _arrived(changes: pa.Table, node: TemporalState, upper: int) -> Iterator[_Event]:
    """Yields what updates make before `upper`."""
    asked = {position for one in (*node.lower, *node.upper) for position in columns_of(one)}
    rows = plain_rows(changes, node.input.relation_type.columns, asked)
    lower, latest = [compiled(one) for one in node.lower], [compiled(one) for one in node.upper]
    times, errors = changes.column(TIME).to_pylist(), changes.column(ERROR).to_pylist()
    for row, (cells, time, error) in enumerate(zip(rows, times, errors, strict=True)):
        if error is None:
            try:
                found = _bounds(cells, lower, latest)
            except SqlFailure as failure:
                error = str(failure)
        if error is not None:
            yield _Event(row, None, None, None, time, 1, error)
        elif found is not None:
            yield from _lives(row, *found, time, upper)


def _bounds(
    row: dict[int, Any], lower: Sequence[Evaluate], latest: Sequence[Evaluate]
) -> tuple[int, int | None] | None:
    """Returns from when and until when a row is valid, None if it never is: a NULL is no time."""
    starts, ends = [one(row) for one in lower], [one(row) for one in latest]
    if None in starts or None in ends:
        return None
    start, end = max(starts, default=0), min(ends, default=None)
    return None if end is not None and end <= start else (start, end)


def _lives(row: int, start: int, end: int | None, time: int, upper: int) -> Iterator[_Event]:
    """Yields what happens before `upper` to a row that arrives with bounds."""
    first = max(time, start)
    if end is not None and end <= first:
        return
    if start > time:
        yield _Event(row, start, end, False, time, 1)
        if start < upper:
            yield _Event(row, start, end, False, start, -1)
    if first < upper:
        yield _Event(row, start, end, True, first, 1)
    if end is not None and end < upper:
        yield _Event(row, start, end, True, end, -1)


def _fallen_due(row: int, start: int, end: int | None, valid: bool, upper: int) -> Iterator[_Event]:
    """Yields what becomes before `upper` of a row of the state that is due."""
    if not valid:
        yield _Event(row, start, end, False, start, -1)
        yield _Event(row, start, end, True, start, 1)
    if end is not None and end < upper:
        yield _Event(row, start, end, True, end, -1)
