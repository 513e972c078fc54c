"""What a tournament needs of its state, without the rows of buckets whose first rows stay: `staged` of large groups.

Many changes of a large group are in many of its finest buckets: two thousand in most of a thousand, so that all of the
group would be looked at, though first rows seldom go. What a stage makes of a bucket are rows of the input, its *first
rows*: the level above has them, and their hashes tell which bucket each is of. If no change takes one of them away,

    the bucket's first rows in each version  =  the first ones among them and the rows that change,

since every other row comes after as many as there can be. So such a bucket is *spared*: its first rows stand for it,
and the rows that change, as often as they were there before, which tells a multiplicity that becomes negative. The
others are *opened*, that is looked at whole.

The same as `spark.tournament.top_stages` does, for first rows; and for one extreme, which is the first row of a bucket,
too. Of several extremes together a bucket's result is no row of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.algebra.frame import DIFF, ERROR
from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.physical import Extremes, Staged, TopRows
from mz_dagster.storage.row_numbers import compact, firsts, numbered, sums, whole

#: Returns updates of a state before the interval: told values of its columns by their positions, those that have them,
#: and perhaps others.
StateLookup = Callable[[Mapping[int, pa.ChunkedArray]], pa.Table]
#: Returns the hash of each row of the input's columns.
Hashes: TypeAlias = NDArray[np.uint64]
Hashed = Callable[[pa.Table], Hashes]

#: So many of its buckets change, on average, where a group is large.
_MANY_BUCKETS = 4


def prunes_buckets(node: Staged, rows: pa.Table, hashes: Hashes) -> bool:
    """Returns whether buckets are to be spared.

    Args:
        node: The tournament.
        rows: Those that change: the input's columns, `c0`, `c1`, ...
        hashes: Theirs.
    """
    match node.function:
        case TopRows(limit=limit):
            has_first = limit is not None
        case Extremes(functions):
            has_first = len(functions) == 1 and functions[0] in (AggregateFunction.MIN, AggregateFunction.MAX)
        case _:
            has_first = False
    if not has_first or node.monotonic or node.last_level < 2:
        return False
    groups = [whole(rows.column(f"c{position}")) for position in node.group]
    places = [pa.array(buckets_of(hashes, node.buckets[0])), *groups]
    return _count(places, len(rows)) >= _MANY_BUCKETS * _count(groups, len(rows))


def pruned_state(
    node: Staged, rows: pa.Table, hashes: Hashes, above: pa.Table, lookup: StateLookup, hashed: Hashed
) -> pa.Table:
    """Returns the state at the places that rows may change, what stands for a spared bucket in place of its rows.

    Args:
        node: The tournament, which `prunes_buckets`.
        rows: Those that change, with their diffs: the input's columns, `c0`, `c1`, ..., and `mz_diff` among others.
        hashes: Theirs.
        above: The state at these places but for its first level.
        lookup: Finds updates of the state before the interval.
        hashed: Tells hashes.
    """
    names = [f"c{position}" for position in range(node.input.relation_type.arity)]
    shifted = [f"c{2 + position}" for position in range(len(names))]
    group = [f"c{position}" for position in node.group]
    winners = _summed(above.filter(pc.equal(above.column("c0"), 1)), shifted)
    first_rows = winners.select(shifted).rename_columns(names)
    first_rows = first_rows.append_column("bucket", _bucket_column(hashed(first_rows), node.buckets[0]))
    changed = rows.select(names).append_column("bucket", _bucket_column(hashes, node.buckets[0]))
    retracted = changed.filter(pc.less(rows.column(DIFF), 0))
    opened = retracted.filter(pa.array(among(retracted.select(names), first_rows.select(names))))

    def in_places(rows: pa.Table, of: pa.Table) -> NDArray[np.bool_]:
        return among(rows.select(["bucket", *group]), of.select(["bucket", *group]), signs=False)

    # As often as they were there, rows that change; and the whole of what is opened.
    level = pa.chunked_array([pa.array(np.zeros(len(changed), np.int32))])
    same = _first_level(lookup({0: level, **{2 + i: changed.column(name) for i, name in enumerate(names)}}))
    held = same.select(["c1", *shifted]).rename_columns(["bucket", *names])
    found = [above]
    kept = among(held.select(names), changed.select(names)) & ~in_places(held, opened)
    found.append(same.filter(pa.array(kept)))
    if len(opened):
        level = level.slice(0, len(opened))
        by_group = {2 + position: opened.column(f"c{position}") for position in node.group}
        whole_buckets = _first_level(lookup({0: level, 1: opened.column("bucket"), **by_group}))
        at = whole_buckets.select(["c1", *(f"c{2 + position}" for position in node.group)]).rename_columns(
            ["bucket", *group]
        )
        found.append(whole_buckets.filter(pa.array(in_places(at, opened))))
    stands = ~among(first_rows.select(names), changed.select(names)) & ~in_places(first_rows, opened)
    stands &= in_places(first_rows, changed)
    schema = above.schema
    columns = {"c0": pa.array(np.zeros(len(winners), np.int32)), "c1": first_rows.column("bucket")}
    columns |= {name: winners.column(name) for name in (*shifted, DIFF)}
    nothing = {field.name: pa.nulls(len(winners), field.type) for field in schema if field.name not in columns}
    standing = pa.table({field.name: (columns | nothing)[field.name] for field in schema}).cast(schema)
    found.append(standing.filter(pa.array(stands)))
    return pa.concat_tables([one.select(schema.names) for one in found])


def _first_level(state: pa.Table) -> pa.Table:
    return state.filter(pc.and_(pc.is_null(state.column(ERROR)), pc.equal(state.column("c0"), 0)))


def _summed(updates: pa.Table, names: Sequence[str]) -> pa.Table:
    """Returns each row that is there, with its multiplicity."""
    numbers, _ = compact(numbered([whole(updates.column(name)) for name in names], len(updates))[0])
    total, first = sums(numbers, integers(whole(updates.column(DIFF)))), firsts(numbers)
    found = updates.select(names).take(pa.array(first)).append_column(DIFF, pa.array(total))
    return found.filter(pc.not_equal(found.column(DIFF), 0))


def among(rows: pa.Table, others: pa.Table, *, signs: bool = True) -> NDArray[np.bool_]:
    """Returns for each row whether it is one of some others, NULL being equal to NULL.

    Args:
        rows: Some columns.
        others: The same columns of other rows.
        signs: Whether -0.0 is told from 0.0.
    """
    if not len(rows) or not len(others):  # as in a first load, where there is much of the one
        return np.zeros(len(rows), np.bool_)
    both = pa.concat_tables([rows, others.cast(rows.schema)])
    numbers, _ = numbered([whole(column) for column in both.columns], len(both), signs=signs)
    return np.isin(numbers[: len(rows)], numbers[len(rows) :])


def _count(columns: Sequence[pa.Array], rows: int) -> int:
    return len(np.unique(numbered(columns, rows, signs=False)[0]))


def buckets_of(hashes: Hashes, count: int) -> NDArray[np.int64]:
    """Returns the bucket of each hash, of so many."""
    buckets: NDArray[np.int64] = (hashes % np.uint64(count)).astype(np.int64)
    return buckets


def _bucket_column(hashes: Hashes, count: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(buckets_of(hashes, count))])
