"""The terms of a delta join: in which order one looks up the other inputs, and which can meet anything.

Term i takes input i's updates and meets those of input j at `t_j <= t_i` for j < i and at `t_j < t_i` for j > i, so
that every tuple of updates is counted once; `spark.delta_join` and `local.join` both compute this sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from mz_dagster.plan.physical import DeltaJoin


def lookup_order(node: DeltaJoin, i: int) -> tuple[int, ...]:
    """Returns the order in which term i looks up the other inputs: the plan's, or theirs if it has none."""
    count = len(node.inputs)
    order = node.orders[i] if i < len(node.orders) else ()
    return order if len(order) == count - 1 else tuple(j for j in range(count) if j != i)


def meeting_terms(spans: Sequence[tuple[int, int] | None]) -> frozenset[int]:
    """Returns the terms in which updates may meet, told by bounds of the times of each input's updates.

    Of inputs that were all loaded at one time, only the last one's term makes rows.

    Example:
        >>> sorted(meeting_terms([(5, 5), (5, 5), (5, 5)]))
        [2]
        >>> sorted(meeting_terms([(5, 8), (5, 5), (9, 9)]))
        [2]
        >>> sorted(meeting_terms([(5, 8), None]))
        []
    """
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return frozenset()
    return frozenset(
        i
        for i, (_, last) in enumerate(known)
        if all(first <= last if j < i else first < last for j, (first, _) in enumerate(known) if j != i)
    )
