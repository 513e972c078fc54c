"""ENVELOPE UPSERT over what the commits of a table change: what the last commit says of a key is its state.

Let a commit c add and take away rows, both summed to what it changes. The state of a key k is a multiset of rows,

    S(k, c) = the rows that c adds with key k                           if it adds any, else
              S(k, c - 1) less the rows that c takes away with key k

so a later commit's row replaces an earlier one's, whether that still is in the table or not; UPDATE and MERGE replace
as they do in the table, DELETE of a key's row deletes the key, and removal of rows that were replaced long ago
(retention) changes nothing. Of the table that is read whole, which has no order of its rows, S(k) is all its rows of k.

A state of one row is that row. Of one that has several it cannot be said which is meant: each stands as an error, with
the row's columns beside it, so that the collection alone says what S(k) is, and a commit that leaves one heals the key.

A row whose own key cannot be told is no state of any key. It is an error for as long as the table has it.

State: none but the collection itself. Cost: rows of touched keys are numbered in this process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mz_dagster.scalars.types import Column
from mz_dagster.storage.row_numbers import compact, numbered, sums, whole
from mz_dagster.storage.shards import DIFF, ERROR, TIME

_REPEATED = "23505 the table has several rows of one key at once: "


def first_states(rows: pa.Table, *, key: Sequence[Column]) -> pa.Table:
    """Returns the updates by which a collection becomes the states of a table that is read whole.

    Args:
        rows: The table's, as insertions at one time, consolidated; those with an error have no columns but the key.
        key: The columns that are the key, as they are stored.
    """
    keys, _ = compact(numbered([whole(rows.column(one.name)) for one in key], len(rows), signs=False)[0])
    several = sums(keys, rows.column(DIFF).to_numpy())[keys] > 1
    return _with_errors(rows, several & ~_unkeyed(rows, key), key)


def updates(commits: Sequence[pa.Table], prior: pa.Table, *, key: Sequence[Column]) -> pa.Table:
    """Returns the updates that commits make, each at its time.

    Args:
        commits: What each adds and takes away, consolidated, in order.
        prior: What the collection holds before them, consolidated, at least of the keys in them.
        key: The columns that are the key, as they are stored.
    """
    changes = [one.filter(pa.array(~_unkeyed(one, key))) for one in commits]
    faults = [one.filter(pa.array(_unkeyed(one, key))) for one in commits]
    held = _as_rows(prior.filter(pa.array(~_unkeyed(prior, key))).select(commits[0].column_names))
    states = pa.concat_tables([held, *changes])
    names = [one for one in states.column_names if one not in (TIME, DIFF)]
    rows = numbered([whole(states.column(one)) for one in names], len(states))[0].tolist()
    keys = numbered([whole(states.column(one.name)) for one in key], len(states), signs=False)[0].tolist()
    times, diffs = states.column(TIME).to_pylist(), states.column(DIFF).to_pylist()
    place = {number: at for at, number in enumerate(rows)}
    faulty = states.column(ERROR).is_valid().to_pylist()

    touched = set(keys[len(held) :])
    state: dict[int, Counter[int]] = {}
    for at in range(len(held)):
        if keys[at] in touched:
            state.setdefault(keys[at], Counter())[rows[at]] += diffs[at]
    ends = np.cumsum([len(held), *(len(one) for one in changes)]).tolist()
    spans = [range(start, stop) for start, stop in pairwise(ends) if start < stop]
    found: list[tuple[int, int, int, bool]] = []
    for tick, at_tick in groupby(spans, key=lambda span: times[span.start]):
        before: dict[int, Counter[int]] = {}
        for span in at_tick:
            comes: dict[int, Counter[int]] = {}
            goes: dict[int, Counter[int]] = {}
            for at in span:
                side = comes if diffs[at] > 0 else goes
                side.setdefault(keys[at], Counter())[rows[at]] += abs(diffs[at])
            for own in {**comes, **goes}:
                old = state.get(own, Counter())
                before.setdefault(own, old)
                state[own] = comes[own] if own in comes else old - goes[own]
        for own, old in before.items():
            found += [(place[row], tick, diff, several) for row, several, diff in _difference(old, state[own])]
    out = states.take(pa.array([at for at, *_ in found], pa.int64()))
    for name, position in ((TIME, 1), (DIFF, 2)):
        values = pa.array([one[position] for one in found], pa.int64())
        out = out.set_column(out.schema.get_field_index(name), name, values)
    mask = np.array([several and not faulty[at] for at, _, _, several in found], bool)
    return pa.concat_tables([_with_errors(out, mask, key), *faults])


def _difference(old: Counter[int], new: Counter[int]) -> Iterator[tuple[int, bool, int]]:
    """Yields the updates from one state to another: row, whether it is one of several, diff."""
    for state, sign in ((old, -1), (new, 1)):
        several = state.total() > 1
        for row, count in state.items():
            yield row, several, sign * count


def _unkeyed(rows: pa.Table, key: Sequence[Column]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Returns which rows have a key that cannot be told: a key has no NULL."""
    found = np.zeros(len(rows), bool)
    for one in key:
        found |= rows.column(one.name).is_null().to_numpy()
    return found


def _with_errors(
    rows: pa.Table, several: np.ndarray[tuple[int], np.dtype[np.bool_]], key: Sequence[Column]
) -> pa.Table:
    """Returns rows of which some are one of several of their key."""
    if not several.any():
        return rows
    errors = rows.column(ERROR).to_pylist()
    named = ", ".join(one.name for one in key)
    values = zip(*(rows.column(one.name).to_pylist() for one in key), strict=True)
    for at, own in enumerate(values):
        if several[at] and errors[at] is None:
            errors[at] = f"{_REPEATED}({named})=({', '.join(map(str, own))})"
    return rows.set_column(rows.schema.get_field_index(ERROR), ERROR, pa.array(errors, pa.string()))


def _as_rows(prior: pa.Table) -> pa.Table:
    """Returns what a collection holds, those that are one of several as the rows they are."""
    errors = prior.column(ERROR)
    repeated = pc.fill_null(pc.starts_with(errors, _REPEATED), False)
    cleared = pc.if_else(repeated, pa.scalar(None, pa.string()), errors)
    return prior.set_column(prior.schema.get_field_index(ERROR), ERROR, cleared)
