"""Updates as Debezium tells them: what a key's row was before, what it is after, and which of the two there is.

Of the updates of one time, a row that goes and one that comes under the same key are one event, `u`. One that only
comes is `c`, or `r` if it was there when the sink began, one that only goes `d`. With the events in the order of their
times, the rows after minus those before are the collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.storage.row_numbers import compact, numbered, ranked, whole
from mz_dagster.storage.shards import DIFF, TIME

_Ids = np.ndarray[Any, np.dtype[np.int64]]


def event_schema(rows: pa.Schema) -> pa.Schema:
    """Returns the schema of events about rows with times and diffs."""
    row = pa.struct([one for one in rows if one.name not in (TIME, DIFF)])
    return pa.schema([("before", row), ("after", row), ("op", pa.string()), ("ts_ms", pa.int64())])


def change_events(updates: pa.Table, key: Sequence[str], *, are_first: bool) -> pa.Table:
    """Returns the events that updates are, in the order of their times.

    Args:
        updates: Rows with times and diffs.
        key: The columns that tell rows apart.
        are_first: Whether they are what a collection held at first.

    Example:
        >>> rows = {"k": [1, 1, 2], "v": ["a", "b", "c"], "mz_timestamp": [5, 5, 5], "mz_diff": [-1, 1, 1]}
        >>> events = change_events(pa.table(rows), ["k"], are_first=False).to_pylist()
        >>> [(one["op"], one["before"] and one["before"]["v"], one["after"]["v"]) for one in events]
        [('u', 'a', 'b'), ('c', None, 'c')]
    """
    diffs = updates.column(DIFF)
    sides = [
        repeated(some, pc.abs(some.column(DIFF)))
        for some in (updates.filter(pc.less(diffs, 0)), updates.filter(pc.greater(diffs, 0)))
    ]
    both = pa.concat_tables(sides)
    numbers, _ = numbered([whole(both.column(name)) for name in (TIME, *key)], len(both))
    ids, _ = compact(numbers)
    split = len(sides[0])
    pairs = ids * (len(both) + 1) + np.concatenate([nth(ids[:split]), nth(ids[split:])])
    events, of_row = ranked(pairs)
    places = [np.full(len(events), -1), np.full(len(events), -1)]
    places[0][of_row[:split]] = np.arange(split)
    places[1][of_row[split:]] = np.arange(len(both) - split)
    is_gone, is_there = places[0] >= 0, places[1] >= 0
    times = np.empty(len(events), np.int64)
    times[of_row] = both.column(TIME).to_numpy()
    order = np.argsort(times, kind="stable")
    came = "r" if are_first else "c"
    ops = np.where(is_gone & is_there, "u", np.where(is_there, came, "d"))
    schema = event_schema(updates.schema)
    before, after = (_structs(side, place[order]) for side, place in zip(sides, places, strict=True))
    return pa.Table.from_arrays(
        [before, after, pa.array(ops[order].tolist(), pa.string()), pa.array(times[order])], schema=schema
    )


def updates_of_events(events: pa.Table, rows: pa.Schema) -> pa.Table:
    """Returns the updates that events are: rows with times and diffs.

    Example:
        >>> updates = pa.table({"k": [1, 2], "mz_timestamp": [5, 6], "mz_diff": [1, -1]})
        >>> updates_of_events(change_events(updates, ["k"], are_first=False), updates.schema).equals(updates)
        True
    """
    sides = []
    for name, diff in (("before", -1), ("after", 1)):
        there = events.filter(pc.is_valid(events.column(name)))
        columns = whole(there.column(name)).flatten()
        diffs = pa.repeat(pa.scalar(diff, pa.int64()), len(there))
        sides.append(pa.Table.from_arrays([*columns, whole(there.column("ts_ms")), diffs], schema=rows))
    found = pa.concat_tables(sides)
    return found.sort_by([(TIME, "ascending")])


def nth(ids: _Ids) -> _Ids:
    """Returns for each id how many equal ones come before it.

    Example:
        >>> nth(np.array([7, 5, 7, 7])).tolist()
        [0, 0, 1, 2]
    """
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.searchsorted(ordered, ordered)
    found = np.empty(len(ids), np.int64)
    found[order] = np.arange(len(ids)) - starts
    return found


def repeated(rows: pa.Table, copies: pa.ChunkedArray) -> pa.Table:
    """Returns each row as often as it is there."""
    if pc.all(pc.equal(copies, 1)).as_py() is not False:
        return rows
    return rows.take(pa.array(np.repeat(np.arange(len(rows)), copies.to_numpy())))


def _structs(rows: pa.Table, places: _Ids) -> pa.Array:
    """Returns rows as values, NULL where there is none."""
    is_none = pa.array(places < 0)
    found = rows.drop_columns([TIME, DIFF]).take(pa.array(places, mask=places < 0))
    return pa.StructArray.from_arrays([whole(one) for one in found.columns], fields=list(found.schema), mask=is_none)
