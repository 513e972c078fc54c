"""Which rows of a partition window functions can see change: those that lie near, where functions see only so far.

`lag`, `lead` and frames of ROWS between two distances see at most so many rows away, the *reach* r. Where all functions
of a window do, a change alters values of the r rows before and behind it, which see r rows farther. So

    rows with at most 2 r others between them and one that changes

are all that is looked at: what is left out has the values that it had, and so has of what is kept each row that sees
none that changes, in every version the same, whatever is beside it there.

Rows are kept with all that are equal to them in the first column that they are sorted by, and what lies between is
counted of values at which nothing changes: rather too little, so that rather too much is kept.

Measured against it: see `window_functions`.

Cost: one column of the partitions is sorted, not every one in each version.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mz_dagster.compute.algebra.frame import DIFF
from mz_dagster.compute.local.coded_rows import CodedRows, sorting_codes
from mz_dagster.compute.local.expressions.numbers import integers
from mz_dagster.compute.local.window_frames import FAR, Integers
from mz_dagster.plan.physical import Staged, Windowed
from mz_dagster.plan.relation import ColumnOrder, FrameExclusion, FrameUnit, WindowFrame
from mz_dagster.storage.row_numbers import numbered, order_by, whole

#: Frames that what is equal beside the current row does not change.
_BY_PLACE = (FrameExclusion.NO_OTHERS, FrameExclusion.CURRENT_ROW)


def near(changes: pa.Table, state: pa.Table, node: Staged) -> pa.Table:
    """Returns the rows of a window's state that are near enough to a change to matter; all, if they are few or any may.

    Args:
        changes: The input's rows that change, at least one: columns `c0`, `c1`, ..., and others.
        state: Rows of the state's first level, of the partitions that change and perhaps others: its columns, which
            have the input's from `c2` on.
        node: The window.
    """
    function = node.function
    assert isinstance(function, Windowed)
    arity = node.input.relation_type.arity
    held = state.select([f"c{2 + k}" for k in range(arity)]).rename_columns([f"c{k}" for k in range(arity)])
    by = next(_sorted_by(node, function), None)
    reach = None if by is None or len(held) <= len(changes) else _reach(function, (changes, held))
    diffs = state.column(DIFF)
    # So many rows at least are kept for each change, as far as there are any.
    if by is None or reach is None or len(held) <= 4 * reach * len(changes) or _most(diffs) > FAR:
        return state
    both = pa.concat_tables([one.select([f"c{k}" for k in (*node.group, by.position)]) for one in (changes, held)])
    *groups, column = both.columns
    partitions, _ = numbered([whole(one) for one in groups], len(both), signs=False)
    keys = sorting_codes(CodedRows(pa.table([column], ["c"]), len(both)).compared[0], by)
    order = order_by([partitions, keys])
    partitions, keys = partitions[order], keys[order]
    is_next = np.append(True, (np.diff(partitions) != 0) | (np.diff(keys) != 0))
    # Rows that are equal so far are one value.
    value = np.empty(len(both), np.int64)
    value[order] = np.cumsum(is_next) - 1
    changed, kept = value[: len(changes)], value[len(changes) :]
    is_kept = _values_near(changed, kept, integers(whole(diffs)), partitions[is_next], 2 * reach)
    return state.filter(pa.array(is_kept[kept]))


def _values_near(
    changed: Integers, held: Integers, diffs: Integers, partition: Integers, reach: int
) -> NDArray[np.bool_]:
    """Returns for each value whether it changes, or fewer rows than `reach` lie between it and one that does.

    Args:
        changed: The numbers, in order, of values that change.
        held: Those of rows that are held.
        diffs: How often each of these is there.
        partition: Of each value the number of its partition.
        reach: How far it is.
    """
    numbers = np.arange(len(partition))
    is_near = np.zeros(len(partition), np.bool_)
    is_near[changed] = True
    copies = np.zeros(len(partition), np.int64)
    np.add.at(copies, held, diffs)
    until = np.append(0, np.cumsum(np.where(is_near, 0, np.maximum(copies, 0))))
    before = np.maximum.accumulate(np.where(is_near, numbers, -1))
    behind = np.minimum.accumulate(np.where(is_near, numbers, len(numbers))[::-1])[::-1]
    first, last = np.maximum(before, 0), np.minimum(behind, len(numbers) - 1)
    is_near |= (before >= 0) & (partition[first] == partition) & (until[:-1] - until[first + 1] < reach)
    is_near |= (behind < len(numbers)) & (partition[last] == partition) & (until[last] - until[1:] < reach)
    return is_near


def _sorted_by(node: Staged, function: Windowed) -> Iterator[ColumnOrder]:
    """Yields what rows of a partition are sorted by."""
    rest = (ColumnOrder(k, descending=False, nulls_first=False) for k in range(node.input.relation_type.arity))
    return (one for one in (*function.order, *rest) if one.position not in node.group)


def _reach(function: Windowed, rows: tuple[pa.Table, ...]) -> int | None:
    """Returns how many rows away functions see at most; None if nothing bounds it."""
    farthest = 0
    for one in function.functions:
        match one.name:
            case "lag" | "lead" if one.ignore_nulls:
                return None
            case "lag" | "lead" if len(one.arguments) > 1:
                own = max(_most(part.column(f"c{one.arguments[1]}")) for part in rows)
            case "lag" | "lead":
                own = 1
            case _ if one.frame is None or (reached := _reach_of(one.frame)) is None:
                return None
            case _:
                own = reached
        farthest = max(farthest, own)
    return farthest if farthest < FAR else None


def _reach_of(frame: WindowFrame) -> int | None:
    """Returns how many rows away a frame's ends are at most; None if that is not known."""
    ends = [one.offset.value for one in (frame.start, frame.end) if not one.unbounded and one.offset is not None]
    offsets = [one for one in ends if isinstance(one, int)]
    if frame.unit is not FrameUnit.ROWS or frame.exclusion not in _BY_PLACE or len(offsets) < 2:
        return None
    return max(abs(one) for one in offsets)


def _most(column: pa.ChunkedArray) -> int:
    """Returns the greatest absolute value of integers, 0 of none."""
    ends: dict[str, int | None] = pc.min_max(column).as_py()
    return max(abs(one or 0) for one in ends.values())
