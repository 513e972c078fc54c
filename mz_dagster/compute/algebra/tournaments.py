"""What is known of a tournament by its stage function alone."""

from __future__ import annotations

from mz_dagster.plan.physical import Extremes, StageFunction, TopRows


def leaves_one_row(function: StageFunction) -> bool:
    """Returns whether a function leaves one row of a group, which a further equal row does not change.

    Example:
        >>> leaves_one_row(TopRows((), 1)), leaves_one_row(TopRows((), 2)), leaves_one_row(TopRows((), 1, 1))
        (True, False, False)
    """
    match function:
        case TopRows(limit=1, offset=0, ties=False):
            return True
        case Extremes(functions):
            return all(one.is_idempotent for one in functions)
        case _:
            return False
