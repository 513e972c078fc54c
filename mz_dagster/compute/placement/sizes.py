"""How many updates a plan makes, as far as that is known before it is run: what decides the layout of a large write.

Too high a guess would scatter few rows over many files, so nothing is guessed: where an operator can make far fewer
rows of many, the answer is that nobody knows, the batch is written without layout, and the first compaction lays it
out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import (
    Accumulate,
    Catch,
    ConstantRows,
    DeltaJoin,
    Linear,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    TemporalState,
    UnionAll,
    Unnest,
)


def rows_at_most(plan: Physical, rows: Callable[[GlobalId], int]) -> int | None:
    """Returns about how many updates `plan` makes, or None if they may be far fewer than what is known.

    Args:
        plan: The plan.
        rows: Returns how many updates of a collection it reads.
    """
    match plan:
        case ReadCollection():
            return rows(plan.id)
        case ConstantRows():
            return len(plan.rows)
        case Linear():
            filters = any(kind == "filter" for kind, _ in plan.mfp.steps)
            return None if filters else rows_at_most(plan.input, rows)
        case NegateAll() | Repeat() | Catch():
            return rows_at_most(plan.input, rows)
        case UnionAll():
            parts = [rows_at_most(one, rows) for one in plan.inputs]
            return None if None in parts else sum(part for part in parts if part is not None)
        case Staged():
            # All rows of the input are in the state, and winners besides, unless only these are kept.
            return None if plan.monotonic else rows_at_most(plan.input, rows)
        case DeltaJoin() | Accumulate() | TemporalState() | Unnest():
            return None
        case _:
            assert_never(plan)
